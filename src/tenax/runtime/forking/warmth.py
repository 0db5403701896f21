"""Which trials may start in an interpreter that has their imports loaded, and what such an interpreter is started with.
Pure.

Trials share one where they could not tell it from their own: the same code and entrypoint, the same interpreter, the
same environment but for what differs between containers anyway.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from tenax.wire.agents import ContainerSpec
from tenax.wire.task_names import PYTHON, RUN_DIRECTORY, WARM_START

#: Of the platform, and of one container.
_OF_CONTAINERS = ("DET_", "TENAX_")
_TEMPORARY = "TMPDIR"
_FIRST_PROGRAM = (PYTHON, "-m", "tenax.exec.trial")
_OFF = ("0", "false", "off", "no")


@dataclass(frozen=True, slots=True)
class Setting:
    """What trials that share an interpreter have in common."""

    key: str
    python: Path
    env: Mapping[str, str]


def setting_of(
    spec: ContainerSpec,
    environment: Mapping[str, str],
    *,
    python: Path,
    python_changed_at: int,
    library: Path,
    placed: Collection[str],
) -> Setting | None:
    """None for what starts in an interpreter of its own.

    ``environment``: the container's, with the run directory as `RUN_DIRECTORY`; ``library``: the tenax that tasks get;
    ``placed``: names of the variables by which the agent placed this container: ports, devices.
    """
    if tuple(spec.argv) != _FIRST_PROGRAM or not spec.context_hash:
        return None
    if environment.get(WARM_START, "").lower() in _OFF:
        return None
    env = {
        name: value
        for name, value in environment.items()
        if not name.startswith(_OF_CONTAINERS) and name not in (_TEMPORARY, "PYTHONPATH") and name not in placed
    }
    if any(RUN_DIRECTORY in value for value in env.values()):
        return None
    env["PYTHONPATH"] = str(library)
    try:
        entrypoint = json.loads(spec.env["DET_EXPERIMENT_CONFIG"])["entrypoint"]
    except (KeyError, TypeError, ValueError):
        return None
    parts = [spec.context_hash, entrypoint, str(python), python_changed_at, sorted(env.items())]
    parts.append(environment.get("PYTHONPATH", ""))
    return Setting(hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32], python, env)
