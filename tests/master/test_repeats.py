"""What one trial has shown to fail every time is not tried twice by the others of its experiment."""

from __future__ import annotations

from asyncpg import Connection

from tenax.jsonvalue import JsonObject
from tenax.lifecycle.container import ContainerState, Ending
from tenax.master.allocations import events as allocation_events
from tenax.master.allocations.events import MemberReport
from tenax.master.store.allocations import containers
from tenax.master.store.database.connection import Database
from tests.kits.rows import add_agent, add_experiment, add_trial, run_attempt

RANDOM: JsonObject = {"searcher": {"name": "random", "metric": "loss", "max_trials": 9}, "max_restarts": 5}
ASHA: JsonObject = {"searcher": {"name": "adaptive_asha", "metric": "loss"}, "max_restarts": 5}


def raised(what: str = "KeyError: 'lr'", line: int = 3) -> list[str]:
    """Lines of a script that failed so."""
    return ["Traceback (most recent call last):", f'  File "/run/code/train.py", line {line}, in <module>', what]


async def add_search(conn: Connection, config: JsonObject, trials: int, *, given: bool = False) -> tuple[int, ...]:
    """The trials of an experiment; ``given``: whoever submitted it set ``max_restarts``."""
    await add_agent(conn, "a1", slots=8)
    experiment = await add_experiment(conn, config=config)
    await conn.execute(
        "update experiment_documents set max_restarts_given = $2 where experiment_id = $1", experiment, given
    )
    return tuple([await add_trial(conn, experiment, seq) for seq in range(1, trials + 1)])


