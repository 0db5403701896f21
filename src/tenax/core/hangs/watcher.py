"""Watches the ranks of this machine: each second their beats, and their stacks when one is silent for long.

A rank is judged by `tenax.core.hangs.verdict`. What this adds is where it stands: some time before its limit its stack
is taken several times; it stands if all are the same and it did not compute. In a save, a restore or an evaluation any
work is enough (a fiftieth of a core, 64 KiB/s of input and output, or a disk that is waited for, up to ten limits); in
training a tenth of one, and only where no GPU's driver is loaded: to wait for a GPU may cost a core.

Standard library only, Python 3.9.
"""

from __future__ import annotations

import linecache
import time
from dataclasses import replace

from tenax.core.hangs import processes
from tenax.core.hangs.beats import EVALUATE, RESTORE, SAVE, read_all, start_ticks
from tenax.core.hangs.places import place_of, worker_place
from tenax.core.hangs.processes import Activity
from tenax.core.hangs.stacks import StackReader
from tenax.core.hangs.verdict import Hang, RankClock, RankState, judge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Optional, Protocol, Sequence

    from tenax.core.hangs.beats import BeatRecord
    from tenax.core.hangs.places import StackPlace
    from tenax.core.hangs.settings import HangSettings
    from tenax.core.hangs.stacks import Stack

    class Speaker(Protocol):
        """What is done with a verdict."""

        def hangs(self, hang: Hang, stacks: Mapping[int, Stack]) -> None:
            """Ranks hang; the stacks of those that are here."""

        def shows(self, stacks: Mapping[int, Stack]) -> None:
            """Another machine's watcher says that ranks hang; the stacks of those that are here."""

        def goes_on(self, seconds: float) -> None:
            """They do no longer, after so many seconds."""

    class Others(Protocol):
        """The watchers of the other machines of a job; `Alone` says what each means."""

        def exchange(self, states: Sequence[RankState], near: bool) -> tuple[Sequence[RankState], bool]: ...

        def announce(self) -> None: ...

        def pop_verdict(self) -> bool: ...

        @property
        def needs_states(self) -> bool: ...

        @property
        def decides(self) -> bool: ...


#: A stack must be the same for this part of ``after``, in at least so many samples.
_STANDS, _SAMPLES = 0.25, 4
#: Parts of a core that count as computing: in a phase that may take its time, and in training.
_SOME, _BUSY = 0.02, 0.1
_MOVED_PER_S = 64 * 1024
#: Limits for which a disk may be waited for.
_DISK_TIMES = 10.0


class _Standstill:
    """Since when a rank has not moved, from samples of its stack."""

    def __init__(self, now: float) -> None:
        self.since = now
        self.samples = 0
        self.sampled = now
        self.stack: Stack = ()
        self.place: Optional[StackPlace] = None
        self.worker: Optional[StackPlace] = None
        self._seen: object = None
        self._activity: Optional[Activity] = None

    def add(
        self, now: float, seen: object, before: Activity, after: Activity, computes: Callable[[Activity, float], bool]
    ) -> None:
        """A sample: what must stay the same, and what it had done ``before`` it was asked for that, and ``after``.

        To answer is no work of its own: on a busy machine that takes long.
        """
        passed = now - self.sampled
        moved = self._activity is not None and computes(before.since(self._activity), passed)
        if seen != self._seen or moved:
            self.since, self.samples = now, 0
        self.samples += 1
        self._seen, self._activity, self.sampled = seen, after, now


class Alone:
    """Of a job whose ranks are all on this machine (``complete``), or whose others are not known."""

    def __init__(self, complete: bool = True) -> None:
        self._complete = complete

    def exchange(self, states: Sequence[RankState], near: bool) -> tuple[Sequence[RankState], bool]:
        """All states that are known, and whether no other rank is anywhere."""
        return states, self._complete

    def announce(self) -> None:
        """The verdict is that ranks hang: the others show the stacks of theirs."""

    def pop_verdict(self) -> bool:
        """Whether that was the verdict elsewhere; once for each."""
        return False

    @property
    def needs_states(self) -> bool:
        """Whether another machine wants to know where the ranks of this one stand."""
        return False

    @property
    def decides(self) -> bool:
        """Whether the verdict is made here."""
        return True


