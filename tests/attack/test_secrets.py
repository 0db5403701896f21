"""Whose secrets come out through configurations: nobody's but one's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tenax.config.master import MasterSettings, PoolSettings
from tenax.jsonvalue import JsonObject
from tests.kits.api import Api, Client, settings_in
from tests.kits.master.attempts import Running
from tests.kits.master.checkpoints import UUID, report
from tests.kits.master.experiments import CONFIG
from tests.kits.rows import add_agent, add_trial, run_attempt

#: Of the layers below; each place where a secret may stand.
BORROWED = "geheim"
OWN = "mine-alone"


@pytest.fixture
def master_settings(tmp_path: Path) -> MasterSettings:
    """A master, and a pool, with secrets in their defaults."""
    storage: JsonObject = {"type": "s3", "bucket": "b", "access_key": f"{BORROWED}-1", "secret_key": f"{BORROWED}-2"}
    variables: JsonObject = {"environment_variables": [f"OF_THE_MASTER={BORROWED}-3", f"TWICE={BORROWED}-4"]}
    registry: JsonObject = {"registry_auth": {"username": "u", "password": f"{BORROWED}-5"}}
    pool = PoolSettings(name="default", task_container_defaults=registry)
    given = {"checkpoint_storage": storage, "task_container_defaults": variables, "pools": (pool,)}
    return settings_in(tmp_path).model_copy(update=given)


def own_words(**environment: str) -> str:
    variables = json.dumps([f"{name}={value}" for name, value in environment.items()])
    return f"environment: {{environment_variables: {variables}}}\ndata: {{secrets: {{key: {OWN}}}}}\n"


TEMPLATE: JsonObject = {
    "environment": {
        "environment_variables": [f"OF_THE_TEMPLATE={BORROWED}-6"],
        "registry_auth": {"username": "u", "password": f"{BORROWED}-7", "auth": f"{BORROWED}-8"},
        "pod_spec": {"spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": f"{BORROWED}-9"}]}]}},
    },
    "data": {"secrets": {"theirs": f"{BORROWED}-10"}},
}


async def with_template(api: Api, config: JsonObject) -> Client:
    """Somebody else's template ``theirs``, and its owner."""
    await api.admin.post("/api/v1/users", {"user": {"username": "eve", "active": True}, "password": "S3cret-word"})
    eve = await api.login("eve", "S3cret-word")
    reply = await eve.post("/api/v1/templates/theirs", {"name": "theirs", "config": config, "workspaceId": 1})
    assert reply.status_code == 200, reply.text
    assert BORROWED in reply.text, "its owner sees what they wrote"
    return eve


def shows(reply: object, *, own: bool) -> bool:
    """Whether an answer shows what it should, and nothing of the layers below."""
    text = json.dumps(reply)
    return BORROWED not in text and (OWN in text) is own and f"OF_THE_MASTER={'*' * 8}" in text


async def test_a_submission_that_is_only_looked_at_shows_no_secret_of_others(api: Api) -> None:
    """Neither before it is made, nor then, nor later: those of a template, the pool and the master stay stars."""
    eve = await with_template(api, TEMPLATE)
    body = {"config": CONFIG + own_words(TWICE=OWN), "template": "theirs", "activate": False}
    for only in (True, False):
        reply = await api.user.post("/api/v1/experiments", {**body, "validateOnly": only})
        assert reply.status_code == 200, reply.text
        assert shows(reply.json(), own=True), reply.text
    made = f"/api/v1/experiments/{reply.json()['experiment']['id']}"
    for path in ("/api/v1/runs", "/api/v1/experiments-search"):
        listed = await api.user.post(path, {"projectId": 1})
        assert (listed.status_code, BORROWED in listed.text) == (200, False), path
    for client, own in ((api.user, True), (eve, False)):
        assert shows((await client.get(made)).json(), own=own)
        assert shows((await client.get("/api/v1/experiments")).json(), own=own)
    assert BORROWED in (await api.admin.get(made)).text


async def test_a_preview_of_a_search_shows_none(api: Api) -> None:
    """It completes the configuration, too, and answers with nothing of it: so it was ever."""
    reply = await api.user.post("/api/v1/preview-hp-search", {"config": {
        "entrypoint": "x", "searcher": {"name": "single", "metric": "m"}}, "seed": 1})  # fmt: skip
    assert reply.status_code == 200, reply.text
    assert BORROWED not in reply.text


