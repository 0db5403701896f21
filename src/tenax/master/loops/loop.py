"""How a loop lives: it holds a lease, is woken, makes a pass, and survives what one object does to it.

Rules:

- A pass looks at what it was told of, or at everything after a (re)LISTEN; it never sleeps past its deadline or 30 s,
  and however much it is told, it looks at everything every 30 s.
- Every write transaction checks the lease first; a lost lease ends the pass, and the loop applies for it again.
- One object that cannot be handled costs itself: it is tried again later, its story is in the log, the others go on.
- A pass that breaks costs itself: the loop lives, and looks at everything again after a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol

import structlog
from asyncpg import Connection

from tenax.backoff import Backoff
from tenax.errors import Stale, TryAgain
from tenax.master.observability import counters
from tenax.master.store.database import leases
from tenax.master.store.database.connection import Database
from tenax.master.store.database.leases import Lease, LeaseLost
from tenax.master.store.database.wakeups import MAX_WAIT_S, Listener, Woken
from tenax.master.store.experiments.rows import ExperimentGone

log = structlog.get_logger("tenax.loops")

LEASE_S = 15.0
#: A lease is renewed when this much of it has passed.
_RENEW_S = 5.0
#: How often another holder's lease is looked at.
_APPLY_S = 1.0
#: Tries of one object before it is left alone until something changes.
TRIES = 3
#: Between a pass that broke and the next.
_BROKEN = Backoff(first=1.0, ceiling=30.0)


class Desk:
    """What a pass works with: looks, and transactions that hold the loop's lease."""

    def __init__(self, database: Database, lease: Lease) -> None:
        self._database = database
        self._lease = lease

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[Connection]:
        """Reads, each for itself: good for seeing whether there is anything to do. Raises TryAgain.

        No lease is asked for, whose row lock would make a write of it, with a flush to disk: whoever lost the lease
        may look, and is stopped when he writes.
        """
        async with self._database.connection() as conn:
            yield conn

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Connection]:
        """As `looking`, but all reads see one state. Raises TryAgain."""
        async with self._database.snapshot() as conn:
            yield conn

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A transaction that is rolled back if the lease is lost. Raises LeaseLost, TryAgain."""
        async with self._database.transaction() as conn:
            await self._lease.check(conn)
            yield conn


class Loop(Protocol):
    """One loop: what wakes it, and what it does when woken."""

    name: str
    kind: str

    async def make_pass(self, desk: Desk, woken: Woken) -> float | None:
        """Look and act; returns the seconds until it must look again, None for no deadline of its own."""


async def run(loop: Loop, database: Database, listener: Listener) -> None:
    """Run a loop until cancelled."""
    failures, began = 0, 0.0
    while True:
        try:
            lease = await _apply(loop, database, listener)
            began = time.monotonic()
            await _hold(loop, database, listener, lease)
        except LeaseLost:
            log.warning("another master has taken over this loop", loop=loop.name)
        except TryAgain as error:
            log.warning("the database is away", loop=loop.name, reason=str(error.__cause__ or error))
            await asyncio.sleep(0.2)
        except Exception:
            failures = 1 if time.monotonic() - began > _BROKEN.ceiling else failures + 1
            pause = _BROKEN.after(failures)
            log.exception("a pass broke; everything is looked at again", loop=loop.name, after_s=pause)
            await asyncio.sleep(pause)


async def each(
    ids: list[str],
    handle: Callable[[str], Awaitable[None]],
    *,
    loop: str,
    set_aside: Callable[[str, str], Awaitable[None]] | None = None,
) -> None:
    """Handle objects one by one; a stale one is tried again, one whose experiment was deleted is forgotten.

    One that cannot be handled is logged with its story and tried again, then given to ``set_aside`` with the story in a
    line, or left where there is none.
    """
    tries: Counter[str] = Counter()
    waiting = list(ids)
    while waiting:
        name = waiting.pop(0)
        tries[name] += 1
        try:
            await handle(name)
        except LeaseLost:
            raise
        except Stale:
            if tries[name] < TRIES:
                waiting.append(name)
        except ExperimentGone:
            # Deleted between the wake-up and the look.
            continue
        except TryAgain:
            raise
        except Exception as error:
            log.exception("this object could not be handled", loop=loop, object=name)
            if set_aside is None:
                continue
            if tries[name] < TRIES:
                waiting.append(name)
            else:
                await set_aside(name, f"{type(error).__name__}: {error}")


async def _apply(loop: Loop, database: Database, listener: Listener) -> Lease:
    while True:
        await listener.connected()
        async with database.transaction() as conn:
            lease = await leases.acquire(conn, loop.name, listener.holder, LEASE_S)
        if lease is not None:
            return lease
        await asyncio.sleep(_APPLY_S)


async def _hold(loop: Loop, database: Database, listener: Listener, lease: Lease) -> None:
    desk = Desk(database, lease)
    renewing = asyncio.create_task(_renew(database, lease))
    try:
        with listener.subscribe(loop.kind) as subscription:
            woken = Woken(frozenset(), full=True)
            looked = time.monotonic()
            while not renewing.done():
                with counters.LOOP_SECONDS.labels(loop.name).time():
                    deadline = await loop.make_pass(desk, woken)
                counters.LOOP_PASSES.labels(loop.name).inc()
                woken = await subscription.wait(MAX_WAIT_S if deadline is None else deadline)
                if time.monotonic() - looked >= MAX_WAIT_S:
                    woken = Woken(frozenset(), woken.full)
                if woken.full or not woken.ids:
                    looked = time.monotonic()
        renewing.result()
    finally:
        renewing.cancel()
        with contextlib.suppress(asyncio.CancelledError, TryAgain, LeaseLost):
            await renewing


async def _renew(database: Database, lease: Lease) -> None:
    """Keeps the lease while the process lives; ends with LeaseLost."""
    while True:
        await asyncio.sleep(_RENEW_S)
        with contextlib.suppress(TryAgain):
            async with database.transaction() as conn:
                await leases.renew(conn, lease, LEASE_S)
