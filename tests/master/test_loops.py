"""How loops live: what breaks one pass does not end them, and nothing is overlooked for long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from tenax.backoff import Backoff
from tenax.errors import Stale
from tenax.master.loops import loop as loops
from tenax.master.loops.lease_keeper import LeaseKeeper
from tenax.master.loops.loop import PassContext, each, run
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
async def living(database: Database, act: Pass) -> AsyncIterator[asyncio.Task[None]]:
    listener = Listener(database)
    keeper = LeaseKeeper(database, listener)
    tasks = [
        asyncio.create_task(work)
        for work in (run(Counting(act), database, listener, keeper), listener.run(), keeper.run())
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

    await each(["broken", "stale", "good"], handle, loop="test")
    assert sorted(handled) == ["broken", "good", "stale", "stale", "stale"]
