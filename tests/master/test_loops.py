"""How loops live: what breaks one pass does not end them, and nothing is overlooked for long."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from tenax.backoff import Backoff, background
from tenax.errors import Stale
from tenax.master.loops import lease_keeper
from tenax.master.loops import loop as loops
from tenax.master.loops.lease_keeper import LeaseKeeper
from tenax.master.loops.loop import PassContext, each, run
from tenax.master.store.database import leases
from tenax.master.store.database.connection import Database
from tenax.master.store.database.wakeups import Listener, Woken, notify

Pass = Callable[[int, Woken], Awaitable[float | None]]


class Counting:
    """A loop whose passes are the test's."""

    name = "counting"
    kind = "counted"

    def __init__(self, act: Pass) -> None:
        self._act = act
        self.passes = 0

    async def make_pass(self, context: PassContext, woken: Woken) -> float | None:
        self.passes += 1
        return await self._act(self.passes, woken)


@asynccontextmanager
async def living(
    database: Database,
    act: Pass,
    kind: type[Counting] = Counting,
    on_deaf: Callable[[str], None] = lambda reason: None,
) -> AsyncIterator[asyncio.Task[None]]:
    listener = Listener(database)
    keeper = LeaseKeeper(database, listener, on_deaf)
    tasks = [
        asyncio.create_task(work) for work in (run(kind(act), database, listener, keeper), listener.run(), keeper.run())
    ]
    try:
        yield tasks[0]
    finally:
        alive = set(tasks)
        while alive:
            # Again and again: libraries below can swallow a cancellation.
            for task in alive:
                task.cancel()
            _, alive = await asyncio.wait(alive, timeout=0.5)


async def test_a_pass_that_breaks_does_not_end_its_loop(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect, or a row that nobody thought of, costs a pass: the next one looks at everything again."""
    monkeypatch.setattr(loops, "_BROKEN", Backoff(first=0.01, ceiling=0.1))
    again = asyncio.Event()

    async def act(number: int, woken: Woken) -> float | None:
        if number == 1:
            raise KeyError("nobody thought of this")
        assert woken.full
        again.set()
        return None

    async with living(database, act) as task:
        await again.wait()
        assert not task.done()


async def test_a_busy_loop_still_looks_at_everything(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wake-ups of some objects, however many, do not put off the look at all the others."""
    monkeypatch.setattr(loops, "MAX_WAIT_S", 0.2)
    everything = asyncio.Event()
    looked = 0

    async def act(number: int, woken: Woken) -> float | None:
        nonlocal looked
        if not woken.full and not woken.ids:
            looked += 1
            if looked == 2:
                everything.set()
        async with database.transaction() as conn:
            await notify(conn, "counted", number)
        return None

    async with living(database, act):
        await everything.wait()


async def test_one_object_costs_only_itself() -> None:
    """One that is stale is tried again, one that breaks is left; the others are handled."""
    handled: list[str] = []

    async def handle(name: str) -> None:
        handled.append(name)
        if name == "stale" and handled.count("stale") < 3:
            raise Stale
        if name == "broken":
            raise ValueError("its story")

    await each(["broken", "stale", "good"], handle, loop="test", noun="object")
    assert sorted(handled) == ["broken", "good", "stale", "stale", "stale"]


async def test_a_loop_that_hangs_gives_its_lease_up(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that gets nowhere is cancelled, and another process has the lease at once."""
    monkeypatch.setattr(loops, "STEP_S", 0.2)
    monkeypatch.setattr(loops, "_BROKEN", Backoff(first=60.0, ceiling=60.0))
    cancelled = asyncio.Event()

    async def hang(number: int, woken: Woken) -> float | None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return None

    async with living(database, hang):
        await cancelled.wait()
        await until_taken(database)


async def test_a_loop_that_does_not_let_itself_be_cancelled_loses_its_lease(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is given up, whatever the pass does."""
    monkeypatch.setattr(loops, "STEP_S", 0.1)
    monkeypatch.setattr(lease_keeper, "_RENEW_S", 0.1)
    began, released = asyncio.Event(), asyncio.Event()

    async def hang(number: int, woken: Woken) -> float | None:
        began.set()
        while not released.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await released.wait()
        return None

    async with living(database, hang):
        await began.wait()
        await until_taken(database)
        released.set()


async def test_a_loop_that_does_not_end_is_told_of(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lease is for whoever takes it at once; and who owns the process learns that this one never goes on."""
    monkeypatch.setattr(loops, "STEP_S", 0.1)
    monkeypatch.setattr(lease_keeper, "_RENEW_S", 0.1)
    monkeypatch.setattr(lease_keeper, "_DEAF_S", 0.1)
    began, released = asyncio.Event(), asyncio.Event()
    told: asyncio.Queue[str] = asyncio.Queue()

    async def hang(number: int, woken: Woken) -> float | None:
        began.set()
        while not released.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await released.wait()
        return None

    async with living(database, hang, on_deaf=told.put_nowait):
        await began.wait()
        await until_taken(database)
        assert await told.get() == "the loop counting has hung, and does not end"
        released.set()


async def test_a_pass_that_gets_on_may_take_its_time(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its limit is that of a step: each transaction begins a new one."""
    # Many times what a step takes on a busy machine, and less than the pass.
    monkeypatch.setattr(loops, "STEP_S", 1.0)
    done = asyncio.Event()

    class Steps(Counting):
        async def make_pass(self, context: PassContext, woken: Woken) -> float | None:
            until = time.monotonic() + 1.5 * loops.STEP_S
            while time.monotonic() < until:
                async with context.transaction() as conn:
                    await conn.execute("select pg_sleep(0.05)")
            done.set()
            return None

    async def nothing(number: int, woken: Woken) -> float | None:
        return None

    async with living(database, nothing, Steps):
        await done.wait()


async def until_taken(database: Database) -> None:
    """Until another process has the lease of the loop."""
    while True:
        async with database.transaction() as conn:
            if await leases.acquire(conn, "counting", "another", 60.0) is not None:
                return
        await asyncio.sleep(0.01)


async def test_what_ends_in_the_background_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """By an error or without one; only who cancels it ends it."""
    monkeypatch.setattr(background, "PAUSES", Backoff(first=0.001, ceiling=0.001))
    begun = asyncio.Queue[int]()

    async def work() -> None:
        begun.put_nowait(1)
        if begun.qsize() == 1:
            raise KeyError("nobody thought of this")

    task = asyncio.create_task(background.keep_running("work", work))
    while begun.qsize() < 3:  # noqa: ASYNC110
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
