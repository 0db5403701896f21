"""Projects over the wire: made, listed, changed, moved, their notes and keys, deleted, found by a configuration."""

from __future__ import annotations

import asyncio

from tests.kits.api import Api
from tests.kits.master.deleting import context, ended, make_pass
from tests.kits.master.experiments import CONFIG, create
from tests.kits.master.refusals import refusal
from tests.kits.master.workspaces import project, workspace

__all__ = ["context"]


async def test_a_project_gets_a_key_of_its_name(api: Api) -> None:
    """The first letters, with a number where they are taken; one that is given is kept, in capitals, and found by."""
    await workspace(api)
    made = [await project(api, 2, name) for name in ("Cats and dogs", "category", "ölçüm", "--")]
    assert [entry["key"] for entry in made] == ["CAT", "CAT1", "LM", "P"]
    named = await project(api, 2, "named", key="nlp2")
    assert named["key"] == "NLP2"
    assert (await api.user.get("/api/v1/projects/key/nlp2")).json()["project"]["id"] == named["id"]
    taken = await api.user.post("/api/v1/workspaces/2/projects", {"name": "other", "key": "NLP2"})
    assert (taken.status_code, "key" in refusal(taken)) == (409, True)
    assert (await api.user.patch("/api/v1/projects/2", {"key": "NLP2"})).status_code == 409
    assert (await api.user.patch("/api/v1/projects/2", {"key": "pets"})).json()["project"]["key"] == "PETS"


async def test_what_is_no_key_is_refused(api: Api) -> None:
    """A key is one to five letters and digits."""
    for key in ("TOOLONG", "a b", "ä", "a-b"):
        reply = await api.user.post("/api/v1/workspaces/1/projects", {"name": "cats", "key": key})
        assert (reply.status_code, key in refusal(reply)) == (400, True)


async def test_keys_that_are_made_at_once_differ(api: Api) -> None:
    """Ten projects whose names begin alike, asked for at the same time."""
    own = (await api.user.post("/api/v1/workspaces", {"name": "own"})).json()["workspace"]["id"]
    requests = (api.user.post(f"/api/v1/workspaces/{own}/projects", {"name": f"cat {number}"}) for number in range(10))
    replies = await asyncio.gather(*requests)
    assert [reply.status_code for reply in replies] == [200] * 10
    assert len({reply.json()["project"]["key"] for reply in replies}) == 10


async def test_names_are_unique_in_a_workspace(api: Api) -> None:
    """The same name in another workspace is another project; moving there is refused."""
    await workspace(api)
    other = await workspace(api, "sound")
    first, second = await project(api, other["id"], "cats"), await project(api, 2, "Cats")
    assert (await api.user.post("/api/v1/workspaces/2/projects", {"name": "CATS"})).status_code == 409
    moved = await api.user.post(f"/api/v1/projects/{first['id']}/move", {"destinationWorkspaceId": 2})
    assert moved.status_code == 409
    assert (await api.user.patch(f"/api/v1/projects/{second['id']}", {"name": "dogs"})).status_code == 200
    moved = await api.user.post(f"/api/v1/projects/{first['id']}/move", {"destinationWorkspaceId": 2})
    assert (moved.status_code, moved.json()) == (200, {})
    seen = (await api.user.get(f"/api/v1/projects/{first['id']}")).json()["project"]
    assert (seen["workspaceId"], seen["workspaceName"]) == (2, "vision")


