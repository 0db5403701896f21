"""Workspaces over the wire: made, listed, changed, archived, pinned, deleted, refused."""

from __future__ import annotations

import asyncio

from tenax.master.store.agents import rows as agents
from tests.kits.api import Api, Client
from tests.kits.master.attempts import running
from tests.kits.master.checkpoints import UUID
from tests.kits.master.deleting import context, ended, make_pass
from tests.kits.master.experiments import CONFIG, create
from tests.kits.master.refusals import refusal
from tests.kits.master.workspaces import project, workspace

__all__ = ["context"]

UNCATEGORIZED = "/api/v1/workspaces/1"


async def names(client: Client, **query: object) -> list[str]:
    reply = await client.get("/api/v1/workspaces", **query)
    assert reply.status_code == 200, reply.text
    return [entry["name"] for entry in reply.json()["workspaces"]]


async def test_a_workspace_is_made_and_pinned_for_its_maker(api: Api) -> None:
    """It belongs to who made it, is pinned for them alone, and holds nothing."""
    made = await workspace(api)
    seen = (await api.admin.get(f"/api/v1/workspaces/{made['id']}")).json()["workspace"]
    assert (made["pinned"], seen["pinned"], seen["pinnedAt"]) == (True, False, None)
    assert (seen["username"], seen["numProjects"], seen["immutable"]) == ("determined", 0, False)
    assert seen["state"] == "WORKSPACE_STATE_UNSPECIFIED"


async def test_names_are_unique_whatever_their_capitals(api: Api) -> None:
    """Two that are made at once are one; renaming cannot take another's name either."""
    replies = await asyncio.gather(
        *(api.user.post("/api/v1/workspaces", {"name": name}) for name in ("Vision", "vision"))
    )
    assert sorted(reply.status_code for reply in replies) == [200, 409]
    other = await workspace(api, "speech")
    refused = await api.user.patch(f"/api/v1/workspaces/{other['id']}", {"name": "VISION"})
    assert refused.status_code == 409
    assert "choose another name" in refusal(refused)
    same = await api.user.patch(f"/api/v1/workspaces/{other['id']}", {"name": "Speech"})
    assert same.json()["workspace"]["name"] == "Speech"


async def test_a_list_is_filtered_and_ordered(api: Api) -> None:
    """By name in either form, owner, archived, pinned; a page knows the whole."""
    await workspace(api, "vision")
    second = await workspace(api, "Speech", api.admin)
    assert await names(api.user, name="VISION") == ["vision"]
    assert await names(api.user, name="visi") == []
    assert await names(api.user, nameCaseSensitive="VISION") == []
    assert await names(api.user, users="Admin") == ["Speech"]
    assert await names(api.user, userIds=2) == ["vision"]
    assert await names(api.user, pinned="true") == ["vision"]
    assert await names(api.user, pinned="false") == ["Uncategorized", "Speech"]
    assert await names(api.user, sortBy="SORT_BY_NAME", orderBy="ORDER_BY_DESC") == [
        "vision",
        "Uncategorized",
        "Speech",
    ]
    await api.admin.post(f"/api/v1/workspaces/{second['id']}/archive")
    assert await names(api.user, archived="true") == ["Speech"]
    page = (await api.user.get("/api/v1/workspaces", limit=1, offset=1)).json()
    assert [entry["name"] for entry in page["workspaces"]] == ["vision"]
    assert page["pagination"] == {"offset": 1, "limit": 1, "startIndex": 1, "endIndex": 2, "total": 3}


async def test_what_is_no_name_is_refused(api: Api) -> None:
    """Blank, with spaces around it, or too long."""
    for name in ("", "  ", " vision", "vision ", "v" * 81, None):
        assert (await api.user.post("/api/v1/workspaces", {"name": name})).status_code == 400, name


async def test_the_immutable_workspace_stays_as_it_is(api: Api) -> None:
    """Not even an administrator changes, archives or deletes Uncategorized or its project."""
    project_path = "/api/v1/projects/1"
    refusals = [
        await api.admin.patch(UNCATEGORIZED, {"name": "mine"}),
        await api.admin.post(f"{UNCATEGORIZED}/archive"),
        await api.admin.delete(UNCATEGORIZED),
        await api.admin.patch(project_path, {"name": "mine"}),
        await api.admin.post(f"{project_path}/archive"),
        await api.admin.post(f"{project_path}/move", {"destinationWorkspaceId": (await workspace(api))["id"]}),
        await api.admin.delete(project_path),
    ]
    assert [(reply.status_code, "immutable" in refusal(reply)) for reply in refusals] == [(400, True)] * len(refusals)


