"""What a user can ask for in one cheap request: it is refused before it costs the master much.

The watchdog of the tests (`tests.kits.watchdog`) fails whatever holds the event loop.
"""

from __future__ import annotations

import asyncio
import json
import random
import threading

import pytest

from tenax.jsonvalue import Json
from tenax.master.api.http.requests import MAX_WRITTEN_BYTES
from tenax.master.reading.log_search import Pattern
from tenax.master.store.database.filter_language import MAX_QUERY, MAX_TERMS
from tenax.master.store.database.filter_text import MAX_FILTER, MAX_NODES, MAX_SORTS
from tenax.master.submission.messages import MAX_FILES
from tests.kits.api import Api
from tests.kits.master.attempts import running
from tests.kits.master.experiments import CONFIG, create, file

LISTS = ["/api/v1/experiments-search", "/api/v1/runs"]
EMPTY: Json = {"kind": "group", "conjunction": "and", "children": []}


def grouped(*children: Json) -> str:
    group = {"kind": "group", "conjunction": "and", "children": list(children)}
    return json.dumps({"filterGroup": group, "showArchived": True})


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("count", [MAX_NODES, 10_000, 300_000])
async def test_groups_of_a_filter_count(api: Api, path: str, count: int) -> None:
    """Empty ones, too; a filter as long as a book is not read."""
    reply = await api.user.post(path, {"filter": grouped(*[EMPTY] * count)})
    assert reply.status_code == (400 if count == MAX_NODES else 413)
    for limit in (MAX_NODES, MAX_FILTER, MAX_WRITTEN_BYTES, 20_000):
        if str(limit) in reply.text:
            return
    raise AssertionError(reply.text)


@pytest.mark.parametrize("path", LISTS)
async def test_a_filter_of_the_largest_size_is_answered(api: Api, path: str) -> None:
    """What is just inside of the limit holds nobody up."""
    reply = await api.user.post(path, {"filter": grouped(*[EMPTY] * (MAX_NODES - 1))})
    assert reply.status_code == 200


@pytest.mark.parametrize(
    "query",
    [
        *("(" * 100_000, "NOT " * 20_000 + "a", "a " * 50_000, '"' * 99_999, "id:" + "1," * 5000 + "1", "a:" * 100_000),
        *("(" * 1999, "NOT " * 499 + "a", "a:" * 999, "a " * 1000, "\\" * 2000, "x<" + "9" * 1990, "\ud800:1"),
    ],
)
async def test_a_typed_filter_of_any_size(api: Api, query: str) -> None:
    """It is refused with a place, or answered, and in time that goes with its length."""
    reply = await api.user.post("/api/v1/experiments-search", {"query": query})
    assert reply.status_code in (200, 400), reply.text
    if len(query) < 5000 and query.isascii():
        checked = await api.user.get("/api/v1/experiments-search/query", query=query, at=len(query))
        assert checked.status_code == 200, checked.text


async def test_a_typed_filter_of_the_largest_size_is_answered(api: Api) -> None:
    """With as many conditions as there may be, each of a metric."""
    query = " OR ".join(f"g.m{place}.last<{place}" for place in range(MAX_TERMS))
    assert len(query) <= MAX_QUERY
    assert (await api.user.post("/api/v1/experiments-search", {"query": query})).status_code == 200


async def test_a_name_that_is_like_thousands_of_others(api: Api) -> None:
    """What may have been meant is looked for among short names alone: comparing takes time with their square."""
    letters = [chr(0x4E00 + number) for number in range(1000)]
    chance = random.Random(1)
    for _ in range(3):
        names: dict[str, Json] = {"".join(chance.sample(letters, 1000)): 1 for _ in range(30)}
        names |= {f"learning_rate_{number}": 1 for number in range(300)}
        searcher: Json = {"name": "single", "metric": "loss", "max_length": {"batches": 1}}
        config = json.dumps({"entrypoint": "true", "searcher": searcher, "hyperparameters": names}, ensure_ascii=False)
        await create(api, config=config, activate=False)
    query = "".join(chance.sample(letters, 1000)) + ":1"
    checked = await api.user.get("/api/v1/experiments-search/query", query=query)
    assert checked.json()["problem"]["message"].startswith("there is no column"), checked.text[:300]
    assert (await api.user.post("/api/v1/experiments-search", {"query": query})).status_code == 400
    checked = await api.user.get("/api/v1/experiments-search/query", query="lerning_rate_7:1")
    assert "learning_rate_7" in checked.json()["problem"]["message"]


