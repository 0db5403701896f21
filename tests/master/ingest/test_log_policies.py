"""Policies on output: what a line may set off, once, and in words."""

from __future__ import annotations

import zlib

import pytest
from asyncpg import Connection

from tenax.jsonvalue import JsonObject
from tenax.lifecycle.container import ContainerState, Ending
from tenax.master.allocations import events as allocation_events
from tenax.master.allocations.events import MemberReport
from tenax.master.ingest.log_policies import Rule, matches_in
from tenax.master.store.logs import policies as log_policies
from tenax.master.store.logs.policies import CANCEL_RETRIES, EXCLUDE_NODE, LABEL
from tenax.master.store.trials import lists as trial_lists
from tenax.master.telemetry.log_lines import Origin, OutputLine
from tests.kits import rows
from tests.kits.telemetry import Book

OOM = Rule("OOM", ".*CUDA out of memory.*", LABEL)
POLICIES: list[JsonObject] = [
    {"name": "CUDA OOM", "pattern": ".*CUDA out of memory.*"},
    {"name": "bad data", "pattern": "corrupt (record|shard)", "action": "cancel_retries"},
    {"name": "ECC", "pattern": "uncorrectable ECC", "action": "exclude_node"},
]


@pytest.mark.parametrize(
    ("rule", "texts", "line"),
    [
        (OOM, ["fine", "RuntimeError: CUDA out of memory. Tried"], "RuntimeError: CUDA out of memory. Tried"),
        (OOM, ["cuda OUT of memory"], None),
        (OOM, [], None),
        (OOM, ['log_policies: [{name: x, pattern: ".*CUDA out of memory.*"}]'], None),
        (Rule("a", "^x$", LABEL), ["ax", "x", "xb"], "x"),
        (Rule("a", "a.b", LABEL), ["a", "b"], None),
        (Rule("a", ".*", LABEL), ["anything"], "anything"),
        (Rule("a", ".*?end.*", LABEL), ["the end"], "the end"),
        (Rule("a", r"\Qa.*", LABEL), ["ab", "a.*"], "a.*"),
        (Rule("a", "(", LABEL), ["("], None),
        (Rule("a", r"end\.*", LABEL), ["the end..."], "the end..."),
        (Rule("a", "(?i)bad|worse$", LABEL), ["ok", "BAD"], "BAD"),
    ],
)
def test_which_line_matches(rule: Rule, texts: list[str], line: str | None) -> None:
    """The first one that does, by itself; a policy in print is none."""
    matches = matches_in(texts, [rule], "a1")
    assert [match.line for match in matches] == ([] if line is None else [line])


def test_a_machine_is_excluded_only_where_it_is_known() -> None:
    """A line from nowhere excludes nothing, and still labels."""
    excluding = Rule("ECC", "ECC", EXCLUDE_NODE)
    assert matches_in(["ECC"], [excluding], "") == []
    assert len(matches_in(["ECC"], [excluding, Rule("l", "ECC", LABEL)], "a1")) == 2


async def watched_trial(book: Book) -> int:
    experiment = await book.experiment()
    async with book.database.transaction() as conn:
        await conn.execute(
            "update experiment_documents set config = config || $2 where experiment_id = $1",
            experiment,
            {"log_policies": POLICIES, "max_restarts": 5},
        )
    return await book.trial(experiment=experiment)


async def ship(book: Book, container: str, offset: int, raw: bytes) -> None:
    await book.intake.logs.output("a1", container, "stderr", offset, zlib.compress(raw), final=False)


async def test_a_match_is_recorded_once_and_told(book: Book) -> None:
    """The first line counts; the trial shows the policy, and its log what follows."""
    trial = await watched_trial(book)
    task = await book.run(trial, 1)
    first = b"CUDA out of memory (1)\n"
    await ship(book, task.allocation_id, 0, first)
    await ship(book, task.allocation_id, len(first), b"CUDA out of memory (2)\nuncorrectable ECC error\n")
    async with book.database.connection() as conn:
        matches = await conn.fetch("select policy, action, agent_id, line from log_matches order by matched_at")
        view = await trial_lists.get(conn, trial)
    assert [tuple(match) for match in matches] == [
        ("CUDA OOM", LABEL, "", "CUDA out of memory (1)"),
        ("ECC", EXCLUDE_NODE, "a1", "uncorrectable ECC error"),
    ]
    assert view.log_policy == "CUDA OOM"
    warnings = [line.line.text for line in await book.output(trial) if line.origin.source == "master"]
    assert len(warnings) == 2
    assert "'ECC' matched" in warnings[1]
    assert "not placed on agent a1" in warnings[1]


