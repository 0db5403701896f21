"""Agents and slots that are turned off, and agents that are removed, with the loops and the hub at work."""

from __future__ import annotations

import asyncio

import pytest

from tenax.errors import NotNow, Stale
from tenax.ids import AgentId, AllocationId, SlotId
from tenax.jsonvalue import JsonObject
from tenax.master.allocations import events as allocation_events
from tenax.master.store.agents import rows as agents
from tenax.master.store.database.connection import Database
from tenax.master.store.experiments import deletion
from tenax.master.store.queue import jobs, placements
from tenax.master.store.queue.placements import TaskCredentials
from tenax.scheduler.snapshot import PlacedMember
from tenax.wire.agents import ContainerSpec, DesiredGone
from tests.kits.api import Api
from tests.kits.database import until_somebody_waits
from tests.kits.master.attempts import running as attempt_on_a1
from tests.kits.master.cluster import Cluster, report, running, submit
from tests.kits.master.hub import Place, place
from tests.kits.pretend_agent import Script
from tests.kits.rows import add_agent, add_experiment, add_trial, request_attempt

__all__ = ["place"]

SINGLE: JsonObject = {"name": "single", "metric": "loss", "max_length": {"batches": 1}}


class Hands:
    """Containers run until the test lets them end."""

    def __init__(self) -> None:
        self.started: asyncio.Queue[ContainerSpec] = asyncio.Queue()
        self.go_on = asyncio.Event()

    def __call__(self, where: Cluster) -> Script:
        async def script(spec: ContainerSpec) -> int:
            self.started.put_nowait(spec)
            await self.go_on.wait()
            await report(where, spec, 1, 0.5)
            return 0

        return script


async def until_waits(where: Cluster) -> str:
    """Wait until the trial asks for slots again; why its attempt before that ended."""

    async def waits() -> bool:
        return await where.value("select count(*) from allocation_waits") == 1

    await where.until(waits)
    return str(await where.value("select reason from trials"))


async def turn(where: Cluster, state: str) -> None:
    async with where.db.transaction() as conn:
        await agents.set_agent(conn, "one", state)


async def test_an_agent_that_is_turned_off_is_left_at_once(database: Database) -> None:
    """What runs there is ended without being charged a restart, waits, and runs again when it is turned on."""
    hands = Hands()
    async with running(database, hands, slots=1) as where:
        experiment = await submit(database, SINGLE, max_restarts=0)
        first = await hands.started.get()
        await turn(where, "DISABLED")
        assert "agent one was disabled" in await until_waits(where)
        assert await where.value("select restarts from trials") == 0
        assert "only disabled agents" in str(await where.value("select reason from allocation_waits"))
        hands.go_on.set()
        await turn(where, "ENABLED")
        again = await hands.started.get()
        assert again.allocation_id == first.allocation_id.removesuffix("1") + "2"
        assert await where.ended(experiment) == "COMPLETED"

        async def is_free() -> bool:
            return await where.value("select count(*) from slots_in_use") == 0

        await where.until(is_free)


async def test_an_agent_that_is_drained_ends_its_work_and_takes_none(database: Database) -> None:
    """What runs there is not asked to leave; what comes waits."""
    hands = Hands()
    async with running(database, hands, slots=2) as where:
        drained = await submit(database, SINGLE)
        await hands.started.get()
        await turn(where, "DRAINING")
        late = await submit(database, SINGLE)
        await until_waits(where)
        hands.go_on.set()
        assert await where.ended(drained) == "COMPLETED"
        assert (
            await where.value("select preemption from allocations where run_id = 1 and ended_at is not null") == "NONE"
        )
        assert hands.started.empty()
        await turn(where, "ENABLED")
        assert await where.ended(late) == "COMPLETED"


async def test_a_slot_that_is_turned_off_is_left_alone_by_others(database: Database) -> None:
    """What runs on it goes on elsewhere, where there is room."""
    hands = Hands()
    async with running(database, hands, slots=2) as where:
        experiment = await submit(database, SINGLE)
        first = await hands.started.get()
        async with database.transaction() as conn:
            await agents.set_slot(conn, "one", first.slots[0], enabled=False)
        second = await hands.started.get()
        assert second.slots != first.slots
        hands.go_on.set()
        assert await where.ended(experiment) == "COMPLETED"
        assert await where.value("select restarts from trials") == 0


async def test_a_broken_device_takes_nothing_new(database: Database) -> None:
    """What runs on it goes on; whoever enables it does not mend it; the agent that says that it is well again does."""
    hands = Hands()
    async with running(database, hands, slots=1) as where:
        runs = await submit(database, SINGLE)
        await hands.started.get()

        async def said(fault: str) -> None:
            async with database.transaction() as conn:
                await conn.execute("update agent_slots set fault = $1", fault)
                await agents.set_slot(conn, "one", 0, enabled=True)

        await said("its driver has lost it")
        waits = await submit(database, SINGLE)
        await until_waits(where)
        assert (
            await where.value(
                "select preemption from allocations where run_id = 1 and requested_at = "
                "(select min(requested_at) from allocations)"
            )
            == "NONE"
        )
        hands.go_on.set()
        assert await where.ended(runs) == "COMPLETED"
        assert hands.started.empty()
        await said("")
        assert await where.ended(waits) == "COMPLETED"


