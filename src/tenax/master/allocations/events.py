"""Events of an allocation: its members report, are told to end, or are lost; and what its trial or task becomes.

Each function is one event, applied inside the caller's transaction: load and lock (experiment, trial or launched task,
allocation, members), decide (``tenax.lifecycle``), write. An event that comes again changes nothing.

A trial whose log policies exclude machines ends when none is left for it (`nowhere_left`): only what the exclusions
cause counts, agents that are away count, for they may come back, and disabled ones do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from asyncpg import Connection

from tenax.ids import AgentId
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.allocation import AllocationState, after_members
from tenax.lifecycle.container import Container, ContainerState, Desired, Ending, raise_desired, report
from tenax.lifecycle.task import ENDED, TaskAttempt, TaskState, TaskVerdict
from tenax.lifecycle.task import decide_exit as decide_task_exit
from tenax.lifecycle.trial import TrialAttempt, TrialState, TrialVerdict, decide_exit, effective_wish
from tenax.master.allocations.exit_reason import with_exit_reason
from tenax.master.store.allocations import barriers, containers
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.allocations.containers import MemberRow
from tenax.master.store.allocations.rows import AllocationOwner, AllocationRow
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.experiments.rows import ExperimentRow, Plan
from tenax.master.store.logs import policies as log_policies
from tenax.master.store.logs import rows as logs
from tenax.master.store.queue import placements
from tenax.master.store.tasks import rows as tasks
from tenax.master.store.tasks.rows import LaunchedTask
from tenax.master.store.trials import rows as trials
from tenax.master.store.trials.rows import Size, TrialRow
from tenax.scheduler.fitting import can_never_fit


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


async def member_reported(
    conn: Connection,
    container_id: str,
    state: ContainerState,
    ending: Ending | None,
    address: str,
    *,
    agent_id: str | None = None,
) -> bool:
    """An agent reports the state of a container; False for a container that the database does not know.

    ``agent_id``: who reports; the containers of other agents are not known either.
    """
    owner = await allocations.owner_of_container(conn, container_id, agent_id)
    if owner is None:
        return False
    locked = await _lock(conn, owner)
    changed = {
        member.container.container_id: report(member.container, state, ending)
        for member in locked.members
        if member.container.container_id == container_id
    }
    await _settle(conn, locked, changed, {container_id: address})
    return True


async def end_members(conn: Connection, allocation_id: str, want: Desired) -> None:
    """Want every member of an allocation to end (KILL); those that have ended stay as they are."""
    owner = await allocations.owner(conn, allocation_id)
    if owner is None:
        return
    locked = await _lock(conn, owner)
    changed = {
        member.container.container_id: raise_desired(member.container, want)
        for member in locked.members
        if member.container.state is not ContainerState.TERMINATED
    }
    await _settle(conn, locked, changed, {})


async def mark_daemon(conn: Connection, allocation_id: str, container_id: str) -> None:
    """A member only helps the others: it ends when they have, at once if they have by now. Raises NotFound."""
    await barriers.check_member(conn, allocation_id, container_id)
    owner = await allocations.owner(conn, allocation_id)
    if owner is None:
        return
    locked = await _lock(conn, owner)
    if len(locked.members) == 1:
        return
    changed = {
        member.container.container_id: replace(member.container, daemon=True)
        for member in locked.members
        if member.container.container_id == container_id and not member.container.daemon
    }
    await _settle(conn, locked, changed, {})


async def member_lost(conn: Connection, container_id: str, reason: str) -> None:
    """A container's agent will not report any more: it counts as ended by the platform's fault."""
    await member_reported(conn, container_id, ContainerState.TERMINATED, Ending(reason=reason, platform=True), "")


async def _lock(conn: Connection, owner: AllocationOwner) -> Locked:
    experiment = None if owner.experiment_id is None else await experiments.lock(conn, owner.experiment_id)
    trial = None if owner.trial_id is None else await trials.lock(conn, owner.trial_id)
    task = await tasks.lock(conn, owner.task_id) if owner.trial_id is None else None
    allocation = await allocations.lock(conn, owner.allocation_id)
    return Locked(owner, experiment, trial, task, allocation, await containers.lock_members(conn, owner.allocation_id))


async def _settle(conn: Connection, locked: Locked, changed: dict[str, Container], addresses: dict[str, str]) -> None:
    """Write what the members have become, and what their allocation and their trial become of it."""
    before = {member.container.container_id: member for member in locked.members}
    now = tuple(changed.get(name, member.container) for name, member in before.items())
    if all(container is before[container.container_id].container for container in now):
        return
    outcome = after_members(now)
    agents = []
    for container in outcome.containers:
        if container.state is ContainerState.TERMINATED:
            container = raise_desired(container, Desired.GONE)
        member = before[container.container_id]
        if container != member.container:
            await containers.save(conn, member, container, addresses.get(container.container_id, ""))
        if container.desired is not member.container.desired:
            agents.append(member.agent_id)
    if locked.allocation.state is not AllocationState.TERMINATED:
        await _allocation_moved(conn, locked, outcome.state, outcome.ending)
    await containers.desired_state_changed(conn, agents)


async def _allocation_moved(conn: Connection, locked: Locked, state: AllocationState, ending: Ending | None) -> None:
    alone = len(locked.members) == 1
    ready = alone and state is AllocationState.RUNNING
    reason = "" if ending is None else ending.reason
    if state is not locked.allocation.state:
        await allocations.set_state(conn, locked.allocation, state, reason=reason, ready=ready)
    if ending is not None and locked.trial is not None and locked.experiment is not None:
        await _trial_attempt_ended(conn, locked, locked.experiment, locked.trial, ending)
    if ending is not None and locked.task is not None:
        members = [member.container.container_id for member in locked.members]
        await task_attempt_ended(conn, locked.task, locked.allocation, members, ending)


async def _trial_attempt_ended(
    conn: Connection, locked: Locked, experiment: ExperimentRow, trial: TrialRow, ending: Ending
) -> None:
    if trial.state is not TrialState.ACTIVE or locked.allocation.run_id != trial.run_id:
        return
    members = [member.container.container_id for member in locked.members]
    ending = await with_exit_reason(conn, trial.task_id, members, ending)
    plan = await experiments.plan(conn, experiment.id)
    limit = plan.config.get("max_restarts")
    wish = effective_wish(trial.wish, experiment.state)
    attempt = TrialAttempt(
        wish=wish,
        ending=ending,
        preemption=locked.allocation.preemption,
        restarts=trial.restarts,
        max_restarts=limit if isinstance(limit, int) else 5,
        invalid_hp=trial.invalid_hp,
        fatal=trial.fatal,
        ran=locked.allocation.ready,
        setbacks=trial.setbacks,
        wish_reason=trial.wish_reason if wish is trial.wish else "",
        no_retry=await log_policies.no_retry(conn, trial.id),
        nowhere=await nowhere_left(conn, trial.id, plan) if ending.failed else None,
        leave_reason=locked.allocation.preemption_reason,
    )
    verdict = decide_exit(attempt)
    await trials.conclude(conn, trial, verdict, experiment.state)
    await logs.append_system_line(
        conn,
        trial.task_id,
        _trial_log_line(locked.allocation.run_id, verdict, attempt.max_restarts),
        "ERROR" if verdict.state is TrialState.ERROR else "INFO",
        allocation_id=locked.owner.allocation_id,
    )


def _trial_log_line(run_id: int, verdict: TrialVerdict, max_restarts: int) -> str:
    """A line for the trial's log: what came of an attempt."""
    if verdict.state is not TrialState.ACTIVE:
        return f"run {run_id} was the last: {verdict.reason}; the trial is {verdict.state.value}"
    wait = f" in {verdict.hold_s:g} s" if verdict.hold_s else ""
    counted = f" ({verdict.restarts} of {max_restarts} restarts used)" if verdict.restarts else ""
    return f"run {run_id} has ended: {verdict.reason}; the trial goes on{wait}{counted}"


