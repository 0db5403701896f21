"""Filters and orders of runs, on rows: every shared case, and golden values of our own."""

from __future__ import annotations

import json

import pytest
from asyncpg import Connection

from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject
from tenax.master.filters import Location, parse, parse_sort
from tenax.master.ingest import summary
from tenax.master.store import listings_runs, run_metadata
from tenax.master.store.database import Database
from tenax.master.store.filters import Builder, Column, Holds, Table
from tenax.master.store.paging import Page
from tests.cases import load

_CASES = load("search_filters") or {}
#: Where we do better, or keep less: what the peer answers there, we do not.
_DEPARTURES = {
    # An experiment's progress is that of its trials, so that its runs say the same.
    "experimentProgress=desc",
}


def cases(name: str) -> list[JsonObject]:
    """Of the shared file; none without it."""
    found = _CASES.get(name, [])
    assert isinstance(found, list)
    return found


def field(column: str, operator: str, value: Json = None, location: str = "RUN", kind: str = "TEXT") -> JsonObject:
    return {
        "kind": "field",
        "columnName": column,
        "operator": operator,
        "value": value,
        "location": f"LOCATION_TYPE_{location}",
        "type": f"COLUMN_TYPE_{kind}",
    }


def group(*children: JsonObject, conjunction: str = "and") -> JsonObject:
    return {"kind": "group", "conjunction": conjunction, "children": list(children)}


def text(root: JsonObject, *, archived: bool = False) -> str:
    return json.dumps({"filterGroup": root, "showArchived": archived})


async def fill(conn: Connection, dataset: JsonObject) -> None:
    """The shared data set, as rows."""
    for user in _rows(dataset["users"]):
        await conn.execute(
            "insert into users (id, username, display_name) values ($1, $2, $3)",
            user["id"], user["username"], user["display_name"] or "",
        )  # fmt: skip
    await conn.execute("insert into workspaces (id, name) values (100, 'w')")
    await conn.execute("insert into projects (id, workspace_id, name, key) values (100, 100, 'p', 'PRJ')")
    for one in _rows(dataset["experiments"]):
        await _experiment(conn, one)
    for one in _rows(dataset["runs"]):
        await _run(conn, one)


def _rows(found: Json) -> list[JsonObject]:
    assert isinstance(found, list)
    return [row for row in found if isinstance(row, dict)]


async def _experiment(conn: Connection, one: JsonObject) -> None:
    number, state = one["id"], one["state"]
    await conn.execute(
        "insert into jobs (job_id, pool, priority, queue_position, owner_id) values ($1, $2, 42, 1, $3)",
        f"job-{number}", one["pool"], one["owner"],
    )  # fmt: skip
    ended = state in ("COMPLETED", "CANCELED", "ERROR", "DELETING")
    await conn.execute(
        "insert into experiments (id, job_id, owner_id, project_id, parent_id, state, archived, created_at, ended_at)"
        " values ($1, $2, $3, 100, $4, $5, $6, $7::text::timestamptz, $8::text::timestamptz)",
        number, f"job-{number}", one["owner"], one["parent"], state, one["archived"], one["start"],
        (one["end"] or one["start"]) if ended else None,
    )  # fmt: skip
    searcher = {"name": one["searcher"], "metric": one["metric"], "smaller_is_better": one["smaller"]}
    await conn.execute(
        "insert into experiment_documents (experiment_id, name, description, labels, original_config, config, seed)"
        " values ($1, $2, $3, $4, '', $5, 0)",
        number, one["name"], one["description"] or "", one["labels"] or [],
        {"searcher": searcher, "hyperparameters": one["hp"]},
    )  # fmt: skip


async def _run(conn: Connection, one: JsonObject) -> None:
    number, state = one["id"], one["state"]
    task = f"{one['exp']}.{number}"
    live = state in ("RUNNING", "PAUSED")
    await conn.execute(
        "insert into trials (id, experiment_id, request_id, journal_seq, task_id, state, hparams, seed, archived,"
        " external_id, created_at, ended_at) values ($1, $2, $3, $1, $4, $5, $6, 0, $7, $8,"
        " $9::text::timestamptz, $10::text::timestamptz)",
        number, one["exp"], str(number), task, "ACTIVE" if live else state, one["hp"], one["archived"], one["ext"],
        one["start"], one["end"],
    )  # fmt: skip
    await conn.execute(
        "insert into tasks (task_id, kind, job_id, trial_id) values ($1, 'TRIAL', $2, $3)",
        task, f"job-{one['exp']}", number,
    )  # fmt: skip
    if state == "RUNNING":
        await conn.execute(
            "insert into allocations (allocation_id, task_id, run_id, state, slots) values ($1, $2, 1, 'RUNNING', 1)",
            f"{task}.1", task,
        )  # fmt: skip
    await conn.execute("insert into trial_telemetry (trial_id, best_metric) values ($1, $2)", number, one["metric"])
    told = one["summary"]
    for kind, metrics in (told if isinstance(told, dict) else {}).items():
        assert isinstance(metrics, dict)
        name = {"avg_metrics": "training", "validation_metrics": "validation"}.get(kind, kind)
        await conn.execute(
            "insert into metric_groups (trial_id, grp, month, run_id, last_step, next_ord, newest_step, summary)"
            " values ($1, $2, 202611, 1, 1, 2, 1, $3)",
            number, name, _summary(metrics),
        )  # fmt: skip
    if one["meta"] is not None:
        await run_metadata.replace(conn, number, one["meta"])  # type: ignore[arg-type]
    for place in range(one["count"]):  # type: ignore[arg-type]
        await conn.execute(
            "insert into checkpoints (uuid, task_id, trial_id, run_id, state, size_bytes)"
            " values ($1, $2, $3, 1, 'COMPLETED', $4)",
            f"{number}-{place}", task, number, one["size"] if place == 0 else 0,
        )  # fmt: skip


