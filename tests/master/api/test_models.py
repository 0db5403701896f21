"""The model registry over the wire: models, their versions, and what those keep from being deleted."""

from __future__ import annotations

import asyncio
import uuid

from tests.kits.api import Api, Client
from tests.kits.master.attempts import Running, running
from tests.kits.master.checkpoints import UUID, report
from tests.kits.master.deleting import context, ended, make_pass
from tests.kits.master.metrics import reported
from tests.kits.master.refusals import refusal
from tests.kits.master.workspaces import workspace

__all__ = ["context"]


async def model(api: Api, name: str = "bert", client: Client | None = None, **more: object) -> dict[str, object]:
    """The model that was made."""
    reply = await (client or api.user).post("/api/v1/models", {"name": name, **more})
    assert reply.status_code == 200, reply.text
    shown: dict[str, object] = reply.json()["model"]
    return shown


async def register(api: Api, checkpoint: str = UUID, **more: object) -> dict[str, object]:
    """The version that was registered."""
    reply = await api.user.post("/api/v1/models/bert/versions", {"checkpointUuid": checkpoint, **more})
    assert reply.status_code == 200, reply.text
    shown: dict[str, object] = reply.json()["modelVersion"]
    return shown


async def saved(api: Api, count: int = 1) -> tuple[Running, list[str]]:
    """A running trial with COMPLETED checkpoints; their uuids."""
    run = await running(api)
    uuids = [str(uuid.UUID(int=number, version=4)) for number in range(1, count + 1)]
    for step, name in enumerate(uuids, start=1):
        await report(run, name, step)
    return run, uuids


async def test_a_model_is_made_and_found_by_name_and_number(api: Api) -> None:
    """With what was said of it; in Uncategorized, or in a workspace named either way."""
    await workspace(api)
    fields = {"description": "reads", "notes": "# more", "labels": ["nlp", "nlp"], "metadata": {"layers": [1, None]}}
    made = await model(api, "bert base", workspaceName="Vision", **fields)
    expected = {**fields, "labels": ["nlp"]}
    for path in ("bert%20base", made["id"]):
        seen = (await api.admin.get(f"/api/v1/models/{path}")).json()["model"]
        assert {name: seen[name] for name in fields} == expected
        assert (seen["workspaceId"], seen["username"], seen["numVersions"], seen["archived"]) == (
            2,
            "determined",
            0,
            False,
        )
    assert (await model(api, "other"))["workspaceId"] == 1
    assert (await model(api, "third", workspaceId=2))["workspaceId"] == 2
    both = await api.user.post("/api/v1/models", {"name": "x", "workspaceId": 1, "workspaceName": "vision"})
    assert both.status_code == 400
    assert (await api.user.get("/api/v1/models/nobody")).status_code == 404
    assert (await api.user.get("/api/v1/models/77")).status_code == 404


async def test_what_is_no_name_is_refused(api: Api) -> None:
    """Blank, with a slash, with two spaces, a number, too long: when made, and when renamed."""
    await model(api)
    for name in ("", "  ", "a/b", "a  b", "123", "m" * 300):
        assert (await api.user.post("/api/v1/models", {"name": name})).status_code == 400, name
        assert (await api.user.patch("/api/v1/models/bert", {"name": name})).status_code == 400, name


async def test_a_name_is_unique_in_the_cluster(api: Api) -> None:
    """Of two that are made at once one is refused; so is taking another's by renaming."""
    replies = await asyncio.gather(*(api.user.post("/api/v1/models", {"name": "bert"}) for _ in range(2)))
    assert sorted(reply.status_code for reply in replies) == [200, 409]
    await model(api, "gpt")
    assert (await api.user.patch("/api/v1/models/gpt", {"name": "bert"})).status_code == 409