async def test_only_its_owner_and_administrators_change_a_workspace(api: Api) -> None:
    """Others read it, pin it, and make projects in it."""
    path = f"/api/v1/workspaces/{(await workspace(api, client=api.admin))['id']}"
    for reply in (
        await api.user.patch(path, {"name": "mine"}),
        await api.user.post(f"{path}/archive"),
        await api.user.delete(path),
    ):
        assert reply.status_code == 403
    assert (await api.user.post(f"{path}/pin")).status_code == 200
    assert (await api.user.get(path)).json()["workspace"]["pinned"] is True
    assert (await api.user.post(f"{path}/unpin")).status_code == 200
    assert (await api.user.get(path)).json()["workspace"]["pinned"] is False
    assert (await api.user.post(f"{path}/projects", {"name": "cats"})).status_code == 200


async def test_what_is_archived_takes_nothing_new_and_does_not_change(api: Api) -> None:
    """Neither projects, models, experiments nor words; unarchived it is as before, with what was archived itself."""
    path = f"/api/v1/workspaces/{(await workspace(api))['id']}"
    kept, hidden = await project(api, 2, "kept"), await project(api, 2, "hidden")
    await api.user.post(f"/api/v1/projects/{hidden['id']}/archive")
    made = (await create(api, projectId=kept["id"]))["experiment"]
    assert made["parentArchived"] is False
    await api.user.post(f"{path}/archive")
    shown = (await api.user.get(f"/api/v1/experiments/{made['id']}")).json()["experiment"]
    assert (shown["archived"], shown["parentArchived"]) == (False, True)
    for reply in (
        await api.user.post(f"{path}/projects", {"name": "dogs"}),
        await api.user.patch(path, {"name": "other"}),
        await api.user.post("/api/v1/models", {"name": "bert", "workspaceId": 2}),
        await api.user.patch(f"/api/v1/projects/{kept['id']}", {"name": "other"}),
        await api.user.post(f"/api/v1/projects/{kept['id']}/unarchive"),
        await api.user.post("/api/v1/experiments", {"config": CONFIG, "projectId": kept["id"]}),
    ):
        assert reply.status_code == 400, reply.text
        assert "archived" in refusal(reply)
    listed = (await api.user.get(f"{path}/projects", archived="true")).json()["projects"]
    assert [entry["name"] for entry in listed] == ["kept", "hidden"]
    await api.user.post(f"{path}/unarchive")
    listed = (await api.user.get(f"{path}/projects", archived="false")).json()["projects"]
    assert [entry["name"] for entry in listed] == ["kept"]


async def test_storage_goes_below_that_of_experiments_and_its_secrets_are_never_shown(api: Api) -> None:
    """A configuration without one has it, one with its own keeps that; no answer holds the secret."""
    storage = {"type": "s3", "bucket": "team", "secret_key": "hush", "save_trial_latest": 3}
    path = f"/api/v1/workspaces/{(await workspace(api, checkpointStorageConfig=storage))['id']}"
    shown = (await api.user.get(path)).json()["workspace"]["checkpointStorageConfig"]
    assert shown == {**storage, "secret_key": "********"}
    made = await create(api, projectId=(await project(api, 2))["id"])
    resolved = made["experiment"]["config"]["checkpoint_storage"]  # type: ignore[index]
    assert (resolved["type"], resolved["bucket"], resolved["save_trial_latest"]) == ("s3", "team", 3)
    assert resolved["secret_key"] == "********"
    own = CONFIG + "checkpoint_storage: {type: directory, container_path: /data}\n"
    resolved = (await create(api, own, projectId=2))["experiment"]["config"]["checkpoint_storage"]  # type: ignore[index]
    assert (resolved["type"], resolved["save_trial_latest"]) == ("directory", 3)
    assert "hush" not in (await api.user.get("/api/v1/workspaces")).text
    assert (await api.user.patch(path, {"checkpointStorageConfig": {}})).json()["workspace"][
        "checkpointStorageConfig"
    ] is None


IMPOSSIBLE: tuple[tuple[dict[str, object], str], ...] = (
    ({"checkpointStorageConfig": {"type": "s3"}}, "bucket"),
    ({"checkpointStorageConfig": {"type": "tape"}}, "checkpoint_storage.type"),
    ({"checkpointStorageConfig": {"type": "s3", "bucket": "b", "secret_key": "********"}}, "the stars"),
    ({"defaultComputePool": "nowhere"}, "defaultComputePool"),
    ({"defaultAuxResourcePool": "nowhere"}, "defaultAuxPool"),
)


