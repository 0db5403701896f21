"""The decisions of a search: facts come in, trials are made, ranked and stopped.

Rules, the same for every method:
- A trial that ends in any way makes place for the next one, until ``max_trials`` were made; one that the search stopped
  made its place at the Stop, and its exit only closes it.
- A trial with invalid hyperparameters does not count: a new sample takes its place. A grid draws one from the space
  around it, off the grid; where there is none, and beyond a limit (``replacement_limit``), the trial counts as failed.
- Rungs (asynchronous halving, stopping variant): a report at or past a rung enters it; the best ``1/divisor`` of those
  who came so far go on, the first always; a report may cross several rungs. At the top a trial is stopped: it is done.
- Failed and canceled trials enter their rung with the largest float, NaN and infinite metrics rank behind even that.
- The search shuts down when every trial it made is over: failed where all of them failed, canceled where all were. A
  trial that goes on after that reopens it.

Source: L. Li et al., "A System for Massively Parallel Hyperparameter Tuning", MLSys 2020, in the variant that stops
trials and never resumes them.
"""

from __future__ import annotations

import math

from tenax.errors import Impossible
from tenax.ids import RequestId
from tenax.jsonvalue import JsonObject
from tenax.search import grid, space
from tenax.search.config import Categorical, Const, Int, Map, SearchConfig
from tenax.search.journal import (
    FAILED_VALUE,
    STOPPED_EARLY,
    Create,
    Decision,
    Exited,
    ExitReason,
    Rank,
    Reopened,
    SearchFact,
    Shutdown,
    Started,
    Stop,
    Unrank,
    Validated,
)
from tenax.search.state import Bracket, SearchTrial, State

#: Draws for a sample that is not on the grid, before the space counts as holding none.
_DRAWS_OFF_GRID = 32


def start(config: SearchConfig, seed: int) -> tuple[State, list[Decision]]:
    """Begin a search: its state and the first trials. The caller records ``Started(seed)``, then the decisions."""
    state = State(config, seed)
    decisions: list[Decision] = []
    for number, bracket in enumerate(state.brackets):
        for _ in range(bracket.plan.initial_trials):
            _make(state, decisions, _next_sample(state, bracket), number)
    return state, decisions


def step(state: State, fact: SearchFact) -> list[Decision]:
    """Take a fact in and decide. ``state`` has changed when this returns; the caller records fact and decisions.

    A fact that was seen already, or comes too late to matter, decides nothing. Raises Impossible, with nothing
    changed, for a trial that this search never made.
    """
    decisions: list[Decision] = []
    if not is_news(state, fact):
        return decisions
    state.apply(fact)
    if isinstance(fact, Validated):
        _climb(state, decisions, state.trial(fact.request_id), fact)
    elif isinstance(fact, Exited):
        _leave(state, decisions, state.trial(fact.request_id), fact.reason)
        if state.closed == len(state.trials):
            _emit(state, decisions, _shutdown(state))
    return decisions


def is_news(state: State, fact: SearchFact) -> bool:
    """Whether a fact can change the state: not a repeated validation or exit, not a report after the end or a Stop."""
    if isinstance(fact, Started):
        raise Impossible("A search starts once, and this one has.")
    trial = state.trial(fact.request_id)
    if isinstance(fact, Validated):
        return trial.open and fact.step not in trial.steps
    return (trial.exit is None) is not isinstance(fact, Reopened)


def replacement_limit(config: SearchConfig, max_trials: int) -> int:
    """How many invalid trials a search replaces: enough for a sparse space, not for one without a valid point.

    A space of one point is tried a few times only, since all that a new sample changes there is the trial's seed.
    """
    return max(100, 10 * max_trials) if _varies(config.hyperparameters) else 3


def ranked_value(config: SearchConfig, metric: float) -> float:
    """The metric turned so that smaller is better, with what is no finite number as the worst."""
    if not math.isfinite(metric):
        return math.inf
    return metric if config.smaller_is_better else -metric


def _emit(state: State, decisions: list[Decision], decision: Decision) -> None:
    state.apply(decision)
    decisions.append(decision)


def _climb(state: State, decisions: list[Decision], trial: SearchTrial, report: Validated) -> None:
    """Enter every rung that the report reaches, until one stops the trial."""
    bracket = state.brackets[trial.bracket]
    value = ranked_value(state.config, report.metric)
    while trial.entered < len(bracket.rungs) and report.time >= bracket.rungs[trial.entered].units:
        number = trial.entered
        place = bracket.rungs[number].place(value)
        _emit(state, decisions, Rank(trial.request_id, number, value))
        reason = _reason_to_stop(state, bracket, number, place)
        if reason is not None:
            _emit(state, decisions, Stop(trial.request_id, reason))
            _make_next(state, decisions, trial.bracket)
            return


