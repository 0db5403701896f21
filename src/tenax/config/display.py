"""A configuration as it may be shown: secrets are blanked, everything else is as it is."""

from __future__ import annotations

import re

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
_KEYS = re.compile(rf'"(?:{"|".join(sorted({[step for step in path if step != "*"][-1] for path in _SECRETS}))})"\s*:')


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
