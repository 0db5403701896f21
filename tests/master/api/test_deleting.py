"""Deleting experiments: the loop on real rows and real files."""

from __future__ import annotations

import pytest

from tenax.master.loops.loop import PassContext
from tests.kits.api import Api
from tests.kits.master.checkpoints import UUID
from tests.kits.master.deleting import context, ended, make_pass
from tests.kits.master.experiments import create, file
from tests.kits.rows import add_trial

__all__ = ["context"]


async def counts(api: Api) -> dict[str, int]:
    names = ("experiments", "jobs", "trials", "tasks", "allocations", "containers", "checkpoints", "metric_groups")
    async with api.master.db.connection() as conn:
        return {name: await conn.fetchval(f"select count(*) from {name}") for name in (*names, "contexts")}


async def test_an_experiment_goes_with_its_files_and_rows(api: Api, context: PassContext) -> None:
    """Nothing of it is left; another one with the same code keeps it."""
    run, folder = await ended(api)
    kept = await create(api, modelDefinition=[file("train.py")])
    async with api.master.db.transaction() as conn:
        await conn.execute("update experiment_documents set context_hash = (select hash from contexts)")
    assert (await api.user.ask("DELETE", "/api/v1/experiments/1")).status_code == 200
    assert (await api.user.get("/api/v1/experiments/1")).json()["experiment"]["state"] == "STATE_DELETING"
    assert await make_pass(api, context) is None
    assert not folder.exists()
    assert (await api.user.get("/api/v1/experiments/1")).status_code == 404
    async with api.master.db.connection() as conn:
        orphaned = (
            "select count(*) from log_chunks c where not exists (select 1 from tasks t where t.task_id = c.task_id)"
        )
        assert await conn.fetchval(orphaned) == 0, "output of the deleted experiment is left"
    left = await counts(api)
    assert (left.pop("experiments"), left.pop("jobs"), left.pop("contexts")) == (1, 1, 1)
    # The first of the other one, which were made with it.
    assert (left.pop("trials"), left.pop("tasks")) == (8, 8)
    assert set(left.values()) == {0}
    assert (await api.user.get(f"/api/v1/experiments/{kept['experiment']['id']}")).status_code == 200
    assert run.trial == 1


async def test_code_goes_with_the_last_experiment_that_has_it(api: Api, context: PassContext) -> None:
    """An archive that nobody needs is dropped."""
    made = await create(api, modelDefinition=[file("train.py")])
    async with api.master.db.transaction() as conn:
        await conn.execute("update experiments set state = 'CANCELED', ended_at = now()")
    await api.user.ask("DELETE", f"/api/v1/experiments/{made['experiment']['id']}")
    await make_pass(api, context)
    assert set((await counts(api)).values()) == {0}


async def test_what_cannot_be_deleted_says_why_and_can_be_asked_again(api: Api, context: PassContext) -> None:
    """A storage out of the master's reach is left to a task; if that fails, too, it stays, and is deleted later."""
    _, folder = await ended(api)
    base = folder.parent
    hidden = base.rename(base.with_name("elsewhere"))
    await api.user.ask("DELETE", "/api/v1/experiments/1")
    assert await make_pass(api, context) is not None
    waiting = (await api.user.get("/api/v1/experiments/1")).json()["experiment"]
    assert waiting["state"] == "STATE_DELETING"
    assert str(base) in waiting["reason"]
    async with api.master.db.transaction() as conn:
        await conn.execute("update removals set tries = 1, failure = 'no agent sees it'")
    await make_pass(api, context)
    failed = (await api.user.get("/api/v1/experiments/1")).json()["experiment"]
    assert failed["state"] == "STATE_DELETE_FAILED"
    assert UUID in failed["reason"]
    assert "no agent sees it" in failed["reason"]
    hidden.rename(base)
    await api.user.ask("DELETE", "/api/v1/experiments/1")
    await make_pass(api, context)
    assert (await api.user.get("/api/v1/experiments/1")).status_code == 404


@pytest.mark.parametrize("kind", ["directory", "shared_fs"])
async def test_files_on_a_machine_of_its_makers_do_not_keep_an_experiment(
    api: Api, context: PassContext, kind: str
) -> None:
    """One that was trained elsewhere, into a directory there: who looked and found none has done what can be done.

    What is on a file system that all share is waited for.
    """
    _, folder = await ended(api)
    folder.parent.rename(folder.parent.with_name("elsewhere"))
    place = {"type": kind, "container_path" if kind == "directory" else "host_path": str(folder.parent)}
    async with api.master.db.transaction() as conn:
        await conn.execute("update experiments set unmanaged = true")
        await conn.execute(
            "update experiment_documents set config = jsonb_set(config, '{checkpoint_storage}', $1)", place
        )
    await api.user.ask("DELETE", "/api/v1/experiments/1")
    assert await make_pass(api, context) is not None
    async with api.master.db.transaction() as conn:
        await conn.execute("update removals set tries = 1, failure = 'no agent sees it'")
    await make_pass(api, context)
    gone = (await api.user.get("/api/v1/experiments/1")).status_code == 404
    assert gone is (kind == "directory")


async def test_what_is_still_on_a_machine_is_waited_for(api: Api, context: PassContext) -> None:
    """Nothing is deleted before its containers are gone; the loop looks again soon."""
    _, folder = await ended(api)
    async with api.master.db.transaction() as conn:
        await conn.execute("update containers set gone_at = null")
    await api.user.ask("DELETE", "/api/v1/experiments/1")
    assert await make_pass(api, context) is not None
    assert folder.exists()


async def test_a_checkpoint_that_a_live_trial_starts_from_is_kept(api: Api, context: PassContext) -> None:
    """The reason names that trial; once it has ended, the deletion works."""
    _, folder = await ended(api)
    other = (await create(api))["experiment"]["id"]
    async with api.master.db.transaction() as conn:
        trial = await add_trial(conn, other, 2)
        await conn.execute("update trials set warm_start_checkpoint = $2 where id = $1", trial, UUID)
    await api.user.ask("DELETE", "/api/v1/experiments/1")
    await make_pass(api, context)
    failed = (await api.user.get("/api/v1/experiments/1")).json()["experiment"]
    assert f"trial {trial} of experiment {other}" in failed["reason"]
    assert folder.exists()
    async with api.master.db.transaction() as conn:
        await conn.execute("update trials set state = 'COMPLETED', ended_at = now() where id = $1", trial)
    await api.user.ask("DELETE", "/api/v1/experiments/1")
    await make_pass(api, context)
    assert not folder.exists()
