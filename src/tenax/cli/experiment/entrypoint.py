"""Whether the script that an entrypoint runs is among the files that are sent: without it every trial would fail.

Only what is plain is looked at: a command line without anything for the shell, whose script has a relative path. What a
startup hook or a mount could bring is not judged.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Optional, Sequence

import yaml

from tenax.cli.console import yaml12
from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject
from tenax.wire.task_names import OWN_HOOK

_INTERPRETERS = ("python", "bash", "sh")
_SCRIPTS = (".py", ".sh")
_OF_THE_SHELL = frozenset("$`;&|<>(){}*?\n")


def check_script(text: str, files: Sequence[JsonObject], directory: Optional[Path]) -> None:
    """Raises InvalidInput where the script of a configuration (YAML) is not sent; other faults the master tells of."""
    try:
        config = yaml12.load(text)
    except yaml.YAMLError:
        return
    if not isinstance(config, dict):
        return
    script = script_of(config.get("entrypoint"))
    mounts = config.get("bind_mounts")
    relative = any(
        isinstance(mount, dict) and not str(mount.get("container_path", "/")).startswith("/")
        for mount in (mounts if isinstance(mounts, list) else [])
    )
    names = {os.path.normpath(str(file.get("path", ""))) for file in files}
    if script is None or relative or OWN_HOOK in names or os.path.normpath(script) in names:
        return
    where = "no DIRECTORY with the code was given" if directory is None else f"{directory} has no such file to send"
    raise InvalidInput(f"The entrypoint runs {script}, and {where}: tenax experiment create CONFIG DIRECTORY")


def script_of(entrypoint: Json) -> Optional[str]:
    """The script of a plain command line, where its path is relative."""
    if isinstance(entrypoint, str):
        if _OF_THE_SHELL & set(entrypoint):
            return None
        try:
            parts = shlex.split(entrypoint)
        except ValueError:
            return None
    else:
        parts = [str(word) for word in entrypoint] if isinstance(entrypoint, list) else []
    if not parts:
        return None
    program, rest = parts[0], parts[1:]
    if program.startswith("./"):
        return program
    name = os.path.basename(program).rstrip("0123456789.")
    # `-u` and its like may stand before the script; `-m` and `-c` name none.
    if name not in _INTERPRETERS:
        return None
    while rest and rest[0].startswith("-") and rest[0] not in ("-m", "-c"):
        rest = rest[1:]
    script = rest[0] if rest else ""
    return script if script.endswith(_SCRIPTS) and not os.path.isabs(script) else None