async def task_attempt_ended(
    conn: Connection, task: LaunchedTask, allocation: AllocationRow, members: Sequence[str], ending: Ending
) -> None:
    """Apply the end of a locked task's attempt; nothing where the attempt is not its newest or the task has ended."""
    if task.state in ENDED or allocation.run_id != task.run_id:
        return
    ending = await with_exit_reason(conn, task.task_id, members, ending)
    verdict = decide_task_exit(
        TaskAttempt(task.state, ending, allocation.preemption, task.pausable, allocation.preemption_reason)
    )
    await tasks.conclude(conn, task, verdict)
    await logs.append_system_line(
        conn,
        task.task_id,
        _task_log_line(verdict),
        "ERROR" if verdict.state is TaskState.ERROR else "INFO",
        allocation_id=allocation.allocation_id,
    )


def _task_log_line(verdict: TaskVerdict) -> str:
    """A line for the task's log."""
    if verdict.state is TaskState.ACTIVE:
        return f"{verdict.reason}; the task goes on when there is room"
    return f"{verdict.reason}; the task is {verdict.state.value}"


async def nowhere_left(conn: Connection, trial_id: int, plan: Plan) -> str | None:
    """Why no agent that is left has room for another run, with the arithmetic; None: one has, or none is excluded."""
    excluded = await log_policies.excluded(conn, trial_id)
    if not excluded:
        return None
    # By capacity alone: how a pool spreads a gang is a matter of waiting, and explained there.
    snapshots = await placements.snapshots(conn, {}, {})
    snapshot = next((snapshot for snapshot in snapshots if snapshot.pool == plan.pool), None)
    if snapshot is None:
        return None
    size = size_of(plan.config)
    if can_never_fit(size.slots, snapshot, single_node=size.single_node) is not None:
        return None
    blocked = frozenset(AgentId(name) for name in excluded)
    why = can_never_fit(size.slots, snapshot, single_node=size.single_node, blocked_agents=blocked)
    return why and f"log policies excluded {', '.join(excluded)}, and nothing else can run it: {why}"


def size_of(config: JsonObject) -> Size:
    """What each trial of a configuration asks for."""
    resources = config.get("resources")
    section = resources if isinstance(resources, dict) else {}
    slots = section.get("slots_per_trial")
    return Size(slots if isinstance(slots, int) else 1, section.get("is_single_node") is True)
