"""The loop that deletes experiments, pass by pass (fixture ``context``), and an ended experiment for it to delete."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenax.master.loops.deletion import Deletion
from tenax.master.loops.loop import PassContext
from tenax.master.store.database import leases
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.logs import rows as logs
from tests.kits.api import Api
from tests.kits.master.attempts import Running, running
from tests.kits.master.checkpoints import report, stored_files


@pytest.fixture
async def context(api: Api) -> PassContext:
    """The loop's transactions."""
    async with api.master.db.transaction() as conn:
        lease = await leases.acquire(conn, "deletion", "test", 60)
    assert lease is not None
    return PassContext(api.master.db, lease)


async def make_pass(api: Api, context: PassContext) -> float | None:
    return await Deletion(api.master.settings).make_pass(context, Woken(frozenset(), full=True))


async def ended(api: Api) -> tuple[Running, Path]:
    """An experiment that has ended, with output, and with a checkpoint and its files."""
    run = await running(api)
    await report(run)
    folder = stored_files(api)
    async with api.master.db.transaction() as conn:
        await conn.execute("delete from slots_in_use")
        await conn.execute("update containers set gone_at = now()")
        await conn.execute("update trials set state = 'COMPLETED', ended_at = now()")
        await conn.execute("update experiments set state = 'COMPLETED', ended_at = now()")
        await conn.execute(
            "insert into metric_groups (trial_id, grp, month, run_id, last_step, next_ord, newest_step, summary)"
            " values ($1, 'training', 202611, 1, 1, 1, 1, '')",
            run.trial,
        )
        task = await conn.fetchval("select task_id from trials where id = $1", run.trial)
        await logs.append_system_line(conn, task, "it has ended", "INFO")
    return run, folder
