"""Experiments over the wire: made, listed, told what to do, refused."""

from __future__ import annotations

import asyncio
import base64
import io
import tarfile

import pytest

from tenax.jsonvalue import JsonObject
from tests.kits.api import Api
from tests.kits.master.experiments import CONFIG, create, file
from tests.kits.master.refusals import refusal
from tests.kits.rows import add_agent, add_trial, request_attempt, run_attempt


async def tables(api: Api) -> list[int]:
    """How many rows there are of what an experiment is made of."""
    async with api.master.db.connection() as conn:
        return [
            await conn.fetchval(f"select count(*) from {name}")
            for name in ("jobs", "experiments", "experiment_documents", "contexts")
        ]


async def test_an_experiment_is_made_with_its_code(api: Api) -> None:
    """It is ACTIVE at once, holds the text as typed and the whole configuration, and its code comes back unchanged."""
    files = [file("sub", "", type=53, mode=16877), file("sub/train.py", mode=33261)]
    made = await create(api, modelDefinition=files)
    experiment = made["experiment"]
    assert (experiment["name"], experiment["labels"], experiment["username"]) == (
        "digits",
        ["vision", "small"],
        "determined",
    )
    assert experiment["state"] == "STATE_QUEUED"
    assert experiment["originalConfig"] == CONFIG
    assert experiment["config"]["max_restarts"] == 5
    assert made["config"] == experiment["config"]
    code = (await api.user.get(f"/api/v1/experiments/{experiment['id']}/model_def")).json()["b64Tgz"]
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(code))) as tar:
        assert [(m.name, m.isdir(), oct(m.mode)) for m in tar.getmembers()] == [
            ("sub", True, "0o755"),
            ("sub/train.py", False, "0o755"),
        ]
        assert tar.extractfile("sub/train.py").read() == b"print('hello')\n"


async def test_what_is_submitted_at_once_is_made_once(api: Api) -> None:
    """Each of them, also with the same code, which is stored once."""
    names = [f"at once {number}" for number in range(12)]
    texts = [CONFIG.replace("name: digits", f"name: {name}") for name in names]
    made = await asyncio.gather(*(create(api, text, modelDefinition=[file("train.py")]) for text in texts))
    assert [each["experiment"]["name"] for each in made] == names
    assert len({each["experiment"]["id"] for each in made}) == len(names)
    assert await tables(api) == [len(names)] * 3 + [1]


async def test_the_same_code_is_stored_once(api: Api) -> None:
    """Two experiments with the same files share one archive; a fork without files takes its parent's."""
    first = await create(api, modelDefinition=[file("train.py")])
    await create(api, modelDefinition=[file("train.py")])
    fork = await create(api, parentId=first["experiment"]["id"])
    assert (await tables(api))[3] == 1
    assert fork["experiment"]["forkedFrom"] == first["experiment"]["id"]
    both = [
        (await api.user.get(f"/api/v1/experiments/{submitted['experiment']['id']}/model_def")).json()["b64Tgz"]
        for submitted in (first, fork)
    ]
    assert both[0] == both[1] != ""


async def test_validate_only_makes_nothing(api: Api) -> None:
    """The answer is a whole experiment without a number."""
    reply = await api.user.post("/api/v1/experiments", {"config": CONFIG, "validateOnly": True})
    experiment = reply.json()["experiment"]
    assert (experiment["id"], experiment["name"], experiment["searcherType"]) == (0, "digits", "random")
    assert experiment["config"]["searcher"]["max_trials"] == 8
    assert await tables(api) == [0, 0, 0, 0]


