"""Output of tasks: taken in once, split into lines, joined, searched, followed."""

from __future__ import annotations

import asyncio
import itertools
import random
import zlib

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from tenax.config.master import BudgetSettings
from tenax.errors import InvalidInput, NotFound
from tenax.lifecycle.experiment import ExperimentState
from tenax.lifecycle.trial import TrialExit, TrialState, TrialVerdict
from tenax.master.ingest.budget import usage_of
from tenax.master.reading.log_search import LogFilters, Pattern, rendered, search
from tenax.master.reading.log_stream import LogQuery, LogReads, LogSource, read
from tenax.master.store.database.wakeups import Listener
from tenax.master.store.logs import packing as log_packing
from tenax.master.store.logs import rows as logs
from tenax.master.store.logs.rows import append_system_line, still_speaks_s
from tenax.master.store.trials import rows as trials
from tenax.master.store.trials.rows import Conclusion
from tenax.master.telemetry.log_lines import NO_RANK, Origin, OutputLine, lines_of, read_head
from tests.kits.cases import answers
from tests.kits.database import until_held
from tests.kits.slow_link import CountingDatabase
from tests.kits.telemetry import Book


def texts(raw: bytes, carry: bytes = b"", *, final: bool = True) -> list[str]:
    return lines_of(raw, carry, final=final)[0].texts


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b"no end", ["no end"]),
        (b"\n\na\n", ["", "", "a"]),
        (b"windows\r\nline\r\n", ["windows", "line"]),
        (b" 10%\r 50%\r100%\nnext\n", ["100%", "next"]),
        (b"10%\r20%\r", ["20%"]),
        (b"caf\xc3\xa9 \xff\n", ["caf\u00e9 \ufffd"]),
        (b"nul \x00\n", ["nul \x00"]),
        (b"x" * 70_000 + b"\n", ["x" * 65536, "x" * 4464]),
    ],
)
def test_output_becomes_lines(raw: bytes, expected: list[str]) -> None:
    """Progress is collapsed to its last state, what is not text is replaced, long lines are cut."""
    assert texts(raw) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[rank=3] INFO: go", (3, 3, "go")),
        ("[rank=0] go", (0, 0, "go")),
        ("ERROR: no", (NO_RANK, 5, "no")),
        ("ERRORS: many", (NO_RANK, 0, "ERRORS: many")),
        ("say INFO: x", (NO_RANK, 0, "say INFO: x")),
        ("", (NO_RANK, 0, "")),
        ("WARNING:", (NO_RANK, 4, "")),
    ],
)
def test_a_line_says_rank_and_level(text: str, expected: tuple[int, int, str]) -> None:
    """Only at its beginning, rank first."""
    assert read_head(text) == expected


@given(st.binary(max_size=300).filter(lambda raw: b"\r" not in raw), st.lists(st.integers(0, 300), max_size=6))
def test_lines_do_not_depend_on_how_output_was_cut(raw: bytes, cuts: list[int]) -> None:
    """The same bytes in any pieces are the same lines."""
    carry, collected = b"", []
    places = sorted({0, len(raw), *(cut for cut in cuts if cut < len(raw))})
    for start, end in itertools.pairwise(places):
        some, carry = lines_of(raw[start:end], carry, final=False)
        collected += some.texts
    collected += lines_of(b"", carry, final=True)[0].texts
    assert collected == texts(raw)


LINES = st.builds(
    OutputLine,
    st.integers(0, 2**50),
    st.text(st.characters(exclude_characters="\n", exclude_categories=("Cs",)), max_size=20),
    st.integers(0, 6),
    st.integers(-1, 2**31 - 1),
    st.integers(0, 1),
)


@given(st.lists(st.lists(LINES, min_size=1, max_size=5), min_size=1, max_size=4))
def test_packed_lines_come_back_also_joined(parts: list[list[OutputLine]]) -> None:
    """Every field of every line, and who spoke."""
    origins = [Origin("a1", "c1", "g1", "task", "stdout"), Origin("a1", "", "", "master")]
    chunks = [log_packing.pack(lines, origins) for lines in parts]
    assert [log_packing.unpack(chunk) for chunk in chunks] == parts
    assert log_packing.unpack(log_packing.join(chunks)) == [line for lines in parts for line in lines]
    assert log_packing.origins_from_json(log_packing.origins_to_json(origins)) == tuple(origins)  # type: ignore[arg-type]


async def ship(
    book: Book,
    container: str,
    offset: int,
    raw: bytes,
    *,
    gone_from: int = 0,
    final: bool = False,
    stream: str = "stdout",
) -> int:
    body = zlib.compress(raw)
    return await book.intake.logs.output("a1", container, stream, offset, body, gone_from=gone_from, final=final)


