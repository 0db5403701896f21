"""Generic tasks over the API: trees of them, pausing, forking, inheriting code."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest

from tenax.jsonvalue import JsonObject
from tenax.lifecycle.container import Ending
from tenax.lifecycle.task import TaskKind
from tenax.master.api.tasks import generic as generic_tasks
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.tasks import rows as tasks
from tenax.master.store.tasks.rows import NewTask
from tests.kits.api import Api, Client
from tests.kits.database import until_somebody_waits
from tests.kits.master.tasks import ended, placed, tended

#: As soon as somebody waits for a lock of another.
CONFIG = "entrypoint: [python3, run.py]\nresources: {slots: 0}\n"
FILES = [{"path": "run.py", "content": base64.b64encode(b"print(1)").decode()}]


async def created(client: Client, **body: object) -> str:
    reply = await client.post("/api/v1/generic-tasks", {"config": CONFIG, "contextDirectory": [], **body})
    assert reply.status_code == 200, reply.text
    return str(reply.json()["taskId"])


async def state(api: Api, task_id: str) -> str:
    reply = await api.user.get(f"/api/v1/tasks/{task_id}")
    assert reply.status_code == 200, reply.text
    return str(reply.json()["task"]["taskState"]).removeprefix("GENERIC_TASK_STATE_")


async def code(api: Api, task_id: str) -> str:
    reply = await api.user.get(f"/api/v1/tasks/{task_id}/context_directory")
    return str(reply.json()["b64Tgz"])


async def test_a_task_is_paused_and_goes_on_in_a_new_attempt(api: Api) -> None:
    """It is asked to leave, says that it does, leaves; later it has slots again under the same id."""
    task_id = await created(api.user)
    container = await placed(api, task_id)
    script = await api.task(f"{task_id}.1")
    assert (await script.get(f"/api/v1/allocations/{task_id}.1/signals/preemption")).json() == {"preempt": False}
    assert (await api.user.post(f"/api/v1/tasks/{task_id}/pause")).status_code == 200
    await tended(api)
    assert await state(api, task_id) == "STOPPING_PAUSED"
    async with api.master.db.transaction() as conn:
        allocation = await allocations.lock(conn, f"{task_id}.1")
        assert allocation.preemption.value == "REQUESTED"
        await allocations.acknowledge(conn, f"{task_id}.1")
    await ended(api, container, Ending(0))
    assert await state(api, task_id) == "PAUSED"
    await tended(api)
    assert (await api.user.post(f"/api/v1/tasks/{task_id}/unpause")).status_code == 200
    again = await placed(api, task_id, run=2)
    assert await state(api, task_id) == "ACTIVE"
    await ended(api, again, Ending(0))
    assert await state(api, task_id) == "COMPLETED"
    reply = await api.user.post(f"/api/v1/tasks/{task_id}/pause")
    assert (reply.status_code, "has ended" in reply.text) == (400, True)


async def test_a_pause_reaches_children_but_those_that_cannot_be_paused(api: Api) -> None:
    """One that was created so is refused where it is named itself."""
    parent = await created(api.user)
    child = await created(api.user, parentId=parent)
    stubborn = await created(api.user, parentId=child, noPause=True)
    assert (await api.user.post(f"/api/v1/tasks/{parent}/pause")).status_code == 200
    await tended(api)
    assert [await state(api, task_id) for task_id in (parent, child, stubborn)] == ["PAUSED", "PAUSED", "ACTIVE"]
    reply = await api.user.post(f"/api/v1/tasks/{stubborn}/pause")
    assert (reply.status_code, "cannot be paused" in reply.text) == (400, True)
    assert (await api.user.post(f"/api/v1/tasks/{parent}/unpause")).status_code == 200
    assert [await state(api, task_id) for task_id in (parent, child)] == ["ACTIVE", "ACTIVE"]


async def test_a_kill_reaches_what_came_from_a_task_or_all_from_the_root(api: Api) -> None:
    """Brothers live on, unless it begins at the root; what is killed has no more children."""
    root = await created(api.user)
    first, second = await created(api.user, parentId=root), await created(api.user, parentId=root)
    leaf = await created(api.user, parentId=first)
    await api.user.post(f"/api/v1/tasks/{first}/kill", {"taskId": first, "killFromRoot": False})
    await tended(api)
    assert [await state(api, task_id) for task_id in (root, first, second, leaf)] == [
        "ACTIVE",
        "CANCELED",
        "ACTIVE",
        "CANCELED",
    ]
    reply = await api.user.post("/api/v1/generic-tasks", {"config": CONFIG, "parentId": first})
    assert (reply.status_code, "no more children" in reply.text) == (400, True)
    await api.user.post(f"/api/v1/tasks/{second}/kill", {"killFromRoot": True})
    await tended(api)
    assert [await state(api, task_id) for task_id in (root, second)] == ["CANCELED", "CANCELED"]


async def test_nothing_of_a_family_is_killed_unless_all_may_be(api: Api) -> None:
    """A child of somebody else protects its parent from everyone but administrators."""
    root = await created(api.admin)
    child = await created(api.admin, parentId=root)
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "update jobs set owner_id = 2 where job_id = (select job_id from tasks where task_id = $1)", root
        )
    assert (await api.user.post(f"/api/v1/tasks/{root}/kill")).status_code == 403
    assert [await state(api, task_id) for task_id in (root, child)] == ["ACTIVE", "ACTIVE"]
    assert (await api.admin.post(f"/api/v1/tasks/{root}/kill")).status_code == 200


async def test_a_fork_takes_over_configuration_and_code(api: Api) -> None:
    """What is given with it counts instead."""
    source = await created(api.user, contextDirectory=FILES)
    fork = await created(api.user, config="", forkedFrom=source)
    config = json.loads((await api.user.get(f"/api/v1/tasks/{fork}/config")).json()["config"])
    assert config["entrypoint"] == ["python3", "run.py"]
    assert await code(api, fork) == await code(api, source) != ""
    other = await created(api.user, config="entrypoint: [ls]", forkedFrom=source)
    config = json.loads((await api.user.get(f"/api/v1/tasks/{other}/config")).json()["config"])
    assert config["entrypoint"] == ["ls"]
    command = await api.user.post("/api/v1/commands", {"config": {"entrypoint": ["y"], "resources": {"slots": 0}}})
    of_command = await created(api.user, config="", forkedFrom=command.json()["command"]["id"])
    config = json.loads((await api.user.get(f"/api/v1/tasks/{of_command}/config")).json()["config"])
    assert (config["entrypoint"], "tensorboard_args" in config) == (["y"], False)
    task = (await api.user.get(f"/api/v1/tasks/{fork}")).json()["task"]
    assert (task["forkedFrom"], task["taskType"]) == (source, "TASK_TYPE_GENERIC")


async def test_a_child_inherits_code_where_it_asks_to(api: Api) -> None:
    """Without being asked it has none."""
    parent = await created(api.user, contextDirectory=FILES)
    assert await code(api, await created(api.user, parentId=parent)) == ""
    child = await created(api.user, parentId=parent, inheritContext=True)
    assert await code(api, child) == await code(api, parent)


WRONG = [
    ({}, 400, "no configuration was given"),
    ({"config": "a: [", "contextDirectory": []}, 400, "YAML"),
    ({"config": "- a"}, 400, "map"),
    ({"config": "entrypoint: [x]\nsearcher: {}"}, 400, "unknown key 'searcher'"),
    ({"config": CONFIG, "inheritContext": True}, 400, "inheritContext"),
    ({"config": CONFIG, "parentId": "x"}, 404, "task x not found"),
    ({"config": CONFIG, "forkedFrom": "x"}, 404, "task x not found"),
    ({"config": CONFIG, "projectId": 77}, 404, "project 77 not found"),
    ({"config": CONFIG, "parentId": 7}, 400, "parentId"),
]


async def test_a_wrong_request_is_refused_in_words(api: Api) -> None:
    """What is wrong is named."""
    for body, status, message in WRONG:
        reply = await api.user.post("/api/v1/generic-tasks", body)
        assert (reply.status_code, message in reply.text) == (status, True), reply.text


async def test_nothing_is_put_into_what_is_closed_meanwhile(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at the request and the task: a project that is deleted, or gone; a task that is forgotten."""
    source = await created(api.user)
    own = (await api.user.post("/api/v1/workspaces", {"name": "own"})).json()["workspace"]["id"]
    made = (await api.user.post(f"/api/v1/workspaces/{own}/projects", {"name": "p"})).json()["project"]["id"]
    examine = generic_tasks.examine_generic
    changes = [
        "update projects set state = 'DELETING' where id = 2",
        "delete from projects where id = 2",
        "delete from tasks",
    ]

    async def slowly(*given: object) -> object:
        launch = await examine(*given)  # type: ignore[arg-type]
        async with api.master.db.transaction() as conn:
            await conn.execute(changes.pop(0))
        return launch

    monkeypatch.setattr(generic_tasks, "examine_generic", slowly)
    for body, status in (({"projectId": made}, 400), ({"projectId": made}, 404), ({"forkedFrom": source}, 404)):
        if status == 404 and "projectId" in body:
            async with api.master.db.transaction() as conn:
                await conn.execute("update projects set state = 'ACTIVE' where id = 2")
        reply = await api.user.post("/api/v1/generic-tasks", {"config": CONFIG, **body})
        assert reply.status_code == status, reply.text


