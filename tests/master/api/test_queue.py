"""The queue and the resource pools, asked of the real application."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path

import pytest
from asyncpg import Connection

from tenax.config.master import MasterSettings, PoolSettings, SchedulerSettings
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.container import ContainerState, Ending
from tenax.master.allocations import events as allocation_events
from tenax.master.allocations.events import MemberReport
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.queue import jobs as job_rows
from tenax.master.store.queue.jobs import HeldJob
from tenax.master.store.tasks import rows as tasks
from tests.kits.api import Api, Client, settings_in
from tests.kits.database import until_somebody_waits
from tests.kits.master.experiments import CONFIG, create
from tests.kits.master.refusals import refusal
from tests.kits.master.tasks import placed
from tests.kits.rows import add_agent, add_trial, request_attempt, run_attempt


@pytest.fixture
def master_settings(tmp_path: Path) -> MasterSettings:
    """Two pools beside the default one; in one of them urgent work takes the place of other work."""
    pools = (
        PoolSettings(name="default"),
        PoolSettings(name="gpus", scheduler=SchedulerSettings(preemption=True, default_priority=50)),
        PoolSettings(name="empty", max_aux_containers_per_agent=7),
    )
    return settings_in(tmp_path).model_copy(update={"pools": pools})


async def queued(api: Api, name: str, slots: int = 1, *, running: bool = False, **more: object) -> JsonObject:
    """An experiment whose one trial waits, or runs on a1."""
    made = (await create(api, CONFIG.replace("name: digits", f"name: {name}"), **more))["experiment"]
    async with api.master.db.transaction() as conn:
        trial = await add_trial(conn, made["id"])
        await (run_attempt(conn, trial, ("a1",) * slots) if running else request_attempt(conn, trial, slots))
    return made


async def jobs(client: Client, **query: object) -> list[JsonObject]:
    reply = await client.get("/api/v1/job-queues-v2", **query)
    assert reply.status_code == 200, reply.text
    return [job["full"] for job in reply.json()["jobs"]]


async def names(api: Api) -> list[str]:
    return [str(job["name"]) for job in await jobs(api.user)]


async def change(client: Client, job: object, **what: object) -> object:
    return await client.post("/api/v1/job-queues", {"updates": [{"jobId": job, **what}]})


@pytest.fixture
async def three(api: Api) -> list[JsonObject]:
    """One that runs, and two that wait behind it."""
    async with api.master.db.transaction() as conn:
        await add_agent(conn, "a1", slots=2)
    return [
        await queued(api, "first", 2, running=True),
        await queued(api, "second"),
        await queued(api, "third"),
    ]


async def test_a_job_that_starts_nowhere_says_so(api: Api, three: list[JsonObject]) -> None:
    """While it waits for its next try: in the queue, behind the others, and in its experiment and trial."""
    made = (await create(api, CONFIG.replace("name: digits", "name: nowhere")))["experiment"]
    async with api.master.db.transaction() as conn:
        trial = await add_trial(conn, made["id"])
        held = "setbacks = 3, held_until = now() + interval '1 minute', reason = 'no room'"
        await conn.execute(f"update trials set {held} where id = $1", trial)
    reason = "it cannot start: no room (tried 3 times so far, and again within a minute)"
    *_, last = await jobs(api.user)
    assert (last["name"], last["summary"]["state"], last["summary"]["jobsAhead"]) == ("nowhere", "STATE_QUEUED", 3)
    assert (last["reason"], last["requestedSlots"], last["allocatedSlots"]) == (reason, 1, 0)
    shown = (await api.user.get(f"/api/v1/experiments/{made['id']}")).json()["experiment"]
    assert (shown["state"], shown["reason"]) == ("STATE_QUEUED", reason)
    trials = (await api.user.get(f"/api/v1/experiments/{made['id']}/trials")).json()["trials"]
    assert trials[0]["reason"] == reason
    # At its next try it stands where its request does.
    async with api.master.db.transaction() as conn:
        await request_attempt(conn, trial, 1)
    assert [job["reason"] for job in await jobs(api.user) if job["name"] == "nowhere"] == [reason]


async def test_a_job_that_waits_says_what_has_to_happen(api: Api, three: list[JsonObject]) -> None:
    """Its class comes with its reason; where there is room for it, and who holds the slots, beside it."""
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "insert into allocation_waits (allocation_id, reason) select allocation_id, 'waits for 1 free slot'"
            " from allocations where state = 'PENDING' on conflict do nothing"
        )
        await add_agent(conn, "g1", 2, "gpus")
    first, second, _ = await jobs(api.user)
    assert (first["waitClass"], first["roomIn"], first["waitingSlots"]) == (None, [], None)
    assert (second["waitClass"], second["roomIn"], second["waitingSlots"]) == ("WAIT", ["gpus"], 1)
    assert second["waitingSince"]
    reply = (await api.user.get("/api/v1/job-queues-v2", resourcePool="default")).json()
    assert [(holder["name"], holder["slots"]) for holder in reply["holders"]] == [("first", 2)]
    assert reply["holding"] == 1
    # A pool that is kept for others has no room for it.
    await api.admin.post("/api/v1/workspaces", {"name": "ours"})
    bound = await api.admin.post("/api/v1/resource-pools/gpus/workspace-bindings", {"workspaceNames": ["ours"]})
    assert bound.status_code == 200
    assert (await jobs(api.user))[1]["roomIn"] == []


async def test_the_slots_of_a_pool_sum_to_what_it_has(api: Api, three: list[JsonObject]) -> None:
    """Those in use, free ones and those that are offline: disabled ones, and all of a machine that takes no work."""
    async with api.master.db.transaction() as conn:
        await add_agent(conn, "a2", slots=3)
        await add_agent(conn, "a3", slots=4)
        await conn.execute("update agents set state = 'DRAINING' where agent_id = 'a3'")
        await conn.execute("update agent_slots set enabled = false where agent_id = 'a2' and slot_id = 0")
    (pool,) = [
        pool
        for pool in (await api.user.get("/api/v1/resource-pools")).json()["resourcePools"]
        if pool["name"] == "default"
    ]
    assert (pool["slotsTotal"], pool["slotsAvailable"], pool["slotsUsed"]) == (9, 4, 2)


async def test_a_queue_shows_its_jobs_in_the_order_of_turns(api: Api, three: list[JsonObject]) -> None:
    """With all that clients insist on; by state, by page, from the end."""
    first, second, _ = await jobs(api.user)
    assert (first["entityId"], first["jobId"], first["type"]) == (
        str(three[0]["id"]),
        three[0]["jobId"],
        "TYPE_EXPERIMENT",
    )
    assert first["summary"] == {"state": "STATE_SCHEDULED", "jobsAhead": 0}
    assert (first["requestedSlots"], first["allocatedSlots"]) == (2, 2)
    assert (second["summary"]["jobsAhead"], second["summary"]["state"]) == (1, "STATE_QUEUED")
    assert (second["username"], second["priority"], second["resourcePool"], second["isPreemptible"]) == (
        "determined",
        42,
        "default",
        True,
    )
    waiting = await jobs(api.user, states="STATE_QUEUED", orderBy="ORDER_BY_DESC", limit=1)
    assert [job["name"] for job in waiting] == ["third"]
    older = (await api.user.get("/api/v1/job-queues", resource_pool="default", offset=1)).json()
    assert [job["name"] for job in older["jobs"]] == ["second", "third"]
    assert older["pagination"] == {"offset": 1, "limit": 0, "startIndex": 1, "endIndex": 3, "total": 3}
    (stats,) = (await api.user.get("/api/v1/job-queues/stats", resourcePools="default")).json()["results"]
    assert stats["stats"] == {"queuedCount": 2, "scheduledCount": 1}
    assert (await api.user.get("/api/v1/job-queues/stats", resourcePools="bogus")).json()["results"] == []
    assert (await api.user.get("/api/v1/job-queues-v2", resourcePool="bogus")).status_code == 404


async def test_a_more_urgent_job_comes_first(api: Api, three: list[JsonObject]) -> None:
    """Its owner, or an administrator, says so; the experiment's configuration tells it, too."""
    third = three[2]
    assert (await change(api.user, third["jobId"], priority=1)).status_code == 200
    assert await names(api) == ["third", "first", "second"]
    shown = (await api.user.get(f"/api/v1/experiments/{third['id']}")).json()["experiment"]["config"]
    assert shown["resources"]["priority"] == 1
    await change(api.admin, third["jobId"], priority=99, weight=2.5)
    assert await names(api) == ["first", "second", "third"]
    assert (await jobs(api.user))[2]["weight"] == 2.5
    other = await api.admin.post(
        "/api/v1/users", {"user": {"username": "eve", "active": True}, "password": "Eve-12345"}
    )
    assert other.status_code == 200
    eve = await api.login("eve", "Eve-12345")
    assert (await change(eve, third["jobId"], priority=1)).status_code == 403
    assert await names(api) == ["first", "second", "third"]


