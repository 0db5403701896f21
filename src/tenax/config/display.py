"""A configuration as it may be shown: secrets are blanked, everything else is as it is.

Secret are passwords, keys and tokens at their places, and the value of every environment variable. What a user has
written may be shown to that user; what came from a layer below (a template, the defaults of a project, a pool or the
master) never is. ``own`` below is what was written: a secret counts as written there if it stands at the same place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tenax.config.problems import ProblemReport
from tenax.jsonvalue import Json, JsonObject

HIDDEN = "********"

#: Each path to a secret; ``*`` stands for every key.
_SECRETS: tuple[tuple[str, ...], ...] = (
    ("environment", "registry_auth", "password"),
    ("environment", "registry_auth", "auth"),
    ("environment", "registry_auth", "identitytoken"),
    ("environment", "registry_auth", "registrytoken"),
    *(
        (section, name)
        for section in ("checkpoint_storage", "tensorboard_storage")
        for name in ("access_key", "secret_key", "connection_string", "credential")
    ),
    ("data", "secrets", "*"),
    ("integrations", "pachyderm", "dataset", "token"),
)
#: Each path to variables: a list of ``NAME=value``, or one for each kind of device.
_VARIABLES = (("environment", "environment_variables"), ("environment", "environment_variables", "*"))
#: Where containers of a pod have theirs.
_POD = ("environment", "pod_spec")

#: What a text that holds one of them has in it: the last key of its path that is not a star. No variable is no secret.
_KEYS = re.compile(
    rf'"(?:{"|".join(sorted({[step for step in path if step != "*"][-1] for path in _SECRETS}))})"\s*:'
    r'|"environment_variables"\s*:\s*(?!\{(?:\s*"\w+"\s*:\s*\[\],?)*\s*\}|\[\]|null)'
    r'|"pod_spec"\s*:\s*(?!null)'
)
#: Keys of a text as people write it: there what is without effect may be a secret, too.
_NAMES = re.compile(
    r"(?:passw(?:or)?d|secrets?|token|credentials?|access_key|secret_key|api_key|auth|connection_string"
    r"|environment_variables|pod_spec)[\"']?\s*:",
    re.IGNORECASE,
)


def may_hold_secrets(text: str) -> bool:
    """Whether `without_secrets` could change a configuration of this text (as PostgreSQL prints JSON)."""
    return _KEYS.search(text) is not None


def may_name_secrets(text: str) -> bool:
    """Whether a text as its owner wrote it may hold a secret anywhere."""
    return _NAMES.search(text) is not None


def without_secrets(document: JsonObject, own: JsonObject | None = None) -> JsonObject:
    """A copy of a configuration with each secret that is set, and is not ``own``, replaced by stars."""
    shown: Json = document
    for path in _SECRETS:
        shown = _hide(shown, path, own)
    for path in _VARIABLES:
        shown = _hide_variables(shown, path, own)
    assert isinstance(shown, dict)
    environment = shown.get("environment")
    if isinstance(environment, dict) and isinstance(environment.get("pod_spec"), dict):
        pods = own.get("environment") if own else None
        if not isinstance(pods, dict) or pods.get("pod_spec") != environment["pod_spec"]:
            shown = {**shown, "environment": {**environment, "pod_spec": _hide_in_pod(environment["pod_spec"])}}
    return shown


def secret_parts(document: JsonObject) -> JsonObject:
    """The sections in which secrets stand: all that `without_secrets` looks at of what somebody has written."""
    sections = {path[0] for path in (*_SECRETS, *_VARIABLES)}
    return {name: value for name, value in document.items() if name in sections}


def report_stars(document: JsonObject, report: ProblemReport) -> None:
    """Refuse what was shown without its secrets: as it is, it would be used with stars for them."""
    for at in dict.fromkeys(_stars(document)):
        report.add(at, "holds the stars that stand for a secret: give the secret itself, or leave it out")


def _stars(document: JsonObject) -> Iterator[tuple[str, ...]]:
    for path in _SECRETS:
        yield from _starred(document, path, ())
    for kind, values in _variables(document):
        yield from (kind for value in values if isinstance(value, str) and value.partition("=")[2] == HIDDEN)


def _starred(value: Json, path: tuple[str, ...], at: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if not path:
        if value == HIDDEN:
            yield at
    elif isinstance(value, dict):
        for name in value if path[0] == "*" else (path[0],):
            yield from _starred(value.get(name), path[1:], (*at, name))


def _variables(document: JsonObject) -> Iterator[tuple[tuple[str, ...], list[Json]]]:
    environment = document.get("environment")
    variables = environment.get("environment_variables") if isinstance(environment, dict) else None
    at = ("environment", "environment_variables")
    if isinstance(variables, list):
        yield at, variables
    elif isinstance(variables, dict):
        yield from (((*at, kind), values) for kind, values in variables.items() if isinstance(values, list))


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
