"""What one request leaves behind to be shown in lists: it has a size, and whoever reads the list pays no more."""

from __future__ import annotations

import json
import random
import threading

import pytest
from asyncpg import Connection

from tenax.jsonvalue import Json, JsonObject
from tenax.master.access.authorization import Caller
from tenax.master.api.checkpoints import lists as checkpoint_lists
from tenax.master.api.http import paging
from tenax.master.store.checkpoints import lists as store_lists
from tenax.master.store.checkpoints import rows
from tenax.master.store.checkpoints.lists import CheckpointView
from tenax.master.store.database.paging import Page
from tenax.master.store.tasks import lists as task_lists
from tenax.master.store.tasks.lists import LaunchedFilter
from tenax.wire.message import Message
from tests.kits.api import Api
from tests.kits.master.attempts import Running, running
from tests.kits.master.checkpoints import UUID, report, stored_files
from tests.kits.master.experiments import CONFIG, create
from tests.kits.rows import add_trial

LONG = "x" * 300_000
DEEP: JsonObject = json.loads('{"a":' * 300 + "1" + "}" * 300)
#: One text of 100 KB that stands in many places.
ALIASES = "entrypoint: [python3, &a " + "x" * 100_000
MANY: JsonObject = {f"shard-{n}": 1 for n in range(20_001)}
#: As many as one line of a spool holds.
MILLIONS: JsonObject = {f"{n}": 1 for n in range(1_000_000)}


@pytest.fixture
async def run(api: Api) -> Running:
    return await running(api)


async def say(run: Running, kind: str, body: JsonObject) -> list[str]:
    """A line of the spool of the running attempt; why it was refused."""
    line = json.dumps({"n": 1, "kind": kind, "at": 1790000000.0, "body": body}).encode() + b"\n"
    query = {"container_id": run.attempt.containers[0], "stream": "s"}
    reply = await run.task.ask("POST", f"{run.path}/spool", line, params=query)
    assert reply.status_code == 200, reply.text
    assert reply.json()["acked"] == 1
    return [refusal["message"] for refusal in reply.json()["refused"]]


def saved(**more: Json) -> JsonObject:
    return {"uuid": UUID, "stepsCompleted": 1, "resources": {"w": 1}, "metadata": {}, **more}


@pytest.mark.parametrize(
    ("kind", "body", "why"),
    [
        ("checkpoint", saved(resources=MANY), "at most 20000 are taken"),
        ("checkpoint", saved(resources=MILLIONS), "at most 4194304 bytes and 50000 values"),
        ("checkpoint", saved(resources={f"{n:0200}": 1 for n in range(10_000)}), "at most 1048576 bytes"),
        ("checkpoint", saved(resources={"w": "9" * 5000}), "must be a number of bytes"),
        ("checkpoint", saved(metadata={"notes": LONG}), "at most 262144 are taken"),
        ("checkpoint", saved(storage={"type": "shared_fs", "host_path": LONG}), "at most 2048 are taken"),
        ("checkpoint_started", {"uuid": UUID, "storage": {"type": "shared_fs", "x": LONG}}, "at most 2048 are taken"),
        ("runner_state", {"state": LONG * 20}, "at most 4194304 bytes"),
        ("checkpoint", saved(metadata=DEEP), "nested more than 100 levels"),
        ("run_start", {"hparams": DEEP}, "nested more than 100 levels"),
    ],
    ids=[
        "files",
        "many files",
        "long names",
        "digits",
        "metadata",
        "storage",
        "its announcement",
        "state",
        "depth",
        "deep hparams",
    ],
)
async def test_a_task_leaves_little_in_lists(api: Api, run: Running, kind: str, body: JsonObject, why: str) -> None:
    """A line of a spool is refused for good, with its reason; nothing is stored of it."""
    refused = await say(run, kind, body)
    assert len(refused) == 1
    assert why in refused[0], refused
    assert len(refused[0]) < 500
    assert (await api.user.get(f"/api/v1/checkpoints/{UUID}")).status_code == 404


