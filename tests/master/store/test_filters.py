"""Filters and orders of runs, on rows: every shared case, and golden values of our own."""

from __future__ import annotations

import json
from typing import cast

import pytest
from asyncpg import Connection

from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject
from tenax.master.api.http.paging import Window, search_page
from tenax.master.store.database.connection import Database
from tenax.master.store.database.filter_sql import Builder
from tenax.master.store.database.filter_text import parse, parse_sort
from tenax.master.store.database.paging import Page
from tenax.master.store.experiments.columns import EXPERIMENTS, SOURCES
from tenax.master.store.runs import lists as run_lists
from tenax.master.store.runs import metadata as run_metadata
from tenax.master.telemetry import summary
from tenax.wire.message import OrderBy, Pagination
from tests.kits import rows
from tests.kits.cases import load
from tests.kits.departures import departure

_CASES = load("search_filters") or {}


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
    for row in _rows(dataset["experiments"]):
        await _experiment(conn, row)
    for row in _rows(dataset["runs"]):
        await _run(conn, row)


def _rows(values: Json) -> list[JsonObject]:
    assert isinstance(values, list)
    return [row for row in values if isinstance(row, dict)]


async def _experiment(conn: Connection, row: JsonObject) -> None:
    number, state = row["id"], row["state"]
    await conn.execute(
        "insert into jobs (job_id, pool, priority, queue_position, owner_id) values ($1, $2, 42, 1, $3)",
        f"job-{number}", row["pool"], row["owner"],
    )  # fmt: skip
    ended = state in ("COMPLETED", "CANCELED", "ERROR", "DELETING")
    await conn.execute(
        "insert into experiments (id, job_id, owner_id, project_id, parent_id, state, archived, created_at, ended_at)"
        " values ($1, $2, $3, 100, $4, $5, $6, $7::text::timestamptz, $8::text::timestamptz)",
        number, f"job-{number}", row["owner"], row["parent"], state, row["archived"], row["start"],
        (row["end"] or row["start"]) if ended else None,
    )  # fmt: skip
    searcher = {"name": row["searcher"], "metric": row["metric"], "smaller_is_better": row["smaller"]}
    await conn.execute(
        "insert into experiment_documents (experiment_id, name, description, labels, original_config, config, seed)"
        " values ($1, $2, $3, $4, '', $5, 0)",
        number, row["name"], row["description"] or "", row["labels"] or [],
        {"searcher": searcher, "hyperparameters": row["hp"]},
    )  # fmt: skip
    await conn.execute(
        "update experiment_progress set progress = $2 where experiment_id = $1", number, row["progress"] or 0.0
    )


async def _run(conn: Connection, row: JsonObject) -> None:
    number, state = row["id"], row["state"]
    task = f"{row['exp']}.{number}"
    live = state in ("RUNNING", "PAUSED")
    await conn.execute(
        "insert into trials (id, experiment_id, request_id, journal_seq, task_id, state, hparams, seed, archived,"
        " external_id, created_at, ended_at) values ($1, $2, $3, $1, $4, $5, $6, 0, $7, $8,"
        " $9::text::timestamptz, $10::text::timestamptz)",
        number, row["exp"], str(number), task, "ACTIVE" if live else state, row["hp"], row["archived"], row["ext"],
        row["start"], row["end"],
    )  # fmt: skip
    await conn.execute(
        "insert into tasks (task_id, kind, job_id, trial_id) values ($1, 'TRIAL', $2, $3)",
        task, f"job-{row['exp']}", number,
    )  # fmt: skip
    if state == "RUNNING":
        await conn.execute(
            "insert into allocations (allocation_id, task_id, run_id, state, slots) values ($1, $2, 1, 'RUNNING', 1)",
            f"{task}.1", task,
        )  # fmt: skip
    await conn.execute("insert into trial_telemetry (trial_id, best_metric) values ($1, $2)", number, row["metric"])
    reported = row["summary"]
    for kind, metrics in (reported if isinstance(reported, dict) else {}).items():
        assert isinstance(metrics, dict)
        name = {"avg_metrics": "training", "validation_metrics": "validation"}.get(kind, kind)
        await conn.execute(
            "insert into metric_groups (trial_id, grp, month, run_id, last_step, next_ord, newest_step, summary)"
            " values ($1, $2, 202611, 1, 1, 2, 1, $3)",
            number, name, _summary(metrics),
        )  # fmt: skip
    if row["meta"] is not None:
        await run_metadata.replace(conn, number, row["meta"])  # type: ignore[arg-type]
    for place in range(row["count"]):  # type: ignore[arg-type]
        await conn.execute(
            "insert into checkpoints (uuid, task_id, trial_id, run_id, state, size_bytes)"
            " values ($1, $2, $3, 1, 'COMPLETED', $4)",
            f"{number}-{place}", task, number, row["size"] if place == 0 else 0,
        )  # fmt: skip


