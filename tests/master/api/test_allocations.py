"""What members of an attempt ask and tell, with the token of their attempt."""

from __future__ import annotations

import asyncio

import httpx2
import pytest

from tenax.master.api.allocations import routes
from tenax.master.store.agents import rows as agents
from tenax.master.store.allocations import barriers
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.allocations.rows import LeaveRequest
from tenax.master.store.tasks import lists as task_lists
from tests.kits.api import Api
from tests.kits.cases import answers
from tests.kits.database import until_held
from tests.kits.master.attempts import running
from tests.kits.master.refusals import refusal
from tests.kits.rows import add_experiment, add_trial, end_member, run_attempt


@answers("task_services/preemption", "watch before preemption", "preempt", "watch after preemption")
async def test_a_task_is_told_to_leave_as_soon_as_it_is_asked(api: Api) -> None:
    """The poll is held while the answer is no, and answered at once when it is yes ("task_services/preemption")."""
    run = await running(api)
    path = f"{run.path}/signals/preemption"
    assert (await run.task.get(path)).json() == {"preempt": False}
    held = asyncio.create_task(run.task.get(path, timeout_seconds=60))
    await until_held(api.master.listener, "allocation", run.attempt.allocation_id, held)
    async with api.master.db.transaction() as conn:
        await allocations.ask_to_leave(conn, [LeaveRequest(run.attempt.allocation_id, "someone else needs it", 60)])
    assert (await held).json() == {"preempt": True}
    assert (await run.task.get(path, timeout_seconds=60)).json() == {"preempt": True}


