"""What becomes of trials and launched tasks when attempts of them have ended; many at a time.

A trial whose log policies exclude machines ends when none is left for it (`_nowhere_left`): only what the exclusions
cause counts, agents that are away count, for they may come back, and disabled ones do not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from asyncpg import Connection

from tenax.ids import AgentId
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.container import Ending, exit_status
from tenax.lifecycle.reconcile import RequestAllocation, reconcile
from tenax.lifecycle.task import ENDED, TaskAttempt, TaskState, TaskVerdict
from tenax.lifecycle.task import decide_exit as decide_task_exit
from tenax.lifecycle.trial import MAX_RESTARTS, TrialAttempt, TrialState, TrialVerdict, decide_exit, effective_wish
from tenax.master.allocations.exit_reason import last_errors, lines_that_explain, with_exit_reason
from tenax.master.allocations.repeats import Repeats
from tenax.master.store.allocations import containers
from tenax.master.store.allocations.rows import AllocationRow, Size
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.experiments.rows import ExperimentRow, Plan
from tenax.master.store.logs import policies as log_policies
from tenax.master.store.logs import rows as logs
from tenax.master.store.logs.rows import SystemLine
from tenax.master.store.queue import placements
from tenax.master.store.tasks import rows as tasks
from tenax.master.store.tasks.rows import LaunchedTask
from tenax.master.store.trials import rows as trials
from tenax.master.store.trials.rows import Conclusion, TrialRow
from tenax.scheduler.constraints import constraints_of
from tenax.scheduler.fitting import can_never_fit
from tenax.search.methods.registry import is_continuable

#: Experiments whose trials ask for their next runs in the transaction in which these end.
_FEW = 8


@dataclass(frozen=True, slots=True)
class EndedAttempt:
    """A locked allocation that has just ended, with whose it was."""

    experiment: ExperimentRow | None
    trial: TrialRow | None
    #: The task itself, where it is not a trial's.
    task: LaunchedTask | None
    allocation: AllocationRow
    ending: Ending
    #: The member whose ending it is.
    container_id: str


async def exit_lines(
    conn: Connection, container_ids: Sequence[str], failing: Sequence[str] = ()
) -> dict[str, list[str]]:
    """The last lines of error output where a member has failed, or is ``failing``: by container of these attempts; by
    their allocation those of the run before it that failed, too, if it came as far (`containers.failed_before`).

    To be read before the transaction of their event: a script that has ended
    writes no more, its output may be long, and who reads output holds up whoever adds a month to it.
    """
    lines: dict[str, list[str]] = {}
    failed = await containers.failed_attempts(conn, container_ids, failing)
    if failed:
        runs_before = await containers.failed_before(conn, [each.allocation_id for each in failed])
        for attempt, before in runs_before.items():
            first = before.members[:1]
            lines[attempt] = (await last_errors(conn, before.task_id, first)).get(first[0], [])
    for each in failed:
        lines |= await last_errors(conn, each.task_id, each.members)
    return lines


async def conclude(conn: Connection, ended: Sequence[EndedAttempt], lines: Mapping[str, Sequence[str]]) -> None:
    """Apply the ends of attempts; nothing where one is not the newest, or whose it was has ended.

    ``lines``: of those that failed, as `exit_lines` has them.
    """
    attempts = [each for each in ended if each.trial is not None and _is_current(each)]
    notes = await _trials_ended(conn, attempts, lines)
    launched = [each for each in ended if each.task is not None and _is_current(each)]
    await logs.append_system_lines(conn, [*notes, *await _tasks_ended(conn, launched, lines)])


def _is_current(each: EndedAttempt) -> bool:
    if each.trial is not None:
        # The run of a former task is over, however late its end is reported.
        newest = (each.trial.task_id, each.trial.run_id)
        return each.trial.state is TrialState.ACTIVE and (each.allocation.task_id, each.allocation.run_id) == newest
    return each.task is not None and each.task.state not in ENDED and each.allocation.run_id == each.task.run_id


async def _trials_ended(
    conn: Connection, attempts: Sequence[EndedAttempt], lines: Mapping[str, Sequence[str]]
) -> list[SystemLine]:
    if not attempts:
        return []
    plans = await experiments.plans(conn, {each.experiment.id for each in attempts if each.experiment is not None})
    failed = [each.trial.id for each in attempts if each.trial is not None and each.ending.failed]
    no_retry = await log_policies.no_retry(conn, failed) if failed else {}
    excluded = await log_policies.excluded(conn, failed) if failed else {}
    hung = await trials.ended_by_hang(conn, failed) if failed else {}
    over_time = [each.trial.id for each in attempts if each.trial is not None and each.allocation.over_time]
    further = await trials.coming_further(conn, over_time) if over_time else frozenset[int]()
    repeats = await Repeats.load(conn, _judged_by_place(attempts, plans, hung), lines)
    concluded, notes = [], []
    for each in attempts:
        experiment, trial, allocation = each.experiment, each.trial, each.allocation
        if experiment is None or trial is None:
            continue
        plan = plans[experiment.id]
        limit = plan.config.get("max_restarts")
        wish = effective_wish(trial.wish, experiment.state)
        own_lines = lines.get(each.container_id, ())
        hang = hung.get(trial.id, "")
        ending = with_exit_reason(each.ending, own_lines)
        place, by = repeats.of(trial, lines_that_explain(each.ending, own_lines))
        attempt = TrialAttempt(
            wish=wish,
            ending=replace(ending, reason=f"it hung: {hang}") if hang else ending,
            preemption=allocation.preemption,
            restarts=trial.restarts,
            experiment_id=trial.experiment_id,
            max_restarts=limit if isinstance(limit, int) else MAX_RESTARTS,
            invalid_hp=trial.invalid_hp,
            fatal=trial.fatal,
            ran=allocation.ready,
            lasted=allocation.lasted,
            setbacks=trial.setbacks,
            wish_reason=trial.wish_reason if wish is trial.wish else "",
            no_retry=no_retry.get(trial.id),
            nowhere=await _nowhere_left(conn, excluded[trial.id], plan) if trial.id in excluded else None,
            leave_reason=allocation.preemption_reason,
            over_time=allocation.over_time,
            comes_further=trial.id in further,
            continuable=_may_continue(plan.config),
            repeats=place,
            repeated_by=by,
        )
        verdict = decide_exit(attempt)
        concluded.append(Conclusion(trial, verdict, experiment.state))
        text = _exit_status(each.ending) + _trial_log_line(allocation.run_id, verdict, attempt.max_restarts)
        level = "ERROR" if verdict.state is TrialState.ERROR else "INFO"
        notes.append(SystemLine(trial.task_id, text, level, allocation.allocation_id))
    await repeats.save(conn)
    await trials.conclude(conn, concluded)
    await _request_next_runs(conn, [each for each in concluded if each.verdict.state is TrialState.ACTIVE], plans)
    return notes


async def _request_next_runs(conn: Connection, going_on: Sequence[Conclusion], plans: Mapping[int, Plan]) -> None:
    """Ask for the next runs of those that are to go on at once, in the transaction that frees their slots.

    Asked for in a pass of its own, a slot that is free a moment earlier would go to a trial that has not begun.
    What is not asked for here, or was at the wrong moment, `loops.reconcile_experiments` does.
    """
    by_experiment: dict[int, list[Conclusion]] = defaultdict(list)
    for each in going_on:
        by_experiment[each.trial.experiment_id].append(each)
    # Of a great many that end at once each would have its statements while all of their locks are held.
    for experiment_id, concluded in by_experiment.items() if len(by_experiment) <= _FEW else ():
        ids = [each.trial.id for each in concluded]
        at_once = await trials.at_once(conn, experiment_id)
        # Which of them may run is seen among all; without a limit these are enough.
        live = await trials.live(conn, experiment_id, ids if at_once is None else None)
        actions = reconcile(concluded[0].experiment, live, at_once)
        requested = [each.trial_id for each in actions if isinstance(each, RequestAllocation) and each.trial_id in ids]
        await trials.request_runs(conn, requested, size_of(plans[experiment_id].config))


def _judged_by_place(
    attempts: Sequence[EndedAttempt], plans: Mapping[int, Plan], hung: Collection[int]
) -> list[TrialRow]:
    """Trials whose script failed by itself, where nobody has set ``max_restarts``."""
    return [
        each.trial
        for each in attempts
        if each.trial is not None and each.ending.failed and each.trial.id not in hung
        if not plans[each.trial.experiment_id].max_restarts_given
    ]


def _exit_status(ending: Ending) -> str:
    """What scripts look for in the log; nothing where we, or the platform, ended it."""
    if ending.requested or ending.platform:
        return ""
    status = exit_status(ending.code, ending.signal)
    return f"{status}; " if status else ""


def _trial_log_line(run_id: int, verdict: TrialVerdict, max_restarts: int) -> str:
    """A line for the trial's log: what came of an attempt."""
    if verdict.state is not TrialState.ACTIVE:
        return f"run {run_id} was the last: {verdict.reason}; the trial is {verdict.state.value}"
    wait = f" in {verdict.hold_s:g} s" if verdict.hold_s else ""
    counted = f" ({verdict.restarts} of {max_restarts} restarts used)" if verdict.restarts else ""
    return f"run {run_id} has ended: {verdict.reason}; the trial goes on{wait}{counted}"


