"""Commands over the API: what is made of a request, who may do what, what the lists show."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tenax.config.master import MasterSettings, PoolSettings
from tenax.lifecycle.container import Ending
from tenax.master.allocations import events as allocation_events
from tenax.master.store.logs import retention
from tenax.master.store.tasks import rows as tasks
from tests.kits.api import Api, settings_in
from tests.kits.master.tasks import ended, placed, tended
from tests.kits.rows import add_agent

COMMANDS = "/api/v1/commands"


@pytest.fixture
def master_settings(tmp_path: Path) -> MasterSettings:
    """A pool besides the default one."""
    pools = (PoolSettings(name="default"), PoolSettings(name="spare"))
    return settings_in(tmp_path).model_copy(update={"pools": pools})


async def launched(api: Api, *arguments: str, **body: object) -> str:
    config = {"entrypoint": list(arguments or ("true",)), "resources": {"slots": 0}}
    reply = await api.user.post(COMMANDS, {"config": config, **body})
    assert reply.status_code == 200, reply.text
    return str(reply.json()["command"]["id"])


async def shown(api: Api, task_id: str) -> dict[str, object]:
    reply = await api.user.get(f"{COMMANDS}/{task_id}")
    assert reply.status_code == 200, reply.text
    command: dict[str, object] = reply.json()["command"]
    return command


async def test_a_command_lives_from_its_request_to_its_exit(api: Api) -> None:
    """It waits, it runs, it ends; its exit code and words are told; it is never started again."""
    task_id = await launched(api, "echo", "hi")
    assert (await shown(api, task_id))["state"] == "STATE_QUEUED"
    container = await placed(api, task_id)
    running = await shown(api, task_id)
    assert (running["state"], running["container"]["id"]) == ("STATE_RUNNING", container)  # type: ignore[index]
    await ended(api, container, Ending(3, reason="it ended with exit code 3"))
    await tended(api)
    command = await shown(api, task_id)
    assert (command["state"], command["exitStatus"], command["exitCode"]) == (
        "STATE_TERMINATED",
        "resources failed with non-zero exit code: container failed with non-zero exit code: 3 (exit code 3)",
        3,
    )
    assert command["reason"] == "it ended with exit code 3"
    task = (await api.user.get(f"/api/v1/tasks/{task_id}")).json()["task"]
    assert (task["taskType"], task["taskState"], len(task["allocations"])) == (
        "TASK_TYPE_COMMAND",
        "GENERIC_TASK_STATE_ERROR",
        1,
    )
    assert task["allocations"][0]["statusCode"] == 3


async def test_a_lost_node_ends_a_command_and_says_so(api: Api) -> None:
    """What it did before is not known, so it is not started again."""
    task_id = await launched(api)
    container = await placed(api, task_id)
    async with api.master.db.transaction() as conn:
        await allocation_events.members_lost(conn, [container], "a1", "node lost: a1")
    await tended(api)
    command = await shown(api, task_id)
    assert (command["state"], command["exitStatus"]) == ("STATE_TERMINATED", "node lost: a1")


async def test_a_command_is_killed_where_it_waits_and_where_it_runs(api: Api) -> None:
    """The container is wanted to end at once; who killed it is said; killing what has ended is nothing."""
    waiting, running = await launched(api), await launched(api)
    container = await placed(api, running)
    for task_id in (waiting, running):
        assert (await api.user.post(f"{COMMANDS}/{task_id}/kill")).status_code == 200
    await tended(api)
    async with api.master.db.connection() as conn:
        assert await conn.fetchval("select want from containers where container_id = $1", container) == "STOP"
    await ended(api, container, Ending(None, 9, "killed by signal 9"))
    await tended(api)
    for task_id in (waiting, running):
        command = await shown(api, task_id)
        assert (command["state"], command["exitStatus"]) == ("STATE_TERMINATED", "killed by determined")
        assert (await api.user.post(f"{COMMANDS}/{task_id}/kill")).status_code == 200


async def test_a_signal_counts_as_in_a_shell_unless_it_was_ours(api: Api) -> None:
    """128 and its number; what was killed on request has no exit code."""
    own, killed = await launched(api), await launched(api)
    containers_of = [await placed(api, task_id) for task_id in (own, killed)]
    await api.user.post(f"{COMMANDS}/{killed}/kill")
    await tended(api)
    for container in containers_of:
        await ended(api, container, Ending(None, 9, "killed by SIGKILL (9)"))
    assert [(await shown(api, task_id))["exitCode"] for task_id in (own, killed)] == [137, None]


async def test_a_command_whose_machine_is_turned_off_says_so(api: Api) -> None:
    """It cannot go on elsewhere; until then its service may have been waiting, and it counted among what runs."""
    task_id = await launched(api)
    container = await placed(api, task_id)
    async with api.master.db.transaction() as conn:
        await conn.execute("update allocations set waiting_since = now()")
    assert (await shown(api, task_id))["state"] == "STATE_WAITING"
    active = {"commands": 1, "notebooks": 0, "shells": 0, "tensorboards": 0}
    assert (await api.user.get("/api/v1/tasks/count")).json() == active
    assert (await api.admin.post("/api/v1/agents/a1/disable")).status_code == 200
    await ended(api, container, Ending(None, 9, "stopped by SIGKILL, as asked", requested=True))
    assert (await shown(api, task_id))["exitStatus"] == "ended: agent a1 was disabled"
    assert (await api.user.get("/api/v1/tasks/count")).json() == {**active, "commands": 0}


async def test_a_command_ends_with_its_workspace(api: Api) -> None:
    """Whoever deletes that is named; a deletion that is refused ends nothing."""
    made = (await api.user.post("/api/v1/workspaces", {"name": "short"})).json()["workspace"]["id"]
    running, elsewhere = await launched(api, workspaceId=made), await launched(api)
    await placed(api, running)
    model = await api.user.post("/api/v1/models", {"name": "m", "workspaceId": made})
    assert model.status_code == 200
    assert (await api.user.delete(f"/api/v1/workspaces/{made}")).status_code == 400
    assert (await shown(api, running))["state"] == "STATE_RUNNING"
    assert (await api.user.delete("/api/v1/models/m")).status_code == 200
    assert (await api.user.delete(f"/api/v1/workspaces/{made}")).json() == {"completed": True}
    async with api.master.db.connection() as conn:
        rows = await conn.fetch("select task_id, state, reason, workspace_id from launched_tasks")
    outcomes = {row["task_id"]: (row["state"], row["reason"], row["workspace_id"]) for row in rows}
    assert outcomes[running] == ("STOPPING_CANCELED", "determined deleted workspace 'short'", 1)
    assert outcomes[elsewhere][0] == "ACTIVE"


async def test_many_commands_end_with_their_workspace_a_few_at_a_time(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No transaction changes more of them than it may; where the workspace may not be deleted, none is ended."""
    monkeypatch.setattr(tasks, "AT_ONCE", 2)
    made = (await api.user.post("/api/v1/workspaces", {"name": "crowded"})).json()["workspace"]["id"]
    for _ in range(5):
        await launched(api, "sleep", "9", workspaceId=made)
    model = (await api.user.post("/api/v1/models", {"name": "m", "workspaceId": made})).json()["model"]
    assert (await api.user.delete(f"/api/v1/workspaces/{made}")).status_code == 400
    states = "select count(*) from launched_tasks where workspace_id = $1 group by state, xmin::text order by 1"
    async with api.master.db.connection() as conn:
        assert [row["count"] for row in await conn.fetch(states, made)] == [1] * 5
    assert (await api.user.delete(f"/api/v1/models/{model['name']}")).status_code == 200
    async with api.master.db.connection() as conn:
        await conn.execute("create table changed (at xid8, state text)")
        await conn.execute(
            "create function note() returns trigger language plpgsql as"
            " 'begin insert into changed values (pg_current_xact_id(), new.state); return null; end'"
        )
        await conn.execute(
            "create trigger note after update of state on launched_tasks for each row execute function note()"
        )
    assert (await api.user.delete(f"/api/v1/workspaces/{made}")).status_code == 200
    async with api.master.db.connection() as conn:
        counts = await conn.fetch(
            "select count(*) from changed where state = 'STOPPING_CANCELED' group by at order by 1"
        )
    assert [row["count"] for row in counts] == [1, 2, 2]


