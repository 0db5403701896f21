"""Collecting checkpoints: the loop on real rows and real files, whatever happens in between."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from tenax.errors import NotNow
from tenax.jsonvalue import JsonObject
from tenax.master.checkpoints import removal
from tenax.master.checkpoints.files import CheckpointPlace, delete_checkpoint
from tenax.master.loops.checkpoint_gc import CheckpointGc
from tenax.master.loops.deletion import Deletion
from tenax.master.loops.loop import PassContext
from tenax.master.store.agents import rows as agents
from tenax.master.store.checkpoints import gc
from tenax.master.store.database import leases
from tenax.master.store.database.wakeups import Woken
from tests.kits.api import Api
from tests.kits.cases import answers
from tests.kits.database import until_somebody_waits
from tests.kits.master.attempts import Running, running
from tests.kits.master.checkpoints import report, stored_files
from tests.kits.master.experiments import create
from tests.kits.master.metrics import validated
from tests.kits.master.tasks import placed
from tests.kits.rows import add_trial

EVERYTHING = Woken(frozenset(), full=True)


class Killed(Exception):
    """The master ends at this instant."""


def uuid(number: int) -> str:
    return f"0d6e4079-4c8e-4f5f-9a39-{number:012d}"


@pytest.fixture
async def context(api: Api) -> PassContext:
    """The loop's transactions."""
    async with api.master.db.transaction() as conn:
        lease = await leases.acquire(conn, "checkpoint_gc", "test", 60)
    assert lease is not None
    return PassContext(api.master.db, lease)


async def collect(api: Api, context: PassContext) -> float | None:
    """A pass, as after a start."""
    return await CheckpointGc(api.master.settings).make_pass(context, EVERYTHING)


def storage(api: Api) -> JsonObject:
    return cast(JsonObject, api.master.settings.checkpoint_storage)


def base(api: Api) -> Path:
    return Path(str(storage(api)["host_path"]))


def files(api: Api) -> list[int]:
    """Numbers of the checkpoints whose files are there."""
    return sorted(int(each.name.rpartition("-")[2]) for each in base(api).iterdir() if not each.name.startswith("."))


async def saved(api: Api, run: Running, *metrics: float | None) -> None:
    """Checkpoints 1, 2, ... at these steps, each with a validation or without."""
    for number, metric in enumerate(metrics, 1):
        if metric is not None:
            await validated(api, run.trial, number, metric)
        await report(run, uuid(number), number)
        stored_files(api, uuid(number))


async def change(api: Api, *statements: str) -> None:
    async with api.master.db.transaction() as conn:
        for statement in statements:
            await conn.execute(statement)


async def end(api: Api) -> None:
    """The experiment has ended; nothing of it is on a machine."""
    await change(
        api,
        "update trials set state = 'COMPLETED', ended_at = now() where id = 1",
        "update experiments set state = 'COMPLETED', ended_at = now() where id = 1",
        "update allocations set state = 'TERMINATED', ended_at = now()",
        "update containers set gone_at = now()",
        "insert into garbage_due (experiment_id) values (1) on conflict do nothing",
    )


async def shown(api: Api, number: int) -> dict[str, object]:
    reply = await api.user.get(f"/api/v1/checkpoints/{uuid(number)}")
    return reply.json()["checkpoint"]  # type: ignore[no-any-return]


@answers("misc/checkpoint_gc", "TestRunCheckpointGCTask/delete nothing")
async def test_what_is_superseded_goes_while_the_experiment_runs(api: Api, context: PassContext) -> None:
    """By default the best and the latest of each trial stay; the record of the others stays, too.

    Nothing is started where nothing is to go, nor where the master reaches the files ("misc/checkpoint_gc"); a task for
    them has no slots, is seen by nobody, and goes to the pool for such: `test_what_is_out_of_reach_is_left_to_a_task`.
    """
    run = await running(api)
    await saved(api, run, 0.5, 0.9, 0.7, 0.8)
    assert await collect(api, context) is None
    assert files(api) == [2, 4]
    assert await gc_tasks(api) == [], "the master does it by itself"
    assert [(await shown(api, number))["state"] for number in (1, 2, 3, 4)] == [
        "STATE_DELETED",
        "STATE_COMPLETED",
        "STATE_DELETED",
        "STATE_COMPLETED",
    ]
    assert (await shown(api, 1))["resources"] == {"weights/": "0", "weights/w.bin": "4"}, "the list of what it had"
    assert (await shown(api, 1))["metadata"] == {"steps_completed": 1, "framework": "torch"}