async def test_a_list_is_filtered_and_ordered(api: Api) -> None:
    """By name, owner and archived; by each of the orders; of all workspaces for 0."""
    await workspace(api)
    await project(api, 2, "dogs", description="bark")
    await project(api, 2, "Cats", description="meow")
    await create(api, projectId=3)

    async def listed(path: str = "/api/v1/workspaces/2/projects", **query: object) -> list[str]:
        return [entry["name"] for entry in (await api.user.get(path, **query)).json()["projects"]]

    assert await listed() == ["dogs", "Cats"]
    assert await listed(name="cats") == ["Cats"]
    assert await listed(name="cat") == []
    assert await listed(users="admin") == []
    assert await listed(userIds=2, orderBy="ORDER_BY_DESC") == ["Cats", "dogs"]
    assert await listed(sortBy="SORT_BY_NAME") == ["Cats", "dogs"]
    assert await listed(sortBy="SORT_BY_DESCRIPTION") == ["dogs", "Cats"]
    assert await listed(sortBy="SORT_BY_CREATION_TIME", orderBy="ORDER_BY_DESC") == ["Cats", "dogs"]
    assert await listed(sortBy="SORT_BY_LAST_EXPERIMENT_START_TIME") == ["Cats", "dogs"]
    assert await listed("/api/v1/workspaces/0/projects") == ["Uncategorized", "dogs", "Cats"]


async def test_a_project_counts_what_is_filed_in_it(api: Api) -> None:
    """Experiments, those that have not ended, and when the last was made."""
    await workspace(api)
    await project(api, 2)
    made = (await create(api, projectId=2))["experiment"]
    await create(api, projectId=2)
    async with api.master.db.transaction() as conn:
        await conn.execute("update experiments set state = 'COMPLETED', ended_at = now() where id = $1", made["id"])  # type: ignore[index]
    seen = (await api.user.get("/api/v1/projects/2")).json()["project"]
    assert (seen["numExperiments"], seen["numActiveExperiments"]) == (2, 1)
    assert seen["lastExperimentStartedAt"] is not None
    assert (await api.user.get("/api/v1/workspaces/2")).json()["workspace"]["numExperiments"] == 2


async def test_a_configuration_names_its_project(api: Api) -> None:
    """By the names of workspace and project; what is not there is said, and nothing is made."""
    await workspace(api)
    await project(api, 2, "cats")
    made = (await create(api, CONFIG + "workspace: Vision\nproject: CATS\n"))["experiment"]
    assert (made["projectId"], made["projectName"], made["workspaceName"]) == (2, "cats", "vision")  # type: ignore[index]
    for lines, missing in (
        ("workspace: nowhere\nproject: cats\n", "workspace 'nowhere' not found"),
        ("workspace: vision\nproject: birds\n", "project 'birds' not found in the workspace 'vision'"),
    ):
        refused = await api.user.post("/api/v1/experiments", {"config": CONFIG + lines})
        assert (refused.status_code, missing in refusal(refused)) == (404, True)
    half = await api.user.post("/api/v1/experiments", {"config": CONFIG + "workspace: vision\n"})
    assert (half.status_code, "project" in refusal(half)) == (400, True)


async def test_notes_are_replaced_as_a_whole_or_added(api: Api) -> None:
    """In their order, two of one name too; an archived project keeps its own."""
    await workspace(api)
    await project(api, 2)
    path = "/api/v1/projects/2/notes"
    notes = [{"name": "plan", "contents": "# first"}, {"name": "plan", "contents": ""}]
    assert (await api.user.ask("PUT", path, {"projectId": 2, "notes": notes})).json() == {"notes": notes}
    added = {"name": "log", "contents": "it works"}
    assert (await api.user.post(path, added)).json() == {"notes": [*notes, added]}
    assert (await api.user.get("/api/v1/projects/2")).json()["project"]["notes"] == [*notes, added]
    await api.user.post("/api/v1/projects/2/archive")
    assert (await api.user.ask("PUT", path, {"notes": []})).status_code == 400
    await api.user.post("/api/v1/projects/2/unarchive")
    assert (await api.user.ask("PUT", path, {"notes": []})).json() == {"notes": []}


async def test_notes_that_were_changed_meanwhile_are_not_replaced(api: Api) -> None:
    """Of two who edit the same notes, the second is told, and nothing is changed."""
    await workspace(api)
    await project(api, 2)
    path = "/api/v1/projects/2/notes"
    first, second = [{"name": "plan", "contents": "first"}], [{"name": "plan", "contents": "second"}]
    assert (await api.user.ask("PUT", path, {"notes": first, "expected": []})).json() == {"notes": first}
    late = await api.user.ask("PUT", path, {"notes": second, "expected": []})
    assert (late.status_code, "changed meanwhile" in refusal(late)) == (412, True)
    assert (await api.user.get("/api/v1/projects/2")).json()["project"]["notes"] == first
    assert (await api.user.ask("PUT", path, {"notes": second, "expected": first})).json() == {"notes": second}