VERBS = ["kill", "pause", "unpause"]


async def test_a_task_that_is_not_there_is_404(api: Api) -> None:
    """For each verb."""
    for verb in VERBS:
        assert (await api.user.post(f"/api/v1/tasks/none/{verb}")).status_code == 404


async def test_all_kinds_are_among_the_tasks_of_the_cluster(api: Api) -> None:
    """By their descriptions; what has ended is not there any more."""
    generic = await created(api.user, config="name: mine\nentrypoint: [x]\nresources: {slots: 0}")
    command = await api.user.post("/api/v1/commands", {"config": {"entrypoint": ["y"], "description": "yours"}})
    await tended(api)
    summaries = (await api.user.get("/api/v1/tasks")).json()["allocationIdToSummary"]
    assert {summary["name"]: summary["slotsNeeded"] for summary in summaries.values()} == {"mine": 0, "yours": 1}
    await api.user.post(f"/api/v1/tasks/{generic}/kill")
    await api.user.post(f"/api/v1/commands/{command.json()['command']['id']}/kill")
    await tended(api)
    assert (await api.user.get("/api/v1/tasks")).json()["allocationIdToSummary"] == {}


async def test_launched_tasks_of_all_kinds_are_one_list(api: Api) -> None:
    """Narrowed by kind, part of the name, parent and owner; what ended long ago is there where it is asked for."""
    parent, theirs = await created(api.user), await created(api.admin)
    child = await created(api.admin, parentId=theirs)
    config = {"entrypoint": ["true"], "resources": {"slots": 0}, "description": "Nightly check"}
    reply = await api.user.post("/api/v1/commands", {"config": config})
    command = reply.json()["command"]["id"]

    async def listed(**asked: object) -> list[str]:
        reply = await api.user.get("/api/v1/launched-tasks", orderBy="ORDER_BY_DESC", **asked)
        assert reply.status_code == 200, reply.text
        return [task["taskId"] for task in reply.json()["tasks"]]

    assert await listed() == [command, child, theirs, parent]
    assert await listed(taskTypes="TASK_TYPE_COMMAND") == await listed(name="nightly") == [command]
    assert await listed(name=parent[:8]) == [parent]
    assert await listed(parentId=theirs) == [child]
    assert await listed(users="determined") == [command, parent]
    long_ago = "ended_at = now() - interval '2 days' where task_id = $1"
    async with api.master.db.transaction() as conn:
        await conn.execute(f"update launched_tasks set state = 'CANCELED', {long_ago}", parent)
        await conn.execute(f"update tasks set {long_ago}", parent)
    assert parent not in await listed()
    assert parent in await listed(old=True)