async def _tasks_ended(
    conn: Connection, attempts: Sequence[EndedAttempt], lines: Mapping[str, Sequence[str]]
) -> list[SystemLine]:
    verdicts, notes = [], []
    for each in attempts:
        task, allocation = each.task, each.allocation
        if task is None:
            continue
        ending = with_exit_reason(each.ending, lines.get(each.container_id, ()))
        verdict = decide_task_exit(
            TaskAttempt(
                task.state,
                ending,
                allocation.preemption,
                task.pausable,
                leave_reason=allocation.preemption_reason,
                ran=allocation.ready,
                over_time=allocation.over_time,
            )
        )
        verdicts.append((task, verdict))
        level = "ERROR" if verdict.state is TaskState.ERROR else "INFO"
        text = _exit_status(each.ending) + _task_log_line(verdict)
        notes.append(SystemLine(task.task_id, text, level, allocation.allocation_id))
    await tasks.conclude(conn, verdicts)
    return notes


def _task_log_line(verdict: TaskVerdict) -> str:
    """A line for the task's log."""
    if verdict.state is TaskState.ACTIVE:
        return f"{verdict.reason}; the task goes on when there is room"
    return f"{verdict.reason}; the task is {verdict.state.value}"


async def _nowhere_left(conn: Connection, excluded: Sequence[str], plan: Plan) -> str | None:
    """Why no agent but these has room for another run, with the arithmetic; None: one has."""
    # By capacity alone: how a pool spreads a gang is a matter of waiting, and explained there.
    snapshots = await placements.snapshots(conn, {}, {})
    snapshot = next((snapshot for snapshot in snapshots if snapshot.pool == plan.pool), None)
    if snapshot is None or any(agent.rented for agent in snapshot.agents):
        # Another machine can be rented in the place of one that is excluded.
        return None
    size = size_of(plan.config)
    why_never = partial(can_never_fit, size.slots, snapshot, single_node=size.single_node, constraints=size.constraints)
    if why_never() is not None:
        return None
    blocked = frozenset(AgentId(name) for name in excluded)
    why = why_never(blocked_agents=blocked)
    return why and f"log policies excluded {', '.join(excluded)}, and nothing else can run it: {why}"


def _may_continue(config: JsonObject) -> bool:
    searcher = config.get("searcher")
    return isinstance(searcher, dict) and is_continuable(searcher.get("name"))


def size_of(config: JsonObject) -> Size:
    """What each trial of a configuration asks for."""
    resources = config.get("resources")
    section = resources if isinstance(resources, dict) else {}
    slots = section.get("slots_per_trial")
    single_node, constraints = section.get("is_single_node") is True, constraints_of(section.get("constraints"))
    return Size(slots if isinstance(slots, int) else 1, single_node, constraints)