async def test_lines_of_another_shipper_are_looked_at_too(book: Book) -> None:
    """What a task says itself counts, what the platform says about it does not."""
    trial = await watched_trial(book)
    task = await book.run(trial, 1)
    lines = [OutputLine(1, "corrupt shard", origin=0), OutputLine(1, "corrupt record", origin=1)]
    await book.intake.logs.posted(task.task_id, lines[:1], [Origin(source="agent")])
    async with book.database.connection() as conn:
        assert await log_policies.no_retry(conn, [trial]) == {}
    await book.intake.logs.posted(task.task_id, lines, [Origin(source="agent"), Origin(agent_id="a1")])
    async with book.database.connection() as conn:
        assert await log_policies.no_retry(conn, [trial]) == {trial: "bad data"}
        assert await conn.fetchval("select action from log_matches") == CANCEL_RETRIES


async def _attempt(conn: Connection, trial: int) -> tuple[str, str]:
    attempt = await rows.run_attempt(conn, trial)
    return attempt.allocation_id, attempt.containers[0]


async def test_what_must_not_be_tried_again_is_not(book: Book) -> None:
    """A run that fails after the line ends the trial, with the policy in its reason; without the line it goes on."""
    for text, state in ((b"all is well\n", "ACTIVE"), (b"corrupt record 7\n", "ERROR")):
        trial = await _fresh(book)
        async with book.database.transaction() as conn:
            _, container = await _attempt(conn, trial)
        await ship(book, container, 0, text)
        async with book.database.transaction() as conn:
            ending = Ending(1, None, "exit 1")
            await allocation_events.members_reported(conn, [MemberReport(container, ContainerState.TERMINATED, ending)])
        async with book.database.connection() as conn:
            view = await trial_lists.get(conn, trial)
            stored_state = await conn.fetchval("select state from trials where id = $1", trial)
        assert stored_state == state
        if state == "ERROR":
            assert "'bad data' forbids another try" in view.reason


async def _fails_on_a1(book: Book) -> tuple[str, str]:
    """State and reason of a trial that says what excludes its machine, and fails."""
    trial = await _fresh(book)
    async with book.database.transaction() as conn:
        _, container = await _attempt(conn, trial)
    await ship(book, container, 0, b"uncorrectable ECC error\n")
    async with book.database.transaction() as conn:
        ending = Ending(1, None, "exit 1")
        await allocation_events.members_reported(conn, [MemberReport(container, ContainerState.TERMINATED, ending)])
    async with book.database.connection() as conn:
        row = await conn.fetchrow("select state, reason from trials where id = $1", trial)
    return row["state"], row["reason"]


async def test_a_trial_that_may_run_nowhere_any_more_ends(book: Book) -> None:
    """With the arithmetic: it would wait for ever. With another machine it goes on there, also one that is away."""
    state, reason = await _fails_on_a1(book)
    assert state == "ERROR"
    assert "; log policies excluded a1, and nothing else can run it" in reason
    async with book.database.transaction() as conn:
        await rows.add_agent(conn, "a2")
        await conn.execute("update agent_presence set connected = false where agent_id = 'a2'")
    assert (await _fails_on_a1(book))[0] == "ACTIVE"
    async with book.database.transaction() as conn:
        await conn.execute("update agent_presence set connected = true where agent_id = 'a2'")
        await conn.execute("update agents set state = 'DISABLED' where agent_id = 'a2'")
    assert (await _fails_on_a1(book))[0] == "ERROR"


async def test_the_next_run_is_placed_elsewhere(book: Book) -> None:
    """A request after the match has the agent among those that are blocked; another trial's has not."""
    trial, other = await _fresh(book), await _fresh(book)
    async with book.database.transaction() as conn:
        await rows.add_agent(conn, "a2")
        _, container = await _attempt(conn, trial)
    await ship(book, container, 0, b"uncorrectable ECC error\n")
    async with book.database.transaction() as conn:
        ending = Ending(1, None, "exit 1")
        await allocation_events.members_reported(conn, [MemberReport(container, ContainerState.TERMINATED, ending)])
        again, theirs = await rows.request_attempt(conn, trial), await rows.request_attempt(conn, other)
        blocked = {
            row["allocation_id"]: row["blocked_agents"]
            for row in await conn.fetch("select allocation_id, blocked_agents from allocations")
        }
    assert blocked[again] == ["a1"]
    assert blocked[theirs] == []


async def _fresh(book: Book) -> int:
    """A trial that waits, with policies, and an agent for it."""
    experiment = await book.experiment()
    async with book.database.transaction() as conn:
        await rows.add_agent(conn, slots=4)
        await conn.execute(
            "update experiment_documents set config = config || $2 where experiment_id = $1",
            experiment,
            {"log_policies": POLICIES, "max_restarts": 5},
        )
        return await rows.add_trial(conn, experiment)
