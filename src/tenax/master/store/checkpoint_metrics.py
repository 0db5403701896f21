"""What was trained and validated at a checkpoint's step, for many checkpoints at once. Reads only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from asyncpg import Connection, Record

from tenax.jsonvalue import JsonObject
from tenax.master.store import series
from tenax.master.store.queries import load
from tenax.master.store.series import Group, PackedReports

Q = load("checkpoint_metrics")

_TRAINING, _VALIDATION = "training", "validation"


@dataclass(frozen=True, slots=True)
class Reports:
    """What was reported at a step: metric -> value; None: nothing was."""

    training: JsonObject | None = None
    validation: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class PackedSteps:
    """What is stored around some steps. Unpacking takes a while: `reports` is for a thread."""

    #: (trial, step)
    wanted: Collection[tuple[int, int]] = ()
    groups: tuple[PackedReports, ...] = field(default=())

    def reports(self) -> Mapping[tuple[int, int], Reports]:
        """(trial, step) -> what was reported there and is visible; nothing for a step without a report."""
        found: dict[tuple[int, int], dict[str, JsonObject]] = {}
        for packed in self.groups:
            for report in packed.reports():
                if report.step is not None and (report.trial_id, report.step) in self.wanted:
                    found.setdefault((report.trial_id, report.step), {})[report.group] = report.metrics
        return {place: Reports(of.get(_TRAINING), of.get(_VALIDATION)) for place, of in found.items()}


async def at_steps(conn: Connection, wanted: Collection[tuple[int, int]]) -> PackedSteps:
    """What is stored around these steps of trials: (trial, step)."""
    trials = sorted({trial_id for trial_id, _ in wanted})
    groups = [one for one in await series.groups_of(conn, trials) if one.name in (_TRAINING, _VALIDATION)]
    if not groups:
        return PackedSteps()
    steps: dict[int, list[int]] = defaultdict(list)
    for trial_id, step in sorted(wanted):
        steps[trial_id].append(step)
    tails = _by_group(await conn.fetch(Q.tail, *_columns([_key(group) for group in groups])))
    sealed = [(*_key(group), step) for group in groups if group.sealed_ord for step in steps[group.trial_id]]
    found = await conn.fetch(Q.blocks, *_columns(sealed)) if sealed else []
    blocks = _by_group(found)
    chunks: dict[tuple[int, str, int], list[Record]] = defaultdict(list)
    places = [(row["month"], row["trial_id"], row["grp"], row["first_ord"]) for row in found]
    for row in await conn.fetch(Q.chunks, *_columns(places)) if places else []:
        chunks[row["trial_id"], row["grp"], row["first_ord"]].append(row)
    return PackedSteps(
        frozenset(wanted),
        tuple(
            PackedReports(
                group,
                tails[_place(group)],
                [(row, chunks[row["trial_id"], row["grp"], row["first_ord"]]) for row in blocks[_place(group)]],
            )
            for group in groups
        ),
    )


def _key(group: Group) -> tuple[int, int, str]:
    return group.month, group.trial_id, group.name


def _place(group: Group) -> tuple[int, str]:
    return group.trial_id, group.name


def _columns(rows: Sequence[tuple[object, ...]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows)]


def _by_group(rows: Sequence[Record]) -> dict[tuple[int, str], list[Record]]:
    found: dict[tuple[int, str], list[Record]] = defaultdict(list)
    for row in rows:
        found[row["trial_id"], row["grp"]].append(row)
    return found