async def test_a_job_moves_before_and_behind_another(api: Api, three: list[JsonObject]) -> None:
    """It takes the priority of the one that it stands beside."""
    first, second, third = (job["jobId"] for job in three)
    await change(api.user, third, aheadOf=second)
    assert await names(api) == ["first", "third", "second"]
    await change(api.user, first, behindOf=second)
    assert await names(api) == ["third", "second", "first"]
    await change(api.user, first, priority=10)
    await change(api.user, second, ahead_of=first)
    assert await names(api) == ["second", "first", "third"]
    assert [job["priority"] for job in await jobs(api.user)] == [10, 10, 42]


async def test_moves_at_once_leave_one_order(api: Api, three: list[JsonObject]) -> None:
    """Whoever comes first: nobody is lost, nobody stands twice, and nothing is our error."""
    first, second, third = (job["jobId"] for job in three)
    pairs = [(first, second), (second, third), (third, first), (first, third)] * 3
    replies = await asyncio.gather(*(change(api.user, job, aheadOf=anchor) for job, anchor in pairs))
    assert {reply.status_code for reply in replies} <= {200, 503}  # type: ignore[attr-defined]
    assert sorted(await names(api)) == ["first", "second", "third"]


async def test_all_changes_are_made_or_none(api: Api, three: list[JsonObject]) -> None:
    """One that cannot be made undoes those before it."""
    updates = [{"jobId": three[2]["jobId"], "priority": 1}, {"jobId": "nobody", "priority": 1}]
    assert (await api.user.post("/api/v1/job-queues", {"updates": updates})).status_code == 404
    assert await names(api) == ["first", "second", "third"]