async def test_the_schema_of_configurations_is_made_beside_the_loop(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for it first has all of it read from the sources."""
    threads: list[int] = []
    monkeypatch.setattr(
        "tenax.master.api.experiments.submissions.experiment_schema",
        lambda: threads.append(threading.get_ident()) or {},
    )
    assert (await api.user.get("/api/v1/config-schemas/experiment")).json() == {"jsonSchema": {}}
    assert threads
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("path", LISTS)
async def test_columns_of_an_order_are_few(api: Api, path: str) -> None:
    """Each is sorted by, and the database would take a minute for thousands."""
    for count, status in ((MAX_SORTS, 200), (MAX_SORTS + 1, 400), (5000, 400), (3_000_000, 413)):
        reply = await api.user.post(path, {"sort": ",".join(["id=asc"] * count)})
        assert reply.status_code == status, reply.text
        assert status != 400 or str(MAX_SORTS) in reply.text


@pytest.mark.parametrize(("count", "kinds"), [(MAX_FILES + 1, 3), (200_000, 1)])
async def test_entries_of_a_code_directory_count(api: Api, count: int, kinds: int) -> None:
    """Empty files cost as much as others; the refusal says what to do."""
    files = [{"path": f"f{number}", "content": ""} for number in range(count)]
    bodies: list[tuple[str, dict[str, object]]] = [
        ("/api/v1/experiments", {"config": CONFIG, "modelDefinition": files}),
        ("/api/v1/commands", {"config": {"entrypoint": ["sh"]}, "files": files}),
        ("/api/v1/generic-tasks", {"config": "entrypoint: [sh]", "contextDirectory": files}),
    ]
    for path, body in bodies[:kinds]:
        reply = await api.user.post(path, body)
        assert reply.status_code in (400, 413)
        assert ".detignore" in reply.text


async def test_the_largest_code_directory_holds_nobody_up(api: Api) -> None:
    """As many entries as are taken, each with all that clients send."""
    await create(api, modelDefinition=[file(f"d{number % 100}/f{number}", "") for number in range(MAX_FILES)])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/users", b'{"userIds": [' + b"1," * 3_000_000 + b"1]}"),
        ("/api/v1/projects/1/experiments/move", b'{"experimentIds": [' + b"1," * 3_000_000 + b"1]}"),
        ("/api/v1/checkpoints/rm", b'{"checkpointGlobs": [' + b'"a",' * 2_000_000 + b'"a"]}'),
    ],
)
async def test_lists_of_millions_are_refused(api: Api, path: str, body: bytes) -> None:
    """Whatever they list: a body has a number of values, too."""
    method = "PATCH" if path == "/api/v1/users" else "POST"
    reply = await api.admin.ask(method, path, body)
    assert reply.status_code == 413, reply.text


@pytest.mark.parametrize(
    "config",
    [
        "a: &a [x, x]\n"
        + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)),
        "[" * 50_000,
        "x: " + "{a: " * 20_000,
        "name: " + "a" * 5_000_000,
        "hyperparameters: {" + ", ".join(f"h{n}: {{type: int, minval: 0, maxval: 9}}" for n in range(20_000)) + "}",
    ],
)
async def test_no_configuration_holds_the_loop(api: Api, config: str) -> None:
    """Neither one that unfolds into billions, nor one nested without an end, nor a very long one."""
    reply = await api.user.post("/api/v1/experiments", {"config": config})
    assert reply.status_code == 400, reply.text[:300]


@pytest.mark.parametrize(
    ("route", "name", "value"),
    [
        ("POST /api/v1/users/setting", "settings", {"key": "k", "value": "1"}),
        ("PUT /api/v1/projects/1/notes", "notes", {"name": "n", "contents": "x"}),
        ("PATCH /api/v1/experiments/1", "labels", "l"),
        ("POST /api/v1/runs/kill", "runIds", 1),
        ("POST /api/v1/preview-hp-search", "config", 1),
        ("POST /api/v1/auth/login", "username", 1),
    ],
)
async def test_a_list_without_end(api: Api, route: str, name: str, value: object) -> None:
    """Each of its values is checked in the event loop, so they are counted before that."""
    method, path = route.split()
    body = json.dumps({name: [value] * 20_001}).encode()
    assert (await api.user.ask(method, path, body)).status_code == 413


async def test_a_pattern_that_takes_long(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever only reads output does not wait for those who search it."""
    run = await running(api)
    async with api.master.db.connection() as conn:
        task = await conn.fetchval("select task_id from trials where id = $1", run.trial)
    lines = json.dumps({"logs": [{"taskId": task, "log": "hello"}]}).encode()
    assert (await run.task.ask("POST", "/api/v1/task/logs", lines)).status_code == 200
    found = threading.Event()
    monkeypatch.setattr(Pattern, "lines", lambda *_: found.wait() and [0])
    path = f"/api/v1/tasks/{task}/logs"
    query = {"searchText": "h.*o", "enableRegex": "true"}
    searches = [asyncio.create_task(api.user.get(path, **query)) for _ in range(8)]
    await asyncio.sleep(0)
    try:
        assert "hello" in (await api.user.get(path)).text
    finally:
        found.set()
    replies = await asyncio.gather(*searches)
    assert all("hello" in reply.text for reply in replies)
    assert (await api.user.get(path, searchText="a" * 1001, enableRegex="true")).status_code == 400


async def test_columns_without_end(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each kind that a trial can make up, so many are offered and no more."""
    run = await running(api)
    reported = {"avgMetrics": {f"m{n}": n for n in range(9)}}
    body = json.dumps({"group": "g", "metrics": {"trialRunId": 1, "stepsCompleted": 1, "metrics": reported}})
    assert (await run.task.ask("POST", f"/api/v1/trials/{run.trial}/metrics", body.encode())).status_code == 200
    monkeypatch.setattr("tenax.master.store.runs.lists.MAX_COLUMNS", 3)
    columns = (await api.user.get("/api/v1/projects/1/columns")).json()["columns"]
    assert sum(column["location"] == "LOCATION_TYPE_CUSTOM_METRIC" for column in columns) == 3 * 4
    ranges = (await api.user.get("/api/v1/projects/1/experiments/metric-ranges")).json()["ranges"]
    assert len(ranges) == 3 * 4


async def test_a_search_that_begins_with_all_its_trials_holds_nobody_up(api: Api) -> None:
    """The first step is part of the submission, and makes as many trials as may run at once."""
    searcher = {"name": "random", "metric": "loss", "max_concurrent_trials": 10_000, "max_trials": 10_000}
    config = json.dumps({"entrypoint": "python3 train.py", "searcher": searcher})
    reply = await api.user.post("/api/v1/experiments", {"config": config, "activate": False})
    assert reply.status_code == 200, reply.text
    runs = await api.user.post("/api/v1/runs", {"limit": 1, "sort": "localId=desc"})
    assert (runs.json()["pagination"]["total"], runs.json()["runs"][0]["localId"]) == (10_000, "UNC-10000")
