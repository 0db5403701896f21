"""Agents that fall silent: whose silence counts, and whose does not."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from asyncpg import Connection

from tenax.config.master import PoolSettings
from tenax.lifecycle.container import ContainerState, Ending
from tenax.lifecycle.listening import Listening
from tenax.master.allocations import events as allocation_events
from tenax.master.allocations.events import MemberReport
from tenax.master.loops.loop import PassContext
from tenax.master.loops.timeouts import Timeouts
from tenax.master.store.agents import rows as agents
from tenax.master.store.database import leases
from tenax.master.store.database.connection import Database, now
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.logs import rows as logs
from tenax.master.store.logs.packing import unpack
from tenax.master.store.trials import lists as trial_lists
from tests.kits.database import hearing, until_somebody_waits
from tests.kits.rows import Attempt, add_agent, add_experiment, add_trial, run_attempt

#: As soon as somebody waits for a lock of another.
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
            return str(
                await conn.fetchval("select state from containers where container_id = $1", self.attempt.containers[0])
            )


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


async def test_a_time_limit_is_kept(place: Place) -> None:
    """It is asked once, with what is left for saving; one that was asked for another reason leaves for that."""
    await place.looked_last(seconds_ago=0)

    async def look(held_s: float, limit_s: float | None) -> tuple[str, bool, str, float | None]:
        async with place.db.transaction() as conn:
            await conn.execute("update jobs set time_limit_s = $1", limit_s)
            await conn.execute("update agent_presence set last_seen_at = now()")
            await conn.execute("update allocations set assigned_at = now() - make_interval(secs => $1)", held_s)
        await place.loop.make_pass(place.context, NEWS)
        async with place.db.connection() as conn:
            row = await conn.fetchrow(
                "select preemption, over_time, preemption_reason,"
                " extract(epoch from preemption_deadline - now())::float8 from allocations"
            )
        return tuple(row)

    assert await look(10_000, None) == ("NONE", False, "", None)
    assert await look(3200, 3600.0) == ("NONE", False, "", None)
    asked = await look(3300, 3600.0)
    assert asked[:3] == ("REQUESTED", True, "its time limit of 1h is almost over")
    # What is for saving is never less than a tenth, though only 300 seconds are left of the limit.
    assert asked[3] == pytest.approx(360, abs=30)


@pytest.mark.parametrize(
    ("before", "over_time", "reason"),
    [
        ("preemption = 'ACKNOWLEDGED'", True, "its time limit of 1h is almost over"),
        (
            "preemption = 'REQUESTED', preemption_reason = 'paused', preemption_deadline = now() + interval '1 day'",
            False,
            "paused",
        ),
    ],
)
async def test_who_leaves_anyhow_keeps_to_the_limit(place: Place, before: str, over_time: bool, reason: str) -> None:
    """By itself, or for another reason, with more time for that: and who was paused does not end for its time."""
    await place.looked_last(seconds_ago=0)
    async with place.db.transaction() as conn:
        await conn.execute("update jobs set time_limit_s = 3600")
        await conn.execute("update agent_presence set last_seen_at = now()")
        await conn.execute(f"update allocations set assigned_at = now() - interval '3300 s', {before}")
    await place.loop.make_pass(place.context, NEWS)
    async with place.db.connection() as conn:
        row = await conn.fetchrow(
            "select over_time, preemption_reason, extract(epoch from preemption_deadline - now())::float8 as left"
            " from allocations"
        )
    assert (row["over_time"], row["preemption_reason"]) == (over_time, reason)
    assert row["left"] == pytest.approx(360, abs=30)


async def test_time_to_save_that_passed_unheard_is_given_anew(place: Place) -> None:
    """A master that was away asks nobody to have saved to nobody; one that was there ends it."""
    for listened_s, state in ((5.0, "RUN"), (300.0, "KILL")):
        async with place.db.connection() as conn:
            moment = (await now(conn)).timestamp()
            await conn.execute("update agent_presence set last_seen_at = now()")
            await conn.execute(
                "update allocations set time_limit_s = 600, over_time = true, preemption = 'REQUESTED',"
                " preemption_deadline = now() - interval '60 s'"
            )
        place.loop._watch = Listening(moment - listened_s, moment)
        await place.loop.make_pass(place.context, NEWS)
        async with place.db.connection() as conn:
            assert await conn.fetchval("select want from containers") == state


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


async def test_what_a_lost_agent_gives_up_lets_others_start(place: Place) -> None:
    """Who waits for an end, not for these slots, is looked at without waiting for the agent."""
    await place.looked_last(seconds_ago=5)
    async with hearing(place.db) as until:
        await place.loop.make_pass(place.context, NEWS)
        await until("scheduling:freed-a1")


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


async def test_an_agent_whose_tasks_live_is_waited_for_longer(place: Place) -> None:
    """It has hung, and its machine has not. Four times as long: then nobody could end what runs there."""
    async with place.db.transaction() as conn:
        await conn.execute("update agent_presence set last_seen_at = now() - interval '40 seconds'")
        await agents.tasks_heard(conn, place.attempt.allocation_id)
    await place.looked_last(seconds_ago=5)
    await place.loop.make_pass(place.context, NEWS)
    assert await place.state() == "RUNNING"
    async with place.db.transaction() as conn:
        await conn.execute("update agent_presence set last_seen_at = now() - interval '101 seconds'")
    await place.loop.make_pass(place.context, NEWS)
    assert await place.state() == "TERMINATED"


async def test_an_agent_whose_tasks_are_silent_as_well_is_given_up(place: Place) -> None:
    """They were heard after it, and not for as long as one waits for an agent."""
    async with place.db.transaction() as conn:
        await agents.tasks_heard(conn, place.attempt.allocation_id)
        await conn.execute(
            "update agent_presence set last_seen_at = now() - interval '50 seconds',"
            " tasks_heard_at = now() - interval '26 seconds'"
        )
    await place.looked_last(seconds_ago=5)
    await place.loop.make_pass(place.context, NEWS)
    assert await place.state() == "TERMINATED"


@pytest.mark.parametrize("wish", ["containers set want = 'KILL'", "allocations set state = 'TERMINATING'"])
async def test_where_somebody_waits_for_an_end_no_task_speaks_for_its_agent(place: Place, wish: str) -> None:
    """Whoever kills a task does not wait four times as long."""
    async with place.db.transaction() as conn:
        await conn.execute(f"update {wish}")
        await agents.tasks_heard(conn, place.attempt.allocation_id)
        assert await conn.fetchval("select tasks_heard_at from agent_presence") is None


async def test_a_run_on_several_machines_speaks_for_none_of_their_agents(place: Place) -> None:
    """One credential is that of all its members: who asks may be the other one."""
    async with place.db.transaction() as conn:
        await add_agent(conn, "a2")
        gang = await run_attempt(conn, await add_trial(conn, await add_experiment(conn)), ("a1", "a2"))
        await agents.tasks_heard(conn, gang.allocation_id)
        assert await conn.fetchval("select count(*) from agent_presence where tasks_heard_at is not null") == 0


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


async def test_an_agent_that_is_heard_while_its_loss_waits_for_a_lock_keeps_what_it_has(place: Place) -> None:
    """Whether it is silent is asked once everything is locked."""
    await place.looked_last(seconds_ago=5)
    async with place.db.transaction() as conn:
        await conn.execute("select 1 from experiments for update")
        passing = asyncio.ensure_future(place.loop.make_pass(place.context, NEWS))
        await until_somebody_waits(place.db)
        async with place.db.connection() as other:
            await other.execute("update agent_presence set last_seen_at = now()")
    await passing
    assert await place.state() == "RUNNING"


@dataclass
class Gang:
    """Two members on two agents; the first has just failed, and nothing was heard of the other's agent for a while."""

    place: Place
    trial: int
    attempt: Attempt

    async def unheard(self, seconds: float) -> None:
        async with self.place.db.transaction() as conn:
            await conn.execute(
                "update agent_presence set last_seen_at = now() - make_interval(secs => $1) where agent_id = 'g2'",
                seconds,
            )

    async def look(self) -> tuple[str | None, str, int]:
        """After a pass: why it waits, its reason, its restarts."""
        await self.place.looked_last(seconds_ago=5)
        await self.place.loop.make_pass(self.place.context, NEWS)
        async with self.place.db.connection() as conn:
            view = await trial_lists.get(conn, self.trial)
        return view.wait_reason, view.reason, view.restarts

    async def log(self) -> str:
        async with self.place.db.connection() as conn:
            task = await logs.task_of_trial(conn, self.trial)
            assert task is not None
            spans = await logs.spans(conn, await logs.place_of(conn, task), limit=10)
        return "\n".join(line.text for span in spans for line in unpack(span.chunk))


