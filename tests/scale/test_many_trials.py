"""What is asked of thousands of trials at once, over a database that is far away."""

from __future__ import annotations

import asyncio
import time

import pytest

from tenax.lifecycle.experiment import ExperimentEvent
from tenax.master.agents.hub import HEARTBEAT_S, Hub
from tenax.master.agents.specs import PoolDefaults
from tenax.master.loops.loop import PassContext
from tenax.master.loops.reconcile_experiments import ReconcileExperiments
from tenax.master.store.agents import rows as agents
from tenax.master.store.cluster import rows as cluster
from tenax.master.store.database import leases
from tenax.master.store.database.connection import Database
from tenax.master.store.database.lanes import AGENTS
from tenax.master.store.database.wakeups import Listener, Woken
from tenax.master.store.experiments import rows as experiments
from tenax.wire.agents import AgentReport, Ping
from tests.kits.master.hub import Talk
from tests.kits.rows import add_agent, add_experiment, add_trial, run_attempt
from tests.kits.slow_link import CountingDatabase, slow_link
from tests.scale.place import scaled, tell

SLOTS = 50
#: Of one transaction, however many trials there are; far from what one per trial would be.
MAX_STATEMENTS = 60
EVERYTHING = Woken(frozenset(), full=True)


async def _fill(database: Database, trials: int) -> tuple[int, dict[str, list[str]]]:
    """An experiment with so many running trials, on agents of fifty slots; the containers of each agent."""
    held: dict[str, list[str]] = {}
    async with database.transaction() as conn:
        number = await add_experiment(conn)
        await add_agent(conn, "bystander")
    for first in range(0, trials, SLOTS):
        agent = f"a{first // SLOTS}"
        async with database.transaction() as conn:
            await add_agent(conn, agent, SLOTS)
            for seq in range(first, min(first + SLOTS, trials)):
                attempt = await run_attempt(conn, await add_trial(conn, number, seq + 1), (agent,))
                held.setdefault(agent, []).extend(attempt.containers)
    return number, held


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("round_trip_ms", [3, pytest.param(100, marks=pytest.mark.long)])
async def test_a_mass_kill(database: Database, database_url: str, round_trip_ms: int) -> None:
    """No transaction grows with the number of trials, and no agent waits to be heard; all of them end."""
    number, held = await _fill(database, scaled(2500, 120))
    trials = sum(map(len, held.values()))
    async with database.transaction() as conn:
        identity = await cluster.ensure(conn, "")
        lease = await leases.acquire(conn, "reconcile_experiments", "test", 3600.0)
        await experiments.ask(conn, number, ExperimentEvent.KILL, "killed")
    assert lease is not None
    async with slow_link(database_url, round_trip_ms / 1e3) as url:
        far = await CountingDatabase.open(url)
        assert isinstance(far, CountingDatabase)
        listening = asyncio.create_task(_heartbeats(far.on(AGENTS), "bystander"))
        began = time.perf_counter()
        await ReconcileExperiments(60.0).make_pass(PassContext(far, lease), EVERYTHING)
        _report("a kill", round_trip_ms, trials, far, began)
        far.transactions.clear()
        began = time.perf_counter()
        await _exits(far, database, held, identity)
        _report("their exits", round_trip_ms, trials, far, began)
        listening.cancel()
        tell("a heartbeat meanwhile", [1e3 * (await listening)], round_trip_ms=round_trip_ms)
        await far.close()


def _report(what: str, round_trip_ms: int, trials: int, far: CountingDatabase, began: float) -> None:
    done = far.transactions
    most = max(each.statements for each in done)
    tell(
        f"a transaction of {what}",
        [each.seconds * 1e3 for each in done],
        round_trip_ms=round_trip_ms,
        trials=trials,
        transactions=len(done),
        statements=sum(each.statements for each in done),
        most_statements=most,
        in_all_s=round(time.perf_counter() - began, 2),
    )
    assert most <= MAX_STATEMENTS


async def _heartbeats(database: Database, agent_id: str) -> float:
    """Until cancelled; the longest."""
    longest = 0.0
    try:
        while True:
            began = time.perf_counter()
            async with Database.transaction(database) as conn:  # not counted
                session = (await agents.standing(conn, agent_id)).session
                assert await agents.heartbeat(conn, agent_id, session)
            longest = max(longest, time.perf_counter() - began)
    except asyncio.CancelledError:
        return longest


async def _exits(far: Database, near: Database, held: dict[str, list[str]], identity: cluster.ClusterRow) -> None:
    """Every agent says at once that all it had was killed."""
    listener = Listener(far)
    hub = Hub(far.on(AGENTS), listener, identity, {"default": PoolDefaults()})
    serving = [asyncio.create_task(listener.run())]
    try:
        for agent, names in held.items():
            talk = Talk(identity)
            served = asyncio.create_task(hub.serve(talk, agent, "127.0.0.1", asyncio.Event()))
            serving += [served, asyncio.create_task(_show_life(talk))]
            talk.hello(slots=SLOTS)
            wanted = asyncio.create_task(talk.wants())
            await asyncio.wait((served, wanted), return_when=asyncio.FIRST_COMPLETED)
            assert wanted.done(), f"the connection of {agent} ended before it was told anything: {served}"
            talk.say(AgentReport(containers=[talk.report(name, "exited", code=137) for name in names]))
        while await _live(near):
            ended = [task for task in serving if task.done()]
            assert not ended, f"{len(ended)} connections ended before their reports were applied: {ended[0]}"
            await asyncio.sleep(0.05)
    finally:
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


async def _show_life(talk: Talk) -> None:
    """As an agent does: one that says nothing for four times as long is taken for dead, and its reports with it."""
    while True:
        await asyncio.sleep(HEARTBEAT_S)
        talk.say(Ping())


async def _live(database: Database) -> int:
    async with database.connection() as conn:
        number: int = await conn.fetchval("select count(*) from trials where state = 'ACTIVE'")
        return number