async def test_a_task_whose_agent_is_not_heard_shows_that_it_lives(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who holds a poll is answered no, and by asking again speaks for its agent; while that is heard, nobody asks."""
    monkeypatch.setattr(routes, "_ASKS_AGAIN_S", 0.0)
    run = await running(api)
    path = f"{run.path}/signals/preemption"
    held = asyncio.create_task(run.task.get(path, timeout_seconds=60))
    await until_held(api.master.listener, "allocation", run.attempt.allocation_id, held)
    async with api.master.db.transaction() as conn:
        await conn.execute("update agent_presence set last_seen_at = now() - interval '12 seconds'")
        await agents.ask_for_life(conn, 10.0)
    assert (await held).json() == {"preempt": False}
    heard = "select tasks_heard_at > last_seen_at from agent_presence"
    async with api.master.db.connection() as conn:
        assert await conn.fetchval(heard) is None
        assert (await run.task.get(path)).json() == {"preempt": False}
        assert await conn.fetchval(heard) is True


async def test_a_poll_ends_with_503_when_the_master_does(api: Api) -> None:
    """The client asks again, this master's successor perhaps."""
    run = await running(api)
    held = asyncio.create_task(run.task.get(f"{run.path}/signals/preemption", timeout_seconds=60))
    await until_held(api.master.listener, "allocation", run.attempt.allocation_id, held)
    api.master.shutdown.set()
    reply = await held
    assert reply.status_code == 503
    assert int(reply.headers["retry-after"]) >= 1


@answers("task_services/preemption", "acknowledge after preemption")
async def test_acknowledging_twice_is_once(api: Api) -> None:
    """The acknowledgement is recorded before it is answered."""
    run = await running(api)
    for _ in range(2):
        assert (await run.task.post(f"{run.path}/signals/ack_preemption")).status_code == 200
    async with api.master.db.connection() as conn:
        assert (await allocations.lock(conn, run.attempt.allocation_id)).preemption.value == "ACKNOWLEDGED"


async def test_who_leaves_unasked_has_all_the_time_it_wants(api: Api) -> None:
    """No deadline is set for it; once it is asked, the usual one holds, and a shorter one shortens it."""
    run = await running(api)
    name = run.attempt.allocation_id
    assert (await run.task.post(f"{run.path}/signals/ack_preemption")).status_code == 200

    async def left() -> float | None:
        async with api.master.db.connection() as conn:
            seconds: float | None = await conn.fetchval(
                "select extract(epoch from preemption_deadline - now())::float8 from allocations"
                " where allocation_id = $1",
                name,
            )
            return seconds

    assert await left() is None
    for within, least in ((1000.0, 900.0), (2000.0, 900.0), (500.0, 400.0)):
        async with api.master.db.transaction() as conn:
            await allocations.ask_to_leave(conn, [LeaveRequest(name, "because", within)])
        now = await left()
        assert now is not None
        assert least < now <= min(within, 1000.0)


async def test_a_task_speaks_for_its_own_attempt_only(api: Api) -> None:
    """The token of one attempt is refused on the paths of another."""
    run, other = await running(api), await running(api)
    assert (await run.task.get(f"{other.path}/signals/preemption")).status_code == 403
    assert (await run.task.post(f"{other.path}/signals/ack_preemption")).status_code == 403
    assert (await run.task.post(f"/api/v1/trials/{other.trial}/progress", {"progress": 0.5})).status_code == 403
    assert (await api.user.post(f"{run.path}/signals/ack_preemption")).status_code == 403


async def test_a_task_acts_as_its_owner_and_never_as_administrator(api: Api) -> None:
    """It may read what its owner may; it cannot administrate, log out, or be sent as a cookie."""
    run = await running(api)
    task = await api.task(run.attempt.allocation_id, user_id=1)
    assert (await task.get("/api/v1/me")).json()["user"]["username"] == "admin"
    assert (await task.post("/api/v1/users", {"user": {"username": "x"}, "password": "y"})).status_code == 403
    assert (await task.post("/api/v1/auth/logout")).status_code == 400


async def test_the_token_ends_with_its_row(api: Api) -> None:
    """Once the attempt's credential is gone, the task is nobody."""
    run = await running(api)
    async with api.master.db.transaction() as conn:
        await conn.execute("delete from allocation_tokens")
    assert (await run.task.get("/api/v1/me")).status_code == 401


async def test_all_members_meet(api: Api) -> None:
    """Each gets all addresses in the order of rank, its own rank, and the slots of each; asking again is harmless."""
    run = await running(api, 3)
    paths = [f"{run.path}/resources/{name}/rendezvous" for name in run.attempt.containers]
    early = [asyncio.create_task(run.task.get(path)) for path in paths[:2]]
    await until_held(api.master.listener, "allocation", run.attempt.allocation_id, *early)
    replies = [await run.task.get(paths[2]), *[await reply for reply in early], await run.task.get(paths[0])]
    infos = [reply.json()["rendezvousInfo"] for reply in replies]
    assert [info["rank"] for info in infos] == [2, 0, 1, 0]
    assert all(info["addresses"] == ["10.0.0.1", "10.0.0.2", "10.0.0.3"] for info in infos)
    assert all(info["slots"] == [1, 1, 1] for info in infos)
    async with api.master.db.connection() as conn:
        assert (await allocations.lock(conn, run.attempt.allocation_id)).ready


@pytest.mark.parametrize(("reason", "status"), [("", 200), ("exited with code 1", 400)])
async def test_a_member_that_has_met_may_end_before_another_hears_of_it(api: Api, reason: str, status: int) -> None:
    """A script that does nothing is done at once; one that failed is told to the others."""
    run = await running(api, 2)
    async with api.master.db.transaction() as conn:
        for name in run.attempt.containers:
            await barriers.arrive(conn, run.attempt.allocation_id, name)
        code = 1 if reason else 0
        await conn.execute(
            "update containers set state = 'TERMINATED', ended_at = now(), exit = $2 where container_id = $1",
            run.attempt.containers[0],
            {"code": code, "reason": reason},
        )
    reply = await run.task.get(f"{run.path}/resources/{run.attempt.containers[1]}/rendezvous")
    assert reply.status_code == status, reply.text


async def test_the_only_member_meets_itself(api: Api) -> None:
    """Without waiting."""
    run = await running(api)
    reply = await run.task.get(f"{run.path}/resources/{run.attempt.containers[0]}/rendezvous")
    assert reply.json()["rendezvousInfo"] == {"addresses": ["10.0.0.1"], "rank": 0, "slots": [1]}


async def test_a_meeting_that_fails_names_who_is_missing(api: Api) -> None:
    """After the time that was set; with rank and agent of each."""
    run = await running(api, 3)
    path = f"{run.path}/resources/{run.attempt.containers[0]}/rendezvous"
    reply = await run.task.get(path, timeout_seconds=0.01)
    assert reply.status_code == 400
    assert "2 of 3 members" in refusal(reply)
    assert "rank 1 on agent a2" in refusal(reply)
    assert "rank 2 on agent a3" in refusal(reply)
    assert "rank 0" not in refusal(reply)


@pytest.mark.parametrize("seconds", ["nan", "inf"])
async def test_a_meeting_has_an_end(api: Api, seconds: str) -> None:
    """What is no number of seconds is refused: the master looked again and again, without a pause and for ever."""
    run = await running(api, 2)
    for path in (f"resources/{run.attempt.containers[0]}/rendezvous", "signals/preemption"):
        reply = await asyncio.wait_for(run.task.get(f"{run.path}/{path}", timeout_seconds=seconds), 60)
        assert (reply.status_code, "finite number" in refusal(reply)) == (400, True)


async def test_a_meeting_ends_when_a_member_does(api: Api) -> None:
    """Who waits is told at once which member ended, and why."""
    run = await running(api, 2)
    held = asyncio.create_task(run.task.get(f"{run.path}/resources/{run.attempt.containers[0]}/rendezvous"))
    await until_held(api.master.listener, "allocation", run.attempt.allocation_id, held)
    async with api.master.db.transaction() as conn:
        await end_member(conn, run.attempt, 1, "out of memory")
        await conn.execute("select pg_notify('tenax', 'allocation:' || $1)", run.attempt.allocation_id)
    reply = await held
    assert reply.status_code == 400
    assert "rank 1 on agent a2 has ended: out of memory" in refusal(reply)


async def test_a_stranger_cannot_join_the_meeting(api: Api) -> None:
    """A container that is no member is refused."""
    run = await running(api)
    assert (await run.task.get(f"{run.path}/resources/nobody/rendezvous")).status_code == 404


async def test_members_gather_again_and_again(api: Api) -> None:
    """Each gathering gives everyone what its own members brought; a repeated call brings nothing twice."""
    run = await running(api, 2)

    async def bring(uuid: str, value: int) -> list[dict[str, int]]:
        body = {"requestUuid": uuid, "numPeers": 2, "data": {"value": value}}
        reply = await run.task.post(f"{run.path}/all_gather", body)
        assert reply.status_code == 200, reply.text
        return reply.json()["data"]

    first = await asyncio.gather(bring("u1", 1), bring("u2", 2))
    second = await asyncio.gather(bring("u3", 3), bring("u4", 4))
    assert [sorted(part["value"] for part in each) for each in (*first, *second)] == [[1, 2], [1, 2], [3, 4], [3, 4]]
    assert sorted(part["value"] for part in await bring("u1", 9)) == [1, 2]


@answers("task_services/allgather", "2 of 4 join and the timeout passes")
async def test_a_gathering_that_fails_says_how_many_came(api: Api) -> None:
    """After the time that the settings name, and which member does not run."""
    api.master.settings = api.master.settings.model_copy(update={"rendezvous_timeout": 0.01})
    run = await running(api, 2)
    async with api.master.db.transaction() as conn:
        await conn.execute("update containers set state = 'PULLING' where container_id = $1", run.attempt.containers[1])
    reply = await run.task.post(f"{run.path}/all_gather", {"requestUuid": "u1", "numPeers": 2})
    assert refusal(reply).startswith("only 1 of 2 members came to gather within 0.01 s")
    assert refusal(reply).endswith("not running rank 1 on agent a2 (pulling)")
    for body in ({"requestUuid": "", "numPeers": 2}, {"requestUuid": "u", "numPeers": 0}):
        assert (await run.task.post(f"{run.path}/all_gather", body)).status_code == 400


async def test_who_has_left_a_gathering_is_not_counted_any_more(api: Api) -> None:
    """A member that comes again, since nobody else came in time, does not meet itself; it may name another number."""
    usual = api.master.settings
    run = await running(api, 2)

    async def bring(uuid: str, peers: int = 2) -> httpx2.Response:
        return await run.task.post(
            f"{run.path}/all_gather", {"requestUuid": uuid, "numPeers": peers, "data": {"v": uuid}}
        )

    api.master.settings = usual.model_copy(update={"rendezvous_timeout": 0.01})
    for uuid, peers in (("first", 3), ("again", 2), ("first", 2)):
        assert "only 1 of" in refusal(await bring(uuid, peers))
    api.master.settings = usual
    for reply in await asyncio.gather(bring("again"), bring("other")):
        assert sorted(part["v"] for part in reply.json()["data"]) == ["again", "other"]


async def test_members_of_a_gathering_name_the_same_number(api: Api) -> None:
    """Who names another is told so, while the others wait on."""
    run = await running(api, 2)
    path = f"{run.path}/all_gather"
    held = asyncio.create_task(run.task.post(path, {"requestUuid": "u1", "numPeers": 2}))
    await until_somebody_gathers(api)
    reply = await run.task.post(path, {"requestUuid": "u2", "numPeers": 3})
    assert "this member gathers 3, another one 2" in refusal(reply)
    assert (await run.task.post(path, {"requestUuid": "u3", "numPeers": 2})).status_code == 200
    assert (await held).status_code == 200


async def until_somebody_gathers(api: Api) -> None:
    """The master knows what the first member said: whoever is known first decides the number."""
    async with asyncio.timeout(60), api.master.db.connection() as conn:
        while not await conn.fetchval("select count(*) from all_gathers"):  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.001)