async def test_settings_that_cannot_work_are_refused_by_name(api: Api) -> None:
    """When a workspace is made, and when it is changed."""
    path = f"/api/v1/workspaces/{(await workspace(api))['id']}"
    for settings, named in IMPOSSIBLE:
        made = await api.user.post("/api/v1/workspaces", {"name": "x", **settings})
        for reply in (made, await api.user.patch(path, settings)):
            assert (reply.status_code, named in refusal(reply)) == (400, True), reply.text


async def test_whom_tasks_run_as_is_an_administrators_to_say(api: Api) -> None:
    """It stands above what the user's own account says, each number for itself."""
    made = await workspace(api)
    path = f"/api/v1/workspaces/{made['id']}"
    for half in ({"agentUid": 1234}, {"agentGid": 5, "agentUser": "team"}):
        assert (await api.admin.patch(path, {"agentUserGroup": half})).status_code == 400
    group = {"agentUid": 1234, "agentUser": "team"}
    assert (await api.user.patch(path, {"agentUserGroup": group})).status_code == 403
    assert (await api.admin.patch(path, {"agentUserGroup": {"agentUid": -1}})).status_code == 400
    changed = (await api.admin.patch(path, {"agentUserGroup": group})).json()["workspace"]
    assert changed["agentUserGroup"] == {**group, "agentGid": None, "agentGroup": None}
    await project(api, made["id"])
    await running(api)
    async with api.master.db.transaction() as conn:
        await conn.execute("update users set agent_uid = 7, agent_gid = 8, agent_user = 'alone'")
        before = await agents.desired_containers(conn, "a1")
        await conn.execute("update experiments set project_id = 2")
        after = await agents.desired_containers(conn, "a1")
    for rows, expected in ((before, (7, 8, "alone")), (after, (1234, 8, "team"))):
        assert [(row["agent_uid"], row["agent_gid"], row["agent_user"]) for row in rows] == [expected]


async def test_an_empty_workspace_is_gone_at_once(api: Api) -> None:
    """With its projects; one that holds a model is kept."""
    await workspace(api)
    await project(api, 2)
    assert (await api.user.post("/api/v1/models", {"name": "bert", "workspaceId": 2})).status_code == 200
    refused = await api.user.delete("/api/v1/workspaces/2")
    assert (refused.status_code, "'bert'" in refusal(refused)) == (400, True)
    await api.user.delete("/api/v1/models/bert")
    assert (await api.user.delete("/api/v1/workspaces/2")).json() == {"completed": True}
    assert (await api.user.get("/api/v1/workspaces/2")).status_code == 404
    assert (await api.user.get("/api/v1/projects/2")).status_code == 404


async def test_a_workspace_with_experiments_goes_when_they_have_gone(api: Api, context: object) -> None:
    """Meanwhile it is DELETING and takes nothing; files and rows go, then the projects, then it."""
    await workspace(api)
    await project(api, 2)
    _, folder = await ended(api)
    async with api.master.db.transaction() as conn:
        await conn.execute("update experiments set project_id = 2")
    assert (await api.user.delete("/api/v1/workspaces/2")).json() == {"completed": False}
    seen = (await api.user.get("/api/v1/workspaces/2")).json()["workspace"]
    assert (seen["state"], seen["numProjects"]) == ("WORKSPACE_STATE_DELETING", 1)
    assert (await api.user.post("/api/v1/workspaces/2/projects", {"name": "late"})).status_code == 400
    await make_pass(api, context)  # type: ignore[arg-type]
    assert not folder.exists()
    for gone in ("/api/v1/workspaces/2", "/api/v1/projects/2", "/api/v1/experiments/1"):
        assert (await api.user.get(gone)).status_code == 404


async def test_an_experiment_that_stays_keeps_the_workspace_with_the_reason(api: Api, context: object) -> None:
    """It is DELETE_FAILED and says which experiment and why; asked again, it goes."""
    await workspace(api)
    await project(api, 2)
    _, folder = await ended(api)
    async with api.master.db.transaction() as conn:
        await conn.execute("update experiments set project_id = 2")
    hidden = folder.parent.rename(folder.parent.with_name("elsewhere"))
    await api.user.delete("/api/v1/workspaces/2")
    await make_pass(api, context)  # type: ignore[arg-type]
    async with api.master.db.transaction() as conn:
        await conn.execute("update removals set tries = 1, failure = 'no agent sees it'")
    await make_pass(api, context)  # type: ignore[arg-type]
    seen = (await api.user.get("/api/v1/workspaces/2")).json()["workspace"]
    assert seen["state"] == "WORKSPACE_STATE_DELETE_FAILED"
    assert "experiment 1 could not be deleted" in seen["errorMessage"]
    assert UUID in seen["errorMessage"]
    hidden.rename(folder.parent)
    await api.user.delete("/api/v1/workspaces/2")
    await make_pass(api, context)  # type: ignore[arg-type]
    assert (await api.user.get("/api/v1/workspaces/2")).status_code == 404