async def test_a_job_moves_to_another_pool(api: Api, three: list[JsonObject]) -> None:
    """What runs is asked to save and leave; what waits does so there from now on."""
    first, second, _ = three
    assert (await change(api.user, first["jobId"], resourcePool="gpus")).status_code == 200
    await change(api.user, second["jobId"], resourcePool="gpus")
    assert await names(api) == ["third"]
    there = await jobs(api.user, resourcePool="gpus")
    assert [job["name"] for job in there] == ["first", "second"]
    async with api.master.db.connection() as conn:
        row = await conn.fetchrow("select preemption, preemption_reason from allocations where slots = 2")
    assert tuple(row) == ("REQUESTED", "its job was moved to the pool gpus")
    assert "there is no pool 'moon'" in refusal(await change(api.user, second["jobId"], resourcePool="moon"))
    reply = await change(api.user, second["jobId"], aheadOf=three[2]["jobId"])
    assert "waits in the pool 'default'" in refusal(reply)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({"priority": 0}, "priority"),
        ({"priority": 100}, "priority"),
        ({"priority": "high"}, "priority"),
        ({"weight": 0}, "weight"),
        ({"weight": "NaN"}, "weight"),
        ({"weight": "Infinity"}, "weight"),
        ({}, "no change"),
        ({"priority": None}, "no change"),
        ({"aheadOf": "x", "behindOf": "y"}, "aheadOf"),
        ({"aheadOf": "SELF"}, "itself"),
    ],
)
async def test_changes_that_mean_nothing_are_refused(
    api: Api, three: list[JsonObject], what: dict[str, object], message: str
) -> None:
    """With the field named, before anything is changed."""
    job = three[1]["jobId"]
    reply = await change(api.user, job, **{name: job if value == "SELF" else value for name, value in what.items()})
    assert reply.status_code == 400  # type: ignore[attr-defined]
    assert message in refusal(reply)