@pytest.fixture
async def gang(place: Place) -> Gang:
    async with place.db.transaction() as conn:
        await conn.execute("update agent_presence set last_seen_at = now()")
        for name in ("g1", "g2"):
            await add_agent(conn, name)
        trial = await add_trial(conn, await add_experiment(conn), seq=2)
        attempt = await run_attempt(conn, trial, ("g1", "g2"))
    async with place.db.transaction() as conn:
        failed = MemberReport(attempt.containers[0], ContainerState.TERMINATED, Ending(1, None, "NCCL error"))
        await allocation_events.members_reported(conn, [failed])
    return Gang(place, trial, attempt)


async def test_the_failure_of_a_member_waits_for_an_agent_that_is_not_heard(gang: Gang) -> None:
    """It says so; and when the machine is lost, the platform has failed and nothing is counted."""
    await gang.unheard(12.0)
    waits, _, _ = await gang.look()
    assert waits is not None
    assert "rank 0 failed, and agent g2 is not heard" in waits
    await gang.look()
    assert (await gang.log()).count("agent g2 is not heard") == 1
    await gang.unheard(3600.0)
    waits, reason, restarts = await gang.look()
    assert (waits, restarts) == (None, 0)
    assert "node lost: no sign of life from agent g2" in reason


async def test_the_failure_of_a_member_counts_where_the_other_was_heard_after_it(gang: Gang) -> None:
    """Its machine was lost later, which changes nothing."""
    async with gang.place.db.transaction() as conn:
        await conn.execute("update containers set ended_at = now() - interval '2 hours' where ended_at is not null")
    await gang.unheard(3600.0)
    _, reason, restarts = await gang.look()
    assert restarts == 1
    assert "NCCL error" in reason