def _summary(metrics: JsonObject) -> bytes:
    summaries = {}
    for name, told in metrics.items():
        assert isinstance(told, dict)
        if told["type"] != "number":
            summaries[name] = summary.MetricSummary(str(told["type"]), told["last"])
            continue
        numbers = {key: float(str(told[key])) for key in ("sum", "min", "max")}
        summaries[name] = summary.MetricSummary(
            "number", told["last"], int(str(told["count"])), numbers["sum"], numbers["min"], numbers["max"]
        )
    return summary.encode(summaries)


async def found(database: Database, filter_text: str | None, sort: str | None = None) -> list[int]:
    wanted, sorts = parse(filter_text), parse_sort(sort)
    async with database.connection() as conn:
        ids = await listings_runs.search(conn, None, wanted, sorts, Page())
        assert await listings_runs.count(conn, None, wanted) == len(ids)
        assert [view.id for view in await listings_runs.views(conn, ids)] == ids
    return ids


@pytest.fixture
async def shared(database: Database) -> Database:
    """A database with the shared rows."""
    dataset = _CASES["dataset"]
    assert isinstance(dataset, dict)
    async with database.transaction() as conn:
        await fill(conn, dataset)
    return database


async def _wrong(database: Database, one: JsonObject, filter_text: str | None, sort: str | None) -> str | None:
    """What a case should have given and did not; None: it is as it should be."""
    try:
        ids = await found(database, filter_text, sort)
    except InvalidInput as error:
        # Where the peer's database failed, either is sensible: never anything else.
        return None if "error" in one else f"{one} -> {error}"
    if "error" in one:
        return None if "database error" in str(one["error"]) else f"{one} -> {ids}"
    return None if (ids == one["ids"] if sort else sorted(ids) == one["ids"]) else f"{one} -> {ids}"


EXPERIMENTS = Table(
    columns={"id": Column("e.id", Holds.NUMBER)},
    locations=frozenset((Location.HYPERPARAMETERS, Location.VALIDATIONS, Location.TRAINING, Location.CUSTOM_METRIC)),
    metrics_of="(select y.best_trial_id from experiment_tallies y where y.experiment_id = e.id)",
    configured="(d.config -> 'hyperparameters')",
)


def _asks_only_for(one: JsonObject, locations: frozenset[Location]) -> bool:
    asked = [part.split('"')[0] for part in json.dumps(one["filter"]).split("LOCATION_TYPE_")[1:]]
    return bool(asked) and all(name in {location.value for location in locations} for name in asked)


async def _wrong_experiments(database: Database, one: JsonObject) -> str | None:
    try:
        wanted = parse(json.dumps(one["filter"]))
        built = Builder(EXPERIMENTS, first=2)
        condition = built.condition(wanted.root)
    except InvalidInput as error:
        return None if "error" in one else f"{one} -> {error}"
    async with database.connection() as conn:
        rows = await conn.fetch(
            "select e.id from experiments e join experiment_documents d on d.experiment_id = e.id"
            f" where e.state <> 'DELETING' and ($1 or not e.archived) and {condition} order by e.id",
            wanted.show_archived, *built.parameters,
        )  # fmt: skip
    ids = [row["id"] for row in rows]
    return None if ids == one.get("ids", one.get("intended_ids")) else f"{one} -> {ids}"


if _CASES:

    async def test_every_case_of_a_filter_of_runs(shared: Database) -> None:
        """The runs that the shared cases name are found, and no others; what is wrong is refused in words."""
        wrong = [await _wrong(shared, one, json.dumps(one["filter"]), None) for one in cases("derived_run_filters")]
        assert [one for one in wrong if one is not None] == []

    async def test_every_case_of_an_order_of_runs(shared: Database) -> None:
        """Runs come in the order that the shared cases name."""
        wrong = [
            await _wrong(shared, one, None, str(one["sort"]))
            for one in cases("derived_run_sorts")
            if one["sort"] not in _DEPARTURES
        ]
        assert [one for one in wrong if one is not None] == []

    async def test_every_case_of_a_hyperparameter_or_metric_of_experiments(shared: Database) -> None:
        """An experiment is found by what its hyperparameters may be, and by the metrics of its best trial."""
        wrong = [
            await _wrong_experiments(shared, one)
            for one in cases("peer_experiment_filters") + cases("derived_experiment_filters")
            if _asks_only_for(one, EXPERIMENTS.locations)
        ]
        assert len(wrong) >= 30
        assert [one for one in wrong if one is not None] == []

    @pytest.mark.parametrize("one", cases("invalid_filters"), ids=lambda one: str(one["reason"]))
    def test_a_filter_that_is_none(one: JsonObject) -> None:
        """It is refused when it is read."""
        with pytest.raises(InvalidInput):
            parse(json.dumps(one["filter"]))