async def test_a_list_is_filtered_and_ordered(api: Api) -> None:
    """By every filter; a page knows the whole; labels come with the most used first."""
    await workspace(api)
    await model(api, "bert", description="reads text", labels=["nlp", "small"])
    await model(api, "gpt", description="writes", labels=["nlp"], workspaceId=2)
    await model(api, "Resnet", api.admin, labels=["vision"])
    await api.admin.post("/api/v1/models/Resnet/archive")

    async def listed(**query: object) -> list[str]:
        reply = await api.user.get("/api/v1/models", **query)
        assert reply.status_code == 200, reply.text
        return [entry["name"] for entry in reply.json()["models"]]

    assert await listed(sortBy="SORT_BY_NAME", orderBy="ORDER_BY_DESC") == ["Resnet", "gpt", "bert"]
    assert await listed(name="ER") == ["bert"]
    assert await listed(name="_") == []
    assert await listed(description="writ") == ["gpt"]
    assert await listed(labels=["nlp", "small"]) == ["bert"]
    assert await listed(archived="true") == ["Resnet"]
    assert await listed(users="admin") == ["Resnet"]
    assert await listed(userIds=2, archived="false") == ["bert", "gpt"]
    assert await listed(id=2) == ["gpt"]
    assert await listed(workspaceIds=[2, 3]) == ["gpt"]
    assert await listed(workspaceNames="VISION") == ["gpt"]
    assert await listed(sortBy="SORT_BY_WORKSPACE") == ["bert", "Resnet", "gpt"]
    for order in ("DESCRIPTION", "CREATION_TIME", "LAST_UPDATED_TIME", "NUM_VERSIONS"):
        assert len(await listed(sortBy=f"SORT_BY_{order}")) == 3
    page = (await api.user.get("/api/v1/models", limit=2, offset=-2)).json()
    assert [entry["name"] for entry in page["models"]] == ["gpt", "Resnet"]
    assert page["pagination"]["total"] == 3
    assert (await api.user.get("/api/v1/model/labels")).json() == {"labels": ["nlp", "small", "vision"]}
    assert (await api.user.get("/api/v1/model/labels", workspaceId=2)).json() == {"labels": ["nlp"]}


async def test_what_is_given_is_replaced_and_the_rest_stays(api: Api) -> None:
    """Null is not given; an empty list or object is."""
    await model(api, labels=["nlp"], metadata={"a": 1}, description="old")
    body = {"description": "new", "labels": None, "metadata": {}}
    seen = (await api.user.patch("/api/v1/models/bert", body)).json()["model"]
    assert (seen["description"], seen["labels"], seen["metadata"]) == ("new", ["nlp"], {})
    seen = (await api.user.patch("/api/v1/models/bert", {"labels": [], "name": "roberta"})).json()["model"]
    assert (seen["name"], seen["labels"]) == ("roberta", [])
    assert (await api.user.get("/api/v1/models/bert")).status_code == 404


async def test_a_model_moves_between_workspaces(api: Api) -> None:
    """By id or name; not into one that is archived, and not out of one either."""
    await workspace(api)
    await model(api)
    assert (await api.user.post("/api/v1/models/bert/move", {"destinationWorkspaceId": 2})).json() == {}
    assert (await api.user.get("/api/v1/models/bert")).json()["model"]["workspaceId"] == 2
    await api.user.post("/api/v1/workspaces/2/archive")
    assert (await api.user.patch("/api/v1/models/bert", {"workspaceName": "Uncategorized"})).status_code == 400
    await api.user.post("/api/v1/workspaces/2/unarchive")
    moved = (await api.user.patch("/api/v1/models/bert", {"workspaceName": "Uncategorized"})).json()["model"]
    assert moved["workspaceId"] == 1
    assert (await api.user.post("/api/v1/models/bert/move", {"destinationWorkspaceId": 99})).status_code == 404
    assert (await api.user.post("/api/v1/models/bert/move", {})).status_code == 400
    assert (await api.user.patch("/api/v1/models/bert", {"workspaceName": "nowhere"})).status_code == 404


