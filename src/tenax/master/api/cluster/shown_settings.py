"""The master's settings as an administrator may see them: what is secret by its name is blanked, wherever it stands.

By name and not by place: settings that come later, and documents of the user's (storage, defaults of tasks), are
covered without being listed here.
"""

from __future__ import annotations

import json
import re

from tenax.config.master import MasterSettings
from tenax.display.secrets import HIDDEN
from tenax.jsonvalue import Json, JsonObject

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