async def test_lines_without_end(api: Api, run: Running) -> None:
    """A few megabytes of line breaks are as many lines: some are taken at a time, and the answer says which."""
    query = {"container_id": run.attempt.containers[0], "stream": "s"}
    reply = await run.task.ask("POST", f"{run.path}/spool", b"\n" * 3_000_000, params=query)
    assert (reply.status_code, reply.json()["acked"]) == (200, 20_000), reply.text[:300]
    assert len(reply.json()["refused"]) == 20_000


async def test_the_largest_checkpoint_holds_nobody_up(api: Api, run: Running) -> None:
    """What is just inside of the limits is stored, and read again."""
    del MANY["shard-0"]
    assert await say(run, "checkpoint", saved(resources=MANY, metadata={"notes": "x" * 260_000})) == []
    found = (await api.user.get(f"/api/v1/checkpoints/{UUID}")).json()["checkpoint"]
    assert len(found["resources"]) == 20_000


async def test_the_same_over_the_api(api: Api, run: Running) -> None:
    """As Determined's client reports; metadata, too, that people write later."""
    body: JsonObject = {"uuid": UUID, "state": "STATE_COMPLETED", "metadata": {"steps_completed": 1}, "training": {}}
    for more in ({"resources": MANY | {"one": 1, "more": 1}}, {"metadata": {"steps_completed": 1, "notes": LONG}}):
        reply = await run.task.post("/api/v1/checkpoints", {**body, "resources": {}, **more})
        assert (reply.status_code, "are taken" in reply.text) == (400, True), reply.text[:300]
    await report(run)
    reply = await api.user.post(f"/api/v1/checkpoints/{UUID}/metadata", {"checkpoint": {"metadata": {"notes": LONG}}})
    assert (reply.status_code, "are taken" in reply.text) == (400, True), reply.text[:300]


@pytest.mark.parametrize(
    ("hparams", "why"), [({"a": LONG}, "at most 65536"), ({f"a{n}": n for n in range(1001)}, "at most 1000")]
)
async def test_hyperparameters_of_what_runs_elsewhere(api: Api, hparams: JsonObject, why: str) -> None:
    """They are in every list of trials."""
    made = await create(api, CONFIG, unmanaged=True)
    number = made["experiment"]["id"]  # type: ignore[index]
    reply = await api.user.post("/api/v1/trials", {"experimentId": number, "hparams": hparams, "unmanaged": True})
    assert (reply.status_code, why in reply.text) == (400, True), reply.text[:300]


async def test_a_configuration_has_a_size(api: Api) -> None:
    """It is in every list of experiments."""
    reply = await api.user.post("/api/v1/experiments", {"config": f"{CONFIG}\n# {LONG * 4}"})
    assert (reply.status_code, "at most 262144" in reply.text) == (400, True), reply.text[:300]


async def test_notes_have_a_size(api: Api) -> None:
    """Whatever people write without code."""
    await create(api, CONFIG)
    reply = await api.user.patch("/api/v1/experiments/1", {"notes": LONG * 8})
    assert reply.status_code == 413, reply.text[:300]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/experiments/1", {"description": LONG}),
        ("/api/v1/experiments/1", {"name": LONG}),
        ("/api/v1/experiments/1", {"notes": LONG}),
        ("/api/v1/users/2", {"displayName": "x" * 256}),
        ("/api/v1/projects/1", {"description": LONG}),
        ("/api/v1/models/m", {"description": LONG}),
        ("/api/v1/models/m", {"metadata": {"a": LONG}}),
        ("/api/v1/models/m", {"notes": LONG}),
    ],
)
async def test_texts_have_a_size(api: Api, path: str, body: JsonObject) -> None:
    """A display name is in each experiment of every list; refused, and nothing is changed."""
    await create(api, CONFIG)
    assert (await api.user.post("/api/v1/models", {"name": "m"})).status_code == 200
    client = api.admin if path.startswith("/api/v1/projects") else api.user
    reply = await client.patch(path, body)
    assert (reply.status_code, "are taken" in reply.text) == (400, True), reply.text[:300]


