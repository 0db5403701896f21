"""A configuration as it may be shown: secrets are blanked, everything else is as it is.

The master's settings as an administrator may see them: what is secret by its name is blanked, wherever it stands.

By name and not by place: settings that come later, and documents of the user's (storage, defaults of tasks), are
covered without being listed here.
"""

from __future__ import annotations

import json
import re

from tenax.config.master import MasterSettings
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

#: What a text that holds one of them has in it: the last key of its path that is not a star.
_KEYS = re.compile(rf'"(?:{"|".join(sorted({[one for one in path if one != "*"][-1] for path in _SECRETS}))})"\s*:')


def may_hold_secrets(text: str) -> bool:
    """Whether `without_secrets` could change a configuration of this text (as PostgreSQL prints JSON)."""
    return _KEYS.search(text) is not None


def without_secrets(document: JsonObject) -> JsonObject:
    """A copy of a configuration with each secret that is set replaced by stars. The given document stays as it is."""
    shown: Json = document
    for path in _SECRETS:
        shown = _hide(shown, path)
    assert isinstance(shown, dict)
    return shown


def _hide(value: Json, path: tuple[str, ...]) -> Json:
    if value is None or value == "":
        return value
    if not path:
        return HIDDEN
    if not isinstance(value, dict):
        return HIDDEN if path[0] == "*" else value
    names = list(value) if path[0] == "*" else [path[0]] if path[0] in value else []
    return {**value, **{name: _hide(value[name], path[1:]) for name in names}}


#: Names of what is secret; ``auth`` and ``url`` (of a database, with its password) among them.
_SECRET_NAME = re.compile(
    r"(^|_)(password|passwd|secret|token|credentials?|auth|access_key|secret_key|signing_key|api_key|private_key|"
    r"identitytoken|registrytoken|connection_string)$",
    re.IGNORECASE,
)
#: ``NAME=value`` where variables are a list.
_VARIABLE = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*)=(.*)$", re.DOTALL)


def master_config_shown(settings: MasterSettings) -> JsonObject:
    """All settings as JSON, without secrets."""
    document: JsonObject = json.loads(settings.model_dump_json())
    shown = _blanked(document, "")
    assert isinstance(shown, dict)
    return shown


def _blanked(value: Json, name: str) -> Json:
    if isinstance(value, dict):
        return {key: _blanked(item, key) for key, item in value.items()}
    if value is None or value == "":
        return value
    if _SECRET_NAME.search(name):
        return HIDDEN
    if isinstance(value, list):
        return [_blanked(item, "") for item in value]
    variable = _VARIABLE.match(value) if isinstance(value, str) else None
    if variable is not None and _SECRET_NAME.search(variable[1]):
        return f"{variable[1]}={HIDDEN}"
    return value
