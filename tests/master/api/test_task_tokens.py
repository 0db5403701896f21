"""What the token of an attempt opens while it runs, after its end, and once nothing of it is left."""

from __future__ import annotations

import json
import uuid

import pytest

from tenax.errors import Forbidden
from tenax.master.access.authorization import Caller
from tenax.master.api.http import callers
from tenax.master.store.allocations import containers
from tenax.master.store.users.rows import UserRow
from tenax.master.store.users.sessions import TaskOf
from tests.kits.api import Api
from tests.kits.master.attempts import Running, ended, running


async def ship(run: Running) -> int:
    path = f"{run.path}/spool?container_id={run.attempt.containers[0]}&stream=rank-0"
    line = b'{"n": 1, "kind": "progress", "at": 0, "body": {"progress": 0.5}}\n'
    return (await run.task.post(path, line)).status_code


async def test_a_running_attempt_acts_for_its_owner(api: Api) -> None:
    """It reads what its owner may read, and reports."""
    run = await running(api)
    assert (await run.task.get("/api/v1/me")).status_code == 200
    assert await ship(run) == 200


async def test_an_attempt_that_has_ended_may_only_deliver(api: Api) -> None:
    """Its spool is still taken in while its container is on a machine; to all else, its token is nobody's."""
    run = await running(api)
    await ended(run)
    assert await ship(run) == 200
    for reply in (
        await run.task.get("/api/v1/me"),
        await run.task.get("/api/v1/experiments"),
        await run.task.post("/api/v1/experiments/1/kill"),
    ):
        assert reply.status_code == 401
        assert "ended" in reply.text


async def test_what_runs_for_a_deactivated_user_only_reports(api: Api) -> None:
    """Its results are kept, and it is asked to leave like any other; nothing is read or changed in the user's name."""
    run = await running(api)
    assert (await api.admin.patch("/api/v1/users/2", {"active": False})).status_code == 200
    await api.heard()
    assert await ship(run) == 200
    assert (await run.task.get(f"{run.path}/signals/preemption")).json() == {"preempt": False}
    progress = {"trialId": run.trial, "progress": 0.5, "isRaw": True}
    assert (await run.task.post(f"/api/v1/trials/{run.trial}/progress", progress)).status_code == 200
    for reply in (
        await run.task.get("/api/v1/me"),
        await run.task.get("/api/v1/experiments"),
        await run.task.post("/api/v1/experiments/1/kill"),
    ):
        assert (reply.status_code, "not active" in reply.text) == (401, True)


async def test_a_task_that_is_no_trial_speaks_for_none(api: Api) -> None:
    """It is told what it is; a trial's token speaks for that trial only."""
    owner = UserRow(2, "determined", "", False, True, False)
    async with api.master.db.connection() as conn:
        for trial, message in ((None, "task t-1, which is no trial"), (7, "that of trial 7")):
            caller = Caller(task=TaskOf("t-1.1", "t-1", 1, trial, None, owner))
            with pytest.raises(Forbidden, match=message):
                await callers.for_trial(conn, caller, 5)


async def test_nothing_is_opened_once_nothing_of_it_is_left(api: Api) -> None:
    """The agent has said that the container is gone."""
    run = await running(api)
    await ended(run)
    async with api.master.db.transaction() as conn:
        await containers.gone(conn, run.attempt.containers, "a1")
    await api.heard()
    assert await ship(run) == 401
    assert (await run.task.get("/api/v1/me")).status_code == 401


async def test_a_spool_says_nothing_of_another_owners_checkpoint(api: Api) -> None:
    """Files of one's own may go; another's checkpoint stays what it is, whatever a script writes into its spool."""
    mine, other = await running(api), await running(api)
    await api.task(other.attempt.allocation_id, user_id=1)
    uuids = {"mine": str(uuid.uuid4()), "others": str(uuid.uuid4())}
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "update experiments set owner_id = 1 where id = (select experiment_id from trials where id = $1)",
            other.trial,
        )
    for run, name in ((mine, "mine"), (other, "others")):
        report = {"uuid": uuids[name], "resources": {"model.pt": 3}, "metadata": {"steps_completed": 1}}
        assert (await run.task.post("/api/v1/checkpoints", {**report, "state": "STATE_COMPLETED"})).status_code == 200
    lines = [
        json.dumps({"n": n, "kind": "checkpoint_files", "at": 0, "body": {"uuid": uuids[name], "resources": {}}}) + "\n"
        for n, name in ((1, "others"), (2, "mine"))
    ]
    path = f"{mine.path}/spool?container_id={mine.attempt.containers[0]}&stream=rank-0"
    reply = (await mine.task.post(path, "".join(lines).encode())).json()
    assert reply["acked"] == 2
    assert [refused["n"] for refused in reply["refused"]] == [1]
    async with api.master.db.connection() as conn:
        states = dict(await conn.fetch("select uuid, state from checkpoints"))
    assert states == {uuids["mine"]: "DELETED", uuids["others"]: "COMPLETED"}
