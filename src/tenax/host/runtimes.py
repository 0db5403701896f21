"""Which runtimes there are: the one place where a new one is added. Standard library only: the CLI reads it, too.

A runtime is one module of `tenax.runtime`, with a class that keeps to `tenax.runtime.port.Runtime` and a coroutine
``open_runtime(settings)`` which makes one or raises RuntimeAway where this machine has none, and one line in the table.
The table stands below all who ask it: settings, agent, CLI, local cluster. `tenax.runtime.opening` opens what it names.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import List, Mapping, NamedTuple

#: The setting that stands for the first of the table that this machine has.
AUTO = "auto"


class RuntimeKind(NamedTuple):
    """One runtime."""

    #: As settings spell it.
    name: str
    #: Below an agent's directory, for its containers: one folder each.
    folder: str
    #: Imported when it is opened: a machine of plain processes needs no client of a container engine.
    module: str
    #: Whether a task can do all that the agent's own user can.
    shares_account: bool = False

    def has_containers(self, agent_directory: Path) -> bool:
        """Whether an agent's directory holds any of it, running or ended. Raises OSError."""
        try:
            names = os.listdir(agent_directory / self.folder)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return any(not name.startswith(".") for name in names)


DOCKER = RuntimeKind("docker", "docker", "tenax.runtime.docker.runtime")
PROCESS = RuntimeKind("process", "containers", "tenax.runtime.process", shares_account=True)

#: By name, in the order in which ``auto`` tries them; the last is on every machine.
RUNTIMES: Mapping[str, RuntimeKind] = {kind.name: kind for kind in (DOCKER, PROCESS)}
#: What a setting may be.
CHOICES = (AUTO, *RUNTIMES)


def held(agent_directory: Path) -> List[RuntimeKind]:
    """The runtimes that have containers in an agent's directory."""
    return [kind for kind in RUNTIMES.values() if kind.has_containers(agent_directory)]
