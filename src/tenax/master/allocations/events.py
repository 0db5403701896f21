"""Events of allocations: members report, are told to end, or are lost; and what their trials or tasks become.

Each function is one event of one or of many allocations, applied inside the caller's transaction: load and lock
(experiments, trials or launched tasks, allocations, members), decide (``tenax.lifecycle``), write. An event that comes
again changes nothing.

Rules:

- The number of statements does not depend on the number of allocations: callers bring `AT_ONCE` at most, so that a
  transaction is short however far away the database is.
- Whose silence it acts on is asked once everything is locked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from asyncpg import Connection

from tenax.lifecycle.allocation import AllocationState, after_members, given_up
from tenax.lifecycle.container import Container, ContainerState, Desired, Ending, raise_desired, report
from tenax.master.allocations.verdicts import EndedAttempt, conclude, exit_lines
from tenax.master.store.agents import rows as agents
from tenax.master.store.allocations import barriers, containers
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.allocations.containers import FREED, MemberChange, MemberRow
from tenax.master.store.allocations.rows import AllocationChange, AllocationOwner, AllocationRow
from tenax.master.store.database.wakeups import notify
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.experiments.rows import ExperimentRow
from tenax.master.store.tasks import rows as tasks
from tenax.master.store.tasks.rows import LaunchedTask
from tenax.master.store.trials import rows as trials
from tenax.master.store.trials.rows import TrialRow

#: Allocations, or containers, that one transaction changes at most.
AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Locked:
    """An allocation with all that an event of it may change."""

    owner: AllocationOwner
    experiment: ExperimentRow | None
    trial: TrialRow | None
    #: The task itself, where it is not a trial's.
    task: LaunchedTask | None
    allocation: AllocationRow
    members: tuple[MemberRow, ...]


@dataclass(frozen=True, slots=True)
class MemberReport:
    """What an agent says of a container."""

    container_id: str
    state: ContainerState
    ending: Ending | None = None
    address: str = ""


@dataclass(frozen=True, slots=True)
class Reported:
    """What came of an agent's reports."""

    #: Of the containers, those that the database knows.
    known: frozenset[str]
    #: What their members were, and became.
    changes: tuple[MemberChange, ...]


#: What an event makes of a member; the same object where it changes nothing.
Change = Callable[[MemberRow], Container]
#: What scripts wrote last, as `exit_lines` has it.
Lines = Mapping[str, Sequence[str]]


async def lines_of_failed(conn: Connection, reports: Collection[MemberReport]) -> Lines:
    """What scripts wrote last that failed, as these reports say: for `members_reported`, outside its transaction."""
    failing = [each.container_id for each in reports if each.ending is not None and each.ending.failed]
    return await exit_lines(conn, failing, failing) if failing else {}


async def members_reported(
    conn: Connection, reports: Collection[MemberReport], lines: Lines | None = None, *, agent_id: str | None = None
) -> Reported:
    """An agent reports the states of containers.

    ``lines``: of `lines_of_failed`, for the reasons; ``agent_id``: who reports, the containers of other agents are not
    known either.
    """
    reported = {each.container_id: each for each in reports}
    owners = await allocations.owners_of_containers(conn, list(reported), agent_id)
    locked = await _lock(conn, owners.values())

    def change(member: MemberRow) -> Container:
        ours = reported.get(member.container.container_id)
        return member.container if ours is None else report(member.container, ours.state, ours.ending)

    changes = await _settle(conn, locked, change, {name: each.address for name, each in reported.items()}, lines)
    return Reported(frozenset(owners), tuple(each for each in changes if each.after.container_id in reported))


async def end_members(conn: Connection, allocation_ids: Collection[str], desired: Desired) -> None:
    """Want every member of these allocations to end (STOP, KILL); those that have ended stay as they are."""
    locked = await _lock(conn, await allocations.owners(conn, list(allocation_ids)))

    def change(member: MemberRow) -> Container:
        if member.container.state is ContainerState.TERMINATED:
            return member.container
        return raise_desired(member.container, desired)

    await _settle(conn, locked, change)


async def mark_daemon(conn: Connection, allocation_id: str, container_id: str) -> None:
    """A member only helps the others: it ends when they have, at once if they have by now. Raises NotFound."""
    await barriers.check_member(conn, allocation_id, container_id)
    locked = await _lock(conn, await allocations.owners(conn, [allocation_id]))
    if any(len(each.members) == 1 for each in locked):
        return

    def change(member: MemberRow) -> Container:
        ours = member.container.container_id == container_id and not member.container.daemon
        return replace(member.container, daemon=True) if ours else member.container

    await _settle(conn, locked, change)