async def test_what_is_only_validated_says_what_would_start(api: Api) -> None:
    """By the pool as it is now, and nothing is made; who creates one is not told."""
    async with api.master.db.transaction() as conn:
        await add_agent(conn, "a1", slots=3)

    async def ahead(config: str) -> JsonObject:
        reply = await api.user.post("/api/v1/experiments", {"config": config, "validateOnly": True})
        assert reply.status_code == 200, reply.text
        return dict(reply.json()["forecast"])

    some = await ahead(CONFIG)
    assert (some["trials"], some["starting"], some["leaving"], some["waitClass"]) == (8, 3, 0, "WAIT")
    assert str(some["reason"]).startswith("waits for 1 free slot in pool default")
    whole = await ahead(CONFIG.replace("max_trials: 8", "max_trials: 2"))
    assert (whole["trials"], whole["starting"], whole["reason"], whole["waitClass"]) == (2, 2, "", None)
    assert await tables(api) == [0, 0, 0, 0]
    assert (await create(api))["forecast"] is None


BAD = {
    "broken YAML": ({"config": "name: [a"}, "line"),
    "unknown key": ({"config": CONFIG + "max_restart: 3\n"}, "max_restarts"),
    "wrong type": ({"config": CONFIG.replace("max_trials: 8", "max_trials: many")}, "searcher.max_trials"),
    "no entrypoint": ({"config": CONFIG.replace("entrypoint", "#")}, "entrypoint"),
    "two problems": ({"config": CONFIG + "debug: 3\nmax_restarts: x\n"}, "2 problems"),
    "grid without counts": ({"config": CONFIG.replace("name: random", "name: grid")}, "count"),
    "no configuration": ({"config": "  "}, "configuration"),
    "unknown pool": ({"config": CONFIG.replace("slots_per_trial: 1", "resource_pool: gold")}, "default"),
    "unknown project": ({"config": CONFIG, "projectId": 77}, "77"),
    "unknown workspace": ({"config": CONFIG + "workspace: w\nproject: p\n"}, "workspace 'w'"),
    "unknown parent": ({"config": CONFIG, "parentId": 77}, "77"),
    "path outside": ({"config": CONFIG, "modelDefinition": [file("../x")]}, "'../x'"),
    "absolute path": ({"config": CONFIG, "modelDefinition": [file("/etc/x")]}, "'/etc/x'"),
    "link": ({"config": CONFIG, "modelDefinition": [file("x", type=50)]}, "'x'"),
    "not base64": ({"config": CONFIG, "modelDefinition": [file("x", content="") | {"content": "%%"}]}, "base64"),
    "unknown template": ({"config": CONFIG, "template": "t"}, "template 't'"),
}


@pytest.mark.parametrize(("body", "message"), BAD.values(), ids=BAD.keys())
async def test_bad_input_is_refused_and_changes_nothing(api: Api, body: dict[str, object], message: str) -> None:
    """The message names what is wrong; no row is written."""
    reply = await api.user.post("/api/v1/experiments", body)
    assert reply.status_code in (400, 404, 501), reply.text
    assert message in refusal(reply)
    assert await tables(api) == [0, 0, 0, 0]


async def test_code_over_the_limit_names_the_largest_files(api: Api) -> None:
    """The message says how large it is, how much is taken, and what to leave out."""
    api.master.settings = api.master.settings.model_copy(update={"context_limit_bytes": 1000})
    body = {"config": CONFIG, "modelDefinition": [file("small.py"), file("data.bin", "x" * 2000)]}
    reply = await api.user.post("/api/v1/experiments", body)
    assert reply.status_code == 400
    assert "data.bin" in refusal(reply)
    assert ".detignore" in refusal(reply)
    assert await tables(api) == [0, 0, 0, 0]


async def test_more_slots_than_exist_are_refused_with_the_arithmetic(api: Api) -> None:
    """Against the agents that there are; before any agent came, it is taken and said to wait."""
    config = CONFIG.replace("slots_per_trial: 1", "slots_per_trial: 5")
    early = await create(api, config)
    assert early["warnings"] == ["LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED"]
    assert "no agents" in early["notices"][-1]
    async with api.master.db.transaction() as conn:
        await add_agent(conn, "a1", 2)
        await add_agent(conn, "a2", 2)
    before = await tables(api)
    reply = await api.user.post("/api/v1/experiments", {"config": config, "activate": True})
    assert reply.status_code == 400
    assert "5 slots" in refusal(reply)
    assert "4 slots on 2 agents" in refusal(reply)
    assert await tables(api) == before
    assert (await create(api))["warnings"] == []


