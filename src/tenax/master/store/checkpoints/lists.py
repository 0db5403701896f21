"""Checkpoints as people see them: with their trial, its configuration, and the metrics at their step. Reads only.

The reports at the steps of many checkpoints are loaded at once (`at_steps`) and unpacked in a thread.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import datetime

from asyncpg import Connection, Record

from tenax.errors import InvalidInput, NotFound
from tenax.jsonvalue import JsonObject
from tenax.master.store.database.paging import Page
from tenax.master.store.database.queries import load
from tenax.master.store.metrics import series
from tenax.master.store.metrics.series import MetricGroup, PackedReports

Q = load("checkpoints")

#: Characters of a uuid that people name a checkpoint by, at least.
_LEAST_BEGINNING = 4


@dataclass(frozen=True, slots=True)
class CheckpointView:
    """One checkpoint, with what it comes from."""

    uuid: str
    task_id: str
    allocation_id: str | None
    trial_id: int | None
    storage_id: int | None
    state: str
    superseded: bool
    steps_completed: int
    metadata: JsonObject
    resources: dict[str, int]
    size_bytes: int
    reported_at: datetime
    experiment_id: int | None
    owner_id: int | None
    hparams: JsonObject | None
    #: Of its experiment, with its secrets.
    config: JsonObject | None
    #: The text from which its owner had it made.
    original_config: str | None
    #: Where it is, as reported; None: as the experiment says.
    storage: JsonObject | None
    #: The searcher's metric at its step.
    metric: float | None
    #: What is known of the validation at its step.
    metrics: JsonObject | None
    #: Why its files are being removed; None: they are not.
    removal_reason: str | None
    #: Why that failed the last time; empty: nothing failed.
    removal_failure: str | None
    #: What was trained at its step; None: nothing was reported there, or it was not loaded.
    trained: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class OwnedCheckpoint:
    """Whose a checkpoint is, and of which experiment; None: of none that is there."""

    uuid: str
    experiment_id: int | None
    owner_id: int | None


@dataclass(frozen=True, slots=True)
class Measured:
    """One checkpoint, as lists by a metric are sorted."""

    uuid: str
    trial_id: int | None
    state: str
    steps_completed: int
    reported_at: datetime
    #: What is known of the validation at its step.
    metrics: JsonObject | None


#: What a list may be ordered by.
ORDERS: Mapping[str, str] = {
    "uuid": "c.uuid",
    "trial_id": "c.trial_id",
    "steps": "c.steps_completed",
    "reported_at": "c.reported_at",
    "state": "c.state",
    # What is not a number ranks behind all numbers, in both directions.
    "metric": "nullif(nullif(nullif(v.metric, 'NaN'), 'Infinity'), '-Infinity')",
}


@dataclass(frozen=True, slots=True)
class CheckpointFilter:
    """Which checkpoints to list; None: any. The parameters of `matching`, in its order."""

    experiment_id: int | None = None
    trial_id: int | None = None
    states: tuple[str, ...] | None = None
    uuids: tuple[str, ...] | None = None


async def count(conn: Connection, filters: CheckpointFilter) -> int:
    """How many match."""
    text = f"select count(*) from checkpoints c left join trials t on t.id = c.trial_id {Q.matching}"
    total: int = await conn.fetchval(text, *astuple(filters))
    return total


async def uuids(
    conn: Connection, filters: CheckpointFilter, window: Page, *, order: str = "reported_at", descending: bool = False
) -> list[str]:
    """Which are on a page of those that match, in order."""
    direction = "desc" if descending else "asc"
    # Of two that are equally good, the one that was saved first is better, whichever way a metric is good.
    then = "c.reported_at, c.uuid" if order == "metric" else f"c.uuid {direction}"
    text = (
        f"{Q.uuid} {Q.sources} {Q.matching} order by {ORDERS[order]} {direction} nulls last, {then} limit $5 offset $6"
    )
    return [row["uuid"] for row in await conn.fetch(text, *astuple(filters), window.limit, window.offset)]


async def measured(conn: Connection, filters: CheckpointFilter) -> list[Measured]:
    """All that match, in no order, with nothing but what they are sorted by."""
    text = f"{Q.measured} {Q.sources} {Q.matching}"
    return [Measured(**row) for row in await conn.fetch(text, *astuple(filters))]


async def views(conn: Connection, chosen: Sequence[str]) -> list[CheckpointView]:
    """Those of the uuids ``chosen`` that are there, in that order."""
    filters = CheckpointFilter(uuids=tuple(chosen))
    rows = await conn.fetch(f"{Q.columns} {Q.sources} {Q.matching}", *astuple(filters))
    by_uuid = {row["uuid"]: CheckpointView(**row) for row in rows}
    return [by_uuid[uuid] for uuid in chosen if uuid in by_uuid]


async def get(conn: Connection, uuid: str) -> CheckpointView:
    """Raises NotFound."""
    return (await get_all(conn, [uuid]))[0]


async def whole_uuid(conn: Connection, beginning: str) -> str:
    """The uuid of the only checkpoint that begins so; ``beginning`` itself where none does. Raises InvalidInput."""
    if len(beginning) < _LEAST_BEGINNING:
        return beginning
    uuids: list[str] = [row["uuid"] for row in await conn.fetch(Q.beginning_with, beginning)]
    if len(uuids) > 1 and beginning not in uuids:
        raise InvalidInput(
            f"{beginning} may be any of several checkpoints ({', '.join(uuids)}, ...): give more of its id"
        )
    return uuids[0] if len(uuids) == 1 else beginning


async def get_all(conn: Connection, chosen: list[str]) -> list[CheckpointView]:
    """These, in their order. Raises NotFound."""
    there = await views(conn, chosen)
    _check_all_there(chosen, {view.uuid for view in there})
    return there


async def owners(conn: Connection, chosen: list[str]) -> list[OwnedCheckpoint]:
    """Whose these are, in their order; each is named once. Raises NotFound."""
    there = {row["uuid"]: OwnedCheckpoint(**row) for row in await conn.fetch(Q.owners, chosen)}
    _check_all_there(chosen, there)
    return [there[uuid] for uuid in chosen]


def _check_all_there(chosen: list[str], known: Collection[str]) -> None:
    missing = next((uuid for uuid in chosen if uuid not in known), None)
    if missing is not None:
        short = f": give {_LEAST_BEGINNING} characters of its id, or more" if len(missing) < _LEAST_BEGINNING else ""
        raise NotFound(f"checkpoint {missing} not found{short}")


async def needed_by(conn: Connection, chosen: list[str]) -> tuple[str, int] | None:
    """The first of these from which a live trial would resume, or from which it started, and that trial; None: none."""
    row = await conn.fetchrow(Q.needed_by, chosen)
    return None if row is None else (row["uuid"], row["trial_id"])


_TRAINING, _VALIDATION = "training", "validation"


@dataclass(frozen=True, slots=True)
class StepReports:
    """What was reported at a step: metric -> value; None: nothing was."""

    training: JsonObject | None = None
    validation: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class PackedStepReports:
    """What is stored around some steps. Unpacking takes a while: `reports` is for a thread."""

    #: (trial, step)
    steps: Collection[tuple[int, int]] = ()
    groups: tuple[PackedReports, ...] = field(default=())

    def reports(self) -> Mapping[tuple[int, int], StepReports]:
        """(trial, step) -> what was reported there and is visible; nothing for a step without a report."""
        metrics: dict[tuple[int, int], dict[str, JsonObject]] = {}
        for packed in self.groups:
            for report in packed.reports():
                if report.step is not None and (report.trial_id, report.step) in self.steps:
                    metrics.setdefault((report.trial_id, report.step), {})[report.group] = report.metrics
        return {place: StepReports(of.get(_TRAINING), of.get(_VALIDATION)) for place, of in metrics.items()}


async def at_steps(conn: Connection, steps: Collection[tuple[int, int]]) -> PackedStepReports:
    """What is stored around these steps of trials: (trial, step)."""
    trials = sorted({trial_id for trial_id, _ in steps})
    groups = [group for group in await series.groups_of(conn, trials) if group.name in (_TRAINING, _VALIDATION)]
    if not groups:
        return PackedStepReports()
    steps_of: dict[int, list[int]] = defaultdict(list)
    for trial_id, step in sorted(steps):
        steps_of[trial_id].append(step)
    tails = _by_group(await conn.fetch(Q.tail, *_columns([_key(group) for group in groups])))
    sealed = [(*_key(group), step) for group in groups if group.sealed_ord for step in steps_of[group.trial_id]]
    rows = await conn.fetch(Q.blocks, *_columns(sealed)) if sealed else []
    blocks = _by_group(rows)
    chunks: dict[tuple[int, str, int], list[Record]] = defaultdict(list)
    places = [(row["month"], row["trial_id"], row["grp"], row["first_ord"]) for row in rows]
    for row in await conn.fetch(Q.chunks, *_columns(places)) if places else []:
        chunks[row["trial_id"], row["grp"], row["first_ord"]].append(row)
    return PackedStepReports(
        frozenset(steps),
        tuple(
            PackedReports(
                group,
                tails[_place(group)],
                [(row, chunks[row["trial_id"], row["grp"], row["first_ord"]]) for row in blocks[_place(group)]],
            )
            for group in groups
        ),
    )


def _key(group: MetricGroup) -> tuple[int, int, str]:
    return group.month, group.trial_id, group.name


def _place(group: MetricGroup) -> tuple[int, str]:
    return group.trial_id, group.name


def _columns(rows: Sequence[tuple[object, ...]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows)]


def _by_group(rows: Sequence[Record]) -> dict[tuple[int, str], list[Record]]:
    by_group: dict[tuple[int, str], list[Record]] = defaultdict(list)
    for row in rows:
        by_group[row["trial_id"], row["grp"]].append(row)
    return by_group