async def test_what_a_live_trial_would_resume_from_stays_until_it_ends(api: Api, context: PassContext) -> None:
    """Also when the policy keeps nothing at all."""
    run = await running(api)
    await change(api, _policy(0, 0, 0))
    await saved(api, run, 0.5, 0.9)
    await collect(api, context)
    assert files(api) == [2]
    await end(api)
    await collect(api, context)
    assert files(api) == []


async def test_only_an_end_that_can_matter_to_a_checkpoint_is_looked_at(api: Api) -> None:
    """That of a trial with checkpoints or uploads of its own, or one that began with somebody's."""
    run = await running(api)
    async with api.master.db.transaction() as conn:
        bare = await add_trial(conn, 1, 50)
        begun = await add_trial(conn, 1, 51)
        await conn.execute("update trials set warm_start_checkpoint = $1 where id = $2", uuid(1), begun)
    await report(run, uuid(1), 1)
    for trial, matters in ((bare, False), (begun, True), (run.trial, True)):
        async with api.master.db.transaction() as conn:
            await conn.execute("delete from garbage_due")
            await gc.trials_ended(conn, [trial])
            assert bool(await conn.fetchval("select count(*) from garbage_due")) is matters


async def test_a_change_of_policy_is_applied(api: Api, context: PassContext) -> None:
    """What may go is told before; then it goes, and the new numbers are the experiment's configuration."""
    run = await running(api)
    await change(api, _policy(9, 9, 9))
    await saved(api, run, 0.5, 0.9, 0.7)
    await end(api)
    await collect(api, context)
    assert files(api) == [1, 2, 3]
    query = {"save_experiment_best": 0, "save_trial_best": 1, "save_trial_latest": 0}
    preview = (await api.user.get("/experiments/1/preview_gc", **query)).json()
    assert [each["UUID"] for each in preview["checkpoints"]] == [uuid(1), uuid(3)]
    assert preview["metric_name"] == "accuracy"
    reply = (await api.user.get("/api/v1/experiments/1/garbage", **query)).json()
    assert {each["uuid"]: each["keep"] for each in reply["checkpoints"]} == {
        uuid(1): False,
        uuid(2): True,
        uuid(3): False,
    }
    assert all(each["reasons"] for each in reply["checkpoints"])
    assert (reply["keptSize"], reply["freedSize"], reply["removals"]) == ("4", "8", [])
    policy = {"saveExperimentBest": 0, "saveTrialBest": 1, "saveTrialLatest": 0}
    assert (await api.user.patch("/api/v1/experiments/1", {"checkpointStorage": policy})).status_code == 200
    await collect(api, context)
    assert files(api) == [2]
    config = (await api.user.get("/api/v1/experiments/1")).json()["experiment"]["config"]
    assert config["checkpoint_storage"]["save_trial_latest"] == 0
    assert config["checkpoint_storage"]["host_path"] == str(base(api))