async def test_more_slots_than_exist_wait_where_the_cluster_grows(api: Api) -> None:
    """With ``launch_error: false``: a warning, and the arithmetic beside it."""
    async with api.master.db.transaction() as conn:
        await add_agent(conn, "a1", slots=2)
    config = CONFIG.replace("slots_per_trial: 1", "slots_per_trial: 1000")
    reply = await api.user.post("/api/v1/experiments", {"config": config})
    assert (reply.status_code, "request unfulfillable" in refusal(reply)) == (400, True)
    single = CONFIG.replace("slots_per_trial: 1", "slots_per_trial: 3, is_single_node: true")
    reply = await api.user.post("/api/v1/experiments", {"config": single})
    assert (reply.status_code, "request unfulfillable" in refusal(reply)) == (400, True)
    api.master.settings = api.master.settings.model_copy(update={"launch_error": False})
    made = await create(api, config)
    assert made["warnings"] == ["LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED"]
    assert "1000 slots can never run here" in str(made["notices"])


async def test_an_experiment_can_be_made_paused(api: Api) -> None:
    """Without ``activate`` it waits for one."""
    reply = await api.user.post("/api/v1/experiments", {"config": CONFIG})
    experiment = reply.json()["experiment"]
    assert experiment["state"] == "STATE_PAUSED"
    assert (await api.user.post(f"/api/v1/experiments/{experiment['id']}/activate")).json() == {}
    assert (await api.user.get(f"/api/v1/experiments/{experiment['id']}")).json()["experiment"][
        "state"
    ] == "STATE_QUEUED"


async def test_verbs_change_the_state(api: Api) -> None:
    """Pause, activate, cancel over the wire; a verb that the state does not allow says what to do."""
    experiment = (await create(api))["experiment"]["id"]
    path = f"/api/v1/experiments/{experiment}"
    for verb, state in (("pause", "PAUSED"), ("activate", "QUEUED"), ("cancel", "STOPPING_CANCELED")):
        assert (await api.user.post(f"{path}/{verb}")).status_code == 200
        assert (await api.user.get(path)).json()["experiment"]["state"] == f"STATE_{state}"
    refused = await api.user.post(f"{path}/pause")
    assert refused.status_code == 400
    assert refused.json()["error"]["reason"] == "FailedPrecondition"
    assert (await api.user.post(f"{path}/kill")).status_code == 200
    assert (await api.user.post(f"{path}/archive")).status_code == 400
    assert (await api.user.ask("DELETE", path)).status_code == 400
    assert (await api.user.post("/api/v1/experiments/77/pause")).status_code == 404


async def test_only_owner_and_administrators_change_an_experiment(api: Api) -> None:
    """Others see it, and cannot touch it."""
    await api.admin.post("/api/v1/users", {"user": {"username": "eve"}, "password": "s3cret-!!"})
    eve = await api.login("eve", "s3cret-!!")
    experiment = (await create(api))["experiment"]["id"]
    path = f"/api/v1/experiments/{experiment}"
    assert (await eve.get(path)).status_code == 200
    for verb in ("pause", "activate", "cancel", "kill", "archive", "unarchive"):
        assert (await eve.post(f"{path}/{verb}")).status_code == 403
    assert (await eve.ask("DELETE", path)).status_code == 403
    assert (await eve.patch(path, {"name": "mine"})).status_code == 403
    assert (await api.admin.post(f"{path}/kill")).status_code == 200