@pytest.mark.parametrize("closing", ["agent", "slot", "broken", "removed", "moved"])
async def test_what_was_planned_for_a_place_that_was_closed_is_not_placed(database: Database, closing: str) -> None:
    """The plan is old: the request waits on, and nothing is written."""
    async with database.transaction() as conn:
        await add_agent(conn, "a1")
        name = await request_attempt(conn, await add_trial(conn, await add_experiment(conn)))
    async with database.transaction() as conn:
        if closing == "agent":
            await agents.set_agent(conn, "a1", "DRAINING")
        elif closing == "slot":
            await agents.set_slot(conn, "a1", 0, enabled=False, draining=True)
        elif closing == "broken":
            await conn.execute("update agent_slots set fault = 'its driver has lost it' where slot_id = 0")
        elif closing == "moved":
            job_id = await conn.fetchval("select job_id from jobs")
            assert await jobs.set_pool(conn, await jobs.find(conn, job_id), "another") == []
        else:
            await conn.execute("update agent_presence set connected = false")
            await agents.remove(conn, "a1")
    members = [PlacedMember(AgentId("a1"), (SlotId(0),))]
    with pytest.raises(Stale):
        async with database.transaction() as conn:
            await placements.place(conn, AllocationId(name), members, TaskCredentials(b"a" * 32, b"b" * 32))
    async with database.connection() as conn:
        assert await conn.fetchval("select state from allocations") == "PENDING"
        assert await conn.fetchval("select count(*) from containers") == 0


async def test_a_job_that_is_moved_while_it_is_placed_is_asked_to_leave(database: Database) -> None:
    """Nobody else would say so: it would run in the pool that it has left until it ends."""
    async with database.transaction() as conn:
        await add_agent(conn, "a1")
        name = await request_attempt(conn, await add_trial(conn, await add_experiment(conn)))
        job_id = await conn.fetchval("select job_id from jobs")

    async def move() -> list[str]:
        async with database.transaction() as conn:
            return await jobs.set_pool(conn, await jobs.find(conn, job_id), "another")

    async with database.transaction() as conn:
        members = [PlacedMember(AgentId("a1"), (SlotId(0),))]
        await placements.place(conn, AllocationId(name), members, TaskCredentials(b"a" * 32, b"b" * 32))
        moving = asyncio.create_task(move())
        await until_somebody_waits(database)
    assert await moving == [name]


async def test_an_agent_that_is_gone_for_good_can_be_removed(place: Place) -> None:
    """What counted as running there is lost as in any other loss, its slots are gone, its history stays; a machine that
    comes back under its name joins anew, is told what it still holds in vain, and nobody takes it for a copy's."""
    async with place.db.transaction() as conn:
        await conn.execute("update agent_presence set connected = false")
        assert (await agents.presence(conn, "a1")).live == 1
    with pytest.raises(Stale):
        async with place.db.transaction() as conn:
            await agents.remove(conn, "a1")
    assert await place.state() == "RUNNING"
    await lose(place)
    async with place.db.transaction() as conn:
        await conn.execute("update agents set revision = 50")
        await agents.remove(conn, "a1")
    async with place.db.transaction() as conn:
        assert await conn.fetchval("select count(*) from slots_in_use") == 0
        assert await conn.fetchval("select agent_id from usage") == "a1"
        await add_agent(conn, "a1")
    talk = place.connect("a1")
    talk.hello(talk.report(place.container, "running"), obeyed=(1, 50))
    assert isinstance((await talk.wants())[place.container], DesiredGone)
    async with place.db.connection() as conn:
        assert await conn.fetchval("select generation from cluster") == 1
        assert await conn.fetchval("select revision from agents where agent_id = 'a1'") > 50


async def lose(where: Place) -> None:
    async with where.db.transaction() as conn:
        await allocation_events.members_lost(conn, [where.container], "a1", "node lost")


async def test_what_was_to_be_deleted_no_longer_waits_for_an_agent_that_was_removed(place: Place) -> None:
    """An experiment whose container nobody will report gone."""
    await lose(place)
    async with place.db.transaction() as conn:
        number = await conn.fetchval("select id from experiments")
        await conn.execute("update agent_presence set connected = false")
        left = await deletion.remains(conn, number)
        assert left is not None
        assert left.held
        await agents.remove(conn, "a1")
        left = await deletion.remains(conn, number)
        assert left is not None
        assert not left.held


async def test_an_agent_that_is_there_is_not_removed(api: Api) -> None:
    """Nor one whose containers may run, unless that is wanted; only by administrators."""
    attempt = await attempt_on_a1(api)
    path = "/api/v1/agents/a1"
    assert (await api.user.delete(path)).status_code == 403
    assert "is connected" in (await api.admin.delete(path)).text
    async with api.master.db.transaction() as conn:
        await conn.execute("update agent_presence set connected = false")
    assert "may still run" in (await api.admin.delete(path)).text
    reply = await api.admin.ask("DELETE", path, params={"force": "true"})
    assert reply.status_code == 200, reply.text
    assert (await api.admin.delete(path)).status_code == 404
    trial = (await api.user.get(f"/api/v1/trials/{attempt.trial}")).json()["trial"]
    assert trial["restarts"] == 0
    async with api.master.db.connection() as conn:
        assert "was removed" in await conn.fetchval("select reason from trials")
        assert await conn.fetchval("select state from allocations") == "TERMINATED"
    assert (await api.user.get("/api/v1/agents")).json()["agents"] == []


async def test_an_agent_that_came_back_meanwhile_is_not_removed(database: Database) -> None:
    """What was looked at before does not count."""
    async with database.transaction() as conn:
        await add_agent(conn, "a1")
        with pytest.raises(NotNow):
            await agents.remove(conn, "a1")
