"""What is done to experiments after they were made: moved, labelled, shared out, archived; one by one, many at once."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from tests.kits.api import Api, Client
from tests.kits.cases import answers
from tests.kits.master.experiments import CONFIG
from tests.kits.master.refusals import refusal

PATH = "/api/v1/experiments/{}"


async def made(api: Api, count: int = 1, config: str = CONFIG, client: Client | None = None) -> list[int]:
    """Experiments of the user, or of another client."""
    numbers = []
    for _ in range(count):
        reply = await (client or api.user).post("/api/v1/experiments", {"config": config, "activate": True})
        numbers.append(reply.json()["experiment"]["id"])
    return numbers


async def shown(api: Api, number: int) -> dict[str, object]:
    """The experiment as it is."""
    reply = await api.user.get(PATH.format(number))
    return reply.json()["experiment"]  # type: ignore[no-any-return]


async def ended(api: Api, *numbers: int) -> None:
    """Let experiments have ended."""
    async with api.master.db.transaction() as conn:
        await conn.execute("update experiments set state = 'CANCELED', ended_at = now() where id = any($1)", numbers)
        await conn.execute(
            "update jobs set ended_at = now() where job_id in (select job_id from experiments where id = any($1))",
            numbers,
        )


async def project(api: Api, name: str = "p", *, archived: bool = False) -> int:
    """A project in the first workspace."""
    async with api.master.db.transaction() as conn:
        value: int = await conn.fetchval(
            "insert into projects (workspace_id, name, archived) values (1, $1, $2) returning id", name, archived
        )
        return value


async def eve(api: Api) -> Client:
    """Somebody else."""
    await api.admin.post("/api/v1/users", {"user": {"username": "eve"}, "password": "s3cret-!!"})
    return await api.login("eve", "s3cret-!!")


async def test_labels_are_put_and_taken_away(api: Api) -> None:
    """Twice is once; what is not there is no error; all labels are told by how many use them."""
    first, second = await made(api, 2)
    path = PATH.format(first) + "/labels/"
    for label in ("new", "new", "with/slash"):
        reply = await api.user.ask("PUT", path + label)
        assert reply.status_code == 200, reply.text
    assert reply.json() == {"labels": ["vision", "small", "new", "with/slash"]}
    await api.user.delete(path + "small")
    assert (await api.user.delete(path + "never")).json()["labels"] == ["vision", "new", "with/slash"]
    assert (await shown(api, first))["config"]["labels"] == ["vision", "new", "with/slash"]  # type: ignore[index]
    assert (await api.user.get("/api/v1/experiment/labels")).json()["labels"] == [
        "vision", "new", "small", "with/slash",
    ]  # fmt: skip
    assert (await api.user.get("/api/v1/experiment/labels", projectId=await project(api))).json()["labels"] == []
    assert (await api.user.get("/api/v1/experiment/labels", projectId=99)).status_code == 404
    for wrong in ("%20", "x" * 501):
        assert (await api.user.ask("PUT", path + wrong)).status_code == 400
        assert (await api.user.patch(PATH.format(first), {"labels": ["y", unquote(wrong)]})).status_code == 400
    assert (await api.user.ask("PUT", PATH.format(77) + "/labels/x")).status_code == 404
    assert (await (await eve(api)).ask("PUT", path + "mine")).status_code == 403
    assert (await shown(api, second))["labels"] == ["vision", "small"]


async def test_an_experiment_is_moved(api: Api) -> None:
    """Into an open project only, and not while it or its project is archived."""
    (experiment,) = await made(api)
    target, closed = await project(api), await project(api, "closed", archived=True)
    path = PATH.format(experiment) + "/move"
    assert (await api.user.post(path, {"destinationProjectId": target, "experimentId": experiment})).json() == {}
    assert ((await shown(api, experiment))["projectId"], (await shown(api, experiment))["projectName"]) == (target, "p")
    for wrong, status in ((closed, 400), (999, 404), (None, 400)):
        assert (await api.user.post(path, {"destinationProjectId": wrong})).status_code == status
    await ended(api, experiment)
    await api.user.post(PATH.format(experiment) + "/archive")
    refused = await api.user.post(path, {"destinationProjectId": 1})
    assert refused.status_code == 400
    assert "unarchive" in refusal(refused)
    assert (await shown(api, experiment))["projectId"] == target


async def test_the_share_of_the_cluster_can_be_changed(api: Api) -> None:
    """Limit, weight and priority, in the queue and in the configuration; null takes the limit away."""
    (experiment,) = await made(api)

    async def share(**resources: object) -> tuple[object, ...]:
        reply = await api.user.patch(PATH.format(experiment), {"resources": resources})
        assert reply.status_code == 200, reply.text
        config = reply.json()["experiment"]["config"]["resources"]
        async with api.master.db.connection() as conn:
            job = await conn.fetchrow("select max_slots, weight, priority, time_limit_s from jobs")
        shares = (config["max_slots"], config["weight"], config["priority"], config["time_limit"])
        assert shares == tuple(job)
        return shares

    assert await share(maxSlots=3, weight=2.5, priority=7) == (3, 2.5, 7, None)
    assert await share(weight=4) == (3, 4, 7, None)
    assert await share(maxSlots=None) == (None, 4, 7, None)
    assert await share(timeLimit=90.5) == (None, 4, 7, 90.5)
    assert await share(timeLimit=None) == (None, 4, 7, None)
    wrong: tuple[dict[str, object], ...] = (
        {"priority": 0}, {"priority": 100}, {"weight": 0}, {"weight": -1}, {"weight": "NaN"}, {"weight": "Infinity"},
        {"maxSlots": -1}, {"maxSlots": 2**40}, {"maxSlots": "many"},
        {"timeLimit": 0}, {"timeLimit": 1e12}, {"timeLimit": "NaN"},
    )  # fmt: skip
    for resources in wrong:
        assert (await api.user.patch(PATH.format(experiment), {"resources": resources})).status_code == 400, resources
    assert await share() == (None, 4, 7, None)
    await ended(api, experiment)
    assert (await api.user.patch(PATH.format(experiment), {"resources": {"weight": 2}})).status_code == 400


async def test_a_refused_edit_changes_nothing(api: Api) -> None:
    """A good name beside a bad share is not taken."""
    (experiment,) = await made(api)
    await ended(api, experiment)
    both = {"name": "other", "resources": {"priority": 7}}
    assert (await api.user.patch(PATH.format(experiment), both)).status_code == 400
    assert (await shown(api, experiment))["name"] == "digits"


async def test_which_checkpoints_are_kept_can_be_changed(api: Api) -> None:
    """What is not said stays."""
    (experiment,) = await made(api)
    reply = await api.user.patch(PATH.format(experiment), {"checkpointStorage": {"saveTrialBest": 3}})
    assert reply.status_code == 200, reply.text
    storage = reply.json()["experiment"]["config"]["checkpoint_storage"]
    kept = {name: storage[name] for name in ("save_experiment_best", "save_trial_best", "save_trial_latest")}
    assert kept == {"save_experiment_best": 0, "save_trial_best": 3, "save_trial_latest": 1}
    assert (
        await api.user.patch(PATH.format(experiment), {"checkpointStorage": {"saveTrialBest": -3}})
    ).status_code == 400


async def test_how_long_output_is_kept_can_be_changed(api: Api) -> None:
    """For all trials; what was said of one of them before is over."""
    (experiment,) = await made(api)
    path = PATH.format(experiment) + "/retain_logs"
    assert (await api.user.ask("PUT", path, {"experimentId": experiment, "numDays": 30})).json() == {}
    for days in (-2, 32768, None, "long"):
        assert (await api.user.ask("PUT", path, {"numDays": days})).status_code == 400
    async with api.master.db.connection() as conn:
        assert await conn.fetchval("select log_retention_days from experiment_documents") == 30


VERBS = {
    "pause": ("POST", "STATE_PAUSED"),
    "cancel": ("POST", "STATE_STOPPING_CANCELED"),
    "kill": ("POST", "STATE_STOPPING_KILLED"),
}


@answers(
    "misc/bulk_actions", "TestActivateExperiments/no permission", "TestActivateExperiments/three selected, one eligible"
)
@pytest.mark.parametrize("verb", VERBS)
async def test_many_are_told_what_to_do(api: Api, verb: str) -> None:
    """Each by itself: those of others and those that are not there are told as such, the rest is done.

    Departure ("misc/bulk_actions", architecture 9): in words of our own, which say what to do.
    """
    mine = await made(api, 2)
    (others,) = await made(api, client=api.admin)
    body = {"experimentIds": [*mine, others, 99], "projectId": 1}
    reply = await api.user.post(f"/api/v1/projects/1/experiments/{verb}", body)
    assert reply.status_code == 200, reply.text
    results = {result["id"]: result["error"] for result in reply.json()["results"]}
    assert list(results) == [*mine, others, 99]
    assert [results[number] for number in mine] == ["", ""]
    assert "someone else" in results[others]
    assert "experiment 99 not found" in results[99]
    assert {(await shown(api, number))["state"] for number in mine} == {VERBS[verb][1]}
    assert (await shown(api, others))["state"] == "STATE_QUEUED"


@answers("misc/bulk_actions", "TestActivateExperiments/filter")
async def test_many_are_chosen_by_what_they_are(api: Api) -> None:
    """Filters instead of numbers, with exceptions; only of the project that is named."""
    first, second, third = await made(api, 3)
    await api.user.patch(PATH.format(second), {"name": "other"})
    target = await project(api)
    await api.user.post(PATH.format(third) + "/move", {"destinationProjectId": target})
    body = {"experimentIds": [], "filters": {"name": "DIGITS", "excludedExperimentIds": [77]}, "projectId": 1}
    reply = await api.user.post("/api/v1/projects/1/experiments/pause", body)
    assert reply.json()["results"] == [{"id": first, "error": ""}]
    # -1 is any project, in the path and in the body.
    body = {"experimentIds": [third], "projectId": -1}
    anywhere = await api.user.post("/api/v1/projects/-1/experiments/pause", body)
    assert anywhere.json()["results"] == [{"id": third, "error": ""}]
    assert (await api.user.post(PATH.format(third) + "/activate")).status_code == 200
    body = {"experimentIds": [], "filters": {"states": ["STATE_PAUSED"]}}
    reply = await api.user.post("/api/v1/projects/0/experiments/activate", body)
    assert reply.json()["results"] == [{"id": first, "error": ""}]
    assert (await api.user.post("/api/v1/projects/99/experiments/pause", {"experimentIds": [first]})).status_code == 404
    other = await api.user.post(f"/api/v1/projects/{target}/experiments/pause", {"experimentIds": [first]})
    assert "not found" in other.json()["results"][0]["error"]


async def test_many_are_archived_moved_and_deleted(api: Api) -> None:
    """What has not ended is told so, and stays."""
    first, second, third = await made(api, 3)
    await ended(api, first, second)
    target = await project(api)
    url = "/api/v1/projects/1/experiments/"
    moved = await api.user.post(url + "move", {"experimentIds": [first, second], "destinationProjectId": target})
    assert [row["error"] for row in moved.json()["results"]] == ["", ""]
    everywhere = {"experimentIds": [first, second, third]}
    archived = await api.user.post("/api/v1/projects/0/experiments/archive", everywhere)
    assert [bool(row["error"]) for row in archived.json()["results"]] == [False, False, True]
    assert (await shown(api, first))["archived"] is True
    assert (await api.user.post("/api/v1/projects/0/experiments/unarchive", {"experimentIds": [first]})).json() == {
        "results": [{"id": first, "error": ""}]
    }
    kept = await api.user.ask("PUT", "/api/v1/projects/0/experiments/retain_logs", everywhere | {"numDays": 5})
    assert [row["error"] for row in kept.json()["results"]] == ["", "", ""]
    gone = await api.user.delete("/api/v1/projects/0/experiments/delete", everywhere)
    assert gone.status_code == 200, gone.text
    assert [bool(row["error"]) for row in gone.json()["results"]] == [False, False, True]
    assert (await shown(api, first))["state"] == "STATE_DELETING"


async def test_many_with_bad_input(api: Api) -> None:
    """Wrong types and numbers are refused whole."""
    for body in (
        {"experimentIds": "all"}, {"experimentIds": [2**70]}, {"experimentIds": [None]}, {"filters": {"states": ["X"]}},
        {"filters": []}, {"filters": {"userIds": ["me"]}},
    ):  # fmt: skip
        reply = await api.user.post("/api/v1/projects/1/experiments/kill", body)
        assert reply.status_code == 400, body
    assert (await api.user.post("/api/v1/projects/1/experiments/kill", {})).json() == {"results": []}
    move = await api.user.post("/api/v1/projects/1/experiments/move", {"experimentIds": [1], "destinationProjectId": 9})
    assert move.status_code == 404
