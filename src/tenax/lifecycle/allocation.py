"""The allocation's machine: one placement attempt of a task, and what its members make of it.

Rules it keeps:

- It is where its least advanced member is; TERMINATED when every member is.
- The first member that fails ends the others, at once: a gang lives or dies as one. What ends because it was asked to
  leaves the others the time that they were given.
- Daemon members end when all others have, without an error; they count as ordinary ones where they are alone.
- Its ending is the platform's failure; else the first failure; else that of the first that is no daemon. Where all that
  are none finished, nothing else counts. A machine that is lost breaks the
  scripts of its peers long before its silence says so: until all members have ended, nothing is decided.
- A member that is given up is the platform's failure, unless another had failed while its agent was still heard.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tenax.lifecycle.container import ORDER, Container, ContainerState, Desired, Ending, raise_desired


class AllocationState(str, Enum):
    PENDING = "PENDING"
    ASSIGNED = "ASSIGNED"
    PULLING = "PULLING"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    TERMINATING = "TERMINATING"
    TERMINATED = "TERMINATED"


#: Seconds by which a sign of life may be noted later than it was given.
NOTED_LATE_S = 5.0


class Preemption(str, Enum):
    """How far the asking has come: save and leave."""

    NONE = "NONE"
    REQUESTED = "REQUESTED"
    ACKNOWLEDGED = "ACKNOWLEDGED"


_BY_MEMBER = {
    ContainerState.ASSIGNED: AllocationState.ASSIGNED,
    ContainerState.PULLING: AllocationState.PULLING,
    ContainerState.STARTING: AllocationState.STARTING,
    ContainerState.RUNNING: AllocationState.RUNNING,
}


@dataclass(frozen=True, slots=True)
class Members:
    """What an allocation is after its members changed."""

    state: AllocationState
    #: The members, some of them now wanted to end.
    containers: tuple[Container, ...]
    #: Set when it is TERMINATED.
    ending: Ending | None


def after_members(containers: tuple[Container, ...]) -> Members:
    """Where an allocation is, given its members (at least one), and which of them must end."""
    if all(member.state is ContainerState.TERMINATED for member in containers):
        return Members(AllocationState.TERMINATED, containers, gang_ending(containers))
    ended = [member for member in containers if member.ending is not None]
    broken = any(not (member.ending.clean or member.ending.requested) for member in ended if member.ending)
    workers = [member for member in containers if not member.daemon] or list(containers)
    done = all(member.state is ContainerState.TERMINATED for member in workers)
    if broken or done:
        containers = tuple(
            member if member.state is ContainerState.TERMINATED else raise_desired(member, Desired.KILL)
            for member in containers
        )
    live = [member for member in containers if member.state is not ContainerState.TERMINATED]
    if any(member.desired is not Desired.RUN for member in live):
        return Members(AllocationState.TERMINATING, containers, None)
    least = min((member.state for member in live), key=ORDER.__getitem__)
    return Members(_BY_MEMBER[least], containers, None)


def gang_ending(containers: tuple[Container, ...]) -> Ending:
    """How an allocation ended whose members all have: ``containers`` in rank order."""
    endings = [_ending_of(member) for member in containers]
    workers = [_ending_of(member) for member in containers if not member.daemon] or endings
    if all(ending.clean for ending in workers):
        return workers[0]
    for ending in endings:
        if ending.platform:
            return ending
    for ending in endings:
        if ending.failed:
            return ending
    for ending in workers:
        if ending.requested:
            return ending
    return workers[0]


def _ending_of(member: Container) -> Ending:
    return member.ending or Ending(platform=True, reason="ended without a word")


def given_up(reason: str, failed_at: float | None, heard_at: float) -> Ending:
    """How a member has ended whose agent will not report it any more.

    ``failed_at``: when another member failed first, None where none has; ``heard_at``: when its agent was heard last.
    """
    return Ending(reason=reason, platform=failed_at is None or heard_at <= failed_at + NOTED_LATE_S)


def doubt(rank: int, unheard: tuple[str, ...], wait_s: float) -> str:
    """Why it is not decided yet what the failure of a member counts for: agents of others are not heard."""
    names, are = (f"agent {unheard[0]}", "is") if len(unheard) == 1 else (f"agents {', '.join(unheard)}", "are")
    return (
        f"rank {rank} failed, and {names} {are} not heard: if the machine is lost, the platform failed and the run "
        f"does not count; decided within {wait_s:g} seconds"
    )