async def test_notes_that_are_added_at_once_are_all_there(api: Api) -> None:
    """None is lost to another."""
    await workspace(api)
    await project(api, 2)
    await asyncio.gather(*(api.user.post("/api/v1/projects/2/notes", {"name": str(number)}) for number in range(8)))
    stored = (await api.user.get("/api/v1/projects/2")).json()["project"]["notes"]
    assert {note["name"] for note in stored} == {str(number) for number in range(8)}


async def test_who_may_change_a_project(api: Api) -> None:
    """Its owner, its workspace's owner and administrators; nobody else."""
    await workspace(api, client=api.admin)
    theirs = await api.admin.post("/api/v1/workspaces/2/projects", {"name": "theirs"})
    path = f"/api/v1/projects/{theirs.json()['project']['id']}"
    for reply in (
        await api.user.patch(path, {"name": "mine"}),
        await api.user.post(f"{path}/archive"),
        await api.user.post(f"{path}/notes", {"name": "x"}),
        await api.user.delete(path),
    ):
        assert reply.status_code == 403
    # What is wrong for everyone is said first: the first workspace is immutable, and takes no project.
    for client in (api.user, api.admin):
        for reply in (
            await client.post(f"{path}/move", {"destinationWorkspaceId": 1}),
            await client.post("/api/v1/workspaces/1/projects", {"name": "cats"}),
        ):
            assert (reply.status_code, "cannot add new projects" in refusal(reply)) == (400, True)
    await workspace(api, "mine")
    inside = await api.admin.post("/api/v1/workspaces/3/projects", {"name": "guest"})
    patched = await api.user.patch(f"/api/v1/projects/{inside.json()['project']['id']}", {"description": "seen"})
    assert patched.json()["project"]["description"] == "seen"


async def test_a_project_goes_with_its_experiments(api: Api, context: object) -> None:
    """An empty one at once, one with experiments when they have gone."""
    await workspace(api)
    await project(api, 2, "empty")
    assert (await api.user.delete("/api/v1/projects/2")).json() == {"completed": True}
    await project(api, 2, "full")
    await ended(api)
    async with api.master.db.transaction() as conn:
        await conn.execute("update experiments set project_id = 3")
    assert (await api.user.delete("/api/v1/projects/3")).json() == {"completed": False}
    assert (await api.user.get("/api/v1/projects/3")).json()["project"]["state"] == "WORKSPACE_STATE_DELETING"
    refused = await api.user.post("/api/v1/experiments", {"config": CONFIG, "projectId": 3})
    assert refused.status_code == 400
    await make_pass(api, context)  # type: ignore[arg-type]
    assert (await api.user.get("/api/v1/projects/3")).status_code == 404
    assert (await api.user.get("/api/v1/workspaces/2")).json()["workspace"]["numProjects"] == 0


async def test_what_was_looked_at_last_comes_first(api: Api) -> None:
    """The caller's own looks, as many as are asked for."""
    await workspace(api)
    await project(api, 2, "cats")
    await project(api, 2, "dogs")
    for seen in (2, 3, 2):
        body = {"activityType": "ACTIVITY_TYPE_GET", "entityType": "ENTITY_TYPE_PROJECT", "entityId": seen}
        assert (await api.user.post("/api/v1/users/activity", body)).status_code == 200
    path = "/api/v1/user/projects/activity"
    assert [entry["name"] for entry in (await api.user.get(path)).json()["projects"]] == ["cats", "dogs"]
    assert [entry["name"] for entry in (await api.user.get(path, limit=1)).json()["projects"]] == ["cats"]
    assert (await api.admin.get(path)).json()["projects"] == []
    assert (await api.user.get(path, limit=-1)).status_code == 400
