"""Of several members one fails, and the others with it: whose reason the run's is, and where it is said to be."""

from __future__ import annotations

import zlib

import pytest

from tenax.lifecycle.container import ContainerState, Ending
from tenax.master.allocations import events as allocation_events
from tenax.master.allocations.events import MemberReport
from tenax.master.store.allocations import containers
from tests.kits.rows import Attempt, add_agent, add_experiment, add_trial, run_attempt
from tests.kits.telemetry import Book

TRACEBACK = ["Traceback (most recent call last):", '  File "train.py", line 9, in <module>']
FOLLOWS = [*TRACEBACK, "ConnectionResetError: gone"]


async def gang(book: Book) -> tuple[int, Attempt]:
    """A trial with members on the agents a1 and a2."""
    async with book.database.transaction() as conn:
        for name in ("a1", "a2"):
            await add_agent(conn, name)
        trial = await add_trial(conn, await add_experiment(conn))
        return trial, await run_attempt(conn, trial, ("a1", "a2"))


async def writes(book: Book, attempt: Attempt, rank: int, lines: list[str]) -> None:
    raw = "".join(f"{line}\n" for line in lines).encode()
    await book.intake.logs.output(f"a{rank + 1}", attempt.containers[rank], "stderr", 0, zlib.compress(raw))


async def ends(book: Book, attempt: Attempt, rank: int, ending: Ending) -> None:
    reports = [MemberReport(attempt.containers[rank], ContainerState.TERMINATED, ending)]
    async with book.database.connection() as conn:
        lines = await allocation_events.lines_of_failed(conn, reports)
    async with book.database.transaction() as conn:
        await allocation_events.members_reported(conn, reports, lines)


async def verdict(book: Book, trial: int) -> str:
    """What the log says of the run's end."""
    return (await book.output(trial))[-1].line.text


@pytest.mark.parametrize(
    ("written", "code", "expected"),
    [
        ([], 3, "run 1 has ended: exited with code 3, container rank 1 on agent a2; the trial goes on"),
        (
            ["a warning"],
            1,
            "exited with code 1, container rank 1 on agent a2; its last line of error output: a warning",
        ),
        (
            [*TRACEBACK, "ValueError: bad"],
            1,
            "your code raised ValueError: bad (exited with code 1, container rank 1 on agent a2)",
        ),
    ],
)
async def test_what_breaks_in_the_others_is_no_reason(book: Book, written: list[str], code: int, expected: str) -> None:
    """Though they wrote more, and later; nor is a line of theirs shown for it."""
    trial, attempt = await gang(book)
    if written:
        await writes(book, attempt, 1, written)
    await writes(book, attempt, 0, FOLLOWS)
    await ends(book, attempt, 1, Ending(code=code, reason=f"exited with code {code}"))
    await ends(book, attempt, 0, Ending(signal=9, reason="killed by signal 9"))
    assert expected in await verdict(book, trial)
    async with book.database.connection() as conn:
        assert await containers.last_failed(conn, trial) == [attempt.containers[1]]


async def test_the_reason_is_of_the_member_that_is_named(book: Book) -> None:
    """Members that break at the same time are told apart: what one raised is not said of another."""
    trial, attempt = await gang(book)
    await writes(book, attempt, 0, FOLLOWS)
    await writes(book, attempt, 1, [*TRACEBACK, "ValueError: bad"])
    failed = Ending(code=1, reason="exited with code 1")
    reports = [[MemberReport(name, ContainerState.TERMINATED, failed)] for name in attempt.containers]
    async with book.database.connection() as conn:
        lines = [await allocation_events.lines_of_failed(conn, each) for each in reports]
    for report, read in zip(reports, lines, strict=True):
        async with book.database.transaction() as conn:
            await allocation_events.members_reported(conn, report, read)
    said = await verdict(book, trial)
    assert "ConnectionResetError: gone (exited with code 1, container rank 0 on agent a1)" in said


async def test_a_machine_that_cannot_start_its_member_is_named(book: Book) -> None:
    """Also where it is the platform's failure, whose words leave it out; where they have it, it is not said twice."""
    trial, attempt = await gang(book)
    await ends(book, attempt, 1, Ending(reason="could not prepare its directory: no space left", platform=True))
    await ends(book, attempt, 0, Ending(signal=9, reason="killed by signal 9"))
    said = await verdict(book, trial)
    assert "could not prepare its directory: no space left, container rank 1 on agent a2; the trial goes on" in said
