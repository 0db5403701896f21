"""What the searching loop remembers between its passes."""

from __future__ import annotations

from tenax.lifecycle.experiment import ExperimentEvent
from tenax.master.loops.loop import PassContext
from tenax.master.loops.searching import Searching
from tenax.master.store.database import leases
from tenax.master.store.database.connection import Database
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.experiments import searches
from tenax.master.store.trials import rows as trials
from tenax.master.store.workspaces import projects
from tenax.search.journal import Validated, decode, encode
from tests.kits.master.cluster import ASHA, submit

EVERYTHING = Woken(frozenset(), full=True)


async def test_what_an_earlier_release_left_in_the_inbox_is_taken_in(database: Database) -> None:
    """It put validations there under every method: where they decide nothing they move to the journal all the same."""
    async with database.transaction() as conn:
        await projects.create_first(conn)
        await conn.execute("insert into users (username) values ('someone')")
        lease = await leases.acquire(conn, "searching", "test", 3600.0)
    assert lease is not None
    loop, context = Searching(), PassContext(database, lease)
    experiment_id = await submit(database, {"name": "single", "metric": "loss"})
    await loop.make_pass(context, EVERYTHING)
    async with database.transaction() as conn:
        trial = await conn.fetchrow("select id, request_id from trials")
        fact = Validated(trial["request_id"], 16, 0.5, 0.0)
        await trials.put_fact(conn, experiment_id, trial["id"], "validation", 16, encode(fact))
    await loop.make_pass(context, EVERYTHING)
    async with database.connection() as conn:
        assert await searches.waiting(conn, experiment_id) == []
        assert await searches.dirty(conn) == []
        newest = await conn.fetchval("select entry from search_journal order by seq desc limit 1")
    assert decode(newest) == fact


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