async def test_what_is_needed_elsewhere_is_kept(api: Api, context: PassContext) -> None:
    """What is registered, and what a trial of another experiment started from; each says so."""
    run = await running(api)
    await change(api, _policy(0, 0, 0))
    await saved(api, run, 0.5, 0.9, 0.7)
    other = (await create(api))["experiment"]["id"]  # type: ignore[index]
    async with api.master.db.transaction() as conn:
        trial = await add_trial(conn, other, 2)
        await conn.execute("update trials set warm_start_checkpoint = $2 where id = $1", trial, uuid(2))
        await conn.execute("insert into models (name, workspace_id, owner_id) values ('bert', 1, 2)")
        await conn.execute(
            "insert into model_versions (model_id, version, checkpoint_uuid, owner_id) values (1, 3, $1, 2)", uuid(1)
        )
    await end(api)
    await collect(api, context)
    assert files(api) == [1, 2]
    fates = (await api.user.get("/api/v1/experiments/1/garbage")).json()["checkpoints"]
    assert [each["reasons"] for each in fates] == [
        ["it is version 3 of model bert"],
        [f"trial {trial} of experiment {other} started from it"],
    ]


@pytest.mark.parametrize("case", ["less, ends first", "less, ends last", "all, ends last"])
async def test_of_two_removals_at_once_the_wider_one_counts(
    api: Api, context: PassContext, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """Whichever begins, and whichever ends first: what is gone is gone, and what was requested is done."""
    run = await running(api)
    await saved(api, run, 0.9, 0.5, 0.7)
    less, everything = ["*.nothing"], ["**/*"]
    first, second = (everything, less) if case.startswith("all") else (less, everything)
    began, goes_on = threading.Event(), threading.Event()

    def slowly(place: CheckpointPlace, name: str, globs: Sequence[str]) -> dict[str, int] | None:
        left = delete_checkpoint(place, name, globs) if first == less else {}
        began.set()
        assert goes_on.wait(60)
        return left if first == less else delete_checkpoint(place, name, globs)

    async with api.master.db.transaction() as conn:
        assert await gc.request_removals(conn, {uuid(2): "first"}, globs=first) == [uuid(2)]
    monkeypatch.setattr(removal, "delete_checkpoint", slowly)
    begun = asyncio.create_task(removal.carry_out(context.transaction, api.master.checkpoint_roots, uuid(2)))
    assert await asyncio.to_thread(began.wait, 60)
    monkeypatch.undo()
    async with api.master.db.transaction() as conn:
        assert await gc.request_removals(conn, {uuid(2): "second"}, globs=second) == [uuid(2)]
        assert await conn.fetchval("select globs from removals") == everything
        if second == less:
            # As one would that does not know of the first.
            await conn.execute("update removals set globs = $1", less)
    if case.endswith("first"):
        goes_on.set()
        await begun
    await collect(api, context)
    goes_on.set()
    assert (await begun).failure == ""
    assert 2 not in files(api)
    assert (await shown(api, 2))["state"] == "STATE_DELETED"
    assert (await shown(api, 2))["going"] is None


@pytest.mark.parametrize("instant", ["before the files", "after the files"])
async def test_a_master_that_ends_in_between_loses_nothing(
    api: Api, context: PassContext, monkeypatch: pytest.MonkeyPatch, instant: str
) -> None:
    """What was decided is found and done again; nothing can be resumed from meanwhile."""
    run = await running(api)
    await saved(api, run, 0.9, 0.5, 0.7)
    await end(api)

    def ends(place: CheckpointPlace, name: str, globs: Sequence[str]) -> None:
        if instant == "after the files":
            delete_checkpoint(place, name, globs)
        raise Killed

    monkeypatch.setattr(removal, "delete_checkpoint", ends)
    monkeypatch.setattr("tenax.master.loops.checkpoint_gc.UNFORESEEN_S", 0.0)
    await collect(api, context)
    assert (await shown(api, 2))["state"] == "STATE_COMPLETED"
    assert "kept are" in str((await shown(api, 2))["going"])
    monkeypatch.undo()
    await collect(api, context)
    assert files(api) == [1, 3]
    assert (await shown(api, 2))["state"] == "STATE_DELETED"
    assert (await shown(api, 2))["going"] is None


async def gc_tasks(api: Api) -> list[tuple[str, JsonObject]]:
    """Tasks that delete on agents and have not ended: id, and what each is to do."""
    async with api.master.db.connection() as conn:
        rows = await conn.fetch(
            "select task_id, spec from tasks where kind = 'CHECKPOINT_GC' and ended_at is null order by created_at"
        )
    return [(row["task_id"], json.loads(row["spec"]["files"][0]["content"])) for row in rows]


async def tell(api: Api, task_id: str, *removals: JsonObject) -> int:
    """What such a task tells, with the token of an attempt of its own."""
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "insert into allocations (allocation_id, task_id, run_id, slots) values ($1, $2, 1, 0)"
            " on conflict do nothing",
            f"{task_id}.1",
            task_id,
        )
    client = await api.task(f"{task_id}.1")
    return (await client.post("/api/v1/checkpoints/removals", {"removals": list(removals)})).status_code