def _reason_to_stop(state: State, bracket: Bracket, number: int, place: int) -> str | None:
    """Why a trial that stands at ``place`` (from 0) of a rung does not go on, for people; None when it does."""
    rung = bracket.rungs[number]
    where = f"rung {number + 1} of {len(bracket.rungs)} ({rung.units} {state.config.method.unit() or ''})"
    count = len(rung.values)
    if number == len(bracket.rungs) - 1:
        return f"done: it reached the top, {where}, and ranks {place + 1} of {count} there"
    keep = max(int(count / bracket.plan.divisor), 1)
    if place < keep:
        return None
    return f"{STOPPED_EARLY}: it ranks {place + 1} of {count} at {where}, where the best {keep} went on"


def _leave(state: State, decisions: list[Decision], trial: SearchTrial, reason: ExitReason) -> None:
    """Decide on a trial that is over: what it counts for in the rungs, and what takes its place."""
    if trial.stopped_at is not None:
        return
    if reason is ExitReason.INVALID_HP:
        if trial.entered:
            _emit(state, decisions, Unrank(trial.request_id))
        if _replace(state, decisions, trial):
            return
    bracket = state.brackets[trial.bracket]
    if bracket.rungs and reason is not ExitReason.FINISHED:
        _emit(state, decisions, Rank(trial.request_id, trial.entered, FAILED_VALUE))
    _make_next(state, decisions, trial.bracket)


def _make_next(state: State, decisions: list[Decision], number: int) -> None:
    bracket = state.brackets[number]
    if bracket.created < bracket.plan.max_trials:
        _make(state, decisions, _next_sample(state, bracket), number)


def _make(
    state: State, decisions: list[Decision], hparams: JsonObject, bracket: int, replaces: RequestId | None = None
) -> None:
    request_id = space.draw_request_id(state.stream)
    seed = space.draw_seed(state.stream)
    _emit(state, decisions, Create(request_id, seed, hparams, state.stream.position, bracket, replaces))


def _next_sample(state: State, bracket: Bracket) -> JsonObject:
    """The hyperparameters of the next trial; a grid is walked from its last point to its first."""
    if state.config.method.on_grid:
        return grid.point(state.axes, bracket.plan.max_trials - 1 - bracket.created)
    return space.sample(state.config.hyperparameters, state.stream)


def _replace(state: State, decisions: list[Decision], trial: SearchTrial) -> bool:
    """Make a trial in the place of an invalid one, where a sample can be had."""
    if state.replaced >= replacement_limit(state.config, state.max_trials):
        return False
    if state.config.method.on_grid:
        hparams = _sample_off_grid(state)
        if hparams is None:
            return False
    else:
        hparams = space.sample(state.config.hyperparameters, state.stream)
    _make(state, decisions, hparams, trial.bracket, trial.request_id)
    return True


def _sample_off_grid(state: State) -> JsonObject | None:
    """A sample of the space that neither the grid nor an earlier replacement holds; None where none is found.

    Drawn from a copy of the stream, which is only followed when a trial comes of it: what leaves no trace in the
    journal must not move the stream.
    """
    ahead = state.stream.fork()
    for _ in range(_DRAWS_OFF_GRID):
        hparams = space.sample(state.config.hyperparameters, ahead)
        if not grid.holds(state.axes, hparams) and hparams not in state.replacements:
            state.stream.seek(ahead.position)
            return hparams
    return None


def _shutdown(state: State) -> Shutdown:
    finished = state.exits[ExitReason.FINISHED]
    failed = state.exits[ExitReason.ERRORED] + state.exits[ExitReason.INVALID_HP] - state.replaced
    canceled = state.exits[ExitReason.USER_CANCELED]
    counts = [(finished, "finished"), (failed, "failed"), (canceled, "canceled"), (state.replaced, "replaced")]
    endings = ", ".join(f"{count} {word}" for count, word in counts if count)
    if len(state.trials) == 1:
        reason = f"its only trial {'was canceled' if canceled else 'failed' if failed else 'finished'}"
    else:
        reason = f"all {len(state.trials)} trials are over: {endings}"
    none_finished = finished == 0
    return Shutdown(cancel=none_finished and failed == 0, failure=none_finished and canceled == 0, reason=reason)


def _varies(hyperparameters: Map) -> bool:
    """Whether two samples of the space can differ."""
    for child in hyperparameters.children.values():
        match child:
            case Const():
                continue
            case Categorical(values):
                varies = len(values) > 1
            case Int(minimum, maximum):
                varies = minimum < maximum
            case Map():
                varies = _varies(child)
            case _:
                varies = True
        if varies:
            return True
    return False