def _summary(metrics: JsonObject) -> bytes:
    summaries = {}
    for name, values in metrics.items():
        assert isinstance(values, dict)
        if values["type"] != "number":
            summaries[name] = summary.MetricSummary(str(values["type"]), values["last"])
            continue
        numbers = {key: float(str(values[key])) for key in ("sum", "min", "max")}
        summaries[name] = summary.MetricSummary(
            "number", values["last"], int(str(values["count"])), numbers["sum"], numbers["min"], numbers["max"]
        )
    return summary.encode(summaries)


async def matching(database: Database, filter_text: str | None, sort: str | None = None) -> list[int]:
    filters, sorts = parse(filter_text), parse_sort(sort)
    async with database.connection() as conn:
        ids = await run_lists.search(conn, None, filters, sorts, Page())
        assert await run_lists.count(conn, None, filters) == len(ids)
        assert [view.id for view in await run_lists.views(conn, ids)] == ids
    return ids


@pytest.fixture
async def shared(database: Database) -> Database:
    """A database with the shared rows."""
    dataset = _CASES["dataset"]
    assert isinstance(dataset, dict)
    async with database.transaction() as conn:
        await fill(conn, dataset)
    return database


def _name(case: JsonObject) -> str:
    """Of a case: its name or its order, and of one without either what it looks for."""
    name = case.get("name", case.get("sort"))
    if name is not None:
        return str(name)
    filters = cast(JsonObject, case["filter"])
    child = _rows(cast(JsonObject, filters["filterGroup"])["children"])[0]
    return " ".join(str(child.get(part)) for part in ("columnName", "operator", "value"))


def _expected(case: JsonObject) -> Json:
    """The ids that are found: those of the case, or of a departure."""
    listed = departure("search_filters", _name(case))
    return case.get("ids", case.get("intended_ids")) if listed is None else cast(Json, listed.expect)


async def _wrong(database: Database, case: JsonObject, filter_text: str | None, sort: str | None) -> str | None:
    """What a case should have given and did not; None: it is as it should be."""
    try:
        ids = await matching(database, filter_text, sort)
    except InvalidInput as error:
        # Where the peer's database failed, either is sensible: never anything else.
        return None if "error" in case else f"{case} -> {error}"
    if "error" in case:
        return None if "database error" in str(case["error"]) else f"{case} -> {ids}"
    return None if (ids if sort else sorted(ids)) == _expected(case) else f"{case} -> {ids}"


async def _wrong_experiments(database: Database, case: JsonObject) -> str | None:
    try:
        filters = parse(json.dumps(case["filter"]) if "filter" in case else None)
        built = Builder(EXPERIMENTS, first=2)
        condition, order = built.condition(filters.root), built.order(parse_sort(str(case.get("sort", ""))))
    except InvalidInput as error:
        return None if "error" in case else f"{case} -> {error}"
    async with database.connection() as conn:
        text = f"select e.id {SOURCES} and ($1 or not e.archived) and {condition} order by {order}e.id"
        rows = await conn.fetch(text, filters.show_archived, *built.parameters)
    ids = [row["id"] for row in rows]
    if "error" in case:
        return None if "database error" in str(case["error"]) else f"{case} -> {ids}"
    return None if ids == _expected(case) else f"{case} -> {ids}"