async def test_a_member_can_become_a_daemon_unless_it_is_the_only_one(api: Api) -> None:
    """Said twice it is once."""
    for members, expected in ((1, [False]), (2, [False, True])):
        run = await running(api, members)
        for _ in range(2):
            path = f"{run.path}/resources/{run.attempt.containers[-1]}/daemon"
            assert (await run.task.post(path)).status_code == 200
        async with api.master.db.connection() as conn:
            rows = await conn.fetch(
                "select daemon from containers where allocation_id = $1 order by rank", run.attempt.allocation_id
            )
        assert [row["daemon"] for row in rows] == expected


async def test_devices_that_a_member_found_are_shown(api: Api) -> None:
    """Reported twice they stand once; of a member that reports none they are those of its slots."""
    run = await running(api)
    body = {
        "allocationId": run.attempt.allocation_id,
        "acceleratorData": {
            "containerId": run.attempt.containers[0],
            "acceleratorType": "cpu",
            "acceleratorUuids": [],
            "nodeName": "n1",
        },
    }
    async with api.master.db.transaction() as conn:
        task_id = await conn.fetchval("select task_id from tasks")
        await conn.execute("update agent_slots set kind = 'cuda', name = 'H100', uuid = 'GPU-' || slot_id")
        slots = await conn.fetchval("select slots from containers where container_id = $1", run.attempt.containers[0])
    (seen,) = (await api.user.get(f"/api/v1/tasks/{task_id}/acceleratorData")).json()["acceleratorData"]
    assert (seen["acceleratorType"], seen["acceleratorUuids"]) == ("H100", [f"GPU-{slot}" for slot in slots])
    for _ in range(2):
        assert (await run.task.post(f"{run.path}/acceleratorData", body)).status_code == 200
    devices = (await api.user.get(f"/api/v1/tasks/{task_id}/acceleratorData")).json()["acceleratorData"]
    assert [(each["nodeName"], each["acceleratorType"], each["resourcePool"]) for each in devices] == [
        ("n1", "cpu", "default")
    ]