async def test_templates_and_webhooks_have_a_size(api: Api) -> None:
    """Their lists show all of them."""
    reply = await api.user.post("/api/v1/templates/t", {"config": {"description": LONG}, "workspaceId": 1})
    assert (reply.status_code, "at most 262144" in reply.text) == (400, True), reply.text[:300]
    trigger = {"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": "COMPLETED"}}
    hook = {"url": "https://example.org", "webhookType": "WEBHOOK_TYPE_DEFAULT", "triggers": [trigger] * 101}
    reply = await api.admin.post("/api/v1/webhooks", hook)
    assert (reply.status_code, "at most 100" in reply.text) == (400, True), reply.text[:300]


async def test_notes_of_a_project_have_a_size_together(api: Api) -> None:
    """They are all in the list of projects."""
    own = (await api.user.post("/api/v1/workspaces", {"name": "own"})).json()["workspace"]["id"]
    made = await api.user.post(f"/api/v1/workspaces/{own}/projects", {"name": "p"})
    path = f"/api/v1/projects/{made.json()['project']['id']}/notes"
    note = {"name": "n", "contents": "x" * 200_000}
    assert (await api.user.post(path, note)).status_code == 200
    reply = await api.user.post(path, note)
    assert (reply.status_code, "are taken" in reply.text) == (400, True), reply.text[:300]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/v1/models", {"name": "deep", "metadata": DEEP}),
        ("POST", "/api/v1/checkpoints", {"uuid": UUID, "state": "STATE_COMPLETED", "resources": {}, "metadata": DEEP}),
        ("POST", f"/api/v1/checkpoints/{UUID}/metadata", {"checkpoint": {"metadata": DEEP}}),
        ("POST", "/api/v1/commands", {"config": {"entrypoint": ["true"], "work_dir": DEEP}}),
    ],
)
async def test_depth(api: Api, run: Running, method: str, path: str, body: JsonObject) -> None:
    """What is nested too deeply to be shown again is not stored: lists go on for everyone."""
    await report(run)
    client = run.task if path.endswith("checkpoints") else api.user
    reply = await client.ask(method, path, json.dumps(body).encode())
    assert (reply.status_code, "nested more than 100 levels" in reply.text) == (400, True), reply.text[:300]
    for listed in ("/api/v1/models", "/api/v1/experiments/1/checkpoints", "/api/v1/experiments/1/trials"):
        assert (await api.user.get(listed)).status_code == 200


@pytest.mark.parametrize("levels", [220, 900, 5000])
async def test_what_was_stored_too_deep_is_cut(api: Api, run: Running, levels: int) -> None:
    """Documents from before there was a limit: every list that they are in shows the rest."""
    await report(run)
    deep = '{"kept": 1, "a":' + '{"a":' * (levels - 1) + "1" + "}" * levels
    assert (await api.user.post("/api/v1/models", {"name": "deep"})).status_code == 200
    async with api.master.db.transaction() as conn:
        for table in ("models", "checkpoints"):
            await conn.execute(f"update {table} set metadata = ($1::text)::jsonb", deep)
        await conn.execute("insert into run_metadata select id, ($1::text)::jsonb from trials", deep)
    for listed in ("/api/v1/models", "/api/v1/experiments/1/checkpoints", "/api/v1/experiments/1/trials"):
        assert (await api.user.get(listed)).status_code == 200
    (model,) = (await api.user.get("/api/v1/models")).json()["models"]
    assert levels > 900 or (model["metadata"]["kept"], "too deeply" in str(model)) == (1, True)


async def test_what_may_be_as_deep_is_shown(api: Api) -> None:
    """At the limit it is stored and read again, in lists too."""
    inner: Json = 1
    for _ in range(98):
        inner = {"a": inner}
    assert (await api.user.post("/api/v1/models", {"name": "deep", "metadata": {"b": inner}})).status_code == 200
    (model,) = (await api.user.get("/api/v1/models")).json()["models"]
    assert model["metadata"] == {"b": inner}