async def shown(book: Book, trial: int, query: LogQuery | None = None) -> list[str]:
    return [line.line.text for line in await book.output(trial, query)]


async def test_output_sent_again_is_stored_once(book: Book) -> None:
    """A chunk again, an overlap, many at once: each byte counts once, and offsets tell where to go on."""
    trial = await book.trial()
    container = (await book.run(trial, 1)).allocation_id
    raw = b"one\ntwo\nthr"
    assert await asyncio.gather(*(ship(book, container, 0, raw) for _ in range(4))) == [11] * 4
    assert await ship(book, container, 4, b"two\nthree\nfour") == 18
    assert await book.intake.logs.offsets("a1", container) == {"stdout": 18, "stderr": 0}
    assert await ship(book, container, 18, b"", final=True) == 18
    assert await shown(book, trial) == ["one", "two", "three", "four"]


async def test_after_a_gap_the_agent_goes_back_or_the_loss_is_told(book: Book) -> None:
    """It is asked to go back as long as it does not say that the bytes are gone; then a line says how many."""
    trial = await book.trial()
    container = (await book.run(trial, 1)).allocation_id
    assert await ship(book, container, 0, b"one\nhal") == 7
    assert await ship(book, container, 20, b"later\n", gone_from=20) == 7
    assert await ship(book, container, 20, b"later\n", gone_from=7) == 26
    assert await shown(book, trial) == [
        "one",
        "hal",
        "[13 bytes of output are missing here: they were dropped]",
        "later",
    ]


async def test_what_cannot_be_output_is_refused(book: Book) -> None:
    """Another agent's container, an unknown stream, what is not compressed, what is cut off or far too long."""
    trial = await book.trial()
    container = (await book.run(trial, 1)).allocation_id
    with pytest.raises(NotFound):
        await book.intake.logs.output("a2", container, "stdout", 0, b"", final=False)
    with pytest.raises(InvalidInput, match="stdlog"):
        await ship(book, container, 0, b"", stream="stdlog")
    with pytest.raises(InvalidInput, match="gone"):
        await ship(book, container, 3, b"x\n", gone_from=4)
    for body in (b"plain", zlib.compress(b"x" * 100)[:-4], zlib.compress(b"x" * 2**24)):
        with pytest.raises(InvalidInput):
            await book.intake.logs.output("a1", container, "stdout", 0, body, final=False)


async def test_system_lines_stand_among_the_others(book: Book) -> None:
    """In the order in which they came, with their level, in the transaction of what they tell of."""
    trial = await book.trial()
    task = await book.run(trial, 1)
    await ship(book, task.allocation_id, 0, b"before\n")
    async with book.database.transaction() as conn:
        await append_system_line(conn, task.task_id, "it failed:\nfor this reason", "ERROR")
    await ship(book, task.allocation_id, 7, b"after\n")
    output = await book.output(trial)
    assert [line.line.text for line in output] == ["before", "it failed:", "for this reason", "after"]
    assert [line.origin.source for line in output] == ["task", "master", "master", "task"]
    assert [line.number for line in output] == [0, 1, 2, 3]
    assert rendered(output[1]).endswith("Z]          || ERROR: it failed:\n")
    assert f" {task.allocation_id[:8]} || before\n" in rendered(output[0])


async def test_small_chunks_are_joined_and_read_the_same(book: Book) -> None:
    """Numbers, order and content of lines stay; there are fewer chunks."""
    trial = await book.trial()
    task = await book.run(trial, 1)
    offset = 0
    for number in range(70):
        offset = await ship(book, task.allocation_id, offset, f"line {number}\n".encode())
    async with book.database.connection() as conn:
        place = await logs.place_of(conn, task.task_id)
    await book.intake.logs.join(place)
    async with book.database.connection() as conn:
        chunks = await conn.fetchval("select count(*) from log_chunks where task_id = $1", task.task_id)
    assert chunks < 10
    await ship(book, task.allocation_id, offset, b"line 70\n")
    output = await book.output(trial)
    assert [line.number for line in output] == list(range(71))
    assert [line.line.text for line in output] == [f"line {number}" for number in range(71)]


@pytest.fixture
async def spoken(book: Book) -> int:
    """A trial with some output."""
    trial = await book.trial()
    task = await book.run(trial, 1)
    await ship(book, task.allocation_id, 0, b"[rank=0] INFO: epoch 1\n[rank=1] INFO: epoch 1\nplain (x)\n")
    await ship(book, task.allocation_id, 0, b"ERROR: Bad Luck\n", stream="stderr")
    async with book.database.transaction() as conn:
        await append_system_line(conn, task.task_id, "placed on a1", allocation_id=task.allocation_id)
    return trial


