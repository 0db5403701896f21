"""That metrics of a followed trial have come in, told without a row, and without a statement for each report.

Rules it keeps:

- the master that stores reports knows what it has stored: its own followers are told from memory;
- a master says which trials its followers follow, every `_ANNOUNCE_S`, and at once when one is new: by a wake-up that
  only masters hear. Whoever stores metrics of such a trial says so, a few times a second at most, however many reports
  there are. While nobody follows a trial, nothing is said;
- what was stored just before another master said that it follows the trial is said at once.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Iterator, Mapping

from tenax.master.reading.events.marks import Marks

_FOLLOWED, _STORED = "metrics_followed", "metrics_stored"
_ANNOUNCE_S = 10.0
#: So long an announcement counts.
_COUNTS_S = 3 * _ANNOUNCE_S
#: In one wake-up, of which PostgreSQL takes 8000 bytes.
MAX_NAMED = 300
#: Trials that other masters follow, and those that had reports a moment ago.
MAX_ELSEWHERE, MAX_RECENT = 20_000, 2000


class Arrivals:
    """For one event loop."""

    #: Wake-ups among masters.
    kinds = (_FOLLOWED, _STORED)

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._name = uuid.uuid4().hex[:12]
        #: Trial -> until when another master follows it, on the monotonic clock.
        self._elsewhere: dict[int, float] = {}
        self._recent: dict[int, None] = {}
        #: Trials that others are to be told of.
        self._owed: set[int] = set()
        self._announced: frozenset[int] = frozenset()
        self._announced_at = 0.0

    def stored(self, newest: Mapping[tuple[int, str], int]) -> bool:
        """Reports were stored here: the newest step of each trial and group; whether there is something to do."""
        work = False
        for (trial_id, group), step in newest.items():
            work |= self._marks.stored(trial_id, group, step)
            self._recent.pop(trial_id, None)
            self._recent[trial_id] = None
            if trial_id in self._elsewhere:
                self._owed.add(trial_id)
                work = True
        while len(self._recent) > MAX_RECENT:
            del self._recent[next(iter(self._recent))]
        return work

    def hear(self, kind: str, names: str) -> bool:
        """What a master has said; whether there is something to do."""
        who, _, numbers = names.partition(":")
        if who == self._name:
            return False
        trials = [int(number) for number in numbers.split(".") if number.isdecimal()]
        if kind == _STORED:
            return bool([trial_id for trial_id in trials if self._marks.stored_elsewhere(trial_id)])
        until = time.monotonic() + _COUNTS_S
        for trial_id in trials:
            if trial_id not in self._elsewhere and trial_id in self._recent:
                self._owed.add(trial_id)
            if len(self._elsewhere) < MAX_ELSEWHERE or trial_id in self._elsewhere:
                self._elsewhere[trial_id] = until
        return bool(self._owed)

    def next_in_s(self) -> float | None:
        """When there is something to do even if nothing happens; None: never."""
        waits = [self._marks.due_in_s()]
        if self._marks.followed_trials:
            waits.append(max(0.0, self._announced_at + _ANNOUNCE_S - time.monotonic()))
        return min((wait for wait in waits if wait is not None), default=None)

    def announcements(self) -> list[tuple[str, str]]:
        """What is to be said to other masters now: kinds of wake-ups, and names."""
        now = time.monotonic()
        self._elsewhere = {trial_id: until for trial_id, until in self._elsewhere.items() if until > now}
        owed = [trial_id for trial_id in sorted(self._owed) if trial_id in self._elsewhere]
        self._owed.clear()
        followed = frozenset(self._marks.followed_trials)
        if now >= self._announced_at + _ANNOUNCE_S:
            to_announce = followed
            self._announced_at = now
        else:
            to_announce = followed - self._announced
        self._announced = followed
        return [*self._named(_STORED, owed), *self._named(_FOLLOWED, sorted(to_announce))]

    def _named(self, kind: str, trials: Collection[int]) -> Iterator[tuple[str, str]]:
        numbers = [str(trial_id) for trial_id in trials]
        for start in range(0, len(numbers), MAX_NAMED):
            yield kind, f"{self._name}:{'.'.join(numbers[start : start + MAX_NAMED])}"