async def test_secrets_of_a_configuration_are_its_owners(api: Api) -> None:
    """Others get stars, and not the text; without secrets everyone gets the text."""
    await api.admin.post("/api/v1/users", {"user": {"username": "eve"}, "password": "s3cret-!!"})
    eve = await api.login("eve", "s3cret-!!")
    secret = (await create(api, CONFIG + "data: {secrets: {key: t0p}}\n"))["experiment"]
    plain = (await create(api))["experiment"]
    assert secret["config"]["data"]["secrets"] == {"key": "t0p"}
    seen = (await eve.get(f"/api/v1/experiments/{secret['id']}")).json()["experiment"]
    assert seen["config"]["data"]["secrets"] == {"key": "********"}
    assert "t0p" not in str(seen)
    assert (await eve.get(f"/api/v1/experiments/{plain['id']}")).json()["experiment"]["originalConfig"] == CONFIG


async def test_words_can_be_edited_later(api: Api) -> None:
    """Name, description, notes, labels; what is not given stays."""
    path = f"/api/v1/experiments/{(await create(api))['experiment']['id']}"
    await api.user.patch(path, {"notes": "n", "labels": ["a", "a", "b"]})
    edited = (await api.user.patch(path, {"name": "new"})).json()["experiment"]
    assert (edited["name"], edited["description"], edited["notes"]) == ("new", "two layers", "n")
    assert edited["labels"] == ["a", "b"]
    assert (await api.user.patch(path, {"name": " "})).status_code == 400


async def test_the_list_is_filtered_sorted_and_paged(api: Api) -> None:
    """Every filter that clients send; limit 0 is 100, -1 all, -2 only the count."""
    for number in range(3):
        await create(api, CONFIG.replace("name: digits", f"name: d{number}"))
    await api.admin.post("/api/v1/experiments", {"config": CONFIG, "activate": False})

    async def ids(**query: object) -> list[int]:
        reply = await api.user.get("/api/v1/experiments", **query)
        assert reply.status_code == 200, reply.text
        return [experiment["id"] for experiment in reply.json()["experiments"]]

    assert await ids() == [1, 2, 3, 4]
    assert await ids(orderBy="ORDER_BY_DESC", sortBy="SORT_BY_NAME") == [4, 3, 2, 1]
    assert await ids(users=["admin"]) == [4]
    assert await ids(user_ids=[2], limit=2, offset=1) == [2, 3]
    assert await ids(states=["STATE_PAUSED"]) == [4]
    assert await ids(states=["STATE_ACTIVE"]) == [1, 2, 3]
    assert await ids(states=["STATE_QUEUED", "STATE_PAUSED"]) == [1, 2, 3, 4]
    assert await ids(states=["STATE_RUNNING"]) == []
    assert await ids(name="d1") == [2]
    assert await ids(labels=["small", "vision"]) == [1, 2, 3, 4]
    assert await ids(labels=["none"]) == []
    assert await ids(**{"experimentIdFilter.gte": 2, "experimentIdFilter.lt": 4}) == [2, 3]
    assert await ids(**{"experimentIdFilter.incl": [1, 4], "experimentIdFilter.notIn": [1]}) == [4]
    assert await ids(archived="true") == []
    assert await ids(limit=-1) == [1, 2, 3, 4]
    assert await ids(limit=-2) == []
    # What is listed changes while one pages: an offset behind its end is its end.
    assert await ids(offset=77) == []
    assert await ids(offset=-77) == []
    assert await ids(offset=-1) == [4]
    counted = (await api.user.get("/api/v1/experiments", limit=-2)).json()["pagination"]
    assert counted["total"] == 4
    assert (await api.user.get("/api/v1/experiments", sortBy="SORT_BY_NONSENSE")).status_code == 400


