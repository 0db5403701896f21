"""The container's machine: one member of an allocation on one agent.

Rules it keeps:

- It only moves forward: ASSIGNED, PULLING, STARTING, RUNNING, TERMINATED; an older report is stale and changes nothing.
- TERMINATED is final, and always carries how it ended.
- An exit that we asked for (STOP, KILL, GONE) carries no error, whatever code or signal came.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ContainerState(str, Enum):
    ASSIGNED = "ASSIGNED"
    PULLING = "PULLING"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    TERMINATED = "TERMINATED"


class Desired(str, Enum):
    """What the agent is to make of a container; only ever raised."""

    RUN = "RUN"
    #: SIGTERM, and SIGKILL after a while: a person's kill.
    STOP = "STOP"
    #: SIGKILL.
    KILL = "KILL"
    GONE = "GONE"


#: Progress of a container, for "the least advanced member".
ORDER = {state: place for place, state in enumerate(ContainerState)}
DESIRED_ORDER = {desired: place for place, desired in enumerate(Desired)}


@dataclass(frozen=True, slots=True)
class Ending:
    """How a container ended, as its agent (or the silence of its agent) reports."""

    code: int | None = None
    signal: int | None = None
    #: A sentence for people.
    reason: str = ""
    #: The platform's failure, never the script's: not counted against ``max_restarts``.
    platform: bool = False
    #: We asked for it.
    requested: bool = False
    #: Its program failed by itself while its agent's disk was full, which excuses it only so often.
    disk_full: bool = False

    @property
    def clean(self) -> bool:
        """The main process returned 0 by itself."""
        return self.code == 0 and not self.platform

    @property
    def failed(self) -> bool:
        """The script's own failure."""
        return not (self.clean or self.platform or self.requested)


def exit_status(code: int | None, signal: int | None = None) -> str:
    """How a program ended by itself, in the words of Determined, which scripts compare; empty for no such end."""
    shown = 128 + signal if code is None and signal is not None else code
    if shown is None:
        return ""
    if shown == 0:
        return "resources exited successfully with a zero exit code"
    failure = f"container failed with non-zero exit code: {shown} (exit code {shown})"
    return f"resources failed with non-zero exit code: {failure}"


@dataclass(frozen=True, slots=True)
class Container:
    """A member, as far as its machine goes."""

    container_id: str
    state: ContainerState
    desired: Desired
    ending: Ending | None
    #: Does not keep the allocation alive: ends when all others have.
    daemon: bool = False


def report(container: Container, state: ContainerState, ending: Ending | None) -> Container:
    """The container after its agent reported ``state``; the same object if the report is old news."""
    if ORDER[state] <= ORDER[container.state]:
        return container
    if state is ContainerState.TERMINATED:
        final = ending or Ending(reason="its agent did not say how it ended", platform=True)
        if container.desired is not Desired.RUN and not final.platform and not final.clean:
            final = Ending(final.code, final.signal, final.reason, platform=False, requested=True)
        return Container(container.container_id, state, container.desired, final, container.daemon)
    return Container(container.container_id, state, container.desired, None, container.daemon)


def raise_desired(container: Container, desired: Desired) -> Container:
    """The container with at least this desired state; the same object where nothing changes, or where it has ended."""
    if DESIRED_ORDER[desired] <= DESIRED_ORDER[container.desired]:
        return container
    return Container(container.container_id, container.state, desired, container.ending, container.daemon)