async def test_only_owners_and_administrators_change_a_command(api: Api) -> None:
    """Others look."""
    task_id = await launched(api)
    made = await api.admin.post(
        "/api/v1/users", {"user": {"username": "other", "active": True}, "password": "Secret-1x"}
    )
    assert made.status_code == 200, made.text
    other = await api.login("other", "Secret-1x")
    assert (await other.get(f"{COMMANDS}/{task_id}")).status_code == 200
    assert (await other.post(f"{COMMANDS}/{task_id}/kill")).status_code == 403
    assert (await other.post(f"{COMMANDS}/{task_id}/set_priority", {"priority": 1})).status_code == 403
    assert (await api.admin.post(f"{COMMANDS}/{task_id}/set_priority", {"priority": 1})).status_code == 200
    assert (await shown(api, task_id))["priority"] == 1
    config = (await api.user.get(f"{COMMANDS}/{task_id}")).json()["config"]
    assert config["resources"]["priority"] == 1
    for path in (f"/api/v1/tasks/{task_id}/kill", f"/api/v1/tasks/{task_id}/pause"):
        assert (await other.post(path)).status_code == 403


async def test_the_list_is_filtered_ordered_and_paged(api: Api) -> None:
    """By owner in either spelling, by workspace; what ended more than a day ago is not listed."""
    ids = [await launched(api, "true", config={"entrypoint": ["a"], "description": name}) for name in "bca"]

    async def listed(**query: object) -> list[str]:
        reply = await api.user.get(COMMANDS, **query)
        assert reply.status_code == 200, reply.text
        return [command["id"] for command in reply.json()["commands"]]

    by_name = [ids[2], ids[0], ids[1]]
    assert await listed(sortBy="SORT_BY_DESCRIPTION") == by_name
    assert await listed(sortBy="SORT_BY_DESCRIPTION", orderBy="ORDER_BY_DESC", limit=2) == by_name[:0:-1]
    assert await listed(users=["DETERMINED"], sortBy="SORT_BY_START_TIME") == ids
    assert await listed(users=["admin"]) == []
    assert await listed(userIds=[1], users=["determined"], sortBy="SORT_BY_START_TIME") == ids
    assert await listed(workspaceId=2) == []
    async with api.master.db.transaction() as conn:
        await conn.execute("update tasks set ended_at = now() - interval '25 hours' where task_id = $1", ids[0])
    assert await listed(sortBy="SORT_BY_START_TIME") == ids[1:]


