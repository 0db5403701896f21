"""Agents that fall silent: whose silence counts, and whose does not."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from asyncpg import Connection

from tenax.config.master import PoolSettings
from tenax.lifecycle.listening import Listening
from tenax.master.loops.loop import PassContext
from tenax.master.loops.timeouts import Timeouts
from tenax.master.store.agents import rows as agents
from tenax.master.store.database import leases
from tenax.master.store.database.connection import Database, now
from tenax.master.store.database.wakeups import Woken
from tests.kits.rows import Attempt, add_agent, add_experiment, add_trial, run_attempt

#: Of the first one 25 seconds are waited for an agent, of the other one two hours.
POOLS = (PoolSettings(name="default"), PoolSettings(name="patient", agent_reconnect_wait=7200.0))
NEWS = Woken(frozenset(), full=False)
#: What a loop is told after the database came back.
EVERYTHING = Woken(frozenset(), full=True)


@dataclass
class Place:
    """One running attempt on an agent that was not heard of for an hour, and the loop that looks after it."""

    db: Database
    attempt: Attempt
    context: PassContext
    loop: Timeouts

    async def looked_last(self, seconds_ago: float) -> None:
        """It has looked for a day, until then."""
        async with self.db.connection() as conn:
            moment = (await now(conn)).timestamp()
        self.loop._watch = Listening(moment - 86400, moment - seconds_ago)

    async def state(self) -> str:
        async with self.db.connection() as conn:
            return str(await conn.fetchval("select state from containers"))


@pytest.fixture
async def place(database: Database) -> Place:
    async with database.transaction() as conn:
        await add_agent(conn, "a1")
        trial = await add_trial(conn, await add_experiment(conn))
        attempt = await run_attempt(conn, trial)
        await conn.execute("update agent_presence set last_seen_at = now() - interval '1 hour'")
        lease = await leases.acquire(conn, "timeouts", "test", 3600.0)
    assert lease is not None
    return Place(database, attempt, PassContext(database, lease), Timeouts(POOLS))


async def test_an_agent_that_is_silent_while_somebody_listens_is_given_up(place: Place) -> None:
    """Its containers count as ended by the platform, and its slots stay taken until it says that they are free."""
    await place.looked_last(seconds_ago=5)
    await place.loop.make_pass(place.context, NEWS)
    assert await place.state() == "TERMINATED"
    async with place.db.connection() as conn:
        assert await conn.fetchval("select state from allocations") == "TERMINATED"
        assert "node lost" in await conn.fetchval("select reason from trials")
        assert await conn.fetchval("select restarts from trials") == 0
        assert await conn.fetchval("select count(*) from slots_in_use") == 1


@pytest.mark.parametrize("pool", ["patient", "no longer in the settings"])
async def test_each_pool_has_a_wait_of_its_own(place: Place, pool: str) -> None:
    """Of two agents that are equally silent the one is given up whose pool waits no longer; without a pool the longest
    wait of all holds."""
    async with place.db.transaction() as conn:
        await add_agent(conn, "a2", pool=pool)
        await run_attempt(conn, await add_trial(conn, await add_experiment(conn)), ("a2",))
        await conn.execute("update agent_presence set last_seen_at = now() - interval '1 hour'")
    await place.looked_last(seconds_ago=5)
    await place.loop.make_pass(place.context, NEWS)
    async with place.db.transaction() as conn:
        ended = "select agent_id from containers where state = 'TERMINATED' order by agent_id"
        assert [row["agent_id"] for row in await conn.fetch(ended)] == ["a1"]
        await conn.execute("update agent_presence set last_seen_at = now() - interval '3 hours'")
    await place.loop.make_pass(place.context, NEWS)
    async with place.db.connection() as conn:
        assert [row["agent_id"] for row in await conn.fetch(ended)] == ["a1", "a2"]


async def test_an_agent_that_is_back_since_the_look_keeps_what_it_has(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look and the giving up it was heard of: its container runs on."""
    live_containers = agents.live_containers

    async def heard_meanwhile(conn: Connection, agent_id: str) -> list[str]:
        await conn.execute("update agent_presence set last_seen_at = now()")
        return await live_containers(conn, agent_id)

    monkeypatch.setattr(agents, "live_containers", heard_meanwhile)
    await place.looked_last(seconds_ago=5)
    await place.loop.make_pass(place.context, NEWS)
    assert await place.state() == "RUNNING"


async def test_a_database_that_was_away_does_not_look_like_the_death_of_all_agents(place: Place) -> None:
    """Nobody could be heard meanwhile: agents have their time anew."""
    await place.looked_last(seconds_ago=5)
    await place.loop.make_pass(place.context, EVERYTHING)
    assert await place.state() == "RUNNING"


async def test_a_master_that_was_held_up_begins_to_listen_anew(place: Place) -> None:
    """Stopped, or asleep with its machine, for longer than the wait."""
    await place.looked_last(seconds_ago=3000)
    await place.loop.make_pass(place.context, NEWS)
    assert await place.state() == "RUNNING"


async def test_a_master_that_has_just_started_waits(place: Place) -> None:
    """An outage of ours counts for nobody."""
    await place.loop.make_pass(place.context, NEWS)
    assert await place.state() == "RUNNING"