async def _peer_runs(database: Database) -> None:
    async with database.transaction() as conn:
        for row in cases("peer_run_dataset"):
            experiment = await rows.add_experiment(conn)
            assert experiment == row["experiment"]
            await conn.execute(
                "update jobs set pool = $2 where job_id = (select job_id from experiments where id = $1)",
                experiment, row["resource_pool"],
            )  # fmt: skip
            run = await rows.add_trial(conn, experiment, 1, row["hparams"])  # type: ignore[arg-type]
            assert run == row["run"]
            # All of them were made by one transaction.
            await conn.execute("update trials set created_at = now() + make_interval(secs => $1) where id = $1", run)
            await run_metadata.replace(conn, run, row["metadata"])  # type: ignore[arg-type]


def _check_page(case: JsonObject, result: tuple[Page, Pagination]) -> None:
    page, pagination = result
    assert (pagination.start_index, page.limit) == (case["start_index"], case["count"]), case
    assert (pagination.offset, pagination.limit, pagination.total) == (case["offset"], case["limit"], case["total"])
    assert pagination.end_index == case.get("end_index", pagination.start_index + int(str(case["count"])))


if _CASES:

    async def test_every_case_of_a_filter_of_runs(shared: Database) -> None:
        """The runs that the shared cases name are found, and no others; what is wrong is refused in words."""
        wrong = [await _wrong(shared, case, json.dumps(case["filter"]), None) for case in cases("derived_run_filters")]
        assert [case for case in wrong if case is not None] == []

    async def test_every_case_of_an_order_of_runs(shared: Database) -> None:
        """Runs come in the order that the shared cases name."""
        wrong = [await _wrong(shared, case, None, str(case["sort"])) for case in cases("derived_run_sorts")]
        assert [case for case in wrong if case is not None] == []

    async def test_every_case_of_a_filter_of_experiments(shared: Database) -> None:
        """An experiment is found by its columns, what its hyperparameters may be, and the metrics of its best trial."""
        wrong = [
            await _wrong_experiments(shared, case)
            for case in cases("peer_experiment_filters") + cases("derived_experiment_filters")
        ]
        assert len(wrong) > 80
        assert [case for case in wrong if case is not None] == []

    async def test_every_case_of_an_order_of_experiments(shared: Database) -> None:
        """Experiments come in the order that the shared cases name."""
        wrong = [await _wrong_experiments(shared, case) for case in cases("derived_experiment_sorts")]
        assert len(wrong) > 20
        assert [case for case in wrong if case is not None] == []

    async def test_every_case_of_the_peers_own_runs(database: Database) -> None:
        """The runs of the peer's own tests are found by hyperparameters and metadata, nested ones too, and ordered."""
        await _peer_runs(database)
        wrong = [await _wrong(database, case, json.dumps(case["filter"]), None) for case in cases("peer_run_filters")]
        orders = _CASES["peer_run_sorts"]
        assert isinstance(orders, dict)
        ordered = [{**case, "ids": case["order"]} for case in _rows(orders["cases"])]
        wrong += [await _wrong(database, case, None, str(case["sort"])) for case in ordered]
        assert len(wrong) > 20
        assert [case for case in wrong if case is not None] == []

    def test_every_case_of_a_page() -> None:
        """Of lists, and of searches: which rows are read, what is told, and which offsets are refused."""
        pages = _CASES["pagination"]
        assert isinstance(pages, dict)
        for case in _rows(pages["derived_search"]):
            _check_page(case, search_page(*(int(str(case[name])) for name in ("total", "offset", "limit"))))
        for case in _rows(pages["peer"]) + _rows(pages["derived_generic"]):
            window = Window(int(str(case["offset"])), int(str(case["limit"])), OrderBy.UNSPECIFIED)
            if "error" in case:
                with pytest.raises(InvalidInput, match="offset"):
                    window.of(int(str(case["total"])))
            else:
                _check_page(case, window.of(int(str(case["total"]))))

    @pytest.mark.parametrize("case", cases("invalid_filters"), ids=lambda case: str(case["reason"]))
    def test_a_filter_that_is_none(case: JsonObject) -> None:
        """It is refused when it is read."""
        with pytest.raises(InvalidInput):
            parse(json.dumps(case["filter"]))