async def test_who_may_change_what(api: Api) -> None:
    """Anyone registers a version and may change that; the model is its owner's."""
    await model(api, client=api.admin)
    _, (checkpoint,) = await saved(api)
    for reply in (
        await api.user.patch("/api/v1/models/bert", {"notes": "mine"}),
        await api.user.post("/api/v1/models/bert/archive"),
        await api.user.post("/api/v1/models/bert/move", {"destinationWorkspaceId": 1}),
        await api.user.delete("/api/v1/models/bert"),
    ):
        assert reply.status_code == 403
    await register(api, checkpoint=checkpoint)
    assert (await api.user.patch("/api/v1/models/bert/versions/1", {"name": "mine"})).status_code == 200
    theirs = {"checkpointUuid": checkpoint}
    assert (await api.admin.post("/api/v1/models/bert/versions", theirs)).status_code == 200
    assert (await api.user.patch("/api/v1/models/bert/versions/2", {"name": "mine"})).status_code == 403
    # A version keeps its checkpoint from being deleted: whose that is ends it.
    assert (await api.user.delete("/api/v1/models/bert/versions/2")).status_code == 200
    assert (await api.user.delete("/api/v1/models/bert/versions/1")).status_code == 200


async def test_versions_are_numbered_without_gaps_and_never_again(api: Api) -> None:
    """Five that are registered at once are 1 to 5; after the last is deleted the next is 6."""
    await model(api)
    _, uuids = await saved(api, 5)
    made = await asyncio.gather(*(register(api, checkpoint=name) for name in uuids))
    assert sorted(int(str(version["version"])) for version in made) == [1, 2, 3, 4, 5]
    await api.user.delete("/api/v1/models/bert/versions/5")
    assert (await register(api, checkpoint=uuids[0], name="again", comment="c", notes="n"))["version"] == 6
    listed = (await api.user.get("/api/v1/models/bert/versions", limit=2, orderBy="ORDER_BY_DESC")).json()
    assert [version["version"] for version in listed["modelVersions"]] == [6, 4]
    assert listed["pagination"]["total"] == listed["model"]["numVersions"] == 5
    (first, *_) = listed["modelVersions"]
    assert (first["name"], first["comment"], first["notes"], first["model"]["name"]) == ("again", "c", "n", "bert")
    assert first["checkpoint"]["metadata"]["steps_completed"] == 1
    by_time = (await api.user.get("/api/v1/models/bert/versions", sortBy="SORT_BY_CREATION_TIME")).json()
    assert by_time["modelVersions"][-1]["version"] == 6


async def test_only_a_completed_checkpoint_is_registered(api: Api) -> None:
    """One that is not there, that was deleted, or whose experiment is being deleted, is refused; no number is lost."""
    await model(api)
    await ended(api)
    versions = "/api/v1/models/bert/versions"
    assert (await api.user.post(versions, {"checkpointUuid": str(uuid.UUID(int=9))})).status_code == 404
    assert (await api.user.post(versions, {})).status_code == 400
    async with api.master.db.transaction() as conn:
        await conn.execute("update checkpoints set state = 'PARTIALLY_DELETED'")
    refused = await api.user.post(versions, {"checkpointUuid": UUID})
    assert (refused.status_code, "partially deleted" in refusal(refused)) == (400, True)
    async with api.master.db.transaction() as conn:
        await conn.execute("update checkpoints set state = 'COMPLETED', removal_requested = true")
    refused = await api.user.post(versions, {"checkpointUuid": UUID})
    assert (refused.status_code, "being deleted" in refusal(refused)) == (400, True)
    async with api.master.db.transaction() as conn:
        await conn.execute("update checkpoints set removal_requested = false")
        await conn.execute("update experiments set state = 'DELETING'")
    assert (await api.user.post(versions, {"checkpointUuid": UUID})).status_code == 400
    async with api.master.db.transaction() as conn:
        await conn.execute("update experiments set state = 'COMPLETED'")
    assert (await register(api))["version"] == 1


