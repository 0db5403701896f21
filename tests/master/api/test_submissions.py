"""What stands below what is submitted: templates, the workspace's defaults, pools that are kept for others."""

from __future__ import annotations

import json

import pytest

from tenax.config.master import PoolSettings
from tests.kits.api import Api
from tests.kits.master.experiments import CONFIG, create
from tests.kits.master.refusals import refusal


async def filed(api: Api, **defaults: object) -> int:
    """A project in a workspace that says so much of its own."""
    async with api.master.db.transaction() as conn:
        workspace = await conn.fetchval("insert into workspaces (name) values ('w') returning id")
        for name, value in defaults.items():
            await conn.execute(f"update workspaces set {name} = $1 where id = $2", value, workspace)
        made: int = await conn.fetchval(
            "insert into projects (workspace_id, name) values ($1, 'p') returning id", workspace
        )
        return made


def two_pools(api: Api) -> None:
    """The pools default and gold."""
    pools = (PoolSettings(name="default"), PoolSettings(name="gold"))
    api.master.settings = api.master.settings.model_copy(update={"pools": pools})


async def test_a_template_stands_below_the_text(api: Api) -> None:
    """What both say is taken from the text; one that is not there is named."""
    template = {"name": "t", "workspaceId": 1, "config": {"max_restarts": 2, "description": "from the template"}}
    assert (await api.user.post("/api/v1/templates/t", template)).status_code == 200
    config = (await create(api, template="t"))["config"]
    assert (config["max_restarts"], config["description"]) == (2, "two layers")
    missing = await api.user.post("/api/v1/experiments", {"config": CONFIG, "template": "none"})
    assert (missing.status_code, "'none'" in refusal(missing)) == (404, True)


async def test_a_workspace_says_where_checkpoints_go_and_which_pool_runs(api: Api) -> None:
    """Unless the text says otherwise."""
    two_pools(api)
    storage = {"type": "shared_fs", "host_path": "/of/the/workspace"}
    project = await filed(api, checkpoint_storage=storage, default_compute_pool="gold")
    made = (await create(api, projectId=project))["experiment"]
    assert made["config"]["checkpoint_storage"]["host_path"] == "/of/the/workspace"
    assert made["resourcePool"] == "gold"
    own = CONFIG.replace("slots_per_trial: 1", "slots_per_trial: 1, resource_pool: default")
    own += "checkpoint_storage: " + json.dumps({"type": "shared_fs", "host_path": "/own"}) + "\n"
    made = (await create(api, own, projectId=project))["experiment"]
    assert (made["config"]["checkpoint_storage"]["host_path"], made["resourcePool"]) == ("/own", "default")


@pytest.mark.parametrize("archived", ["projects", "workspaces"])
async def test_what_is_in_an_archived_place_is_not_forked(api: Api, archived: str) -> None:
    """Neither with its project nor with its workspace, also into another place; unarchived it is."""
    parent = (await create(api, projectId=await filed(api)))["experiment"]["id"]
    fork = {"config": CONFIG, "parentId": parent, "projectId": 1}
    async with api.master.db.transaction() as conn:
        await conn.execute(f"update {archived} set archived = true where not immutable")
    reply = await api.user.post("/api/v1/experiments", fork)
    words = "forking an experiment in an archived workspace/project"
    assert (reply.status_code, words in refusal(reply)) == (400, True), reply.text
    async with api.master.db.transaction() as conn:
        await conn.execute(f"update {archived} set archived = false")
    assert (await api.user.post("/api/v1/experiments", fork)).status_code == 200


async def test_a_pool_that_is_kept_for_others_is_refused(api: Api) -> None:
    """To whoever asks for it, and to whoever would get it by default."""
    two_pools(api)
    project = await filed(api)
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "insert into pool_bindings (pool, workspace_id) select 'default', id from workspaces where name = 'w'"
        )
    assert (await create(api, projectId=project))["experiment"]["resourcePool"] == "default"
    refused = await api.user.post("/api/v1/experiments", {"config": CONFIG})
    assert (refused.status_code, "kept for other workspaces" in refusal(refused)) == (400, True)
    gold = CONFIG.replace("slots_per_trial: 1", "slots_per_trial: 1, resource_pool: gold")
    assert (await create(api, gold))["experiment"]["resourcePool"] == "gold"


async def test_nothing_is_filed_in_what_is_being_deleted(api: Api) -> None:
    """Also where the deletion began after the request was examined."""
    project = await filed(api, state="DELETING")
    refused = await api.user.post("/api/v1/experiments", {"config": CONFIG, "projectId": project})
    assert (refused.status_code, "being deleted" in refusal(refused)) == (400, True)
    async with api.master.db.connection() as conn:
        assert await conn.fetchval("select count(*) from experiments") == 0


async def test_an_unmanaged_experiment_needs_no_entrypoint(api: Api) -> None:
    """It runs at once, is in no queue, and known by the name that its maker gives it."""
    config = CONFIG.replace("entrypoint", "#")
    body = {"config": config, "unmanaged": True}
    made = await api.user.ask("PUT", "/api/v1/experiments/by-external-id/mine/1", body)
    experiment = made.json()["experiment"]
    assert (experiment["unmanaged"], experiment["state"], experiment["externalExperimentId"]) == (
        True,
        "STATE_RUNNING",
        "mine/1",
    )
    other = (await create(api, config, unmanaged=True))["experiment"]
    assert other["externalExperimentId"] is None
    listed = (await api.user.get("/api/v1/experiments")).json()["experiments"]
    assert [row["unmanaged"] for row in listed] == [True, True]
    refused = await api.user.post("/api/v1/experiments/continue", {"id": experiment["id"]})
    assert (refused.status_code, "outside of this cluster" in refusal(refused)) == (400, True)


async def test_a_search_that_cannot_be_continued_says_so_first(api: Api) -> None:
    """Nobody is to wait for its end, or to unarchive it, for nothing; the refusal names the command that works."""
    rungs = "name: adaptive_asha, time_metric: epochs, max_time: 4"
    number = (await create(api, CONFIG.replace("name: random", rungs)))["experiment"]["id"]
    for state, archived, says in (
        ("PAUSED", False, "activate it if it is paused"),
        ("STOPPING_CANCELED", False, f"tenax experiment fork {number}"),
        ("CANCELED", True, f"tenax experiment fork {number}"),
    ):
        async with api.master.db.transaction() as conn:
            await conn.execute(
                "update experiments set state = $2, archived = $3,"
                " ended_at = case when $2 = 'CANCELED' then now() end where id = $1",
                number,
                state,
                archived,
            )
        refused = await api.user.post("/api/v1/experiments/continue", {"id": number})
        assert (refused.status_code, says in refusal(refused)) == (400, True), refusal(refused)


async def test_the_first_trials_are_there_when_the_answer_comes(api: Api) -> None:
    """Where no loop runs at all: as many as the search begins with, also of what is made paused."""
    single = CONFIG.replace("name: random", "name: single").replace(", max_trials: 8", "")
    for config, paused, trials in ((CONFIG, False, 8), (CONFIG, True, 8), (single, False, 1)):
        number = (await create(api, config, activate=not paused))["experiment"]["id"]
        listed = (await api.user.get(f"/api/v1/experiments/{number}/trials")).json()["trials"]
        assert len(listed) == trials