@pytest.mark.parametrize(
    ("filters", "limit", "descending", "expected"),
    [
        (LogFilters(), None, False, ["epoch 1", "epoch 1", "plain (x)", "Bad Luck", "placed on a1"]),
        (LogFilters(), 2, False, ["epoch 1", "epoch 1"]),
        (LogFilters(), 2, True, ["placed on a1", "Bad Luck"]),
        (LogFilters(ranks=frozenset({1})), None, False, ["epoch 1"]),
        (LogFilters(levels=frozenset({5})), None, False, ["Bad Luck"]),
        (LogFilters(levels=frozenset({0})), None, False, ["plain (x)"]),
        (LogFilters(stdtypes=frozenset({"stderr"})), None, False, ["Bad Luck"]),
        (LogFilters(sources=frozenset({"master"})), None, False, ["placed on a1"]),
        (LogFilters(agent_ids=frozenset({"a1"})), None, True, ["Bad Luck", "plain (x)", "epoch 1", "epoch 1"]),
        (LogFilters(agent_ids=frozenset({"a9"})), None, False, []),
        (LogFilters(text="bad luck"), None, False, ["Bad Luck"]),
        (LogFilters(text="(x"), None, False, ["plain (x)"]),
        (LogFilters(text=r"^epoch \d$", regex=True), None, False, ["epoch 1", "epoch 1"]),
        (LogFilters(text=r"\Aplai", regex=True), None, False, ["plain (x)"]),
        (LogFilters(text=r"(?i)BAD|on a\d", regex=True), 1, False, ["Bad Luck"]),
        (LogFilters(after_us=2**60), None, False, []),
        (LogFilters(before_us=0), None, False, []),
    ],
)
async def test_readers_get_what_they_ask_for(
    book: Book, spoken: int, filters: LogFilters, limit: int | None, descending: bool, expected: list[str]
) -> None:
    """Every filter, the first lines, the last lines."""
    assert await shown(book, spoken, LogQuery(filters, limit, descending=descending)) == expected


def test_a_broken_pattern_is_the_users_mistake() -> None:
    """It is refused with what is wrong; one that would take for ever elsewhere is no trouble."""
    with pytest.raises(InvalidInput, match="missing"):
        LogFilters(text="(", regex=True)
    chunk = log_packing.pack([OutputLine(0, "a" * 5000 + "!")], [Origin()])
    assert search(logs.LogSpan(0, chunk), LogFilters(text="(a*)*b$", regex=True), -1, 10) == []


PATTERNS = [
    "a",
    "^a",
    "a$",
    "^a$",
    "a*",
    "^$",
    "[^b]+",
    "a.b",
    r"(?s)a.b",
    r"\Aa",
    r"b\z",
    "a|b$",
    "(?i)A",
    "(?-i)^b",
    "\n",
    r"\s",
]


@given(st.lists(st.text("ab \u00e9", max_size=4), min_size=1, max_size=6), st.sampled_from(PATTERNS))
def test_a_pattern_finds_the_lines_that_it_matches(lines: list[str], pattern: str) -> None:
    """Tried on many lines at once it finds what it finds line by line."""
    places = Pattern(pattern).lines("\n".join(lines).encode())
    assert places == [place for place, line in enumerate(lines) if re2.search(pattern, line)]


@answers("task_services/log_follow", "trial with 3 tasks (continuations), 9 lines each", "follow")
async def test_following_ends_with_the_task(book: Book) -> None:
    """What is written meanwhile arrives; after the task's end the rest comes, and then the end.

    A trial that goes on has one log for all its tasks ("task_services/log_follow").
    """
    trial = await book.trial()
    task = await book.run(trial, 1)
    listener = Listener(book.database)
    listening = asyncio.create_task(listener.run())
    await listener.connected()
    await ship(book, task.allocation_id, 0, b"first\n")
    lines = read(
        LogReads(book.database),
        listener,
        book.intake.threads,
        LogSource(task.task_id),
        LogQuery(LogFilters(), follow=True),
        asyncio.Event(),
    )
    assert [line.line.text for line in await anext(lines)] == ["first"]
    waiting = asyncio.ensure_future(anext(lines))
    await ship(book, task.allocation_id, 6, b"second\n")
    assert [line.line.text for line in await waiting] == ["second"]
    async with book.database.transaction() as conn:
        await append_system_line(conn, task.task_id, "over")
        await conn.execute("update tasks set ended_at = now() - interval '1 minute' where task_id = $1", task.task_id)
    rest = [line.line.text async for some in lines for line in some]
    assert rest == ["over"]
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)