async def test_a_task_shows_its_attempts_the_newest_first(api: Api) -> None:
    """With state, slots and readiness; the running ones are in the list of all tasks."""
    run = await running(api)
    assert (await run.task.post(f"{run.path}/ready")).status_code == 200
    async with api.master.db.connection() as conn:
        attempts = await task_lists.open_allocations(conn)
    task = (await api.user.get(f"/api/v1/tasks/{attempts[0].task_id}")).json()["task"]
    assert task["taskType"] == "TASK_TYPE_TRIAL"
    assert [(a["allocationId"], a["state"], a["isReady"], a["slots"]) for a in task["allocations"]] == [
        (run.attempt.allocation_id, "STATE_RUNNING", True, 1)
    ]
    summary = (await api.user.get("/api/v1/tasks")).json()["allocationIdToSummary"][run.attempt.allocation_id]
    assert (summary["state"], summary["reason"]) == ("STATE_RUNNING", "")
    assert summary["resources"][0]["containerId"] == run.attempt.containers[0]
    device = {"id": 0, "brand": "core 0", "uuid": "cpu-a1-0", "type": "TYPE_CPU", "memory": None}
    assert summary["resources"][0]["agentDevices"]["a1"]["devices"] == [device]
    assert (await api.user.get("/api/v1/tasks/nope")).status_code == 404


@pytest.mark.parametrize(
    ("path", "body", "column", "value"),
    [
        ("progress", {"progress": 0.25, "is_raw": True}, "progress", 0.25),
        ("runner/metadata", {"state": "validating"}, "runnerState", "validating"),
    ],
)
async def test_what_a_script_says_of_itself_is_shown(
    api: Api, path: str, body: dict[str, object], column: str, value: object
) -> None:
    """Progress and what it is doing."""
    run = await running(api)
    assert (await run.task.post(f"/api/v1/trials/{run.trial}/{path}", body)).status_code == 200
    assert (await api.user.get(f"/api/v1/trials/{run.trial}")).json()["trial"][column] == value


