"""Failures that would come again: of the run before, or of another trial of the same experiment.

Rules: only where nobody has set ``max_restarts``. What two runs of a trial have shown holds for the other trials of its
experiment, since they run the same code; but only of failures before any step, and until the experiment is continued.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from asyncpg import Connection

from tenax.ids import TaskId, allocation_id
from tenax.master.allocations.exit_reason import failure_place
from tenax.master.store.trials import rows as trials
from tenax.master.store.trials.rows import TrialRow

#: Of a longer place, which an index does not take, other trials learn nothing.
_MAX_PLACE = 500


class Repeats:
    """What the failures of these trials are held against; the experiments of all of them are locked."""

    def __init__(
        self,
        lines: Mapping[str, Sequence[str]],
        judged: Collection[int],
        fresh: Collection[int],
        known: Mapping[tuple[int, str], int],
    ) -> None:
        """``lines``: as `verdicts.exit_lines` has them; ``fresh``: of the ``judged`` trials those that came to no step;
        ``known``: by experiment and place, the trial that failed there twice."""
        self._lines = lines
        self._judged = judged
        self._fresh = fresh
        self._known = dict(known)
        self._new: dict[tuple[int, str], int] = {}

    @classmethod
    async def load(cls, conn: Connection, failed: Sequence[TrialRow], lines: Mapping[str, Sequence[str]]) -> Repeats:
        """For trials whose failures are to be held against earlier ones."""
        if not failed:
            return cls({}, (), (), {})
        judged = [trial.id for trial in failed]
        known = await trials.repeated_failures(conn, {trial.experiment_id for trial in failed})
        return cls(lines, judged, await trials.before_any_step(conn, judged), known)

    def of(self, trial: TrialRow, own: Sequence[str]) -> tuple[str | None, int | None]:
        """Where a run failed that wrote these last lines, if that would come again; and which other trial showed it,
        None: the trial's last run that failed did.

        Not of the first that counts: whoever continues a trial has changed something, or hopes that something has.
        """
        place = failure_place(own) if trial.id in self._judged else None
        if place is None:
            return None, None
        key = (trial.experiment_id, place)
        before = self._lines.get(allocation_id(TaskId(trial.task_id), trial.run_id), ()) if trial.restarts else ()
        if place == failure_place(before):
            if trial.id in self._fresh and len(place) <= _MAX_PLACE:
                self._new.setdefault(key, trial.id)
            return place, None
        by = {**self._new, **self._known}.get(key) if trial.id in self._fresh else None
        return (place, by) if by is not None else (None, None)

    async def save(self, conn: Connection) -> None:
        """Keep what other trials learn from these."""
        if self._new:
            await trials.note_repeated_failures(conn, self._new)