async def test_an_agent_whose_end_nobody_could_write_is_not_connected(database: Database) -> None:
    """Its master was killed, or the database was away: nothing is placed on it until it is heard again."""
    async with database.transaction() as conn:
        await add_agent(conn, "a1")
        await add_agent(conn, "a2")
        await conn.execute("update agent_presence set last_seen_at = now() - interval '1 hour' where agent_id = 'a1'")
        lease = await leases.acquire(conn, "timeouts", "test", 3600.0)
        moment = (await now(conn)).timestamp()
    assert lease is not None
    connected = "select array_agg(agent_id order by agent_id) from agent_presence where connected"
    loop, context = Timeouts(POOLS), PassContext(database, lease)
    await loop.make_pass(context, EVERYTHING)
    async with database.connection() as conn:
        # It has listened for a moment only: the agent may just not have come yet.
        assert await conn.fetchval(connected) == ["a1", "a2"]
    loop._watch = Listening(moment - 60, moment)
    await loop.make_pass(context, NEWS)
    async with database.transaction() as conn:
        assert await conn.fetchval(connected) == ["a2"]
        session = await conn.fetchval("select session from agent_presence where agent_id = 'a1'")
    async with hearing(database) as until, database.connection() as conn:
        assert await agents.heartbeats(conn, {("a1", session), ("a2", session)})
        assert await conn.fetchval(connected) == ["a1", "a2"]
        assert await until("scheduling:") == ["agent:a1", "scheduling:"]