async def test_golden_filters(database: Database) -> None:
    """Without the shared cases, too: columns, hyperparameters, metadata and metrics of runs, joined and nested."""
    async with database.transaction() as conn:
        experiment = await rows.add_experiment(conn)
        first = await rows.add_trial(conn, experiment, 1, {"lr": 0.1})
        second = await rows.add_trial(conn, experiment, 2, {"lr": 0.3})
        await run_metadata.replace(conn, first, {"who": {"name": "Ada"}, "runs": [1, 2]})
    lr = {"location": "RUN_HYPERPARAMETERS", "kind": "NUMBER"}
    of_ada = field("metadata.who.name", "contains", "ad", "RUN_METADATA")
    for root, expected in (
        (field("hp.lr", ">", 0.2, **lr), [second]),
        (field("hp.lr", "notEmpty", **lr), [first, second]),
        (of_ada, [first]),
        (field("metadata.runs", "=", 2, "RUN_METADATA", "NUMBER"), [first]),
        (
            group(field("hp.lr", "<", 0.2, **lr), field("id", "=", second, kind="NUMBER"), conjunction="or"),
            [first, second],
        ),
        (field("state", "=", "ACTIVE"), [first, second]),
        (field("user", "=", "owner"), [first, second]),
        (field("localId", "contains", "-2"), [second]),
        (field("validation.loss.min", "isEmpty", location="VALIDATIONS", kind="NUMBER"), [first, second]),
    ):
        assert await matching(database, text(group(root))) == expected, root
    assert await matching(database, None, "hp.lr=desc") == [second, first]
    assert await matching(database, None, "metadata.who.name=asc") == [first, second]


async def test_what_a_configured_hyperparameter_contains(database: Database) -> None:
    """A range lacks what it does not reach to, each kind by its rule; text counts as it is written, in runs, too."""
    async with database.transaction() as conn:
        of = {
            name: await rows.add_experiment(conn, config={"hyperparameters": {"x": x}})
            for name, x in {
                "range": {"type": "int", "minval": 1, "maxval": 5},
                "numbers": {"type": "categorical", "vals": [8, 9]},
                "texts": {"type": "categorical", "vals": ["Adam", "sgd"]},
                "number": {"type": "const", "val": 3},
                "text": {"type": "const", "val": "Adam"},
                "nothing": {"type": "const", "val": None},
            }.items()
        }
        run = await rows.add_trial(conn, of["text"], 1, {"x": "Adam"})
    number = {"location": "HYPERPARAMETERS", "kind": "NUMBER"}
    as_text = {"location": "HYPERPARAMETERS"}
    for condition, expected in (
        (field("hp.x", "notContains", 8, **number), {"range", "texts"}),
        (field("hp.x", "notContains", 3, **number), {"numbers", "texts"}),
        (field("hp.x", "notContains", 5, **number), {"range", "numbers", "texts"}),
        (field("hp.x", "contains", 8, **number), {"range", "numbers"}),
        (field("hp.x", "contains", "Ada", **as_text), {"text"}),
        (field("hp.x", "contains", "ada", **as_text), set()),
        (field("hp.x", "contains", "Adam", **as_text), {"text", "texts"}),
        (field("hp.x", "notContains", "ada", **as_text), {"number", "numbers", "text", "texts"}),
    ):
        built = Builder(EXPERIMENTS)
        clause = built.condition(parse(text(group(condition))).root)
        async with database.connection() as conn:
            found = {row["id"] for row in await conn.fetch(f"select e.id {SOURCES} and {clause}", *built.parameters)}
        assert found == {of[name] for name in expected}, condition
    for operator, value, expected_runs in (
        ("contains", "Ada", [run]),
        ("contains", "ada", []),
        ("notContains", "ada", [run]),
    ):
        condition = field("hp.x", operator, value, "RUN_HYPERPARAMETERS")
        assert await matching(database, text(group(condition))) == expected_runs


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{", "not JSON"),
        ("[]", "must be an object"),
        ('{"filterGroup": 7}', "must be an object"),
        ('{"filterGroup": {"kind": "x"}}', "kind"),
        ('{"filterGroup": {"kind": "group", "conjunction": "xor"}}', "conjunction"),
        ('{"filterGroup": {"kind": "group", "conjunction": "or", "children": 3}}', "must be a list"),
        (text(group(field("id", "~", 1))), "operator"),
        (text(group(field("id", "=", 1, location="MOON"))), "location"),
        (text(group({**field("id", "=", 1), "value": [1]})), "value"),
        (text(group({**field("id", "=", 1), "columnName": 5})), "columnName"),
        ('{"filterGroup": ' + '{"kind":"group","conjunction":"or","children":[' * 101 + "]}" * 101 + "}", "nested"),
        (text(group(*[field("id", "=", 1)] * 2001)), "conditions"),
    ],
)
def test_what_is_no_filter(given: str, message: str) -> None:
    """It is refused in words that name the place."""
    with pytest.raises(InvalidInput, match=message):
        parse(given)


