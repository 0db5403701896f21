"""The master's end of agents' connections: whose word counts, and what an agent is told of what it does not have."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tenax.master.allocations import events as allocation_events
from tenax.master.store.database.wakeups import notify
from tenax.master.store.machines import rows as machines
from tenax.wire.agents import (
    AgentReport,
    DesiredGone,
    DesiredRun,
    Ping,
)
from tests.kits.cases import answers
from tests.kits.master.hub import Place, place
from tests.kits.rows import add_agent, add_experiment, add_trial, request_attempt, run_attempt

__all__ = ["place"]


async def test_what_ran_is_not_started_again_where_nothing_is_left_of_it(place: Place) -> None:
    """An agent without the container gets no specification: a second start would be of the same run, and its reports
    would be taken for those of the first."""
    talk = place.connect("a1")
    talk.hello()
    want = (await talk.wants())[place.container]
    assert isinstance(want, DesiredRun)
    assert want.spec is None


async def test_an_agent_speaks_for_its_own_containers_only(place: Place) -> None:
    """Another agent's word changes nothing, and what it holds under that name is to go."""
    talk = place.connect("a2")
    talk.hello(talk.report(place.container, "exited", code=1))
    assert isinstance((await talk.wants())[place.container], DesiredGone)
    assert await place.state() == "RUNNING"


@answers("agent_state/duplicate_connection", "TestAgentsDuplicateConnectionIdHandling")
async def test_the_word_of_a_connection_that_was_replaced_does_not_count(place: Place) -> None:
    """It ends by itself."""
    old = place.connect("a1")
    old.hello(old.report(place.container, "running"))
    await old.wants()
    new = place.connect("a1")
    new.hello(new.report(place.container, "running"))
    await new.wants()
    old.say(AgentReport(containers=[old.report(place.container, "exited", code=1)]))
    await place.tasks[-2]
    assert await place.state() == "RUNNING"


async def test_another_machine_with_the_same_credential(place: Place) -> None:
    """A copied image: while the first is heard, the second is refused, and nothing of the first is taken for gone."""
    first = place.connect("a1")
    first.hello(first.report(place.container, "running"), place="boot-1:1:2")
    await first.wants()
    second = place.connect("a1")
    second.hello(place="boot-2:1:2")
    refused = await second.to_agent.get()
    assert "another machine is connected as a1" in refused
    await place.tasks[-1]
    assert await place.state() == "RUNNING"
    again = place.connect("a1")
    again.hello(place="boot-1:1:2")
    await again.wants()


async def test_a_restored_copy_takes_up_what_it_knows_and_keeps_what_it_does_not(place: Place) -> None:
    """An agent that has obeyed more than the database holds raises the generation: the container that the copy knows is
    adopted, the newer one is neither ended nor taken for ours, and all agents are welcomed anew."""
    bystander = place.connect("a2")
    bystander.hello()
    await bystander.wants()
    newer = "00000000-0000-4000-8000-000000000001"
    talk = place.connect("a1")
    talk.hello(talk.report(place.container, "running"), talk.report(newer, "running"), obeyed=(1, 1000))
    wants = await talk.wants()
    assert isinstance(wants[place.container], DesiredRun)
    assert newer not in wants
    async with place.db.transaction() as conn:
        generation = await conn.fetchval("select generation from cluster")
        shown = await conn.fetchval("select foreign_containers from agent_presence where agent_id = 'a1'")
        await notify(conn, "agent", "a2")
    assert generation == 2
    assert [one["container_id"] for one in shown] == [newer]
    await place.tasks[1]
    talk.say(AgentReport(containers=[talk.report(place.container, "exited", code=0)]))
    while await place.state() != "TERMINATED":
        await talk.wants()


async def test_a_copy_that_is_restored_under_a_connection_is_noticed(place: Place) -> None:
    """The agent would not obey what is older than it has obeyed: it is welcomed anew, and obeys that from then on."""
    talk = place.connect("a1")
    talk.hello(talk.report(place.container, "running"))
    await talk.wants()
    async with place.db.transaction() as conn:
        await conn.execute("update agents set revision = revision - 1 where agent_id = 'a1'")
        await notify(conn, "agent", "a1")
    await place.tasks[-1]
    async with place.db.connection() as conn:
        assert await conn.fetchval("select generation from cluster") == 2
    again = place.connect("a1")
    again.hello(again.report(place.container, "running"), obeyed=(1, 1000))
    assert isinstance((await again.wants())[place.container], DesiredRun)


