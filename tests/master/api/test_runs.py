"""Runs: found, moved, archived, deleted, held and ended, many at a time; their metadata; what a project can show."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx2

from tenax.jsonvalue import JsonObject
from tenax.master.store.checkpoints import rows as checkpoints
from tests.kits.api import Api
from tests.kits.master.attempts import running
from tests.kits.master.runs import SEARCH, SINGLE, act, add, project, search


async def test_a_run_as_a_table_shows_it(api: Api) -> None:
    """With its number in the project, its experiment, hyperparameters, metadata, and what is counted of it."""
    experiment, (first, _) = await add(api, 2, SEARCH, "ACTIVE")
    assert (await api.user.post(f"/api/v1/runs/{first}/metadata", {"metadata": {"a": [1, "x"]}})).status_code == 200
    reply = (await api.user.post("/api/v1/runs", {"projectId": 1, "limit": 1, "sort": "id=asc"})).json()
    (run,) = reply["runs"]
    assert reply["pagination"] == {"offset": 0, "limit": 1, "startIndex": 0, "endIndex": 1, "total": 2}
    assert (run["id"], run["state"], run["hyperparameters"]) == (first, "STATE_QUEUED", {"lr": 0.1})
    assert run["localId"].endswith("-1")
    assert run["metadata"] == {"a": [1, "x"]}
    assert (run["checkpointSize"], run["checkpointCount"], run["archived"]) == ("0", 0, False)
    assert run["experiment"]["id"] == experiment
    assert run["experiment"]["isMultitrial"] is True
    assert run["runningSeconds"] == 0


async def test_how_long_a_run_ran(api: Api) -> None:
    """As its trial has it, without the time in which it waited."""
    trial_id = (await running(api)).trial
    async with api.master.db.transaction() as conn:
        await conn.execute("update trials set created_at = now() - interval '1 hour'")
        await conn.execute("update containers set started_at = now() - interval '1 minute'")
    (run,) = (await api.user.post("/api/v1/runs", {})).json()["runs"]
    trial = (await api.user.get(f"/api/v1/trials/{trial_id}")).json()["trial"]
    assert (run["duration"] >= 3600, 60 <= run["runningSeconds"] <= trial["runningSeconds"] < 3600) == (True, True)


async def test_a_secret_of_a_run_is_shown_to_administrators_only(api: Api) -> None:
    """What it reads from Pachyderm is shown to everyone, but for the token."""
    dataset: JsonObject = {"project": "p", "token": "s3cret"}
    await add(api, 1, {**SINGLE, "integrations": {"pachyderm": {"dataset": dataset}}})
    await add(api)
    await api.admin.post("/api/v1/users", {"user": {"username": "eve"}, "password": "s3cret-2"})
    eve = await api.login("eve", "s3cret-2")
    for caller, token in ((api.admin, "s3cret"), (api.user, "********"), (eve, "********")):
        runs = (await caller.post("/api/v1/runs", {"projectId": 1})).json()["runs"]
        shown = [run["experiment"]["pachydermIntegration"] for run in runs]
        assert shown == [{"dataset": {"project": "p", "token": token}}, None]


async def test_runs_by_a_wrong_filter_or_order(api: Api) -> None:
    """What is wrong is a 400 that names it, an unknown project a 404."""
    for body, status, message in (
        ({"filter": "{"}, 400, "not JSON"),
        ({"sort": "nope=asc"}, 400, "invalid sort col: nope"),
        ({"limit": -3}, 400, "limit"),
        ({"projectId": 999}, 404, "project 999 not found"),
        ({"offset": "x"}, 400, "offset"),
    ):
        reply = await api.user.post("/api/v1/runs", body)
        assert (reply.status_code, message in reply.text) == (status, True), reply.text


async def test_runs_by_what_people_type(api: Api) -> None:
    """The filter of experiments, of what each run tried; it is read, checked and shown as a tree before it counts."""
    experiment, (first, second) = await add(api, 2, SEARCH, "ACTIVE")
    async with api.master.db.transaction() as conn:
        await conn.execute("update run_hparams set number_value = 0.5 where trial_id = $1 and key = 'lr'", second)
    await api.user.post(f"/api/v1/runs/{first}/metadata", {"metadata": {"note": "half a day", "size": 3}})
    for query, found in (
        ("hp.lr>=0.2", [second]),
        ("hp.lr<0.2 owner:determined", [first]),
        (f"experiment:{experiment} NOT hp.lr:0.1", [second]),
        (f"{first} OR hp.lr=0.5", [first, second]),
        ("state:active has:hp.lr", [first, second]),
        ("state:error", []),
        ('metadata.note:"half a" metadata.size>2', [first]),
    ):
        reply = await api.user.post("/api/v1/runs", {"projectId": 1, "query": query, "sort": "id=asc"})
        assert [run["id"] for run in reply.json()["runs"]] == found, (query, reply.text)
    asked = {"query": '(owner:"me" OR hp.lr>1) NOT x', "projectId": 1, "tableType": "TABLE_TYPE_RUN"}
    checked = (await api.user.get("/api/v1/experiments-search/query", **asked)).json()
    either = {
        "any": True,
        "parts": [
            {"column": "owner", "operator": ":", "values": ["me"], "quoted": True},
            {"column": "hp.lr", "operator": ">", "values": ["1"], "quoted": False},
        ],
    }
    assert checked["tree"] == {"any": False, "parts": [either, {"not": {"values": ["x"], "quoted": False}}]}
    wrong = (await api.user.get("/api/v1/experiments-search/query", **{**asked, "query": "trials>2"})).json()
    assert (wrong["problem"]["start"], wrong.get("tree")) == (0, None)
    refused = await api.user.post("/api/v1/runs", {"query": "trials>2"})
    assert (refused.status_code, "query, characters 1 to 6" in refused.text) == (400, True)


async def test_archive_and_unarchive(api: Api) -> None:
    """Only what has ended is hidden; doing it twice changes nothing; an archived search holds its runs."""
    experiment, ended = await add(api, 2)
    _, live = await add(api, state="ACTIVE")
    assert await act(api, "archive", ended) == ["", ""]
    assert await act(api, "archive", ended) == ["", ""]
    assert await act(api, "archive", live) == ["Run is not in terminal state."]
    assert await search(api, archived=False) == live
    assert await act(api, "unarchive", ended[:1]) == [""]
    assert await search(api, archived=False) == sorted([*live, ended[0]])
    async with api.master.db.transaction() as conn:
        await conn.execute("update experiments set archived = true where id = $1", experiment)
    for verb in ("archive", "unarchive"):
        assert await act(api, verb, ended[:1]) == [f"Run is part of archived Search (id: '{experiment}')."]


async def test_delete(api: Api, tmp_path: Path) -> None:
    """A run of a search goes alone and with its files; the only run of one takes its experiment along."""
    place = tmp_path / "checkpoints"
    storage: JsonObject = {"type": "shared_fs", "host_path": str(place)}
    several, many = await add(api, 2, {**SEARCH, "checkpoint_storage": storage})
    single, alone = await add(api)
    uuid = "11111111-2222-4333-8444-555555555555"
    (place / uuid).mkdir(parents=True)
    (place / uuid / "weights").write_text("w")
    upload = "11111111-2222-4333-8444-666666666666"
    (place / upload).mkdir()
    boards = place / str(api.master.cluster.cluster_id) / "tensorboard" / "experiment" / str(several) / "trial"
    for run in many:
        (boards / str(run)).mkdir(parents=True)
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "insert into checkpoints (uuid, task_id, trial_id, run_id, state, resources)"
            " select $1, task_id, id, 1, 'COMPLETED', '{\"weights\": 1}' from trials where id = $2",
            uuid, many[0],
        )  # fmt: skip
        # It began to upload something that never became a checkpoint.
        task_id = await conn.fetchval("select task_id from trials where id = $1", many[0])
        await conn.execute(
            "insert into allocations (allocation_id, task_id, run_id, state, slots, ended_at)"
            " values ($1 || '.1', $1, 1, 'TERMINATED', 1, now())",
            task_id,
        )
        backend = await checkpoints.storage_backend(conn, storage)
        await conn.execute(
            "insert into checkpoint_uploads (uuid, task_id, allocation_id, storage_id) values ($1, $2, $2 || '.1', $3)",
            upload, task_id, backend,
        )  # fmt: skip
    assert await act(api, "delete", [many[0], alone[0], -1]) == [
        "",
        "",
        "Run with id '-1' not found in project with id '1'",
    ]
    assert not (place / uuid).exists()
    assert not (place / upload).exists()
    assert [path.name for path in boards.iterdir()] == [str(many[1])]
    assert await search(api) == [many[1]]
    assert (await api.user.get(f"/api/v1/trials/{many[0]}")).status_code == 404
    reply = await api.user.get(f"/api/v1/experiments/{single}")
    assert reply.status_code == 404 or reply.json()["experiment"]["state"] == "STATE_DELETING"
    _, live = await add(api, 2, SEARCH, "ACTIVE")
    assert await act(api, "delete", live) == ["Run is not in a terminal state."] * 2


async def test_delete_by_filter(api: Api) -> None:
    """What the filter finds goes; ids beside a filter are refused."""
    _, (low, high) = await add(api, 2, SEARCH)
    condition = {
        "kind": "field", "columnName": "hp.lr", "operator": "<=", "value": 0.15,
        "location": "LOCATION_TYPE_RUN_HYPERPARAMETERS", "type": "COLUMN_TYPE_NUMBER",
    }  # fmt: skip
    text = json.dumps({"filterGroup": {"kind": "group", "conjunction": "and", "children": [condition]}})
    reply = await api.user.post("/api/v1/runs/delete", {"runIds": [low], "filter": text, "projectId": 1})
    assert reply.status_code == 400
    assert await act(api, "delete", [], filter=text) == [""]
    assert await search(api) == [high]
    assert await act(api, "delete", []) == []


async def test_move(api: Api) -> None:
    """Runs move with their experiment and are numbered on in the new project."""
    there = await project(api, "NEW")
    _, first = await add(api)
    _, many = await add(api, 2, SEARCH)

    async def move(ids: list[int], source: int = 1, **more: object) -> list[JsonObject]:
        body = {"runIds": ids, "sourceProjectId": source, "destinationProjectId": there, **more}
        reply = await api.user.post("/api/v1/runs/move", body)
        assert reply.status_code == 200, reply.text
        results: list[JsonObject] = reply.json()["results"]
        return results

    assert await move(first) == [{"id": first[0], "error": ""}]
    assert await move(first, source=there) == []
    assert await move([5000]) == [{"id": 5000, "error": "Run with id '5000' not found in project with id '1'"}]
    (skipped,) = await move(many[:1], skipMultitrial=True)
    assert skipped["error"] == f"Skipping run '{many[0]}' (part of multi-trial)."
    assert await move(many[:1]) == [{"id": run_id, "error": ""} for run_id in many]
    reply = (await api.user.post("/api/v1/runs", {"projectId": there, "sort": "localId=asc"})).json()
    assert [(run["id"], run["localId"]) for run in reply["runs"]] == [
        (run_id, f"NEW-{number}") for number, run_id in enumerate([*first, *many], 1)
    ]
    assert await search(api, projectId=1) == []
    body = {"runIds": first, "sourceProjectId": there, "destinationProjectId": 999}
    assert (await api.user.post("/api/v1/runs/move", body)).status_code == 404


async def test_nothing_is_moved_into_what_goes(api: Api) -> None:
    """A project that is being deleted takes no runs: its end would wait for them, or break on them."""
    going = await project(api, "GOING")
    experiment, runs = await add(api)
    async with api.master.db.transaction() as conn:
        await conn.execute("update projects set state = 'DELETING' where id = $1", going)
    body = {"runIds": runs, "sourceProjectId": 1, "destinationProjectId": going}
    reply = await api.user.post("/api/v1/runs/move", body)
    assert reply.status_code == 400
    assert "is being deleted" in reply.text
    assert (await api.user.get(f"/api/v1/experiments/{experiment}")).json()["experiment"]["projectId"] == 1


async def test_kill_pause_and_resume(api: Api) -> None:
    """The only run of an experiment stands for it; of a search only the run itself is ended, and it is never held."""
    single, alone = await add(api, state="ACTIVE")
    _, many = await add(api, 2, SEARCH, "ACTIVE")
    refused = f"Cannot pause/unpause run '{many[0]}' (part of multi-trial)."
    assert await act(api, "pause", [alone[0], many[0]]) == ["", refused]
    assert (await api.user.get(f"/api/v1/experiments/{single}")).json()["experiment"]["state"] == "STATE_PAUSED"
    assert await act(api, "resume", alone) == [""]
    assert await act(api, "kill", [alone[0], many[0]]) == ["", ""]
    async with api.master.db.connection() as conn:
        wishes = await conn.fetch("select id, wish from trials where id = any($1::bigint[])", many)
        state = await conn.fetchval("select state from experiments where id = $1", single)
    assert {row["id"]: row["wish"] for row in wishes} == {many[0]: "KILL", many[1]: "RUN"}
    assert state == "STOPPING_KILLED"


async def test_runs_of_someone_else(api: Api) -> None:
    """Each is refused for itself, in words."""
    _, mine = await add(api)
    other, theirs = await add(api)
    async with api.master.db.transaction() as conn:
        await conn.execute("update experiments set owner_id = 1 where id = $1", other)
    done, refused = await act(api, "archive", [*mine, *theirs])
    assert done == ""
    assert "belongs to someone else" in refused


async def test_metadata_is_replaced_as_a_whole(api: Api) -> None:
    """What was written last stays, also when many write at once; nothing is empty, and too much is refused."""
    _, (run, _) = await add(api, 2, SEARCH)
    path = f"/api/v1/runs/{run}/metadata"
    assert (await api.user.get(path)).json() == {"metadata": {}}
    assert (await api.user.post(path, {"metadata": {"a": 1}})).json() == {"metadata": {"a": 1}}
    documents = [{"n": number, "of": {"x": number}} for number in range(10)]
    replies = await asyncio.gather(*(api.user.post(path, {"metadata": document}) for document in documents))
    assert {reply.status_code for reply in replies} == {200}
    kept = (await api.user.get(path)).json()["metadata"]
    assert kept in documents
    async with api.master.db.connection() as conn:
        leaves = await conn.fetch(
            "select flat_key, integer_value from run_metadata_index where trial_id = $1 order by flat_key", run
        )
    assert [tuple(leaf) for leaf in leaves] == [("n", kept["n"]), ("of.x", kept["n"])]
    assert (await api.user.post(path)).json() == {"metadata": {}}
    assert (await api.user.get(path)).json() == {"metadata": {}}
    assert (await api.user.post(path, {"metadata": {"k" * 51: 1}})).status_code == 400
    assert (await api.user.get("/api/v1/runs/999/metadata")).status_code == 404


async def test_columns_values_and_ranges_of_a_project(api: Api) -> None:
    """What runs have: hyperparameters, metadata by kind, metrics; and experiments their configured hyperparameters."""
    config: JsonObject = {**SEARCH, "hyperparameters": {"opt": {"lr": {"type": "log", "minval": -4, "maxval": -1}}}}
    _, (first, second) = await add(api, 2, config)
    for run, who in ((first, "b"), (second, "a")):
        await api.user.post(f"/api/v1/runs/{run}/metadata", {"metadata": {"who": {"name": who}, "n": 1, "l": [1]}})
    async with api.master.db.transaction() as conn:
        for run, low in ((first, 0.25), (second, 0.5)):
            summary = {"loss": ["number", low, 1, low, low, low], "note": ["string", "x", 0, 0, 0, 0]}
            await conn.execute(
                "insert into metric_groups (trial_id, grp, month, run_id, last_step, next_ord, newest_step, summary)"
                " values ($1, 'validation', 202611, 1, 1, 2, 1, $2)",
                run, json.dumps(summary).encode(),
            )  # fmt: skip
    columns = await _columns(api, "TABLE_TYPE_RUN")
    assert columns["hp.lr"] == ("LOCATION_TYPE_RUN_HYPERPARAMETERS", "COLUMN_TYPE_NUMBER")
    assert columns["metadata.who.name"] == ("LOCATION_TYPE_RUN_METADATA", "COLUMN_TYPE_TEXT")
    assert columns["metadata.l"][1] == "COLUMN_TYPE_ARRAY"
    assert columns["validation.loss.mean"] == ("LOCATION_TYPE_VALIDATIONS", "COLUMN_TYPE_NUMBER")
    assert columns["validation.note.last"][1] == "COLUMN_TYPE_TEXT"
    assert columns["startTime"] == ("LOCATION_TYPE_RUN", "COLUMN_TYPE_DATE")
    assert (await _columns(api, "TABLE_TYPE_EXPERIMENT"))["hp.opt.lr"] == (
        "LOCATION_TYPE_HYPERPARAMETERS",
        "COLUMN_TYPE_NUMBER",
    )
    assert (await api.user.get("/api/v1/projects/1/metadata/who.name")).json() == {"values": ["a", "b"]}
    ranges = (await api.user.get("/api/v1/projects/1/experiments/metric-ranges")).json()["ranges"]
    assert {"metricsName": "validation.loss.last", "min": 0.25, "max": 0.5} in ranges
    for path in ("columns", "metadata/x", "experiments/metric-ranges"):
        assert (await api.user.get(f"/api/v1/projects/999/{path}")).status_code == 404


async def _columns(api: Api, table: str) -> dict[str, tuple[str, str]]:
    reply: httpx2.Response = await api.user.get("/api/v1/projects/1/columns", tableType=table)
    assert reply.status_code == 200, reply.text
    return {column["column"]: (column["location"], column["type"]) for column in reply.json()["columns"]}