@pytest.mark.parametrize(
    ("root", "message"),
    [
        (field("id", "=", "x", kind="NUMBER"), "number"),
        (field("startTime", "<", "yesterday", kind="DATE"), "time"),
        (field("isExpMultitrial", "=", "perhaps"), "true or false"),
        (field("nope", "=", 1), "no column nope"),
        (field("validation.loss", "=", 1, location="VALIDATIONS"), "metrics id"),
        (field("hp.lr", "=", 1, location="HYPERPARAMETERS"), "no columns of HYPERPARAMETERS"),
        (field("name", "contains", "a\x00"), "NUL|no column"),
    ],
)
def test_what_a_table_cannot_be_asked(root: JsonObject, message: str) -> None:
    """It is refused before anything is looked for."""
    with pytest.raises(InvalidInput, match=message):
        Builder(run_lists.RUNS).condition(parse(text(group(root))).root)


@pytest.mark.parametrize(
    ("total", "offset", "limit", "expected"),
    [(0, 0, 0, (0, 0)), (250, 200, 0, (200, 250)), (250, 0, 0, (0, 100)), (10, 4, -1, (4, 10)), (10, 0, -2, (0, 0)),
     (10, -3, 2, (7, 9)), (10, 11, 5, (10, 10)), (10, -11, 5, (10, 10))],
)  # fmt: skip
def test_pages_of_a_search(total: int, offset: int, limit: int, expected: tuple[int, int]) -> None:
    """Limit 0 is a hundred, -1 is all, -2 is none; an offset outside the list is its end."""
    page, pagination = search_page(total, offset, limit)
    assert (pagination.start_index, pagination.end_index) == expected
    assert (page.offset, page.limit) == (expected[0], expected[1] - expected[0])
    assert (pagination.offset, pagination.limit, pagination.total) == (offset, limit, total)


@pytest.mark.parametrize("table", ["experiments", "runs"])
async def test_the_newest_that_match_are_read_by_an_index(database: Database, table: str) -> None:
    """What comes last by number, whatever else is asked for: not all that match are put in order for a page."""
    built = Builder(EXPERIMENTS if table == "experiments" else run_lists.RUNS)
    source, number = (SOURCES, "e.id") if table == "experiments" else ("from trials t where true", "t.id")
    order = built.order(parse_sort("id=desc"))
    async with database.transaction() as conn:
        # Where it has another way it takes it.
        await conn.execute("set local enable_sort = off")
        plan = await conn.fetch(f"explain select {number} {source} order by {order}{number} limit 50")
    assert "Sort" not in "".join(line[0] for line in plan)
