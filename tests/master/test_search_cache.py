"""What the searching loop remembers between its passes."""

from __future__ import annotations

from tenax.lifecycle.experiment import ExperimentEvent
from tenax.master.loops.loop import PassContext
from tenax.master.loops.searching import Searching
from tenax.master.store.database import leases
from tenax.master.store.database.connection import Database
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.workspaces import projects
from tests.kits.master.cluster import ASHA, submit

EVERYTHING = Woken(frozenset(), full=True)


async def test_a_search_that_was_cut_off_is_forgotten(database: Database) -> None:
    """Killed experiments have no last step in which to leave: they go at the next look at everything."""
    async with database.transaction() as conn:
        await projects.create_first(conn)
        await conn.execute("insert into users (username) values ('someone')")
        lease = await leases.acquire(conn, "searching", "test", 3600.0)
    assert lease is not None
    loop, context = Searching(), PassContext(database, lease)
    experiment_id = await submit(database, ASHA)
    await loop.make_pass(context, EVERYTHING)
    assert set(loop.remembered) == {experiment_id}
    async with database.transaction() as conn:
        await experiments.ask(conn, experiment_id, ExperimentEvent.KILL)
    await loop.make_pass(context, EVERYTHING)
    assert not loop.remembered