class HangWatcher:
    """The ranks whose beats are in ``directory``. ``others``: the watchers of the other machines."""

    def __init__(
        self, directory: str, settings: HangSettings, speaker: Speaker, others: Optional[Others] = None
    ) -> None:
        self._directory = directory
        self._settings = settings
        self._speaker = speaker
        self._others: Others = Alone() if others is None else others
        self._stacks = StackReader()
        self._clocks: dict[int, RankClock] = {}
        self._standstills: dict[int, _Standstill] = {}
        self._hang: Optional[Hang] = None
        self._began = 0.0

    def step(self, now: Optional[float] = None) -> None:
        """Observe and judge once; ``now``: monotonic seconds."""
        now = time.monotonic() if now is None else now
        records = read_all(self._directory)
        for record in records:
            clock = self._clocks.setdefault(record.rank, RankClock(self._settings.after, self._settings.tick))
            clock.observe(now, record.beats, record.phase, processes.is_stopped(record.pid))
        near = any(self._is_near(record) for record in records)
        if self._hang is not None or not (near or self._others.needs_states):
            self._standstills.clear()
        else:
            for record in records:
                self._sample(now, record)
        own = [self._state(record) for record in records]
        states, complete = self._others.exchange(own, near or self._hang is not None)
        if self._hang is not None:
            self._see_whether_over(now, self._hang, states)
        elif self._others.decides:
            self._decide(now, records, states, complete)
        elif self._others.pop_verdict():
            self._speaker.shows({record.rank: self._shown(record) for record in records})

    def _decide(self, now: float, records: Sequence[BeatRecord], states: Sequence[RankState], complete: bool) -> None:
        hang = judge(states, max((record.size for record in records), default=0), complete)
        if hang is not None:
            self._hang, self._began = hang, now
            for clock in self._clocks.values():
                clock.excuse()
            self._others.announce()
            self._speaker.hangs(hang, {record.rank: self._shown(record) for record in records})

    def _shown(self, record: BeatRecord) -> Stack:
        """The stack of a rank, whether it stands or not."""
        still = self._standstills.get(record.rank)
        return still.stack if still is not None else self._stack(record, processes.below(record.pid))

    def _see_whether_over(self, now: float, hang: Hang, states: Sequence[RankState]) -> None:
        beats = {state.rank: state.beats for state in states}
        if any(beats.get(rank, count) != count for rank, count in hang.beats.items()):
            self._hang = None
            self._speaker.goes_on(now - self._began)

    def _is_near(self, record: BeatRecord) -> bool:
        """Whether its limit is so near that its stack is worth taking."""
        state = self._state(record)
        early = state.limit_s - 2 * _STANDS * self._settings.after
        return replace(state, stands=True, limit_s=early).overdue

    def _sample(self, now: float, record: BeatRecord) -> None:
        silent = self._clocks[record.rank].silent_s
        still = self._standstills.get(record.rank)
        pause = max(self._settings.after * _STANDS / _SAMPLES, 0.05 * silent)
        if silent < pause or (still is not None and silent < now - still.since):
            # It beats: what was seen of it before says nothing.
            self._standstills.pop(record.rank, None)
            return
        if still is None:
            still = self._standstills[record.rank] = _Standstill(now)
        elif now - still.sampled < pause:
            return
        below = processes.below(record.pid)
        before = processes.activity([record.pid, *below])
        still.stack = self._stack(record, below)
        still.place = place_of(still.stack, record.size > 1, linecache.getline)
        workers: tuple[Stack, ...] = ()
        if still.place is not None and still.place.loads:
            workers = tuple(self._stacks.main_thread(record, *each) for each in below.items())
            still.worker = next(filter(None, (worker_place(each, linecache.getline) for each in workers)), None)
        after = processes.activity([record.pid, *below])
        still.add(now, (still.stack, workers), before, after, lambda done, passed: self._computes(record, done, passed))

    def _stack(self, record: BeatRecord, below: Mapping[int, int]) -> Stack:
        """Of its process; of one that a shell started, of the first below it that is Python."""
        for each in ((record.pid, record.start), *list(below.items())[:3]):
            stack = self._stacks.main_thread(record, *each)
            if stack:
                return stack
        return ()

    def _computes(self, record: BeatRecord, done: Activity, passed: float) -> bool:
        """Whether a process that did this, in so many seconds, is at work."""
        still = self._standstills[record.rank]
        clock = self._clocks[record.rank]
        may_take_its_time = record.phase in (SAVE, RESTORE, EVALUATE) or not still.stack
        if may_take_its_time or (still.place is not None and still.place.runs_program):
            waits_for_disk = processes.waits_for_disk(record.pid) and clock.silent_s < _DISK_TIMES * clock.limit_s
            some = done.cpu_s >= max(0.02, _SOME * passed) or done.moved >= max(4096, _MOVED_PER_S * passed)
            return some or waits_for_disk
        return done.cpu_s >= max(0.02, _BUSY * passed) and not processes.has_gpu(record.pid)

    def _state(self, record: BeatRecord) -> RankState:
        clock, still = self._clocks[record.rank], self._standstills.get(record.rank)
        place = still.place if still is not None else None
        return RankState(
            rank=record.rank,
            phase=record.phase,
            step=record.step,
            beats=record.beats,
            silent_s=clock.silent_s,
            limit_s=clock.limit_s,
            stands=still is not None and self._stands(still),
            gone=start_ticks(record.pid) != record.start,
            place=place.text if place is not None else "",
            waits=place is not None and place.waits,
            worker=still.worker.text if still is not None and still.worker is not None else "",
        )

    def _stands(self, still: _Standstill) -> bool:
        excused = still.place is not None and still.place.excused
        long_enough = still.sampled - still.since >= 0.9 * _STANDS * self._settings.after
        return not excused and still.samples >= _SAMPLES and long_enough