async def test_a_preview_launches_nothing(api: Api) -> None:
    """It shows the complete configuration."""
    reply = await api.user.post(COMMANDS, {"config": {"entrypoint": ["x"]}, "preview": True})
    assert (reply.status_code, reply.json()["config"]["resources"]["slots"]) == (200, 1)
    assert (await api.user.get(COMMANDS)).json()["commands"] == []


WRONG = [
    ({"config": {"entrypoint": []}}, "the command is empty"),
    ({"config": {"entrypoint": ["x"], "enviroment": {}}}, "did you mean 'environment'?"),
    ({"config": {"entrypoint": ["x"], "resources": {"slots_per_trial": 1}}}, "is for experiments"),
    ({"config": {"entrypoint": ["x"], "resources": {"resource_pool": "no"}}}, "there is no pool 'no'"),
    ({"config": {"entrypoint": ["x"]}, "data": "%%"}, "data is not the base64"),
    ({"config": {"entrypoint": ["x"]}, "files": [{"path": "/etc/x"}]}, "does not lie inside"),
    ({"config": {"entrypoint": ["x"], "resources": {"weight": 0}}}, "0 is too small: more than 0"),
    ({"config": [1]}, "config"),
]


async def test_a_wrong_request_is_refused_in_words(api: Api) -> None:
    """The field is named, and nothing is launched."""
    for body, message in WRONG:
        reply = await api.user.post(COMMANDS, body)
        assert (reply.status_code, message in reply.text) == (400, True), reply.text
        assert (await api.user.get(COMMANDS)).json()["pagination"]["total"] == 0