async def test_a_task_that_ends_and_the_move_of_its_job_wait_in_turn(api: Api) -> None:
    """Both lock the task first: neither waits with a lock that the other needs."""
    config = "entrypoint: [python3, run.py]\nresources: {slots: 0}\n"
    made = await api.user.post("/api/v1/generic-tasks", {"config": config, "contextDirectory": []})
    task_id = made.json()["taskId"]
    container = await placed(api, task_id)
    async with api.master.db.transaction() as conn:
        task = await tasks.lock(conn, task_id)
        await allocations.lock(conn, f"{task_id}.1")
        moving = asyncio.ensure_future(change(api.user, task.job_id, resourcePool="gpus"))
        await until_somebody_waits(api.master.db)
        ended = MemberReport(container, ContainerState.TERMINATED, Ending(0))
        await allocation_events.members_reported(conn, [ended])
    assert "has ended" in refusal(await moving)


async def test_what_has_ended_is_not_moved(api: Api, three: list[JsonObject]) -> None:
    """Nor is anything moved beside it."""
    job, other = three[1]["jobId"], three[2]["jobId"]
    async with api.master.db.transaction() as conn:
        await conn.execute("update jobs set ended_at = now() where job_id = $1", job)
    assert "has ended" in refusal(await change(api.user, job, priority=1))
    assert "has ended" in refusal(await change(api.user, other, aheadOf=job))


async def test_pools_show_what_they_have(api: Api, three: list[JsonObject]) -> None:
    """Agents, slots, queue and scheduler, with every field that clients insist on."""
    reply = (await api.user.get("/api/v1/resource-pools")).json()
    assert reply["pagination"]["total"] == 3
    default, empty, gpus = reply["resourcePools"]
    assert [pool["name"] for pool in (default, empty, gpus)] == ["default", "empty", "gpus"]
    assert (default["numAgents"], default["slotsAvailable"], default["slotsUsed"], default["slotsPerAgent"]) == (
        1,
        2,
        2,
        2,
    )
    assert (default["slotType"], default["type"]) == ("TYPE_CPU", "RESOURCE_POOL_TYPE_STATIC")
    assert (default["defaultComputePool"], default["defaultAuxPool"], gpus["defaultComputePool"]) == (True, True, False)
    assert default["stats"] == {"queuedCount": 2, "scheduledCount": 1}
    assert gpus["details"]["priorityScheduler"] == {"preemption": True, "defaultPriority": 50}
    assert (gpus["schedulerType"], gpus["schedulerFittingPolicy"]) == ("SCHEDULER_TYPE_PRIORITY", "FITTING_POLICY_BEST")
    assert gpus["policy"] == "priority"
    assert (empty["slotType"], empty["slotsPerAgent"], empty["auxContainerCapacityPerAgent"]) == (
        "TYPE_UNSPECIFIED",
        -1,
        7,
    )
    page = (await api.user.get("/api/v1/resource-pools", offset=-1)).json()["resourcePools"]
    assert [pool["name"] for pool in page] == ["gpus"]


async def bound(api: Api, pool: str = "gpus") -> list[int]:
    answer: list[int] = (await api.user.get(f"/api/v1/resource-pools/{pool}/workspace-bindings")).json()["workspaceIds"]
    return answer


