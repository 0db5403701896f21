"""The whole validation at a checkpoint's step, for many checkpoints at once. Reads only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from asyncpg import Connection, Record

from tenax.jsonvalue import Json
from tenax.master.store import series
from tenax.master.store.queries import load
from tenax.master.store.series import PackedReports

Q = load("checkpoint_metrics")

_VALIDATION = "validation"


@dataclass(frozen=True, slots=True)
class PackedValidations:
    """As stored. Unpacking takes a while: `at` is for a thread."""

    trials: tuple[PackedReports, ...]

    def at(self, steps: set[tuple[int, int]]) -> dict[tuple[int, int], dict[str, Json]]:
        """(trial, step) -> metric -> value, of those that were reported and are visible."""
        return {
            (report.trial_id, report.step): report.metrics
            for packed in self.trials
            for report in packed.reports()
            if report.step is not None and (report.trial_id, report.step) in steps
        }


async def of_trials(conn: Connection, trial_ids: Sequence[int]) -> PackedValidations:
    """All validations of these trials. In a snapshot."""
    groups = [group for group in await series.groups_of(conn, sorted(set(trial_ids))) if group.name == _VALIDATION]
    if not groups:
        return PackedValidations(())
    wanted = ([group.month for group in groups], [group.trial_id for group in groups])
    tails = _by_trial(await conn.fetch(Q.tail, *wanted))
    blocks = _by_trial(await conn.fetch(Q.blocks, *wanted))
    chunks: dict[tuple[int, int], list[Record]] = defaultdict(list)
    for row in await conn.fetch(Q.chunks, *wanted):
        chunks[row["trial_id"], row["first_ord"]].append(row)
    return PackedValidations(
        tuple(
            PackedReports(
                group,
                tails[group.trial_id],
                [(block, chunks[group.trial_id, block["first_ord"]]) for block in blocks[group.trial_id]],
            )
            for group in groups
        )
    )


def _by_trial(rows: Sequence[Record]) -> dict[int, list[Record]]:
    found: dict[int, list[Record]] = defaultdict(list)
    for row in rows:
        found[row["trial_id"]].append(row)
    return found