async def members_lost(
    conn: Connection,
    container_ids: Collection[str],
    agent_id: str,
    reason: str,
    lines: Lines | None = None,
    *,
    wait_s: float = 0.0,
) -> bool:
    """Containers of an agent that will not report them any more; False, and nothing changed, if it is back.

    ``lines``: of `exit_lines`, for the reasons of others; ``wait_s``: that long it must have been silent.
    """
    names = frozenset(container_ids)
    locked = await _lock(conn, (await allocations.owners_of_containers(conn, list(names))).values())
    heard_at = await agents.silent_since(conn, agent_id, wait_s)
    if heard_at is None:
        return False

    failed_at = {each.allocation.allocation_id: _first_failure(each.members) for each in locked}

    def change(member: MemberRow) -> Container:
        if member.container.container_id not in names:
            return member.container
        ending = given_up(reason, failed_at[member.allocation_id], heard_at)
        return report(member.container, ContainerState.TERMINATED, ending)

    await _settle(conn, locked, change, lines=lines)
    # Its slots are not free, but whoever waited for others of the same job, person or place to end waits no more.
    await notify(conn, "scheduling", f"{FREED}{agent_id}")
    return True


def _first_failure(members: Sequence[MemberRow]) -> float | None:
    """When a member failed first."""
    failures = [
        member.ended_at
        for member in members
        if member.ended_at is not None and member.container.ending is not None and member.container.ending.failed
    ]
    return min(failures, default=None)


async def _lock(conn: Connection, owners: Iterable[AllocationOwner]) -> list[Locked]:
    """Each kind in one statement, and in one order, so that two events cannot wait for each other."""
    by_allocation = {owner.allocation_id: owner for owner in owners}
    if not by_allocation:
        return []
    whose = by_allocation.values()
    launched = await tasks.lock_many(conn, {owner.task_id for owner in whose if owner.trial_id is None})
    of_experiments = await experiments.lock_many(
        conn, {owner.experiment_id for owner in whose if owner.experiment_id is not None}
    )
    of_trials = await trials.lock_many(conn, {owner.trial_id for owner in whose if owner.trial_id is not None})
    rows = await allocations.lock_many(conn, list(by_allocation))
    members = await containers.lock_members(conn, list(rows))
    return [
        Locked(
            owner := by_allocation[name],
            None if owner.experiment_id is None else of_experiments.get(owner.experiment_id),
            None if owner.trial_id is None else of_trials.get(owner.trial_id),
            launched.get(owner.task_id),
            row,
            members[name],
        )
        for name, row in rows.items()
    ]


async def _settle(
    conn: Connection,
    locked: Sequence[Locked],
    change: Change,
    addresses: Mapping[str, str] | None = None,
    lines: Lines | None = None,
) -> list[MemberChange]:
    """Write what the members have become, and what their allocations, trials and tasks become of it."""
    members: list[MemberChange] = []
    moved: list[AllocationChange] = []
    ended: list[EndedAttempt] = []
    for each in locked:
        now = tuple(change(member) for member in each.members)
        if all(container is member.container for container, member in zip(now, each.members, strict=True)):
            continue
        outcome = after_members(now)
        members += _changes(each.members, outcome.containers, addresses or {})
        if each.allocation.state is AllocationState.TERMINATED:
            continue
        ready = len(each.members) == 1 and outcome.state is AllocationState.RUNNING
        own = _whose(outcome.ending, outcome.containers)
        ending = None if outcome.ending is None else _naming(outcome.ending, each.members, own)
        if outcome.state is not each.allocation.state:
            moved.append(AllocationChange(each.allocation, outcome.state, ending.reason if ending else "", ready))
        if ending is not None:
            name = outcome.containers[own].container_id
            ended.append(EndedAttempt(each.experiment, each.trial, each.task, each.allocation, ending, name))
    await containers.save(conn, members)
    await allocations.set_states(conn, moved)
    await conclude(conn, ended, lines or {})
    await containers.desired_state_changed(
        conn, (each.before.agent_id for each in members if each.after.desired is not each.before.container.desired)
    )
    return members


def _whose(ending: Ending | None, members: Sequence[Container]) -> int:
    """The place of the member whose ending it is; of those that ended alike the first is meant."""
    return next((place for place, member in enumerate(members) if member.ending == ending), 0)


def _naming(ending: Ending, members: Sequence[MemberRow], own: int) -> Ending:
    """The ending of a gang, with the member whose it is in its reason."""
    agent_id = members[own].agent_id
    if len(members) == 1 or not ending.reason or f"agent {agent_id}" in ending.reason:
        return ending
    return replace(ending, reason=f"{ending.reason}, container rank {members[own].rank} on agent {agent_id}")


def _changes(
    before: Sequence[MemberRow], after: Sequence[Container], addresses: Mapping[str, str]
) -> list[MemberChange]:
    changes = []
    for member, container in zip(before, after, strict=True):
        if container.state is ContainerState.TERMINATED:
            container = raise_desired(container, Desired.GONE)
        if container != member.container:
            changes.append(MemberChange(member, container, addresses.get(container.container_id, "")))
    return changes