@pytest.mark.parametrize(("aliases", "why"), [(5000, "aliases count each time"), (30, "at most 524288 are taken")])
@pytest.mark.parametrize(
    ("path", "more"),
    [("/api/v1/experiments", "\nsearcher: {name: single, metric: loss}\n"), ("/api/v1/generic-tasks", "\n")],
)
async def test_aliases_count_each_time(api: Api, path: str, more: str, aliases: int, why: str) -> None:
    """A short text that stands for a long one: nothing is made of it, not even its check."""
    text = ALIASES + ", *a" * aliases + "]" + more
    reply = await api.user.post(path, {"config": text, "validateOnly": True})
    assert (reply.status_code, why in reply.text) == (400, True), reply.text[:300]


@pytest.mark.parametrize(
    "config",
    [
        {"description": "d" * 600_000},
        {"environment": {"environment_variables": ["A=" + "e" * 600_000]}},
        {"environment": {"environment_variables": [f"A{n}=1" for n in range(60_000)]}},
        {"entrypoint": ["x" * 600_000]},
    ],
    ids=["description", "a variable", "variables", "arguments"],
)
async def test_the_configuration_of_a_command_has_a_size(api: Api, config: JsonObject) -> None:
    """It is in every list of commands, whatever of it is long."""
    body: JsonObject = {"config": {"entrypoint": ["true"], "resources": {"slots": 0}, **config}}
    reply = await api.user.post("/api/v1/commands", body)
    assert (reply.status_code, "at most 524288 are taken" in reply.text) == (400, True), reply.text[:300]
    assert (await api.user.get("/api/v1/commands")).json()["commands"] == []


@pytest.mark.parametrize(("labels", "why"), [(["x" * 501], "500"), ([f"l{n}" for n in range(101)], "at most 100")])
async def test_labels_have_a_size_and_a_number(api: Api, labels: list[str], why: str) -> None:
    """Of experiments as they are submitted and later, of models and of their versions."""
    await create(api, CONFIG)
    assert (await api.user.post("/api/v1/models", {"name": "m"})).status_code == 200
    text = CONFIG.replace("[vision, small]", json.dumps(labels))
    for method, path, body in (
        ("POST", "/api/v1/experiments", {"config": text}),
        ("PATCH", "/api/v1/experiments/1", {"labels": labels}),
        ("POST", "/api/v1/models", {"name": "n", "labels": labels}),
        ("PATCH", "/api/v1/models/m", {"labels": labels}),
        ("POST", "/api/v1/models/m/versions", {"checkpointUuid": UUID, "labels": labels}),
    ):
        reply = await api.user.ask(method, path, json.dumps(body).encode())
        assert (reply.status_code, why in reply.text) == (400, True), (path, reply.text[:300])
    before = len((await api.user.get("/api/v1/experiments/1")).json()["experiment"]["labels"])
    asked = [(await api.user.ask("PUT", f"/api/v1/experiments/1/labels/{label}", b"")).status_code for label in labels]
    assert asked == ([200] * (100 - before) + [400] * (1 + before) if len(labels) > 1 else [400])