@answers("misc/checkpoint_gc", "TestRunCheckpointGCTask/simple success")
async def test_what_is_out_of_reach_is_left_to_a_task(api: Api, context: PassContext) -> None:
    """One for all of an owner in a place; what it tells is recorded, and what it was not asked for is not."""
    run = await running(api)
    await saved(api, run, 0.9, 0.5, 0.7, 0.6, 0.8)
    await end(api)
    base(api).rename(base(api).with_name("unmounted"))
    await collect(api, context)
    ((task, document),) = await gc_tasks(api)
    assert document["storage"]["host_path"] == str(base(api))  # type: ignore[call-overload, index]
    async with api.master.db.connection() as conn:
        row = await conn.fetchrow(
            "select t.spec, j.pool, j.owner_id from tasks t join jobs j using (job_id) where t.task_id = $1", task
        )
    assert row["spec"]["config"]["resources"]["slots"] == 0
    assert (row["pool"], row["owner_id"]) == (api.master.settings.default_aux_pool, 2)
    queue = (await api.user.get("/api/v1/job-queues-v2", resourcePool="default")).json()["jobs"]
    assert not [each for each in queue if "GC" in str(each)], "users do not see it among what they wait for"
    assert [each["uuid"] for each in document["removals"]] == [uuid(2), uuid(3), uuid(4)]
    assert "mount it" in str((await shown(api, 2))["going"])
    await collect(api, context)
    assert len(await gc_tasks(api)) == 1, "it is at work"
    shown_task = (await api.user.get(f"/api/v1/tasks/{task}")).json()["task"]
    assert shown_task["taskType"] == "TASK_TYPE_CHECKPOINT_GC"
    gone: list[JsonObject] = [{"uuid": uuid(number), "resources": {}} for number in (1, 2, 3)]
    assert await tell(api, task, *gone, {"uuid": "absent", "resources": {}}) == 200
    states = [(await shown(api, number))["state"] for number in (1, 2, 3, 4)]
    assert states == ["STATE_COMPLETED", "STATE_DELETED", "STATE_DELETED", "STATE_COMPLETED"]
    assert (await run.task.post("/api/v1/checkpoints/removals", {"removals": gone})).status_code in (200, 401)


async def test_a_task_that_deletes_runs_as_whom_the_files_are(api: Api, context: PassContext) -> None:
    """As its workspace's user, where it has one: others would follow what that user left in their way."""
    run = await running(api)
    await saved(api, run, 0.9, 0.5, 0.7, 0.6, 0.8)
    await end(api)
    base(api).rename(base(api).with_name("unmounted"))
    await change(
        api,
        "insert into workspaces (name, owner_id, agent_uid, agent_gid) values ('vision', 1, 4711, 4712)",
        "update projects set workspace_id = (select id from workspaces where name = 'vision') where id = 1",
    )
    await collect(api, context)
    ((task, _),) = await gc_tasks(api)
    container = await placed(api, task)
    async with api.master.db.connection() as conn:
        (row,) = [row for row in await agents.desired_containers(conn, "a1") if row["container_id"] == container]
    assert (row["agent_uid"], row["agent_gid"]) == (4711, 4712)