async def test_a_command_shows_no_secret_of_others(api: Api) -> None:
    """Looked at only, launched, listed, as the configuration of a task."""
    environment = TEMPLATE["environment"]
    eve = await with_template(api, {"environment": environment})
    config = {"entrypoint": ["true"], "environment": {"environment_variables": [f"MINE={OWN}"]}}
    for preview in (True, False):
        body = {"config": config, "templateName": "theirs", "preview": preview}
        reply = await api.user.post("/api/v1/commands", body)
        assert reply.status_code == 200, reply.text
        assert shows(reply.json(), own=True), reply.text
    task = reply.json()["command"]["id"]
    for client, own in ((api.user, True), (eve, False)):
        assert shows((await client.get(f"/api/v1/commands/{task}")).json(), own=own)
        assert shows((await client.get(f"/api/v1/tasks/{task}/config")).json(), own=own)
    for path in (
        "/api/v1/commands",
        f"/api/v1/tasks/{task}",
        "/api/v1/tasks",
        "/api/v1/job-queues-v2?resourcePool=default",
    ):
        reply = await api.user.get(path)
        assert BORROWED not in reply.text, path


async def test_a_fork_does_not_make_what_was_below_ones_own(api: Api) -> None:
    """What a task took from the defaults stays hidden in the forks of it; another's with variables is not forked."""
    config = json.dumps({"entrypoint": ["true"], "environment": {"environment_variables": [f"MINE={OWN}"]}})
    first = await api.user.post("/api/v1/generic-tasks", {"config": config, "contextDirectory": []})
    assert first.status_code == 200, first.text
    body = {"config": "", "forkedFrom": first.json()["taskId"], "contextDirectory": []}
    fork = await api.user.post("/api/v1/generic-tasks", body)
    assert fork.status_code == 200, fork.text
    # As it was submitted, so that nothing of the layers below is in it at all.
    shown = (await api.user.get(f"/api/v1/tasks/{fork.json()['taskId']}/config")).text
    assert (OWN in shown, BORROWED in shown) == (True, False)
    await api.admin.post("/api/v1/users", {"user": {"username": "eve", "active": True}, "password": "S3cret-word"})
    eve = await api.login("eve", "S3cret-word")
    assert (await eve.post("/api/v1/generic-tasks", body)).status_code == 403


async def test_a_checkpoint_shows_no_secret_of_its_experiment(api: Api) -> None:
    """It carries the configuration with it."""
    body = {"config": CONFIG + own_words(MINE=OWN), "activate": True}
    made = (await api.user.post("/api/v1/experiments", body)).json()["experiment"]["id"]
    async with api.master.db.transaction() as conn:
        await add_agent(conn, "a1", 4)
        trial = await add_trial(conn, made)
        attempt = await run_attempt(conn, trial, ("a1",))
    await report(Running(api, trial, attempt, await api.task(attempt.allocation_id)))
    assert shows((await api.user.get(f"/api/v1/checkpoints/{UUID}")).json(), own=True)


async def test_values_of_variables_are_for_their_owner(api: Api) -> None:
    """Others see which there are, and not the text in which they stand, also where they are without effect."""
    await api.admin.post("/api/v1/users", {"user": {"username": "eve", "active": True}, "password": "S3cret-word"})
    eve = await api.login("eve", "S3cret-word")
    for more in (own_words(MINE=OWN), f"data_layer: {{type: s3, bucket: b, access_key: {OWN}, secret_key: {OWN}}}\n"):
        made = (await api.user.post("/api/v1/experiments", {"config": CONFIG + more, "activate": False})).json()
        path = f"/api/v1/experiments/{made['experiment']['id']}"
        assert OWN in (await api.user.get(path)).text
        for each in (path, "/api/v1/experiments"):
            assert OWN not in (await eve.get(each)).text


async def test_stars_are_no_secret(api: Api) -> None:
    """What was shown without its secrets is not taken for a configuration: it would run with stars."""
    for more in (own_words(MINE="*" * 8), "environment: {registry_auth: {username: u, password: '********'}}\n"):
        reply = await api.user.post("/api/v1/experiments", {"config": CONFIG + more, "validateOnly": True})
        assert (reply.status_code, "stars" in reply.text) == (400, True), reply.text
