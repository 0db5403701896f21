"""At which steps a trial has reported, without what it reported; and the reports at some steps, without all others.

Rules: of a group, each visible step is there once: a newer run hides what older ones said from its first step on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from asyncpg import Connection, Record

from tenax.master.store.packing import Integers, unpack_integers
from tenax.master.store.queries import load
from tenax.master.store.series import Group, PackedReports, fetch, outline

Q = load("series_steps")


@dataclass(frozen=True, slots=True)
class PackedSteps:
    """Steps of a group as stored. Unpacking them takes a while: `steps` is for a thread."""

    group: Group
    blocks: list[Record]
    tail: list[Record]

    def steps(self) -> Integers:
        """The visible ones, rising, each once."""
        parts = [self._seen(row["run_id"], unpack_integers(row["steps"])) for row in self.blocks]
        parts += [self._seen(row["run_id"], np.array(row["steps"], np.int64)) for row in self.tail]
        if not parts:
            return np.empty(0, np.int64)
        whole = np.concatenate(parts)
        return whole if whole.size < 2 or (np.diff(whole) > 0).all() else np.unique(whole)

    def _seen(self, run_id: int, steps: Integers) -> Integers:
        return steps[steps < self.group.cuts.limit(run_id, self.group.name)]


async def steps_of(conn: Connection, group: Group) -> PackedSteps:
    """Of one group, for `PackedSteps.steps`."""
    key = (group.month, group.trial_id, group.name)
    return PackedSteps(group, await conn.fetch(Q.blocks, *key), await conn.fetch(Q.tail, *key))


async def reports_at(conn: Connection, group: Group, steps: Sequence[int]) -> list[PackedReports]:
    """What is stored around these steps; others are among them. In the transaction of the steps."""
    wanted = np.array(sorted(steps), np.int64)
    found = []
    for cluster in await outline(conn, group):
        low, high = min(span.first_step for span in cluster), max(span.last_step for span in cluster)
        if np.searchsorted(wanted, low) < np.searchsorted(wanted, high, side="right"):
            found.append(await fetch(conn, group, cluster))
    return found