async def test_a_child_that_is_being_made_does_not_escape_a_kill(api: Api) -> None:
    """The kill waits for whoever holds the parent, and then sees the child."""
    parent = await created(api.user)
    async with api.master.db.transaction() as conn:
        await tasks.lock(conn, parent)
        killing = asyncio.ensure_future(api.user.post(f"/api/v1/tasks/{parent}/kill"))
        await until_somebody_waits(api.master.db)
        config: JsonObject = {"entrypoint": ["x"], "resources": {"slots": 0}}
        new = NewTask(TaskKind.GENERIC, 2, config, "default", 42, pausable=True, parent_id=parent)
        child = await tasks.create(conn, new)
    assert (await killing).status_code == 200
    assert [await state(api, task_id) for task_id in (parent, child)] == ["STOPPING_CANCELED", "STOPPING_CANCELED"]


async def test_a_configuration_comes_back_as_it_was_submitted(api: Api) -> None:
    """Without what was filled in; a fork's is that of what it was forked from."""
    source = await created(api.user, config="entrypoint: ls -l\nresources: {slots: 0}\n")
    for task_id in (source, await created(api.user, config="", forkedFrom=source)):
        config = json.loads((await api.user.get(f"/api/v1/tasks/{task_id}/config")).json()["config"])
        assert config == {"entrypoint": "ls -l", "resources": {"slots": 0}}


async def test_a_task_that_cannot_save_is_ended_at_once_when_it_is_paused(api: Api) -> None:
    """It never asked to be told of it."""
    task_id = await created(api.user)
    container = await placed(api, task_id)
    assert (await api.user.post(f"/api/v1/tasks/{task_id}/pause")).status_code == 200
    await tended(api)
    async with api.master.db.connection() as conn:
        assert await conn.fetchval("select want from containers where container_id = $1", container) == "KILL"