async def test_what_is_registered_is_not_deleted(api: Api, context: object) -> None:
    """Neither its experiment, nor its project, until the version is gone; then all of it goes."""
    await model(api)
    _, folder = await ended(api)
    await register(api)
    own = (await api.user.post("/api/v1/workspaces", {"name": "own"})).json()["workspace"]["id"]
    made = await api.user.post(f"/api/v1/workspaces/{own}/projects", {"name": "cats"})
    path = f"/api/v1/projects/{made.json()['project']['id']}"
    async with api.master.db.transaction() as conn:
        await conn.execute("update experiments set project_id = 2")
    for reply in (await api.user.delete("/api/v1/experiments/1"), await api.user.delete(path)):
        assert reply.status_code == 400
        assert "version 1 of model bert" in refusal(reply)
    await make_pass(api, context)  # type: ignore[arg-type]
    assert folder.exists()
    assert (await api.user.delete("/api/v1/models/bert")).status_code == 200
    assert (await api.user.delete("/api/v1/experiments/1")).status_code == 200
    await make_pass(api, context)  # type: ignore[arg-type]
    assert not folder.exists()


async def test_an_archived_model_takes_no_versions_and_does_not_change(api: Api) -> None:
    """Unarchived it does both again."""
    await model(api)
    _, (checkpoint,) = await saved(api)
    await register(api, checkpoint=checkpoint)
    await api.user.post("/api/v1/models/bert/archive")
    assert (await api.user.get("/api/v1/models/bert")).json()["model"]["archived"] is True
    for reply in (
        await api.user.post("/api/v1/models/bert/versions", {"checkpointUuid": checkpoint}),
        await api.user.patch("/api/v1/models/bert", {"notes": "x"}),
        await api.user.patch("/api/v1/models/bert/versions/1", {"notes": "x"}),
    ):
        assert (reply.status_code, "archived" in refusal(reply)) == (400, True)
    await api.user.post("/api/v1/models/bert/unarchive")
    patched = await api.user.patch(
        "/api/v1/models/bert/versions/1", {"notes": "x", "labels": ["best"], "metadata": {"a": 1}}
    )
    seen = patched.json()["modelVersion"]
    assert (seen["notes"], seen["labels"], seen["metadata"], seen["version"]) == ("x", ["best"], {"a": 1}, 1)


async def test_metrics_of_a_version_are_those_of_the_trials_that_used_it(api: Api) -> None:
    """By group, by use, of that version alone."""
    await model(api)
    run, (first, second) = await saved(api, 2)
    await register(api, checkpoint=first)
    await register(api, checkpoint=second)
    source = {
        "checkpointUuid": first,
        "trialId": run.trial,
        "trialSourceInfoType": "TRIAL_SOURCE_INFO_TYPE_INFERENCE",
        "modelId": 1,
        "modelVersion": 1,
    }
    reply = await run.task.post("/api/v1/trial-source-info", {"trialSourceInfo": source})
    assert reply.json() == {"trialId": run.trial, "checkpointUuid": first}
    await reported(run, "inference", 1, accuracy=0.5)
    await reported(run, "validation", 1, accuracy=0.25)

    async def metrics(version: int, **query: str) -> list[tuple[str, object]]:
        reply = await api.user.get(f"/api/v1/models/bert/versions/{version}/metrics", **query)
        return [(each["group"], each["metrics"]) for each in reply.json()["metrics"]]

    inference = ("inference", {"avg_metrics": {"accuracy": 0.5}})
    assert await metrics(1, metricGroup="inference") == [inference]
    assert await metrics(1) == [inference, ("validation", {"validation_metrics": {"accuracy": 0.25}})]
    assert await metrics(1, trialSourceInfoType="TRIAL_SOURCE_INFO_TYPE_FINE_TUNING") == []
    assert await metrics(2) == []
    assert (await api.user.get("/api/v1/models/bert/versions/3/metrics")).status_code == 404