NOT_THERE = [{"templateName": "none"}, {"workspaceId": 77}]


async def test_what_is_named_and_not_there_is_404(api: Api) -> None:
    """A template, a workspace."""
    for body in NOT_THERE:
        assert (await api.user.post(COMMANDS, {"config": {"entrypoint": ["x"]}, **body})).status_code == 404


async def test_what_could_never_fit_is_refused(api: Api) -> None:
    """With the arithmetic, as soon as there is an agent to count on."""
    async with api.master.db.transaction() as conn:
        await add_agent(conn)
    reply = await api.user.post(COMMANDS, {"config": {"entrypoint": ["x"], "resources": {"slots": 9}}})
    assert (reply.status_code, "resources.slots" in reply.text) == (400, True)


async def test_files_travel_as_code_and_data_as_a_file(api: Api) -> None:
    """The agent is told of both; the archive is what was sent."""
    content = base64.b64encode(b"print(1)").decode()
    data = base64.b64encode(b'{"a": 1}').decode()
    task_id = await launched(api, files=[{"path": "a.py", "content": content}], data=data)
    reply = await api.user.get(f"/api/v1/tasks/{task_id}/context_directory")
    assert len(base64.b64decode(reply.json()["b64Tgz"])) > 20
    async with api.master.db.connection() as conn:
        spec = await conn.fetchval("select spec from tasks where task_id = $1", task_id)
    assert spec["files"] == [{"path": "data", "content": '{"a": 1}', "mode": 0o600}]


NOT_OFFERED = ["notebooks", "shells", "tensorboards"]


async def test_what_is_not_offered_says_so(api: Api) -> None:
    """Lists are empty, everything else is the client's own "unimplemented", with a sentence."""
    for noun in NOT_OFFERED:
        listed = await api.user.get(f"/api/v1/{noun}")
        assert (listed.status_code, listed.json()[noun], listed.json()["pagination"]["total"]) == (200, [], 0)
        for reply in (
            await api.user.post(f"/api/v1/{noun}", {}),
            await api.user.get(f"/api/v1/{noun}/x"),
            await api.user.post(f"/api/v1/{noun}/x/kill"),
            await api.user.post(f"/api/v1/{noun}/x/set_priority", {"priority": 1}),
        ):
            assert (reply.status_code, reply.json()["error"]["code"]) == (501, 12)
            assert "are not offered yet" in reply.json()["error"]["error"]


async def test_a_workspace_says_what_stands_below(api: Api) -> None:
    """Its default pools, who may use which, and that nothing is launched in one that is archived."""
    made = await api.user.post("/api/v1/workspaces", {"name": "lab", "defaultAuxPool": "spare"})
    assert made.status_code == 200, made.text
    number = made.json()["workspace"]["id"]
    bound = await api.admin.post("/api/v1/resource-pools/spare/workspace-bindings", {"workspaceIds": [number]})
    assert bound.status_code == 200, bound.text
    task_id = await launched(api, workspaceId=number)
    command = await shown(api, task_id)
    assert (command["workspaceId"], command["resourcePool"]) == (number, "spare")
    listed = (await api.user.get(COMMANDS, workspaceId=number)).json()["commands"]
    assert [command["id"] for command in listed] == [task_id]
    elsewhere = {"entrypoint": ["x"], "resources": {"resource_pool": "spare"}}
    refused = await api.user.post(COMMANDS, {"config": elsewhere})
    assert (refused.status_code, "kept for other workspaces" in refused.text) == (400, True)
    assert (await api.user.post(f"/api/v1/workspaces/{number}/archive")).status_code == 200
    for path, body in ((COMMANDS, {"config": {"entrypoint": ["x"]}}), ("/api/v1/templates/t", {"config": {}})):
        refused = await api.user.post(path, {**body, "workspaceId": number})
        assert (refused.status_code, "is archived" in refused.text) == (400, True)


