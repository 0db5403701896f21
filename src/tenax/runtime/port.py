"""The port that every runtime implements: starting containers, finding them again, ending them.

The agent keeps no state of its own: what runs is in the runtime. Every method may be called again after the agent was
killed at any instant. One kit of tests (``tests/kits/runtime_kit.py``) holds for all implementations.

Every method may raise `RuntimeAway`. Concurrency: methods are coroutines of one event loop; calls for different
containers may overlap, calls for one container are made one after another by the caller.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from tenax.errors import TenaxError
from tenax.wire.agents import ContainerSpec, Exit

OutputStream = Literal["stdout", "stderr"]


class StartFailed(TenaxError):
    """The container could not be started."""

    def __init__(self, message: str, *, platform: bool) -> None:
        super().__init__(message)
        #: True: the machine's fault (no disk, engine away); False: the request's (no such image or interpreter).
        self.platform = platform


class RuntimeAway(TenaxError):
    """What runs containers on this machine does not answer: it is asked again."""


#: Shared memory of a container whose specification names none; configurations name it where nobody does.
USUAL_SHM_BYTES = 4 * 1024**3


@dataclass(frozen=True, slots=True)
class Placement:
    """What the agent adds to a spec before the start."""

    #: DET_MASTER, DET_AGENT_ID, DET_SLOT_IDS, ports and so on. The variables that narrow devices are the runtime's.
    env: Mapping[str, str]
    #: uuids of the devices that are the container's; none: it sees no GPU.
    device_uuids: tuple[str, ...]
    #: ``cpu``, ``cuda`` or ``rocm``.
    device_kind: str
    #: gzip-compressed tar of the model code, on the agent's disk; None for none.
    context_archive: str | None
    cluster_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class ContainerStatus:
    """A container as the runtime finds it.

    ``starting``: prepared and not (yet) running; where nobody is starting it any more, ``start`` goes on with it.
    ``exited``: nothing of it runs any more.
    """

    container_id: str
    cluster_id: str
    generation: int
    state: Literal["starting", "running", "exited"]
    pid: int | None
    exit: Exit | None
    #: The spec it was started with; None if it cannot be read any more.
    spec: ContainerSpec | None
    #: Where its spool lies, as a path that the agent can read.
    spool_directory: str
    #: What the agent added to its environment at the start.
    placed: Mapping[str, str] = field(default_factory=dict)
    #: When it was first sent SIGTERM, on this machine's monotonic clock; None if it was not.
    stopping_since: float | None = None
    #: Why its records cannot be read now; then it counts as running, and the rest is not known. "": they can.
    unreadable: str = ""


def unreadable(container_id: str, error: OSError) -> ContainerStatus:
    """A container of which nothing is known now but that there may be one."""
    return ContainerStatus(container_id, "", 0, "running", None, None, None, "", unreadable=str(error))


class Runtime(Protocol):
    """Starts and ends containers of one kind on this machine."""

    name: str
    #: An engine makes the containers, and gives what it is asked for.
    by_engine: bool

    async def pull(self, spec: ContainerSpec, device_kind: str) -> None:
        """Get what a start needs and may take minutes (an image, an interpreter's answer); `start` does without.

        May be cancelled. Raises StartFailed.
        """

    async def start(self, spec: ContainerSpec, placement: Placement) -> None:
        """Start it, or do nothing if it was started before (idempotent by container id). Raises StartFailed."""

    async def find(self) -> list[ContainerStatus]:
        """All containers of this runtime on this machine, of whatever cluster, running or ended, not removed.

        Those that cannot be looked at now are among them, as ``unreadable``. Raises OSError where nothing can be seen.
        """

    async def inspect(self, container_id: str) -> ContainerStatus | None:
        """One container as it is now; None if there is none of that id. Raises OSError where that cannot be seen."""

    def changed(self) -> AsyncIterator[str]:
        """For one consumer. Ids of containers whose state, output or spool may have changed; a hint to look, never
        the only sign."""

    async def signal(self, container_id: str, number: int) -> None:
        """SIGKILL to all that belongs to it, any other signal to the main process. Nothing if it has ended."""

    async def switch_off(self, container_id: str) -> None:
        """End it as a machine that loses its power would: at once, by the platform's fault; output and spool stay."""

    async def read_output(self, container_id: str, stream: OutputStream, offset: int, limit: int) -> tuple[int, bytes]:
        """Up to ``limit`` raw bytes from ``offset``; returns (offset of the first byte returned, bytes).

        The first may lie beyond ``offset`` where output was dropped: the oldest at the cap, or what the disk did not
        take. Empty: nothing more yet.
        """

    async def output_time(self, container_id: str, stream: OutputStream, offset: int) -> tuple[float, int | None]:
        """How many seconds ago the byte at ``offset`` was written; and where what was written later begins, if any was.

        0 where nothing is known of it.
        """

    async def trim_output(self, container_id: str, stream: OutputStream, offset: int) -> None:
        """Output before ``offset`` is stored by the master and may be dropped here."""

    async def remove(self, container_id: str) -> None:
        """Kill what is left, and leave nothing: no process, no file. Idempotent."""

    async def close(self) -> None:
        """Let go of connections; containers run on."""