async def test_a_pool_can_be_kept_for_workspaces(api: Api) -> None:
    """Nobody else uses it; one that is kept for none is for all."""
    path = "/api/v1/resource-pools/gpus/workspace-bindings"
    async with api.master.db.transaction() as conn:
        vision = await conn.fetchval("insert into workspaces (name) values ('vision') returning id")
        audio = await conn.fetchval("insert into workspaces (name) values ('audio') returning id")
    config = CONFIG.replace("slots_per_trial: 1", "slots_per_trial: 1, resource_pool: gpus")
    await create(api, config)
    assert (await api.admin.post(path, {"workspaceNames": ["Vision"]})).status_code == 200
    reply = await api.user.post("/api/v1/experiments", {"config": config, "activate": True})
    assert "kept for other workspaces" in refusal(reply)
    waits = await queued(api, "elsewhere")
    assert "kept for other workspaces" in refusal(await change(api.user, waits["jobId"], resourcePool="gpus"))
    assert await bound(api) == [vision]
    usable = f"/api/v1/workspaces/{audio}/available-resource-pools"
    assert (await api.user.get(usable)).json()["resourcePools"] == ["default", "empty"]
    assert (await api.admin.post(path, {"workspaceIds": [vision]})).status_code == 409
    assert (await api.admin.ask("PUT", path, {"workspace_ids": [audio, audio]})).status_code == 200
    assert await bound(api) == [audio]
    assert (await api.user.get(usable)).json()["resourcePools"] == ["default", "empty", "gpus"]
    unbound = (await api.user.get("/api/v1/resource-pools", unbound="true")).json()["resourcePools"]
    assert [pool["name"] for pool in unbound] == ["default", "empty"]
    assert (await api.admin.delete(path, {"workspaceNames": ["audio", "vision"]})).status_code == 200
    assert await bound(api) == []
    await create(api, config)


@pytest.mark.parametrize(
    ("pool", "body", "status"),
    [
        ("moon", {"workspaceNames": ["Uncategorized"]}, 404),
        ("gpus", {"workspaceNames": ["nowhere"]}, 404),
        ("gpus", {"workspaceIds": [9999]}, 404),
        ("gpus", {}, 400),
        ("gpus", {"workspaceIds": ["x"]}, 400),
        ("default", {"workspaceNames": ["Uncategorized"]}, 400),
    ],
)
async def test_bindings_that_make_no_sense_are_refused(
    api: Api, pool: str, body: dict[str, object], status: int
) -> None:
    """The default pool is for everyone; what is not there cannot be bound."""
    reply = await api.admin.post(f"/api/v1/resource-pools/{pool}/workspace-bindings", body)
    assert reply.status_code == status
    assert (await api.user.post("/api/v1/resource-pools/gpus/workspace-bindings", {})).status_code == 403


async def test_a_workspace_that_goes_takes_its_bindings_with_it(api: Api) -> None:
    """The pool is for all again."""
    async with api.master.db.transaction() as conn:
        gone = await conn.fetchval("insert into workspaces (name) values ('gone') returning id")
    await api.admin.post("/api/v1/resource-pools/gpus/workspace-bindings", {"workspaceIds": [gone]})
    async with api.master.db.transaction() as conn:
        await conn.execute("delete from workspaces where id = $1", gone)
    assert await bound(api) == []
    assert (await api.user.get(f"/api/v1/workspaces/{gone}/available-resource-pools")).status_code == 404


async def test_what_only_kubernetes_has_is_refused_in_words(api: Api) -> None:
    """In the form of the client's own errors."""
    reply = await api.user.get("/api/v1/workspaces/1/list-namespace-bindings")
    assert reply.status_code == 501
    assert reply.json()["error"]["code"] == 12
    assert "Kubernetes" in refusal(reply)


