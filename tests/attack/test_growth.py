"""What is small when it is stored and grows when it is read: paths that repeat the names above, and trifles."""

from __future__ import annotations

import json

import pytest

from tenax.jsonvalue import Json, JsonObject
from tenax.master.reading.system import MAX_SERIES
from tenax.master.store.users.settings import MAX_SETTINGS
from tenax.master.telemetry.reports import from_values
from tenax.master.telemetry.values import SpooledReport
from tests.kits.api import Api
from tests.kits.master.experiments import create, file
from tests.kits.telemetry import Book

SINGLE: Json = {"name": "single", "metric": "loss", "max_length": {"batches": 1}}


async def test_settings_of_one_character_each(api: Api) -> None:
    """What a person keeps is read as a whole, so there are only so many of them, however small."""
    path = "/api/v1/users/setting"
    for first in range(0, MAX_SETTINGS, 1000):
        some = [{"key": f"{number}"} for number in range(first, first + 1000)]
        assert (await api.user.post(path, {"settings": some})).status_code == 200
    reply = await api.user.post(path, {"settings": [{"key": "one more"}]})
    assert (reply.status_code, str(MAX_SETTINGS) in reply.text) == (413, True), reply.text
    assert len((await api.user.get(path)).json()["settings"]) == MAX_SETTINGS
    assert (await api.user.post(path, {"settings": [{"key": "0", "value": "changed"}]})).status_code == 200


async def test_names_that_grow_with_their_depth(api: Api) -> None:
    """Thousands of hyperparameters below names of kilobytes: few kilobytes make gigabytes of what they are called."""
    level: Json = {f"h{number}": number for number in range(500)}
    for depth in range(40):
        level = {f"{depth}" + "k" * 900: level}
    config = json.dumps({"entrypoint": "true", "searcher": SINGLE, "hyperparameters": {"deep": level, "lr": 1}})
    await create(api, config=config, activate=False)
    for path, query in (
        ("/api/v1/experiments-search/query", {"query": "h", "at": 1}),
        ("/api/v1/experiments-search/query", {"query": "lr:1", "at": 2}),
        ("/api/v1/projects/1/columns", {}),
        ("/api/v1/projects/1/columns", {"tableType": "TABLE_TYPE_RUN"}),
    ):
        reply = await api.user.get(path, **query)
        assert (reply.status_code, len(reply.content) < 100_000, "kkk" in reply.text) == (200, True, False), path


async def test_directories_in_directories(api: Api) -> None:
    """Each has a path of its own, so that a few files with long ones make a tree of gigabytes."""
    long = "/".join(f"{depth}" + "k" * 4000 for depth in range(99))
    experiment = (await create(api, modelDefinition=[file(long)]))["experiment"]["id"]
    reply = await api.user.get(f"/api/v1/experiments/{experiment}/file_tree")
    assert (reply.status_code, "download-model-def" in reply.text) == (413, True), reply.text[:300]
    reply = await api.user.post(f"/api/v1/experiments/{experiment}/file", {"path": long})
    assert reply.status_code == 200


async def test_a_search_that_tried_much(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials whose hyperparameters are megabytes together: the best are shown, and a page of the journal ends."""
    monkeypatch.setattr("tenax.master.api.experiments.searches.MAX_ANSWER_BYTES", 5 * 60_000)
    searcher = {"name": "random", "metric": "loss", "max_trials": 20, "max_concurrent_trials": 20}
    config = {"entrypoint": "true", "searcher": searcher, "hyperparameters": {"text": "x" * 50_000, "lr": 1}}
    experiment = (await create(api, config=json.dumps(config), activate=False))["experiment"]["id"]
    path = f"/api/v1/experiments/{experiment}/search"
    tried = (await api.user.get(f"{path}/trials")).json()
    assert (tried["total"], len(tried["trials"]), len(tried["trials"][0]["hparams"])) == (20, 5, 2)
    search = (await api.user.get(path)).json()
    assert 4 <= len(search["journal"]) <= 7, len(search["journal"])
    assert search["pagination"]["endIndex"] == len(search["journal"]) < search["pagination"]["total"]
    rest = (await api.user.get(path, offset=search["pagination"]["endIndex"], limit=1)).json()["journal"]
    assert rest[0]["seq"] == search["journal"][-1]["seq"] + 1
    assert (await api.user.get(f"{path}/importance")).status_code == 200


@pytest.mark.parametrize("path", ["/api/v1/commands", "/api/v1/launched-tasks"])
async def test_thousands_of_commands(api: Api, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a text of kilobytes: a list is made apart from the event loop, and a page ends before it is large."""
    made = await api.user.post("/api/v1/commands", {"config": {"entrypoint": ["true"], "description": "d" * 900}})
    assert made.status_code == 200, made.text
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "insert into tasks (task_id, kind, job_id) select t.task_id || n, t.kind, t.job_id "
            "from tasks t, generate_series(1, 7000) n"
        )
        await conn.execute(
            "insert into launched_tasks (task_id, description) select l.task_id || n, l.description "
            "from launched_tasks l, generate_series(1, 7000) n"
        )
    whole = (await api.user.get(path)).json()
    assert whole["pagination"]["endIndex"] == whole["pagination"]["total"] == 7001
    monkeypatch.setattr("tenax.master.api.http.paging.MAX_ANSWER_BYTES", 50_000)
    page = (await api.user.get(path)).json()
    (tasks,) = (value for value in page.values() if isinstance(value, list))
    assert page["pagination"]["endIndex"] == len(tasks) < 50


async def test_machines_that_a_script_makes_up(api: Api) -> None:
    """Ten thousand agents and devices in each report: so many of them are drawn and judged, and no more."""
    desk = Book(api.master.db, api.master.intake)
    trial = await desk.trial()
    made_up: JsonObject = {
        f"a{number}": {f"g{device}": {"gpu_util": 1.0} for device in range(9)} for number in range(900)
    }
    at = "2026-01-02T03:04:05Z"
    reports = [from_values(trial, 1, "gpu", None, at, {"avgMetrics": made_up}) for _ in range(3)]
    assert not any((await desk.intake.metrics.submit([SpooledReport(report) for report in reports])).refused)
    drawn = (await api.user.get(f"/api/v1/trials/{trial}/profiler/series")).json()["series"]
    assert (len(drawn), {line["total"] for line in drawn}) == (MAX_SERIES, {3})
    assert (await api.user.get(f"/api/v1/trials/{trial}/health")).json()["gpus"] == MAX_SERIES
