"""The state of a search: what the recorded facts and decisions amount to.

Rules:
- ``apply`` is the only way the state changes, and it never decides: folding a journal and living through it give equal
  states (``values`` compares them).
- A trial enters each rung at most once, in order, and none after it was stopped or is over.
- Rungs are kept sorted, smaller values first; NaN and infinite metrics are worst, behind every number.
- The state is mutable; exactly one caller owns one, and none of this is safe between threads.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from tenax.errors import Impossible
from tenax.ids import RequestId
from tenax.jsonvalue import JsonObject
from tenax.search.brackets import BracketPlan
from tenax.search.config import SearchConfig
from tenax.search.grid import Axis, axes
from tenax.search.journal import (
    Create,
    Exited,
    ExitReason,
    Rank,
    Reopened,
    SearchEntry,
    Shutdown,
    Started,
    Stop,
    Unrank,
    Validated,
)
from tenax.search.stream import RandomStream

_NONE: frozenset[int] = frozenset()


class Rung:
    """The trials that reached one rung, best first: parallel lists of values and request ids."""

    __slots__ = ("trials", "units", "values")

    def __init__(self, units: int) -> None:
        #: Where the rung lies, in units of the time metric.
        self.units = units
        self.values: list[float] = []
        self.trials: list[RequestId] = []

    def place(self, value: float) -> int:
        """Where ``value`` would stand: before its equals, except that the worst of all stands last."""
        return bisect_right(self.values, value) if value == math.inf else bisect_left(self.values, value)

    def insert(self, request_id: RequestId, value: float) -> None:
        """Put a trial in its place."""
        place = self.place(value)
        self.values.insert(place, value)
        self.trials.insert(place, request_id)

    def remove(self, request_id: RequestId) -> None:
        """Take a trial out again."""
        place = self.trials.index(request_id)
        del self.values[place], self.trials[place]


class Bracket:
    """One bracket: its rungs, and how many of its trials were made."""

    __slots__ = ("created", "plan", "rungs", "skipped")

    def __init__(self, plan: BracketPlan) -> None:
        self.plan = plan
        self.rungs = tuple(Rung(units) for units in plan.units)
        #: Trials made, without those that took the place of an invalid one: never above ``max_trials``.
        self.created = 0
        #: Trials that were over before they entered the bottom rung.
        self.skipped = 0


class SearchTrial:
    """What the search knows of one trial."""

    __slots__ = ("bracket", "entered", "exit", "replaced_by", "request_id", "steps", "stopped_at")

    def __init__(self, request_id: RequestId, bracket: int) -> None:
        self.request_id = request_id
        self.bracket = bracket
        #: Rungs entered so far; also the number of the next one.
        self.entered = 0
        #: The rung at which the search stopped it.
        self.stopped_at: int | None = None
        self.exit: ExitReason | None = None
        self.replaced_by: RequestId | None = None
        #: Steps of the validations seen, while they can still come again.
        self.steps: set[int] | frozenset[int] = _NONE

    @property
    def open(self) -> bool:
        """Whether reports of it still count."""
        return self.stopped_at is None and self.exit is None

    def saw(self, step: int) -> None:
        """A validation came at this step."""
        if isinstance(self.steps, set):
            self.steps.add(step)
        else:
            self.steps = {step}


class State:
    """All of a search. Changed by ``apply`` alone."""

    __slots__ = (
        "axes",
        "brackets",
        "closed",
        "config",
        "exits",
        "replaced",
        "replacements",
        "seed",
        "shutdown",
        "stopped",
        "stream",
        "trials",
    )

    def __init__(self, config: SearchConfig, seed: int) -> None:
        self.config = config
        self.seed = seed
        self.stream = RandomStream(seed)
        self.brackets = tuple(Bracket(plan) for plan in config.brackets())
        #: The axes of a grid search; empty under other methods.
        self.axes: tuple[Axis, ...] = axes(config.hyperparameters) if config.method.on_grid else ()
        #: In order of creation.
        self.trials: dict[RequestId, SearchTrial] = {}
        #: Trials that are over, by reason.
        self.exits: dict[ExitReason, int] = dict.fromkeys(ExitReason, 0)
        #: Trials that are over.
        self.closed = 0
        #: Trials with invalid hyperparameters that others took the place of.
        self.replaced = 0
        #: What was drawn for a grid in place of its invalid points.
        self.replacements: list[JsonObject] = []
        #: Trials that the search stopped.
        self.stopped = 0
        self.shutdown: Shutdown | None = None

    @property
    def max_trials(self) -> int:
        """Trials that the search ends with, those replaced not counted."""
        return sum(bracket.plan.max_trials for bracket in self.brackets)

    def trial(self, request_id: RequestId) -> SearchTrial:
        """The trial of that id; raises Impossible where the search never made it."""
        try:
            return self.trials[request_id]
        except KeyError:
            raise Impossible(f"The search knows no trial {request_id}; it made {len(self.trials)} trials.") from None

    def apply(self, entry: SearchEntry) -> None:
        """Take a recorded fact or decision in. What was taken in already changes nothing."""
        if isinstance(entry, Rank):
            self._rank(self.trial(entry.request_id), entry.rung, entry.value)
        elif isinstance(entry, Validated):
            trial = self.trial(entry.request_id)
            if trial.open:
                trial.saw(entry.step)
        elif isinstance(entry, Create):
            self._create(entry)
        elif isinstance(entry, Stop):
            self._stop(self.trial(entry.request_id))
        elif isinstance(entry, Exited):
            self._exit(self.trial(entry.request_id), entry.reason)
        elif isinstance(entry, Reopened):
            self._reopen(self.trial(entry.request_id))
        elif isinstance(entry, Unrank):
            self._unrank(self.trial(entry.request_id))
        elif isinstance(entry, Shutdown):
            self.shutdown = entry
        else:
            raise Impossible("A search starts once: a second start was found in its journal.")

    def values(self) -> object:
        """All of the state as plain values, for comparison."""
        return (
            (self.seed, self.stream.position, self.replaced, self.stopped, self.shutdown),
            tuple(self.exits.items()),
            tuple(map(repr, self.replacements)),
            tuple(
                (bracket.created, bracket.skipped, *((tuple(r.values), tuple(r.trials)) for r in bracket.rungs))
                for bracket in self.brackets
            ),
            tuple(
                (t.request_id, t.bracket, t.entered, t.stopped_at, t.exit, t.replaced_by, frozenset(t.steps))
                for t in self.trials.values()
            ),
        )

    def _create(self, create: Create) -> None:
        if create.request_id in self.trials:
            raise Impossible(f"The trial {create.request_id} was made twice.")
        self.stream.seek(create.position)
        self.trials[create.request_id] = SearchTrial(create.request_id, create.bracket)
        if create.replaces is None:
            self.brackets[create.bracket].created += 1
            return
        self.trial(create.replaces).replaced_by = create.request_id
        self.replaced += 1
        if self.axes:
            self.replacements.append(create.hparams)

    def _rank(self, trial: SearchTrial, number: int, value: float) -> None:
        if number != trial.entered:
            raise Impossible(f"The trial {trial.request_id} is to enter rung {number} after {trial.entered} rungs.")
        self.brackets[trial.bracket].rungs[number].insert(trial.request_id, value)
        trial.entered += 1

    def _stop(self, trial: SearchTrial) -> None:
        trial.stopped_at = max(trial.entered - 1, 0)
        trial.steps = _NONE
        self.stopped += 1

    def _unrank(self, trial: SearchTrial) -> None:
        for rung in self.brackets[trial.bracket].rungs[: trial.entered]:
            rung.remove(trial.request_id)
        trial.entered = 0

    def _exit(self, trial: SearchTrial, reason: ExitReason) -> None:
        if trial.exit is not None:
            return
        trial.exit = reason
        trial.steps = _NONE
        self.exits[reason] += 1
        self.closed += 1
        if trial.entered == 0 and reason is ExitReason.FINISHED:
            self.brackets[trial.bracket].skipped += 1

    def _reopen(self, trial: SearchTrial) -> None:
        """Undo an exit, and the end of the search with it."""
        if trial.stopped_at is not None or trial.entered:
            raise Impossible(f"The trial {trial.request_id} stands on rungs: what was decided on them stays.")
        if trial.exit is None:
            return
        self.exits[trial.exit] -= 1
        self.closed -= 1
        if trial.exit is ExitReason.FINISHED:
            self.brackets[trial.bracket].skipped -= 1
        trial.exit = None
        self.shutdown = None


def fold(config: SearchConfig, entries: Iterable[SearchEntry]) -> State:
    """The state that a journal amounts to. Raises Impossible on a journal that no search can have written.

    ``entries`` begins with ``Started``; facts and decisions follow in recorded order.
    """
    rest = iter(entries)
    first = next(rest, None)
    if not isinstance(first, Started):
        raise Impossible("The journal of a search begins with its start.")
    state = State(config, first.seed)
    for entry in rest:
        state.apply(entry)
    return state