async def test_a_job_that_waits_is_explained(api: Api, three: list[JsonObject]) -> None:
    """Who is ahead, who holds the slots, and what would help; what runs has nothing to explain."""
    async with api.master.db.transaction() as conn:
        await add_agent(conn, "b1", slots=2, pool="gpus")

    async def explained(job: JsonObject) -> JsonObject:
        reply = await api.user.get(f"/api/v1/job-queues/{job['jobId']}/explanation")
        assert reply.status_code == 200, reply.text
        return dict(reply.json())

    first, _, third = three
    last = await explained(third)
    assert (last["waitingSlots"], last["waitClass"], last["resourcePool"]) == (1, "WAIT", "default")
    assert str(last["reason"]).startswith("waits for 1 free slot in pool default")
    assert ([job["name"] for job in last["ahead"]], last["aheadTotal"]) == (["second"], 1)  # type: ignore[index,union-attr]
    assert [(job["name"], job["slots"]) for job in last["holders"]] == [("first", 2)]  # type: ignore[index,union-attr]
    assert last["remedies"] == [{"kind": "POOL", "value": "gpus", "leaving": 0}]
    assert (last["likelyStart"], last["sureness"], last["startsBy"]) == (None, None, None)
    async with api.master.db.transaction() as conn:
        await conn.execute("update allocations set assigned_at = now() - interval '100 s' where state <> 'PENDING'")
        await conn.execute(
            "insert into trial_telemetry (trial_id, progress) select id, 0.25 from trials"
            " on conflict (trial_id) do update set progress = excluded.progress"
        )
        now = await conn.fetchval("select now()")
    second = await explained(three[1])
    async with api.master.db.connection() as conn:
        passed = (await conn.fetchval("select now()") - now).total_seconds()
    assert second["sureness"] == "LIKELY"
    left = (datetime.fromisoformat(str(second["likelyStart"])) - now).total_seconds()
    # And the seven trials that the search has not made yet, at the same pace: each moment until it was asked for counts
    # for all that is left.
    least = 300 + 7 * 400
    assert least - 20 <= left <= least * (1 + passed / 100) + passed + 20
    nothing = await explained(first)
    assert (nothing["waitingSlots"], nothing["reason"], nothing["remedies"]) == (None, "", [])
    assert (await api.user.get("/api/v1/job-queues/nobodys/explanation")).status_code == 404


async def test_jobs_of_a_pool_that_left_the_settings_are_explained_and_moved(api: Api, three: list[JsonObject]) -> None:
    """Nothing of it is left but jobs that are paused."""
    paused = three[1:]
    for made in paused:
        await api.user.post(f"/api/v1/experiments/{made['id']}/pause", {})
    async with api.master.db.transaction() as conn:
        await conn.execute("update jobs set pool = 'gone' where job_id = any($1)", [made["jobId"] for made in paused])
        await conn.execute("delete from allocations where state = 'PENDING'")
    first, second = (str(made["jobId"]) for made in paused)
    explained = await api.user.get(f"/api/v1/job-queues/{first}/explanation")
    assert (explained.status_code, explained.json()["resourcePool"]) == (200, "gone"), explained.text
    for where in ({"aheadOf": second}, {"priority": 3}, {"resourcePool": "default"}):
        changed = await api.user.post("/api/v1/job-queues", {"updates": [{"jobId": first, **where}]})
        assert changed.status_code == 200, changed.text


async def test_settings_that_change_meanwhile_change_no_answer(
    api: Api, three: list[JsonObject], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pools come and go while a queue is read: it is answered by those that there were."""
    assert len(three) == 3
    before, held = api.master.settings, job_rows.held

    def then_there_are(*names: str) -> None:
        async def changing(conn: Connection) -> list[HeldJob]:
            api.master.settings = before.model_copy(update={"pools": tuple(PoolSettings(name=name) for name in names)})
            return await held(conn)

        api.master.settings = before
        monkeypatch.setattr(job_rows, "held", changing)

    for names in (("default", "new"), ("default",)):
        for path in ("job-queues/stats", "resource-pools", "job-queues-v2?resourcePool=gpus"):
            then_there_are(*names)
            reply = await api.user.get(f"/api/v1/{path}")
            assert reply.status_code == 200, reply.text