@answers("misc/checkpoint_gc", "TestRunCheckpointGCTask/simple failure")
async def test_what_a_task_could_not_delete_is_told_and_tried_again(api: Api, context: PassContext) -> None:
    """By the master first; each reason stands once in the log of the trial."""
    run = await running(api)
    await saved(api, run, 0.9, 0.5, 0.7)
    await end(api)
    hidden = base(api).rename(base(api).with_name("unmounted"))
    for why in ("no room", "no room", None):
        await collect(api, context)
        ((task, _),) = await gc_tasks(api)
        if why is not None:
            await tell(api, task, {"uuid": uuid(2), "failure": why})
        await change(api, "update tasks set ended_at = now() where kind = 'CHECKPOINT_GC'")
        wait = await collect(api, context)
        assert wait is not None
        assert 0 < wait <= 20
        expected = why or f"task {task}, which was to delete it on an agent, has ended"
        assert expected in str((await shown(api, 2))["going"])
        await change(api, "update removals set retry_at = now()")
    hidden.rename(base(api))
    assert await collect(api, context) is None
    assert files(api) == [1, 3]
    log = (await api.user.get(f"/api/v1/trials/{run.trial}/logs")).text
    assert sum("no room" in line for line in log.splitlines()) == 1


async def test_removals_are_held_in_one_order_whoever_takes_them(api: Api, context: PassContext) -> None:
    """What ended tasks leave and what no task has are two transactions; a checkpoint is held before its removal."""
    run = await running(api)
    await saved(api, run, 0.9, 0.5, 0.7, 0.6, 0.8)
    await end(api)
    base(api).rename(base(api).with_name("unmounted"))
    await collect(api, context)
    ((task, _),) = await gc_tasks(api)
    async with api.master.db.transaction() as conn, asyncio.timeout(60):
        await conn.execute("select 1 from checkpoints where uuid = $1 for no key update", uuid(2))
        telling = asyncio.create_task(tell(api, task, {"uuid": uuid(2), "failure": "no room"}))
        await until_somebody_waits(api.master.db)
        await conn.execute("select 1 from removals where uuid = $1 for update", uuid(2))
    assert await telling == 200
    await change(
        api,
        "update tasks set ended_at = now() where kind = 'CHECKPOINT_GC'",
        f"update removals set task_id = null, retry_at = now(), delegated = true where uuid = '{uuid(2)}'",
    )
    async with api.master.db.transaction() as conn, asyncio.timeout(60):
        await conn.execute("select 1 from removals where uuid = $1 for update", uuid(2))
        collecting = asyncio.create_task(collect(api, context))
        await until_somebody_waits(api.master.db)
        await conn.execute("select 1 from removals where uuid = $1 for update", uuid(3))
    await collecting
    ((again, document),) = await gc_tasks(api)
    assert again != task
    assert [each["uuid"] for each in document["removals"]] == [uuid(2)]


async def test_an_empty_storage_may_be_one_that_is_not_mounted(api: Api, context: PassContext) -> None:
    """Nothing counts as deleted because nothing is there at all."""
    run = await running(api)
    await saved(api, run, 0.9, 0.5, 0.7)
    await end(api)
    base(api).rename(base(api).with_name("unmounted"))
    base(api).mkdir()
    await collect(api, context)
    assert "is empty on the master's machine" in str((await shown(api, 2))["going"])
    assert (await shown(api, 2))["state"] == "STATE_COMPLETED"


async def test_uploads_that_were_never_reported_are_collected(api: Api, context: PassContext) -> None:
    """Once the task is gone from its machine; what is reported, or thrown away by the task, is none."""
    run = await running(api)
    for number in (1, 2, 3):
        await say(api, run, number, "checkpoint_started", {"uuid": uuid(number), "storage": storage(api)})
    stored_files(api, uuid(1))
    stored_files(api, f".{uuid(1)}.partial")
    await report(run, uuid(2), 2)
    stored_files(api, uuid(2))
    await say(api, run, 4, "checkpoint_abandoned", {"uuid": uuid(3)})
    await collect(api, context)
    assert files(api) == [1, 2], "its task still runs"
    await end(api)
    await collect(api, context)
    assert files(api) == [2]
    assert not list(base(api).glob(".*"))
    async with api.master.db.connection() as conn:
        left = await conn.fetch("select uuid, collected_at is not null as gone from checkpoint_uploads")
        task = await conn.fetchval("select task_id from trials where id = $1", run.trial)
    assert [(row["uuid"], row["gone"]) for row in left] == [(uuid(1), True)]
    with pytest.raises(NotNow, match="without reporting it"):
        async with api.master.db.transaction() as conn:
            await gc.upload_ends(conn, uuid(1), task)