@pytest.mark.parametrize(
    "sort_by",
    [
        "ID",
        "DESCRIPTION",
        "START_TIME",
        "END_TIME",
        "STATE",
        "NUM_TRIALS",
        "PROGRESS",
        "USER",
        "NAME",
        "FORKED_FROM",
        "RESOURCE_POOL",
        "PROJECT_ID",
        "CHECKPOINT_SIZE",
        "CHECKPOINT_COUNT",
        "SEARCHER_METRIC_VAL",
    ],
)
async def test_every_order_of_the_list_works(api: Api, sort_by: str) -> None:
    """Equal values are ordered by id, so that pages do not overlap."""
    for _ in range(2):
        await create(api)
    reply = await api.user.get("/api/v1/experiments", sortBy=f"SORT_BY_{sort_by}")
    assert [experiment["id"] for experiment in reply.json()["experiments"]] == [1, 2]


async def test_what_waits_says_why(api: Api) -> None:
    """In the list and in the description, for the experiment and for its trial; what runs has nothing to say."""
    async with api.master.db.transaction() as conn:
        await add_agent(conn)
    experiment = (await create(api))["experiment"]["id"]
    async with api.master.db.transaction() as conn:
        trial = await add_trial(conn, experiment)
        allocation = await request_attempt(conn, trial)
        await conn.execute("insert into allocation_waits values ($1, 'no slot is free')", allocation)
    described = (await api.user.get(f"/api/v1/experiments/{experiment}")).json()
    listed = (await api.user.get("/api/v1/experiments")).json()["experiments"][0]
    shown = (await api.user.get(f"/api/v1/trials/{trial}")).json()["trial"]
    for each in (described["experiment"], listed, shown):
        assert (each["state"], each["reason"]) == ("STATE_QUEUED", "no slot is free")
    assert described["jobSummary"] == {"state": "STATE_QUEUED", "jobsAhead": 0}
    later = (await create(api))["experiment"]["id"]
    async with api.master.db.transaction() as conn:
        await run_attempt(conn, await add_trial(conn, later))
    running = (await api.user.get(f"/api/v1/experiments/{later}")).json()
    assert (running["experiment"]["state"], running["experiment"]["reason"]) == ("STATE_RUNNING", "")
    assert running["jobSummary"] == {"state": "STATE_SCHEDULED", "jobsAhead": 1}


async def test_a_search_can_be_previewed(api: Api) -> None:
    """How many trials would train how long; nothing is made."""
    config = {
        "searcher": {
            "name": "adaptive_asha",
            "metric": "loss",
            "max_trials": 16,
            "time_metric": "batches",
            "max_time": 64,
        },
        "hyperparameters": {"lr": 0.1},
    }
    reply = await api.user.post("/api/v1/preview-hp-search", {"config": config, "seed": 1})
    assert reply.status_code == 200, reply.text
    summary = reply.json()["summary"]
    assert sum(row["count"] for row in summary["trials"]) == 16
    assert {row["unit"]["name"] for row in summary["trials"]} == {"batches"}
    assert summary["config"]["name"] == "adaptive_asha"
    bad = await api.user.post("/api/v1/preview-hp-search", {"config": {"searcher": {"name": "nope"}}})
    assert bad.status_code == 400
    assert await tables(api) == [0, 0, 0, 0]


async def test_the_best_metric_is_404_before_there_is_one(api: Api) -> None:
    """Clients read 404 as none."""
    experiment = (await create(api))["experiment"]["id"]
    path = f"/api/v1/experiments/{experiment}/searcher/best_searcher_validation_metric"
    assert (await api.user.get(path)).status_code == 404
    async with api.master.db.transaction() as conn:
        for seq, metric in ((1, 0.5), (2, 0.9), (3, float("nan"))):
            trial = await add_trial(conn, experiment, seq)
            await conn.execute("insert into trial_telemetry (trial_id, best_metric) values ($1, $2)", trial, metric)
    assert (await api.user.get(path)).json() == {"metric": 0.9}
    described = (await api.user.get(f"/api/v1/experiments/{experiment}")).json()["experiment"]
    assert (described["bestTrialSearcherMetric"], described["bestTrialId"], described["numTrials"]) == (0.9, 2, 3)
