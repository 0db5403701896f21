"""Where a configuration has its secrets, and a copy of it without them. Standard library only, Python 3.9.

Secret are passwords, keys and tokens at their places, and the value of every environment variable. ``own`` below is
what a user has written: a secret counts as written there if it stands at the same place.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from tenax.jsonvalue import Json, JsonObject

HIDDEN = "********"

#: Secrets in the section of a storage.
OF_STORAGE = ("access_key", "secret_key", "connection_string", "credential")
#: Each path to a secret; ``*`` stands for every key.
SECRETS: tuple[tuple[str, ...], ...] = (
    ("environment", "registry_auth", "password"),
    ("environment", "registry_auth", "auth"),
    ("environment", "registry_auth", "identitytoken"),
    ("environment", "registry_auth", "registrytoken"),
    *((section, name) for section in ("checkpoint_storage", "tensorboard_storage") for name in OF_STORAGE),
    ("data", "secrets", "*"),
    ("integrations", "pachyderm", "dataset", "token"),
)
#: Each path to variables: a list of ``NAME=value``, or one for each kind of device.
VARIABLES = (("environment", "environment_variables"), ("environment", "environment_variables", "*"))
#: Where containers of a pod have theirs.
_POD = ("environment", "pod_spec")


def without_secrets(document: JsonObject, own: Optional[JsonObject] = None) -> JsonObject:
    """A copy of a configuration with each secret that is set, and is not ``own``, replaced by stars."""
    shown: Json = document
    for path in SECRETS:
        shown = _hide(shown, path, own)
    for path in VARIABLES:
        shown = _hide_variables(shown, path, own)
    assert isinstance(shown, dict)
    environment = shown.get("environment")
    if isinstance(environment, dict) and isinstance(environment.get("pod_spec"), dict):
        pods = own.get("environment") if own else None
        if not isinstance(pods, dict) or pods.get("pod_spec") != environment["pod_spec"]:
            shown = {**shown, "environment": {**environment, "pod_spec": _hide_in_pod(environment["pod_spec"])}}
    return shown


def _hide(value: Json, path: tuple[str, ...], own: Json) -> Json:
    if value is None or value == "":
        return value
    if not path:
        return value if value == own else HIDDEN
    if not isinstance(value, dict):
        return HIDDEN if path[0] == "*" and value != own else value
    names = list(value) if path[0] == "*" else [path[0]] if path[0] in value else []
    return {**value, **{name: _hide(value[name], path[1:], _item(own, name)) for name in names}}


def _hide_variables(value: Json, path: tuple[str, ...], own: Json) -> Json:
    if isinstance(value, dict) and path:
        names = list(value) if path[0] == "*" else [path[0]] if path[0] in value else []
        return {**value, **{name: _hide_variables(value[name], path[1:], _item(own, name)) for name in names}}
    if path or not isinstance(value, list):
        return value if path or not isinstance(value, str) or value == own else _starred_variable(value)
    # What lies above comes last: a name that stands twice was set in two layers.
    written = own if isinstance(own, list) and own and value[-len(own) :] == own else []
    below = value[: len(value) - len(written)]
    return [*(_starred_variable(item) for item in below), *written]


def _starred_variable(item: Json) -> Json:
    if not isinstance(item, str):
        return HIDDEN
    name, sign, value = item.partition("=")
    return f"{name}={HIDDEN}" if sign and value else item


def _hide_in_pod(value: Json, name: str = "") -> Json:
    if isinstance(value, dict):
        secret = name == "env" and value.get("value")
        hidden: JsonObject = {"value": HIDDEN} if secret else {}
        return {**{key: _hide_in_pod(item, key) for key, item in value.items()}, **hidden}
    return [_hide_in_pod(item, name) for item in value] if isinstance(value, list) else value


def _item(value: Json, name: str) -> Json:
    return value.get(name) if isinstance(value, dict) else None