@pytest.mark.parametrize("progress", [1.5, -0.1, "NaN", "Infinity"])
async def test_progress_outside_its_bounds_is_refused(api: Api, progress: object) -> None:
    """And nothing is stored."""
    run = await running(api)
    reply = await run.task.post(f"/api/v1/trials/{run.trial}/progress", {"progress": progress})
    assert reply.status_code == 400


async def test_only_invalid_hyperparameters_end_a_trial_early(api: Api) -> None:
    """Any other reason is refused."""
    run = await running(api)
    path = f"/api/v1/trials/{run.trial}/early_exit"
    assert (await run.task.post(path, {"reason": "EXITED_REASON_USER_REQUESTED_STOP"})).status_code == 400
    assert (await run.task.post(path, {"reason": "EXITED_REASON_INVALID_HP"})).status_code == 200
    async with api.master.db.connection() as conn:
        assert await conn.fetchval("select invalid_hp from trials where id = $1", run.trial)


async def test_every_rank_gets_the_same_storage(api: Api) -> None:
    """Credentials and policies are not part of what names a place; a run without storage has none."""
    run = await running(api)
    storage = {"type": "s3", "bucket": "b", "secret_key": "x", "save_trial_best": 1}
    numbers = [
        (await run.task.post("/api/v1/runs/start", {"runId": run.trial, "checkpointStorage": given})).json()[
            "storageId"
        ]
        for given in (storage, storage | {"secret_key": "y"}, None)
    ]
    assert numbers[0] == numbers[1] is not None
    assert numbers[2] is None
    assert (await run.task.post("/api/v1/runs/start", {"runId": 77})).status_code == 403


async def test_a_trial_goes_on_from_what_is_left_after_an_older_copy_was_restored(api: Api) -> None:
    """What was deleted after the copy was taken is known again: who finds that out is told of the next, and nobody is
    sent there any more. Of a database that was never put back this is not taken."""
    run = await running(api)
    uuids = [f"00000000-0000-4000-8000-00000000000{number}" for number in (1, 2)]
    for steps, uuid in enumerate(uuids, 10):
        saved = {
            "uuid": uuid,
            "state": "STATE_COMPLETED",
            "resources": {"w": 4},
            "metadata": {"steps_completed": steps},
        }
        assert (await run.task.post("/api/v1/checkpoints", saved)).status_code == 200
    path = f"{run.path}/resume_point"
    refused = await run.task.post(path, {"missing": uuids[1]})
    assert (refused.status_code, "this very database" in refused.text) == (400, True)
    newest = {"checkpoint": uuids[1], "stepsCompleted": 11, "inDoubt": False}
    assert (await run.task.post(path, {})).json() == newest
    assert await _told_of_doubt(api) is False
    async with api.master.db.transaction() as conn:
        await conn.execute("update cluster set restored_at = clock_timestamp()")
    assert await _told_of_doubt(api) is True
    assert (await run.task.post(path, {})).json() == {**newest, "inDoubt": True}
    for _ in range(2):
        answer = (await run.task.post(path, {"missing": uuids[1]})).json()
        assert answer == {"checkpoint": uuids[0], "stepsCompleted": 10, "inDoubt": True}
    assert (await run.task.post(path, {"missing": uuids[0]})).json()["checkpoint"] is None
    shown = [(await api.user.get(f"/api/v1/checkpoints/{uuid}")).json()["checkpoint"] for uuid in uuids]
    assert [one["state"] for one in shown] == ["STATE_DELETED"] * 2


async def test_nobody_says_that_anothers_checkpoint_is_gone(api: Api) -> None:
    """Of its own trial only."""
    run = await running(api)
    uuid = "00000000-0000-4000-8000-000000000003"
    saved = {"uuid": uuid, "state": "STATE_COMPLETED", "resources": {"w": 4}, "metadata": {"steps_completed": 1}}
    assert (await run.task.post("/api/v1/checkpoints", saved)).status_code == 200
    async with api.master.db.transaction() as conn:
        await conn.execute("update cluster set restored_at = clock_timestamp()")
        stranger = await run_attempt(conn, await add_trial(conn, await add_experiment(conn)), ("a1",))
    task = await api.task(stranger.allocation_id)
    answer = await task.post(f"/api/v1/allocations/{stranger.allocation_id}/resume_point", {"missing": uuid})
    assert answer.status_code == 403
    assert (await api.user.get(f"/api/v1/checkpoints/{uuid}")).json()["checkpoint"]["state"] == "STATE_COMPLETED"


async def _told_of_doubt(api: Api) -> bool:
    async with api.master.db.connection() as conn:
        (row,) = await agents.desired_containers(conn, "a1")
    return row["checkpoint_in_doubt"] is True