class Scripts:
    """Scripts that fail, and the last lines that all of them wrote."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lines: dict[str, list[str]] = {}

    async def fail(self, trial: int, lines: list[str] | None = None) -> tuple[str, int, str]:
        """Another run of the trial ends so; state, restarts and reason of the trial."""
        return (await self.fail_together({trial: raised() if lines is None else lines}))[trial]

    async def lose(self, trial: int) -> tuple[str, int, str]:
        """Another run of the trial is ended by the platform, before its script begins."""
        return (await self._end_together({trial: []}, Ending(None, None, "port 29400 is in use", platform=True)))[trial]

    async def fail_together(self, lines: dict[int, list[str]]) -> dict[int, tuple[str, int, str]]:
        """Runs of several trials, in one report."""
        return await self._end_together(lines, Ending(1, None, "exit code 1"))

    async def _end_together(self, lines: dict[int, list[str]], ending: Ending) -> dict[int, tuple[str, int, str]]:
        async with self._database.transaction() as conn:
            await conn.execute("delete from slots_in_use")
            attempts = {trial: await run_attempt(conn, trial) for trial in lines}
            # As `exit_lines` has them: by container, and, of the runs before, by allocation of those after them.
            for trial, attempt in attempts.items():
                self._lines[attempt.containers[0]] = lines[trial]
            before = await containers.failed_before(conn, [attempt.allocation_id for attempt in attempts.values()])
            self._lines |= {attempt: self._lines[run.members[0]] for attempt, run in before.items()}
            members = [
                MemberReport(attempt.containers[0], ContainerState.TERMINATED, ending) for attempt in attempts.values()
            ]
            await allocation_events.members_reported(conn, members, self._lines)
            rows = await conn.fetch("select id, state, restarts, reason from trials where id = any($1)", list(lines))
        return {row["id"]: (row["state"], row["restarts"], row["reason"]) for row in rows}


async def add_step(conn: Connection, trial: int) -> None:
    """Its first run has reported one."""
    await conn.execute(
        "insert into metric_groups (trial_id, grp, month, run_id, last_step, next_ord, newest_step, summary)"
        " values ($1, 'training', 1, 1, 4, 1, 4, '')",
        trial,
    )


async def test_what_two_runs_of_a_trial_have_shown_costs_the_others_none(database: Database) -> None:
    """The same exception at the same place, before any step; the reason names the trial that showed it."""
    scripts = Scripts(database)
    async with database.transaction() as conn:
        first, second, third = await add_search(conn, RANDOM, 3)
        (stranger,) = await add_search(conn, RANDOM, 1)
    assert (await scripts.fail(first))[:2] == ("ACTIVE", 1)
    # One run has shown nothing yet.
    assert (await scripts.fail(second))[:2] == ("ACTIVE", 1)
    state, restarts, reason = await scripts.fail(first)
    assert (state, restarts, "the run before failed at the same place" in reason) == ("ERROR", 1, True)
    state, restarts, reason = await scripts.fail(third, raised("KeyError: 'another word'"))
    assert (state, restarts) == ("ERROR", 0)
    assert f"two runs of trial {first} failed at the same place (KeyError in code/train.py, line 3)" in reason
    assert "continue it if the cause lies outside the code, or set max_restarts" in reason
    assert (await scripts.fail(stranger))[:2] == ("ACTIVE", 1)


async def test_another_failure_or_a_later_one_has_its_two_runs(database: Database) -> None:
    """Of another type or line; and of a trial that came to a step, as it has shown that it need not fail there."""
    scripts = Scripts(database)
    async with database.transaction() as conn:
        first, second, third, fourth = await add_search(conn, RANDOM, 4)
    for _ in range(2):
        await scripts.fail(first)
    assert (await scripts.fail(second, raised(line=4)))[:2] == ("ACTIVE", 1)
    assert (await scripts.fail(third, raised("ValueError: 'lr'")))[:2] == ("ACTIVE", 1)
    async with database.transaction() as conn:
        await add_step(conn, fourth)
    assert (await scripts.fail(fourth))[:2] == ("ACTIVE", 1)
    assert (await scripts.fail(fourth, raised(line=9)))[:2] == ("ACTIVE", 2)
    assert (await scripts.fail(fourth, raised(line=9)))[0] == "ERROR"


async def test_a_place_that_only_a_later_trial_shows_after_steps_is_no_ones_but_its_own(database: Database) -> None:
    """It failed twice after its fourth step: whether others fail there is not known."""
    scripts = Scripts(database)
    async with database.transaction() as conn:
        first, second = await add_search(conn, RANDOM, 2)
        await add_step(conn, first)
    await scripts.fail(first)
    assert (await scripts.fail(first))[0] == "ERROR"
    assert (await scripts.fail(second))[:2] == ("ACTIVE", 1)


async def test_a_run_that_the_platform_ended_is_no_second_chance(database: Database) -> None:
    """Between two failures at the same place: what it ended says nothing of the code."""
    scripts = Scripts(database)
    async with database.transaction() as conn:
        (trial,) = await add_search(conn, RANDOM, 1)
    assert (await scripts.fail(trial))[:2] == ("ACTIVE", 1)
    for _ in range(2):
        assert (await scripts.lose(trial))[:2] == ("ACTIVE", 1)
    assert (await scripts.fail(trial))[:2] == ("ERROR", 1)


async def test_a_given_max_restarts_is_kept_to(database: Database) -> None:
    """Each trial is tried that often."""
    scripts = Scripts(database)
    async with database.transaction() as conn:
        first, second = await add_search(conn, RANDOM, 2, given=True)
    for restarts in range(1, 6):
        assert (await scripts.fail(first))[:2] == ("ACTIVE", restarts)
    assert (await scripts.fail(first))[0] == "ERROR"
    assert (await scripts.fail(second))[:2] == ("ACTIVE", 1)


async def test_what_is_shown_in_a_report_holds_for_all_of_it(database: Database) -> None:
    """Two trials fail at once, one of them for the second time; of a search that cannot go on, a fork is advised."""
    scripts = Scripts(database)
    async with database.transaction() as conn:
        first, second = await add_search(conn, ASHA, 2)
    await scripts.fail(first)
    ends = await scripts.fail_together({first: raised(), second: raised()})
    assert [end[:2] for _, end in sorted(ends.items())] == [("ERROR", 1), ("ERROR", 0)]
    for _, _, reason in ends.values():
        assert "fork it as it is (tenax experiment fork 1) if the cause lies outside the code" in reason
        assert "continue" not in reason


async def test_a_place_that_is_too_long_is_held_against_its_own_trial_alone(database: Database) -> None:
    """A script may write what it likes where Python writes the name of a file."""
    scripts = Scripts(database)
    async with database.transaction() as conn:
        first, second = await add_search(conn, RANDOM, 2)
    lines = [line.replace("train.py", "t" * 9000) for line in raised()]
    await scripts.fail(first, lines)
    assert (await scripts.fail(first, lines))[0] == "ERROR"
    assert (await scripts.fail(second, lines))[:2] == ("ACTIVE", 1)