async def test_many_are_deleted_without_a_look_at_what_they_hold(
    api: Api, run: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands may be named in a request: whose they are is loaded, and no document."""
    uuids = [f"{UUID[:-2]}{number:02}" for number in range(30)]
    for number, uuid in enumerate(uuids):
        await report(run, uuid, number)
    loaded: list[int] = []
    views = store_lists.views

    async def counted(conn: Connection, chosen: list[str]) -> list[CheckpointView]:
        loaded.append(len(chosen))
        return await views(conn, chosen)

    monkeypatch.setattr(store_lists, "views", counted)
    refused = await api.user.ask("DELETE", "/api/v1/checkpoints", json.dumps({"checkpointUuids": uuids}).encode())
    assert (refused.status_code, f"may start from checkpoint {uuids[-1]}" in refused.text) == (400, True), refused.text
    named = json.dumps({"checkpointUuids": uuids[:-1]}).encode()
    assert (await api.user.ask("DELETE", "/api/v1/checkpoints", named)).status_code == 200
    assert loaded == []
    async with api.master.db.connection() as conn:
        assert await conn.fetchval("select count(*) from removals") == 29


async def test_a_list_of_commands_reads_none_of_their_documents(api: Api) -> None:
    """Each may have half a megabyte, and the list shows nothing of it."""
    config: Json = {"entrypoint": ["true"], "environment": {"environment_variables": ["A=" + "x" * 100_000]}}
    made = await api.user.post("/api/v1/commands", {"config": config})
    assert made.status_code == 200, made.text[:300]
    task_id = made.json()["command"]["id"]
    async with api.master.db.connection() as conn:
        ids = await task_lists.launched_ids(conn, LaunchedFilter(("COMMAND",)), Page(), order="id", descending=False)
        listed = await task_lists.launched_views(conn, ids, documents=False)
    assert [(view.task_id, view.config, view.own, view.submitted) for view in listed] == [(task_id, {}, {}, None)]
    assert "x" * 1000 in (await api.user.get(f"/api/v1/commands/{task_id}")).text


async def test_a_list_of_large_documents(api: Api, run: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page ends before it is large, and says where; all is there in as many pages as it takes.

    What is rendered, is rendered apart from the event loop, and a part of the page at a time.
    """
    monkeypatch.setattr(paging, "MAX_ANSWER_BYTES", 250_000, raising=False)
    threads: set[str] = set()
    message = checkpoint_lists.checkpoint_message

    def watched(view: CheckpointView, caller: Caller) -> Message:
        threads.add(threading.current_thread().name)
        return message(view, caller)

    monkeypatch.setattr(checkpoint_lists, "checkpoint_message", watched)
    large: JsonObject = {"notes": "x" * 100_000}
    assert (await api.user.post("/api/v1/workspaces", {"name": "w"})).json()["workspace"]["id"] == 2
    for number in range(1, 7):
        uuid = UUID[:-1] + str(number)
        await report(run, uuid, number, metadata={"steps_completed": number, **large})
        body: JsonObject = {"name": f"m{number}", "metadata": large}
        assert (await api.user.post("/api/v1/models", body)).status_code == 200
        variables: Json = {"environment": {"environment_variables": ["A=" + "x" * 100_000]}}
        reply = await api.user.post(f"/api/v1/templates/t{number}", {"config": variables})
        assert reply.status_code == 200, reply.text[:300]
        reply = await api.user.post("/api/v1/workspaces/2/projects", {"name": f"p{number}"})
        notes: Json = [{"name": "n", "contents": "x" * 100_000}]
        reply = await api.user.put(f"/api/v1/projects/{reply.json()['project']['id']}/notes", {"notes": notes})
        assert reply.status_code == 200, reply.text[:300]
        reply = await api.user.post("/api/v1/models/m1/versions", {"checkpointUuid": uuid, "metadata": large})
        assert reply.status_code == 200, reply.text[:300]
    async with api.master.db.transaction() as conn:
        for seq in range(2, 7):
            await add_trial(conn, 1, seq)
        await conn.execute("update trials set hparams = $1", large)
    for path, key in (
        ("/api/v1/experiments/1/checkpoints", "checkpoints"),
        (f"/api/v1/trials/{run.trial}/checkpoints", "checkpoints"),
        (f"/api/v1/trials/{run.trial}/workloads", "workloads"),
        ("/api/v1/experiments/1/trials", "trials"),
        ("/api/v1/models", "models"),
        ("/api/v1/templates", "templates"),
        ("/api/v1/workspaces/2/projects", "projects"),
        ("/api/v1/models/m1/versions", "modelVersions"),
    ):
        entries: list[str] = []
        pages, offset, total = 0, 0, 6
        while offset < total:
            reply = await api.user.get(path, offset=offset)
            assert (reply.status_code, len(reply.content) < 550_000) == (200, True), (path, len(reply.content))
            answer = reply.json()
            assert (answer["pagination"]["startIndex"], len(answer[key]) >= 1) == (offset, True)
            offset, total = answer["pagination"]["endIndex"], answer["pagination"]["total"]
            entries += [json.dumps(entry, sort_keys=True) for entry in answer[key]]
            pages += 1
        assert (len(entries), len(set(entries)), total) == (6, 6, 6), path
        assert pages > 1, path
    assert "MainThread" not in threads


async def test_a_search_for_large_documents(api: Api, run: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of experiments and runs: of a page that is asked for as large as it may be, too."""
    monkeypatch.setattr(paging, "MAX_ANSWER_BYTES", 250_000, raising=False)
    for number in range(1, 7):
        if number > 1:
            await create(api, CONFIG)
        reply = await api.user.patch(f"/api/v1/experiments/{number}", {"notes": "x" * 100_000})
        assert reply.status_code == 200, reply.text[:300]
    async with api.master.db.transaction() as conn:
        for seq in range(2, 7):
            await add_trial(conn, 1, seq)
        await conn.execute("update trials set hparams = $1 where experiment_id = 1", {"notes": "x" * 100_000})
        await conn.execute("delete from trials where experiment_id > 1")
    for method, path, key in (
        ("GET", "/api/v1/experiments", "experiments"),
        ("POST", "/api/v1/experiments-search", "experiments"),
        ("POST", "/api/v1/runs", "runs"),
    ):
        shown: list[int] = []
        offset, total = 0, 6
        while offset < total:
            asked: JsonObject = {"offset": offset, "limit": -1}
            reply = await (api.user.get(path, **asked) if method == "GET" else api.user.post(path, asked))
            assert (reply.status_code, len(reply.content) < 350_000) == (200, True), (path, len(reply.content))
            answer = reply.json()
            offset, total = answer["pagination"]["endIndex"], answer["pagination"]["total"]
            shown += [
                entry.get("experiment", entry)["id"] if key == "experiments" else entry["id"] for entry in answer[key]
            ]
        assert (len(shown), len(set(shown)), total) == (6, 6, 6), path


@pytest.mark.parametrize(("files", "refused"), [(20_000, False), (20_001, True)])
async def test_as_many_files_as_are_taken(api: Api, run: Running, files: int, refused: bool) -> None:
    """The file with the metadata, which is ours, is not one of them."""
    resources: JsonObject = {**{f"{number}": 1 for number in range(files)}, "metadata.json": 2}
    said = await say(run, "checkpoint", saved(resources=resources))
    assert said == [] if not refused else "has 20001 files and folders, and at most 20000 are taken" in said[0]


@pytest.mark.parametrize(("limit", "value"), [("_MAX_FILES", 5), ("_MAX_FILES_BYTES", 120)])
async def test_files_that_lie_on_the_disk(
    api: Api, run: Running, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    """What a task wrote beside its checkpoint is counted, and listed as far as a report may: by all who look at it."""
    await report(run)
    folder = stored_files(api)
    for number in range(20):
        (folder / f"more-{number:02}").write_bytes(b"data")
    monkeypatch.setattr(rows, limit, value)
    for globs, size in (([], 21 * 4 + 2), (["more-0*"], 11 * 4 + 2)):
        body: JsonObject = {"checkpointUuids": [UUID], "checkpointGlobs": globs}
        reply = await api.user.post("/api/v1/checkpoints/rm", body)
        assert reply.status_code == 200, reply.text[:300]
        found = (await api.user.get(f"/api/v1/checkpoints/{UUID}")).json()["checkpoint"]
        assert {"weights/", "weights/w.bin"} <= set(found["resources"])
        assert 3 <= len(found["resources"]) <= 8, found["resources"]
        assert found["state"] == "STATE_PARTIALLY_DELETED"
        async with api.master.db.connection() as conn:
            assert await conn.fetchval("select size_bytes from checkpoints") == size


@pytest.mark.parametrize(
    "more",
    [
        {"host_path": random.Random(1).randbytes(990).hex()},
        {f"{n}": n for n in range(170)},
        {"host_path": random.Random(1).randbytes(2500).hex()},
    ],
    ids=["a text", "many entries", "what the index has no room for"],
)
async def test_a_long_place_of_files(api: Api, run: Running, more: JsonObject) -> None:
    """Just inside of its limit it is stored, or refused by itself: nothing else of the request fails with it."""
    refused = await say(run, "checkpoint", saved(storage={"type": "shared_fs", **more}))
    assert refused == [] or "too many entries" in refused[0] or "at most 2048 are taken" in refused[0], refused
    assert (await api.user.get(f"/api/v1/checkpoints/{UUID}")).status_code == (404 if refused else 200)