async def test_everyone_who_follows_has_every_line(book: Book, database_url: str) -> None:
    """Once and in order, and the end; what several wait for is read once."""
    task = await book.run(await book.trial(), 1)
    counted = await CountingDatabase.open(database_url, max_connections=8)
    assert isinstance(counted, CountingDatabase)
    listener = Listener(counted)
    listening = asyncio.create_task(listener.run())
    await listener.connected()
    reads = LogReads(counted)

    async def follow(seen: list[str]) -> None:
        query = LogQuery(LogFilters(), follow=True)
        lines = read(reads, listener, book.intake.threads, LogSource(task.task_id), query, asyncio.Event())
        async for some in lines:
            seen += [line.line.text for line in some]

    everyone: list[list[str]] = [[] for _ in range(20)]
    following = [asyncio.ensure_future(follow(seen)) for seen in everyone]
    offset = 0
    for number in range(30):
        offset = await ship(book, task.allocation_id, offset, b"".join(b"%d %d\n" % (number, n) for n in range(10)))
    await until_held(listener, "logs", task.task_id, *following)
    counted.reads.clear()
    await ship(book, task.allocation_id, offset, b"last\n")
    while any(seen[-1] != "last" for seen in everyone):  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert len(counted.reads) < len(following)
    async with book.database.transaction() as conn:
        await append_system_line(conn, task.task_id, "over")
        await conn.execute("update tasks set ended_at = now() - interval '1 minute' where task_id = $1", task.task_id)
    expected = [f"{number} {n}" for number in range(30) for n in range(10)]
    await asyncio.gather(*following)
    assert everyone == [[*expected, "last", "over"]] * 20
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    await counted.close()


async def test_following_ends_with_a_trial_that_never_ran(book: Book) -> None:
    """It ends without a word in its log: whoever follows is woken all the same, and has nothing to wait for."""
    trial = await book.trial()
    listener = Listener(book.database)
    listening = asyncio.create_task(listener.run())
    await listener.connected()
    async with book.database.connection() as conn:
        task_id = await conn.fetchval("select task_id from trials where id = $1", trial)
    query = LogQuery(LogFilters(), follow=True)
    lines = read(LogReads(book.database), listener, book.intake.threads, LogSource(task_id), query, asyncio.Event())
    end = asyncio.ensure_future(anext(lines, None))
    await until_held(listener, "logs", task_id, end)
    async with book.database.transaction() as conn:
        killed = TrialVerdict(TrialState.CANCELED, 0, "killed", TrialExit.USER_CANCELED)
        conclusion = Conclusion(await trials.lock(conn, trial), killed, ExperimentState.ACTIVE)
        await trials.conclude(conn, [conclusion])
    async with asyncio.timeout(60):
        assert await end is None
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)


async def test_how_long_lines_may_still_come(book: Book) -> None:
    """Until the end; of what is trained elsewhere, which sends its last lines later, some seconds more."""
    trial = await book.trial()
    async with book.database.transaction() as conn:
        task_id = await conn.fetchval("select task_id from trials where id = $1", trial)
        assert await still_speaks_s(conn, task_id) is None
        await conn.execute("update tasks set ended_at = now() where task_id = $1", task_id)
        assert await still_speaks_s(conn, task_id) == 0
        await conn.execute("update experiments set unmanaged = true")
        assert await still_speaks_s(conn, task_id) == 5
        await conn.execute("update tasks set ended_at = now() - interval '6 seconds' where task_id = $1", task_id)
        assert await still_speaks_s(conn, task_id) == -1
        assert await still_speaks_s(conn, "gone") == 0


async def test_following_ends_when_the_master_does(book: Book) -> None:
    """A master that is asked to end does not wait for the ends of tasks."""
    trial = await book.trial()
    task = await book.run(trial, 1)
    stop = asyncio.Event()
    lines = read(
        LogReads(book.database),
        Listener(book.database),
        book.intake.threads,
        LogSource(task.task_id),
        LogQuery(LogFilters(), follow=True),
        stop,
    )
    waiting = asyncio.ensure_future(anext(lines, None))
    stop.set()
    assert await waiting is None


async def test_room_that_deleted_output_left_is_room(book: Book) -> None:
    """The files stay as large as they were, and what comes is written into them."""
    measure = usage_of(book.database, BudgetSettings(log_bytes=2**20))
    task = await book.run(await book.trial(), 1)
    noise = random.Random(7).randbytes(2**20).hex().encode()
    offset = 0
    while offset < len(noise):
        offset = await ship(book, task.allocation_id, offset, noise[offset : offset + 2**18])
    await ship(book, task.allocation_id, offset, b"", final=True)
    assert (await measure()).logs >= 2**20
    async with book.database.transaction() as conn:
        await conn.execute("delete from log_chunks")
    assert (await measure()).logs == 0