async def test_what_still_runs_keeps_its_workspace(api: Api) -> None:
    """The refusal names the experiment, and nothing is deleted."""
    await workspace(api)
    await project(api, 2)
    await running(api)
    async with api.master.db.transaction() as conn:
        await conn.execute("update experiments set project_id = 2")
    refused = await api.user.delete("/api/v1/workspaces/2")
    assert refused.status_code == 400
    assert "experiment 1" in refusal(refused)
    assert (await api.user.get("/api/v1/workspaces/2")).json()["workspace"]["state"] == "WORKSPACE_STATE_UNSPECIFIED"


async def test_nothing_slips_into_what_is_deleted_at_the_same_time(api: Api) -> None:
    """Whoever comes first wins: what was put in keeps the workspace or goes with it; nobody meets an error of ours."""
    for number in range(4):
        path = f"/api/v1/workspaces/{(await workspace(api, f'w{number}'))['id']}"
        where = {"workspaceId": int(path.rpartition("/")[2])}
        config = CONFIG + f"workspace: w{number}\nproject: p0\n"
        replies = await asyncio.gather(
            *(api.user.post(f"{path}/projects", {"name": f"p{index}"}) for index in range(3)),
            api.user.post("/api/v1/experiments", {"config": config}),
            api.user.delete(path),
            api.user.post("/api/v1/models", {"name": f"m{number}", **where}),
            api.user.post(f"{path}/archive"),
        )
        assert {reply.status_code for reply in replies} <= {200, 400, 404}, [reply.text for reply in replies]
        if replies[4].status_code == 200:
            assert (await api.user.get(path)).status_code == 404
            assert (await api.user.get(f"/api/v1/models/m{number}")).status_code == 404


async def test_its_owner_is_its_one_member(api: Api) -> None:
    """In the form of role-based access, so that clients can show it; filtered by name."""
    await workspace(api)
    path = "/api/v1/roles/workspace/2"
    members = (await api.admin.get(path)).json()
    assert [member["username"] for member in members["usersAssignedDirectly"]] == ["determined"]
    (assigned,) = members["assignments"]
    assert assigned["role"]["name"] == "WorkspaceAdmin"
    assert [assignment["userId"] for assignment in assigned["userRoleAssignments"]] == [2]
    assert (await api.admin.get(path, name="nobody")).json()["usersAssignedDirectly"] == []
    assert (await api.admin.get("/api/v1/roles/workspace/99")).status_code == 404


async def test_namespaces_are_kubernetes_own(api: Api) -> None:
    """Asked for, they are refused with a sentence, not ignored."""
    meta = {"": {"namespace": "team"}}
    reply = await api.user.post("/api/v1/workspaces", {"name": "x", "clusterNamespaceMeta": meta})
    assert (reply.status_code, "Kubernetes" in refusal(reply)) == (501, True)


UNREADABLE: tuple[tuple[str, dict[str, str], int], ...] = (
    ("/api/v1/workspaces", {"limit": "-1"}, 400),
    ("/api/v1/workspaces", {"offset": "99"}, 400),
    ("/api/v1/workspaces", {"sortBy": "SORT_BY_COLOR"}, 400),
    ("/api/v1/workspaces", {"pinned": "perhaps"}, 400),
    ("/api/v1/workspaces", {"userIds": "x"}, 400),
    ("/api/v1/workspaces/1/projects", {"userIds": "9" * 30}, 400),
    ("/api/v1/workspaces/99", {}, 404),
    ("/api/v1/workspaces/x", {}, 400),
    ("/api/v1/workspaces/99999999999999999999999", {}, 400),
    ("/api/v1/workspaces/99/projects", {}, 404),
    ("/api/v1/projects/99", {}, 404),
    ("/api/v1/projects/key/NONE", {}, 404),
)


async def test_what_cannot_be_read_is_refused(api: Api) -> None:
    """With 400 for what is malformed and 404 for what is not there."""
    for path, query, status in UNREADABLE:
        assert (await api.user.get(path, **query)).status_code == status, (path, query)
