"""Every case of the shared case file on actions on many runs ("run_actions"), each a scenario under its own words."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.kits.api import Api
from tests.kits.cases import load
from tests.kits.master.runs import SEARCH, act, add, project, search

Texts = list[str]
Scenario = Callable[[Api], Awaitable[tuple[Texts, Texts]]]
#: (action, input) of a case: what is done, giving what each run is answered and what it should be.
SCENARIOS: dict[tuple[str, str], Scenario] = {}


def case(action: str, given: str) -> Callable[[Scenario], Scenario]:
    """The scenario of this case."""

    def keep(scenario: Scenario) -> Scenario:
        SCENARIOS[action, given] = scenario
        return scenario

    return keep


def by_id(low: int, column: str = "id") -> str:
    field = {
        "kind": "field", "columnName": column, "operator": ">=", "value": low,
        "location": "LOCATION_TYPE_RUN", "type": "COLUMN_TYPE_NUMBER",
    }  # fmt: skip
    return json.dumps({"filterGroup": {"kind": "group", "conjunction": "and", "children": [field]}})


async def move(api: Api, ids: list[int], there: int, source: int = 1, **more: object) -> Texts:
    body = {"runIds": ids, "sourceProjectId": source, "destinationProjectId": there, **more}
    reply = await api.user.post("/api/v1/runs/move", body)
    assert reply.status_code == 200, reply.text
    return [result["error"] for result in reply.json()["results"]]


async def numbers(api: Api, there: int) -> list[tuple[int, str]]:
    reply = (await api.user.post("/api/v1/runs", {"projectId": there, "sort": "localId=asc"})).json()
    return [(run["id"], run["localId"]) for run in reply["runs"]]


async def archive_experiment(api: Api, experiment: int) -> None:
    async with api.master.db.transaction() as conn:
        await conn.execute("update experiments set archived = true where id = $1", experiment)


@case("move", "one id, single-trial runs")
async def _(api: Api) -> tuple[Texts, Texts]:
    there, (_, runs) = await project(api, "NEW"), await add(api)
    results = await move(api, runs, there)
    assert await numbers(api, there) == [(runs[0], "NEW-1")]
    assert await search(api, projectId=1) == []
    return results, [""]


@case("move", "source project = destination project")
async def _(api: Api) -> tuple[Texts, Texts]:
    _, runs = await add(api)
    return await move(api, runs, 1), []


@case("move", "one id of a two-run experiment, skip_multitrial false")
async def _(api: Api) -> tuple[Texts, Texts]:
    there, (_, first), (_, runs) = await project(api, "NEW"), await add(api), await add(api, 2, SEARCH)
    await move(api, first, there)
    results = await move(api, runs[:1], there)
    assert await numbers(api, there) == [(first[0], "NEW-1"), (runs[0], "NEW-2"), (runs[1], "NEW-3")]
    return results, ["", ""]


@case("move", "multi-trial run, skip_multitrial true")
async def _(api: Api) -> tuple[Texts, Texts]:
    there, (_, runs) = await project(api, "NEW"), await add(api, 2, SEARCH)
    return await move(api, runs[:1], there, skipMultitrial=True), [f"Skipping run '{runs[0]}' (part of multi-trial)."]


@case("move", "filter together with run ids")
async def _(api: Api) -> tuple[Texts, Texts]:
    there, (_, first), (_, second) = await project(api, "NEW"), await add(api), await add(api)
    results = await move(api, first, there, filter=by_id(second[0]))
    assert [number for number, _ in await numbers(api, there)] == second
    return results, [""]


@case("move", "archived run, experiment, project or workspace")
async def _(api: Api) -> tuple[Texts, Texts]:
    there, (_, run), (experiment, other) = await project(api, "NEW"), await add(api), await add(api)
    await act(api, "archive", run)
    await archive_experiment(api, experiment)
    return await move(api, [*run, *other], there), ["Run is archived."] * 2


@case("move", "id not in the project")
async def _(api: Api) -> tuple[Texts, Texts]:
    there = await project(api, "NEW")
    return await move(api, [5000], there), ["Run with id '5000' not found in project with id '1'"]


@case("delete", "two ACTIVE runs")
async def _(api: Api) -> tuple[Texts, Texts]:
    _, runs = await add(api, 2, SEARCH, "ACTIVE")
    results = await act(api, "delete", runs)
    assert await search(api) == runs
    return results, ["Run is not in a terminal state."] * 2


@case("delete", "two COMPLETED runs")
async def _(api: Api) -> tuple[Texts, Texts]:
    _, runs = await add(api, 2, SEARCH)
    results = await act(api, "delete", runs)
    assert await search(api) == []
    return results, ["", ""]


@case("delete", "id -1")
async def _(api: Api) -> tuple[Texts, Texts]:
    return await act(api, "delete", [-1]), ["Run with id '-1' not found in project with id '1'"]


@case("delete", "filter hp.test1.test2 <= 1 over runs with 1 and 5")
async def _(api: Api) -> tuple[Texts, Texts]:
    _, runs = await add(api, 2, SEARCH)
    async with api.master.db.transaction() as conn:
        for run, value in zip(runs, (1, 5)):
            await conn.execute("update trials set hparams = $2 where id = $1", run, {"test1": {"test2": value}})
            await conn.execute("delete from run_hparams where trial_id = $1", run)
            await conn.execute(
                "insert into run_hparams (trial_id, key, number_value) values ($1, 'test1.test2', $2)", run, value
            )
    field = {
        "kind": "field", "columnName": "hp.test1.test2", "operator": "<=", "value": 1,
        "location": "LOCATION_TYPE_RUN_HYPERPARAMETERS", "type": "COLUMN_TYPE_NUMBER",
    }  # fmt: skip
    text = json.dumps({"filterGroup": {"kind": "group", "conjunction": "and", "children": [field]}})
    results = await act(api, "delete", [], filter=text)
    assert await search(api) == runs[1:]
    return results, [""]


@case("delete", "one run of a two-run experiment")
async def _(api: Api) -> tuple[Texts, Texts]:
    _, runs = await add(api, 2, SEARCH)
    results = await act(api, "delete", runs[:1])
    assert await search(api) == runs[1:]
    return results, [""]


@case("delete/archive/unarchive/pause/resume", "filter and ids together")
async def _(api: Api) -> tuple[Texts, Texts]:
    _, runs = await add(api)
    errors = []
    for verb in ("delete", "archive", "unarchive", "pause", "resume"):
        body = {"runIds": runs, "filter": by_id(1), "projectId": 1}
        reply = await api.user.post(f"/api/v1/runs/{verb}", body)
        assert reply.status_code == 400
        errors.append(reply.text)
    assert all("if filter is provided run id list must be empty" in error for error in errors), errors
    return [], []


@case("delete/archive/unarchive", "no ids, no filter")
async def _(api: Api) -> tuple[Texts, Texts]:
    return [text for verb in ("delete", "archive", "unarchive") for text in await act(api, verb, [])], []


@case("archive", "two terminal runs")
async def _(api: Api) -> tuple[Texts, Texts]:
    _, runs = await add(api, 2)
    results = await act(api, "archive", runs)
    assert (await search(api, archived=False), await search(api)) == ([], runs)
    return results, ["", ""]


@case("unarchive", "the same")
async def _(api: Api) -> tuple[Texts, Texts]:
    _, runs = await add(api, 2)
    await act(api, "archive", runs)
    results = await act(api, "unarchive", runs)
    assert await search(api, archived=False) == runs
    return results, ["", ""]


@case("archive", "already archived runs")
async def _(api: Api) -> tuple[Texts, Texts]:
    _, runs = await add(api, 2)
    await act(api, "archive", runs)
    return await act(api, "archive", runs), ["", ""]


@case("unarchive", "runs that are not archived")
async def _(api: Api) -> tuple[Texts, Texts]:
    _, runs = await add(api, 2)
    return await act(api, "unarchive", runs), ["", ""]


@case("archive", "ACTIVE run")
async def _(api: Api) -> tuple[Texts, Texts]:
    _, runs = await add(api, state="ACTIVE")
    return await act(api, "archive", runs), ["Run is not in terminal state."]


async def _of_archived_search(api: Api, verb: str) -> tuple[Texts, Texts]:
    experiment, runs = await add(api, 2)
    await archive_experiment(api, experiment)
    return await act(api, verb, runs), [f"Run is part of archived Search (id: '{experiment}')."] * 2


@case("archive", "runs whose experiment is archived")
async def _(api: Api) -> tuple[Texts, Texts]:
    return await _of_archived_search(api, "archive")


@case("unarchive", "runs whose experiment is archived")
async def _(api: Api) -> tuple[Texts, Texts]:
    return await _of_archived_search(api, "unarchive")


@case("pause/resume", "run of a multi-trial experiment")
async def _(api: Api) -> tuple[Texts, Texts]:
    _, runs = await add(api, 1, SEARCH, "ACTIVE")
    results = [text for verb in ("pause", "resume") for text in await act(api, verb, runs)]
    return results, [f"Cannot pause/unpause run '{runs[0]}' (part of multi-trial)."] * 2


@case("pause/resume", "archived run")
async def _(api: Api) -> tuple[Texts, Texts]:
    _, runs = await add(api)
    await act(api, "archive", runs)
    return [text for verb in ("pause", "resume") for text in await act(api, verb, runs)], ["Run is archived."] * 2


@pytest.mark.parametrize("words", SCENARIOS, ids=": ".join)
async def test_actions_as_the_cases_say(api: Api, words: tuple[str, str]) -> None:
    """Each run is answered for itself, in the words that clients know."""
    results, expected = await SCENARIOS[words](api)
    assert results == expected


def test_every_case_has_its_scenario() -> None:
    """And every scenario its case, where the case files are there."""
    document: Any = load("run_actions")
    if document is not None:
        assert {(one["action"], one["input"]) for one in document["cases"]} == SCENARIOS.keys()
