"""What becomes of an attempt when its members report, in every order."""

from __future__ import annotations

import pytest

from tenax.jsonvalue import JsonObject
from tenax.lifecycle.container import ContainerState, Ending
from tenax.lifecycle.trial import MAX_FULL_DISKS
from tenax.master.agents import hub
from tenax.master.allocations import events as allocation_events
from tenax.master.allocations import verdicts
from tenax.master.allocations.events import MemberReport
from tenax.master.store.database.connection import Database
from tenax.master.store.trials import rows as trials
from tenax.wire.agents import ContainerReport, Exit
from tests.kits.rows import Attempt, add_agent, add_experiment, add_trial, run_attempt


async def gang(database: Database) -> Attempt:
    """Two running members on two agents."""
    async with database.transaction() as conn:
        for name in ("a1", "a2"):
            await add_agent(conn, name)
        return await run_attempt(conn, await add_trial(conn, await add_experiment(conn)), ("a1", "a2"))


async def exits(database: Database, container_id: str, code: int) -> None:
    async with database.transaction() as conn:
        await allocation_events.members_reported(
            conn, [MemberReport(container_id, ContainerState.TERMINATED, Ending(code))]
        )


async def wants(database: Database, attempt: Attempt) -> list[str]:
    async with database.connection() as conn:
        rows = await conn.fetch(
            "select want from containers where allocation_id = $1 order by rank", attempt.allocation_id
        )
    return [row["want"] for row in rows]


async def test_a_daemon_that_says_so_late_ends_all_the_same(database: Database) -> None:
    """The others had ended before it said that it only helps them: nobody else would ever end it."""
    attempt = await gang(database)
    await exits(database, attempt.containers[0], 0)
    assert await wants(database, attempt) == ["GONE", "RUN"]
    async with database.transaction() as conn:
        await allocation_events.mark_daemon(conn, attempt.allocation_id, attempt.containers[1])
    assert await wants(database, attempt) == ["GONE", "KILL"]


async def test_a_daemon_ends_when_all_others_have(database: Database) -> None:
    """Saying it twice is once; the trial has finished, and is not run again for the end of its daemon."""
    attempt = await gang(database)
    for _ in range(2):
        async with database.transaction() as conn:
            await allocation_events.mark_daemon(conn, attempt.allocation_id, attempt.containers[1])
    assert await wants(database, attempt) == ["RUN", "RUN"]
    await exits(database, attempt.containers[0], 0)
    assert await wants(database, attempt) == ["GONE", "KILL"]
    await exits(database, attempt.containers[1], 137)
    async with database.connection() as conn:
        assert tuple(await conn.fetchrow("select state, restarts from trials")) == ("COMPLETED", 0)


async def test_a_member_that_fails_ends_one_that_has_not_started(database: Database) -> None:
    """Its agent is told to end what it may not even have begun."""
    attempt = await gang(database)
    async with database.transaction() as conn:
        await conn.execute("update containers set state = 'ASSIGNED' where container_id = $1", attempt.containers[1])
    await exits(database, attempt.containers[0], 3)
    assert await wants(database, attempt) == ["GONE", "KILL"]
    async with database.transaction() as conn:
        stopped = Ending(reason="stopped before it was started")
        await allocation_events.members_reported(
            conn, [MemberReport(attempt.containers[1], ContainerState.TERMINATED, stopped)]
        )
        assert await conn.fetchval("select state from allocations") == "TERMINATED"
        assert await conn.fetchval("select restarts from trials") == 1


async def test_a_run_that_was_ended_since_it_hung_failed_for_that(database: Database) -> None:
    """Not for the signal that ended it; it counts. What is said of another run, or did not end it, is no reason."""
    async with database.transaction() as conn:
        await add_agent(conn, "a1")
        trial = await add_trial(conn, await add_experiment(conn, config={"max_restarts": 5}))
    reasons = []
    for run, (said_of, ends) in enumerate([(0, True), (1, True), (3, False)], 1):
        async with database.transaction() as conn:
            await conn.execute("delete from slots_in_use")
            attempt = await run_attempt(conn, trial, ("a1",))
            number = await conn.fetchval("select run_id from trials where id = $1", trial)
            await trials.set_hang(conn, trial, number if said_of else number + 7, "rank 1 stands at x.py:5", ends)
            killed = Ending(None, 9, "killed by SIGKILL")
            members = [MemberReport(attempt.containers[0], ContainerState.TERMINATED, killed)]
            await allocation_events.members_reported(conn, members)
            row = await conn.fetchrow("select reason, restarts from trials where id = $1", trial)
        assert row["restarts"] == run
        reasons.append(row["reason"])
    assert reasons == ["killed by SIGKILL", "it hung: rank 1 stands at x.py:5", "killed by SIGKILL"]