async def test_what_becomes_needed_before_its_files_go_is_kept(api: Api, context: PassContext) -> None:
    """The decision is called off; a removal that has begun is not."""
    run = await running(api)
    await saved(api, run, 0.9, 0.5, 0.7)
    await end(api)
    async with api.master.db.transaction() as conn:
        assert await gc.request_removals(conn, {uuid(1): "for a test"}) == [uuid(1)]
        other = await add_trial(conn, 1, 7)
        await conn.execute("update trials set warm_start_checkpoint = $2 where id = $1", other, uuid(1))
        assert await gc.begin_removal(conn, uuid(1)) is None
        assert not await conn.fetchval("select removal_requested from checkpoints where uuid = $1", uuid(1))
    await collect(api, context)
    assert files(api) == [1, 3]


async def test_an_experiment_trained_elsewhere_is_collected_only_when_asked(api: Api, context: PassContext) -> None:
    """Whoever runs it knows when it ends; a policy that somebody sets is applied."""
    run = await running(api)
    await saved(api, run, 0.9, 0.5, 0.7)
    await change(api, "update experiments set unmanaged = true")
    await end(api)
    await collect(api, context)
    assert files(api) == [1, 2, 3]
    await api.user.patch("/api/v1/experiments/1", {"checkpointStorage": {"saveTrialBest": 0}})
    await collect(api, context)
    assert files(api) == [3]


async def say(api: Api, run: Running, number: int, kind: str, body: JsonObject) -> None:
    """A line of the spool of the running attempt."""
    line = json.dumps({"n": number, "kind": kind, "at": 1790000000.0, "body": body}).encode() + b"\n"
    path = f"/api/v1/allocations/{run.attempt.allocation_id}/spool"
    query = {"container_id": run.attempt.containers[0], "stream": "s"}
    reply = await run.task.ask("POST", path, line, params=query)
    assert reply.json() == {"acked": number, "refused": []}, reply.text


def _policy(best: int, trial_best: int, latest: int) -> str:
    kept = {"save_experiment_best": best, "save_trial_best": trial_best, "save_trial_latest": latest}
    return (
        "update experiment_documents set config = jsonb_set(config, '{checkpoint_storage}', "
        f"config -> 'checkpoint_storage' || '{json.dumps(kept)}')"
    )


async def test_tensorboard_files_out_of_reach_are_left_to_a_task(api: Api, context: PassContext) -> None:
    """Alone, or with the checkpoints of an experiment that is being deleted."""
    run = await running(api)
    await saved(api, run, 0.9)
    await end(api)
    base(api).rename(base(api).with_name("unmounted"))
    assert (await api.user.delete("/api/v1/experiments/1/tensorboard-files")).status_code == 200
    ((_, document),) = await gc_tasks(api)
    path = f"{api.master.cluster.cluster_id}/tensorboard/experiment/1"
    assert (document["removals"], document["tensorboards"]) == ([], [path])
    await change(api, "update tasks set ended_at = now() where kind = 'CHECKPOINT_GC'")
    assert (await api.user.delete("/api/v1/experiments/1")).status_code == 200
    await change(api, "delete from slots_in_use")
    await Deletion(api.master.settings).make_pass(context, EVERYTHING)
    await collect(api, context)
    ((_, document),) = await gc_tasks(api)
    assert document["tensorboards"] == [path]
    assert [each["uuid"] for each in document["removals"]] == [uuid(1)]  # type: ignore[index, union-attr, call-overload]