async def test_a_machine_that_the_copy_does_not_know_keeps_what_it_holds(place: Place) -> None:
    """With its first word it has another credential and has obeyed nothing: what it holds proves the older copy."""
    held = "00000000-0000-4000-8000-000000000003"
    async with place.db.transaction() as conn:
        await add_agent(conn, "m-1")
        await conn.execute("delete from agent_presence where agent_id = 'm-1'")
        await conn.execute(
            "insert into machines (machine_id, pool, provider, region, instance_type, slots, state, provider_id)"
            " values ('m-1', 'default', 'aws', 'here', 'type', 0, 'JOINED', 'i-1')"
        )
    talk = place.connect("m-1")
    talk.hello(talk.report(held, "running"))
    assert held not in await talk.wants()
    async with place.db.connection() as conn:
        assert await conn.fetchval("select generation from cluster") == 2
        assert not (await machines.standings(conn))["m-1"].idle
    talk.say(AgentReport(containers=[talk.report(held, "exited", code=0)]))
    async with place.db.connection() as conn:
        while not (await machines.standings(conn))["m-1"].idle:
            talk.say(Ping())
            await asyncio.sleep(0)


async def test_an_unknown_container_is_to_go_at_once(place: Place) -> None:
    """One that shows up in the middle of a connection, of the generation of now."""
    talk = place.connect("a1")
    talk.hello()
    await talk.wants()
    stray = "00000000-0000-4000-8000-000000000002"
    talk.say(AgentReport(containers=[talk.report(stray, "running")]))
    while stray not in (wants := await talk.wants()):
        pass
    assert isinstance(wants[stray], DesiredGone)


async def test_a_report_that_fails_is_tried_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the next sign of life of its agent; what else the agent says is taken meanwhile."""
    apply, failures = allocation_events.members_reported, ["alone", "together"]

    async def failing(*arguments: Any, **more: Any) -> frozenset[str]:
        if failures:
            raise RuntimeError(failures.pop())
        return await apply(*arguments, **more)

    monkeypatch.setattr(allocation_events, "members_reported", failing)
    talk = place.connect("a1")
    talk.hello(talk.report(place.container, "exited", code=0))
    await talk.wants()
    assert await place.state() == "RUNNING"
    talk.say(Ping())
    while await place.state() != "TERMINATED":
        await talk.wants()


async def test_one_broken_row_does_not_cut_off_an_agent(place: Place) -> None:
    """The others are wanted as they should be."""
    async with place.db.transaction() as conn:
        trial = await add_trial(conn, await add_experiment(conn), seq=2)
        await request_attempt(conn, trial)
        broken = (await run_attempt(conn, await add_trial(conn, await add_experiment(conn), seq=3))).containers[0]
        await conn.execute("update containers set state = 'ASSIGNED' where container_id = $1", broken)
        await conn.execute("update trials set hparams = '[1]', seed = 0 where request_id like '%3'")
        await conn.execute(
            "update tasks set trial_id = null from allocations a join containers c using (allocation_id)"
            " where tasks.task_id = a.task_id and c.container_id = $1",
            broken,
        )
    talk = place.connect("a1")
    talk.hello(talk.report(place.container, "running"))
    wants = await talk.wants()
    assert place.container in wants
    assert broken not in wants


async def test_signs_of_life_do_not_wait_for_what_reports_wait_for(place: Place) -> None:
    """A report of an agent waits for a lock, and so does whoever changes what it should run; the agent is heard."""
    talk = place.connect("a1")
    talk.hello(talk.report(place.container, "running"))
    await talk.wants()
    async with place.db.transaction() as conn:
        await conn.execute("update agent_presence set last_seen_at = now() - interval '1 hour'")
    async with place.db.transaction() as conn:
        await conn.execute("select 1 from experiments for update")
        await conn.execute("select 1 from agents for update")
        talk.say(AgentReport(containers=[talk.report(place.container, "exited", code=0)]))
        talk.say(Ping())
        heard = "select last_seen_at > now() - interval '1 minute' from agent_presence where agent_id = 'a1'"
        async with asyncio.timeout(60), place.db.connection() as other:
            while not await other.fetchval(heard):  # noqa: ASYNC110 - the database has no event for it
                await asyncio.sleep(0.01)
        assert await place.state() == "RUNNING"
    while await place.state() != "TERMINATED":
        await talk.wants()