async def test_failures_on_a_full_disk_are_counted_in_the_end(database: Database) -> None:
    """Its agent says so each time: of five in a row the last counts, though each ran for long."""
    async with database.transaction() as conn:
        await add_agent(conn, "a1")
        trial = await add_trial(conn, await add_experiment(conn, config={"max_restarts": 0}))
    for run in range(1, MAX_FULL_DISKS + 1):
        async with database.transaction() as conn:
            await conn.execute("delete from slots_in_use")
            attempt = await run_attempt(conn, trial, ("a1",))
            await conn.execute("update allocations set ready_at = now() - interval '1 hour'")
        reported = Exit(code=3, reason="the disk is full", platform=True, disk_full=True)
        report = ContainerReport(attempt.containers[0], "", 1, "exited", exit=reported)
        async with database.transaction() as conn:
            members = [MemberReport(attempt.containers[0], ContainerState.TERMINATED, hub._ending(report))]
            await allocation_events.members_reported(conn, members)
            row = await conn.fetchrow("select state, restarts, setbacks from trials where id = $1", trial)
        assert tuple(row) == (("ACTIVE", 0, run) if run < MAX_FULL_DISKS else ("ERROR", 0, 0))


async def requested(database: Database) -> list[int]:
    """The trials that wait for slots."""
    async with database.connection() as conn:
        rows = await conn.fetch(
            "select k.trial_id from allocations a join tasks k using (task_id) where a.state = 'PENDING' order by 1"
        )
    return [row["trial_id"] for row in rows]


async def test_what_goes_on_asks_for_its_slots_as_it_frees_them(database: Database) -> None:
    """In a pass of its own it would come after those that have not begun, if the slot is free a moment earlier."""
    async with database.transaction() as conn:
        await add_agent(conn, "a1")
        trial = await add_trial(conn, await add_experiment(conn, config={"max_restarts": 5}))
        attempt = await run_attempt(conn, trial)
    await exits(database, attempt.containers[0], 3)
    assert await requested(database) == [trial]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("update experiments set state = 'PAUSED'", id="paused meanwhile"),
        pytest.param("update experiments set state = 'STOPPING_CANCELED'", id="canceled meanwhile"),
        pytest.param("update trials set wish = 'STOP'", id="stopped by its search"),
        pytest.param("update experiment_documents set config = config || '{\"max_restarts\": 0}'", id="its last"),
    ],
)
async def test_what_does_not_go_on_at_once_asks_for_nothing(database: Database, change: str) -> None:
    async with database.transaction() as conn:
        await add_agent(conn, "a1")
        trial = await add_trial(conn, await add_experiment(conn, config={"max_restarts": 5}))
        attempt = await run_attempt(conn, trial)
        await conn.execute(change)
    await exits(database, attempt.containers[0], 3)
    assert await requested(database) == []


async def test_of_many_that_end_at_once_each_is_left_to_the_loop(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their statements are as many as they are, while all of their locks are held."""
    monkeypatch.setattr(verdicts, "_FEW", 1)
    async with database.transaction() as conn:
        await add_agent(conn, "a1")
        attempts = [
            await run_attempt(conn, await add_trial(conn, await add_experiment(conn, config={"max_restarts": 5})))
            for _ in range(2)
        ]
    async with database.transaction() as conn:
        reports = [MemberReport(each.containers[0], ContainerState.TERMINATED, Ending(3)) for each in attempts]
        await allocation_events.members_reported(conn, reports)
    assert await requested(database) == []
    async with database.connection() as conn:
        assert [row["state"] for row in await conn.fetch("select state from trials")] == ["ACTIVE", "ACTIVE"]


async def test_no_more_ask_again_than_the_search_lets_run_at_once(database: Database) -> None:
    """Of two the one that lives longest, where an older one that had ended was made to go on."""
    searcher: JsonObject = {"name": "random", "metric": "loss", "max_trials": 2, "max_concurrent_trials": 1}
    async with database.transaction() as conn:
        await add_agent(conn, "a1")
        experiment = await add_experiment(conn, config={"searcher": searcher, "max_restarts": 5})
        first = await add_trial(conn, experiment)
        second = await add_trial(conn, experiment, seq=2)
        attempts = [await run_attempt(conn, trial) for trial in (first, second)]
    await exits(database, attempts[1].containers[0], 3)
    assert await requested(database) == []
    await exits(database, attempts[0].containers[0], 3)
    assert await requested(database) == [first]
