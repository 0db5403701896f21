"""Whether ranks hang, and in which words. Pure: values in, values out; standard library only, Python 3.9.

- A rank is silent from its last beat on, by the clock of whoever watches: seconds in which the rank was stopped, or the
  watcher, do not count.
- Its limit is ``after``, or ten times the 99th percentile of its own last 1,000 steps (the seconds between two beats in
  training), whichever is more.
- It hangs when it is silent for longer than its limit and stands: its stack was the same for the last while, and it did
  not compute. Before the first beat no clock runs, except while ranks wait for each other to come.
- Who waits for others does not hang as long as any of those goes on, or could.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import asdict, dataclass

from tenax.core.hangs.beats import EVALUATE, JOIN, LEFT, RESTORE, SAVE, START, TRAIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Optional

    from tenax.jsonvalue import Json, JsonObject

#: Of what a step usually takes.
TIMES = 10.0
#: Steps that say what is usual.
_STEPS = 1000
_DOING = {SAVE: "saves a checkpoint and ", RESTORE: "restores a checkpoint and ", EVALUATE: "evaluates and "}


class RankClock:
    """How long a rank is silent, and how long it may be. ``tick``: seconds between two observations, at most."""

    def __init__(self, after: float, tick: float) -> None:
        self._after = after
        #: Whoever was not there itself for longer knows nothing of that time.
        self._most = 5 * tick
        self._at: Optional[float] = None
        self._beats = -1
        self._phase = -1
        self._counted = 0
        #: Steps that took long enough to count, by number.
        self._long: deque[tuple[int, float]] = deque()
        self.silent_s = 0.0
        self._excused = False

    @property
    def limit_s(self) -> float:
        """Seconds of silence after which it hangs, if it stands."""
        return max(self._after, TIMES * self._usual_s())

    def observe(self, now: float, beats: int, phase: int, stopped: bool = False) -> None:
        """What stands in its file at ``now``, monotonic seconds."""
        passed = 0.0 if self._at is None or stopped else min(max(0.0, now - self._at), self._most)
        self._at = now
        if beats == self._beats and phase == self._phase:
            self.silent_s += passed
            return
        if phase == self._phase == TRAIN and 0 < self._beats < beats and not self._excused:
            self._add(beats - self._beats, self.silent_s + passed)
        self._beats, self._phase, self.silent_s, self._excused = beats, phase, 0.0, False

    def excuse(self) -> None:
        """It is said to hang: this silence says nothing of what is usual."""
        self._excused = True

    def _add(self, steps: int, seconds: float) -> None:
        """So many steps, of which one took all that time: the others came at once."""
        self._counted += steps
        if TIMES * seconds > self._after:
            self._long.append((self._counted, seconds))
        while self._long and self._long[0][0] <= self._counted - _STEPS:
            self._long.popleft()

    def _usual_s(self) -> float:
        """The 99th percentile (nearest rank); 0: too little to raise the limit."""
        known = min(self._counted, _STEPS)
        place = known - math.ceil(0.99 * known)
        ordered = sorted((seconds for _, seconds in self._long), reverse=True)
        return ordered[place] if place < len(ordered) else 0.0


@dataclass(frozen=True)
class RankState:
    """One rank, as it is seen."""

    rank: int
    phase: int
    #: -1: not known.
    step: int
    beats: int
    silent_s: float
    limit_s: float
    #: Its stack has not changed for a while, and it does not compute.
    stands: bool = False
    #: Its process has ended.
    gone: bool = False
    #: Where, in words; empty: not known.
    place: str = ""
    #: For other ranks.
    waits: bool = False
    #: Where the worker of its data loader stands.
    worker: str = ""

    @property
    def overdue(self) -> bool:
        """Whether it is silent for too long, and should not be."""
        watched = self.phase not in (START, LEFT) and (self.beats > 0 or self.phase == JOIN)
        return watched and not self.gone and self.stands and self.silent_s >= self.limit_s

    @property
    def lives(self) -> bool:
        """Whether it goes on, or may: others may wait for it."""
        return not (self.gone or self.stands or self.phase == LEFT)

    def to_json(self) -> JsonObject:
        """For another machine."""
        return dict(asdict(self))

    @classmethod
    def from_json(cls, fields: Mapping[str, Json]) -> RankState:
        """Raises TypeError, KeyError."""
        return cls(**{name: fields[name] for name in cls.__dataclass_fields__})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Hang:
    """What is said of it, and whose going on ends it: beats by rank."""

    sentence: str
    beats: Mapping[int, int]


def judge(states: Sequence[RankState], size: int, complete: bool) -> Optional[Hang]:
    """Whether ranks hang; None: none does.

    ``size``: ranks of the job. ``complete``: those that are missing here are nowhere else.
    """
    overdue = [state for state in states if state.overdue]
    if not overdue:
        return None
    missing = sorted(set(range(size)) - {state.rank for state in states})
    waiting = all(state.waits or state.phase == JOIN for state in overdue)
    if waiting and (any(state.lives for state in states) or (missing and not complete)):
        return None
    absent = missing if complete else []
    sentence = _sentence(states, overdue, absent, size)
    return Hang(sentence, {state.rank: state.beats for state in overdue})


def _sentence(states: Sequence[RankState], overdue: Sequence[RankState], absent: Sequence[int], size: int) -> str:
    late = [state for state in states if state.phase == START]
    ended = [state for state in states if state.gone or state.phase == LEFT]
    others = [state for state in states if state not in late and state not in ended]
    # Also those whose own limit is further away: they stand, and the others may wait for them.
    culprits = [state for state in others if state.stands and not (state.waits or state.phase == JOIN)]
    waiting = [state for state in others if state.waits or state.phase == JOIN]
    rest = [state for state in others if state not in culprits and state not in waiting]
    parts = []
    if absent:
        parts.append(f"{_ranks(absent, size)} {_verb(absent, 'has', 'have')} not come")
    for kind in (late, ended, culprits, waiting, rest):
        parts += _grouped(kind, size)
    parts += [f"{_whose([state.rank], size)} data loader {state.worker}" for state in culprits if state.worker]
    silent = min(state.silent_s for state in overdue)
    return f"{'; '.join(parts)}. No step for {_time(silent)}{_advice(late, ended, absent, culprits, waiting)}"


def _grouped(states: Sequence[RankState], size: int) -> list[str]:
    """Ranks that stand at the same place, together."""
    groups: dict[tuple[str, int], list[int]] = {}
    for state in states:
        groups.setdefault((_doing(state), state.step), []).append(state.rank)
    parts = []
    for (doing, step), ranks in groups.items():
        at = f" at step {step:,}" if step >= 0 else ""
        if doing:
            parts.append(f"{_ranks(ranks, size)} {doing if len(ranks) == 1 else _plural(doing)}{at}")
        elif at:
            parts.append(f"{_ranks(ranks, size)} {_verb(ranks, 'is', 'are')}{at}")
        else:
            parts.append(f"{_ranks(ranks, size)} {_verb(ranks, 'goes', 'go')} on")
    return parts


def _doing(state: RankState) -> str:
    if state.gone or state.phase == LEFT:
        return "has ended"
    if state.phase == START:
        return f"has not come to the others and {state.place}" if state.place else "has not come to the others"
    if state.phase == JOIN:
        return "waits for the others to come"
    if not state.stands:
        return ""
    return f"{_DOING.get(state.phase, '')}{state.place or 'stands at a place that cannot be seen'}"


def _advice(
    late: Sequence[RankState],
    ended: Sequence[RankState],
    absent: Sequence[int],
    culprits: Sequence[RankState],
    waiting: Sequence[RankState],
) -> str:
    """What to do, after a colon; where the place says it all, nothing."""
    if absent or late:
        numbers = [*absent, *(state.rank for state in late)]
        return (
            f": look at the output of {_ranks(numbers, 2)} (tenax trial logs ID --rank-id {numbers[0]}). Every rank "
            "must come to core.DistributedContext.from_torch_distributed(); those that come wait for it"
        )
    if ended:
        return ": the others wait for a rank that is gone. All ranks must do the same number of steps"
    if not culprits and len({(state.place, state.step) for state in waiting}) > 1:
        return ": all ranks must make the same collective calls, in the same order"
    return ""


def _ranks(ranks: Sequence[int], size: int) -> str:
    """``rank 3``, ``ranks 0 to 2``, ``ranks 0, 2 and 5``."""
    if size == 1:
        return "the script"
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) > 2 and list(ranks) == list(range(ranks[0], ranks[-1] + 1)):
        return f"ranks {ranks[0]} to {ranks[-1]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


def _whose(ranks: Sequence[int], size: int) -> str:
    return "its" if size == 1 else f"{_ranks(ranks, size)}'s"


def _verb(ranks: Sequence[int], single: str, plural: str) -> str:
    return single if len(ranks) == 1 else plural


def _plural(doing: str) -> str:
    """The words of `_doing` for several."""
    for single, plural in (("has ", "have "), ("waits ", "wait "), ("stands ", "stand "), ("saves ", "save ")):
        if doing.startswith(single):
            doing = plural + doing[len(single) :]
            break
    for single, plural in (("restores ", "restore "), ("evaluates ", "evaluate ")):
        if doing.startswith(single):
            doing = plural + doing[len(single) :]
    return doing.replace(" and waits ", " and wait ").replace(" and stands ", " and stand ")


def _time(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole} s" if whole < 120 else f"{whole // 60} min"