async def _aged(api: Api, task_id: str, days: float) -> None:
    """It ended so long ago, and nothing of it is on a machine any more."""
    async with api.master.db.transaction() as conn:
        await conn.execute("update containers set gone_at = now()")
        for table in ("tasks", "launched_tasks"):
            text = f"update {table} set ended_at = now() - make_interval(secs => $2::float8 * 86400) where task_id = $1"
            await conn.execute(text, task_id, days)


async def test_a_command_goes_with_its_output(api: Api) -> None:
    """And with the code that only it had; one that runs, has left files, or is kept for ever does not."""
    files = [{"path": "run.py", "content": "eA==", "mtime": "0", "type": 48, "mode": 420, "uid": 0, "gid": 0}]
    young, old = [await launched(api, str(number), files=files) for number in range(2)]
    running = await launched(api)
    for task_id in (young, old):
        await ended(api, await placed(api, task_id), Ending(0))
    await placed(api, running)
    await _aged(api, young, 6.9)
    await _aged(api, old, 7.1)

    async def clean(days: int) -> set[object]:
        async with api.master.db.transaction() as conn:
            await retention.clean(conn, days)
            assert await conn.fetchval("select count(*) from jobs") == await conn.fetchval("select count(*) from tasks")
            return {row["task_id"] for row in await conn.fetch("select task_id from tasks")}

    assert await clean(retention.FOR_EVER) == {young, old, running}
    assert await clean(7) == {young, running}
    assert (await api.user.get(f"/api/v1/tasks/{young}/context_directory")).json()["b64Tgz"]
    async with api.master.db.transaction() as conn:
        await conn.execute("insert into storage_backends (config) values ('{}')")
        await conn.execute(
            "insert into checkpoint_uploads (uuid, task_id, allocation_id, storage_id)"
            " select 'files', $1, $1 || '.1', id from storage_backends",
            young,
        )
    assert await clean(0) == {young, running}
    async with api.master.db.transaction() as conn:
        await conn.execute("update checkpoint_uploads set collected_at = now()")
    assert await clean(0) == {running}
    assert (await api.user.get(f"/api/v1/tasks/{old}/logs")).status_code == 404
    async with api.master.db.connection() as conn:
        assert await conn.fetchval("select count(*) from contexts") == 0
        assert await conn.fetchval("select count(distinct task_id) from usage") == 3


async def test_a_command_with_nothing_to_run_is_launched(api: Api) -> None:
    """It ends as soon as it has begun."""
    reply = await api.user.post(COMMANDS, {"config": {}})
    assert (reply.status_code, reply.json()["config"]["entrypoint"]) == (200, [])


async def test_the_slots_of_a_command_are_its_own_to_say(api: Api) -> None:
    """One where its configuration says nothing, whatever a template says; a preview shows the same."""
    template = {"name": "t", "workspaceId": 1, "config": {"resources": {"slots": 4}, "description": "from it"}}
    assert (await api.user.post("/api/v1/templates/t", template)).status_code == 200
    for preview in (True, False):
        body = {"config": {"entrypoint": ["x"]}, "templateName": "t", "preview": preview}
        shown = (await api.user.post(COMMANDS, body)).json()["config"]
        assert (shown["resources"]["slots"], shown["description"]) == (1, "from it")
