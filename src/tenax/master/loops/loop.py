"""How a loop lives: it holds a lease, is woken, makes a pass, and survives what one object does to it.

Rules:

- A pass handles what it was woken for, or everything after a (re)LISTEN; it never sleeps past its deadline or 30 s,
  and however often it is woken, it goes through everything every 30 s.
- Every write transaction checks the lease first; a lost lease ends the pass, and the loop applies for it again.
- One object that cannot be handled costs itself: it is tried again later, its error is in the log, the others go on.
- A pass that fails costs itself: the loop lives, and goes through everything again after a while.
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
#: How often another holder's lease is checked.
_APPLY_S = 1.0
#: Tries of one object before it is left alone until something changes.
TRIES = 3
#: Between a pass that failed and the next.
_BROKEN = Backoff(first=1.0, ceiling=30.0)


class PassContext:
    """What a pass works with: reads, and transactions that hold the loop's lease."""

    def __init__(self, database: Database, lease: Lease) -> None:
        self._database = database
        self._lease = lease

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Connection]:
        """Reads, each for itself: good for seeing whether there is anything to do. Raises TryAgain.

        The lease is not checked, as its row lock would make a write of it, with a flush to disk: whoever lost the lease
        may read, and is stopped on the first write.
        """
        async with self._database.connection() as conn:
            yield conn

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Connection]:
        """As `reading`, but all reads see one state. Raises TryAgain."""
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

    async def make_pass(self, context: PassContext, woken: Woken) -> float | None:
        """Load, decide, apply; returns the seconds until the next pass is due, None for no deadline of its own."""


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
            log.exception("a pass failed; the next one goes through everything again", loop=loop.name, after_s=pause)
            await asyncio.sleep(pause)


async def each(
    ids: list[str],
    handle: Callable[[str], Awaitable[None]],
    *,
    loop: str,
    quarantine: Callable[[str, str], Awaitable[None]] | None = None,
) -> None:
    """Handle objects one by one; a stale one is tried again, one whose experiment was deleted is forgotten.

    One that cannot be handled is logged with its traceback and tried again, then given to ``quarantine`` with the error
    in a line, or left where there is none.
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
            # Deleted between the wake-up and the pass.
            continue
        except TryAgain:
            raise
        except Exception as error:
            log.exception("this object could not be handled", loop=loop, object=name)
            if quarantine is None:
                continue
            if tries[name] < TRIES:
                waiting.append(name)
            else:
                await quarantine(name, f"{type(error).__name__}: {error}")


async def _apply(loop: Loop, database: Database, listener: Listener) -> Lease:
    while True:
        await listener.connected()
        async with database.transaction() as conn:
            lease = await leases.acquire(conn, loop.name, listener.holder, LEASE_S)
        if lease is not None:
            return lease
        await asyncio.sleep(_APPLY_S)


async def _hold(loop: Loop, database: Database, listener: Listener, lease: Lease) -> None:
    context = PassContext(database, lease)
    renewing = asyncio.create_task(_renew(database, lease))
    try:
        with listener.subscribe(loop.kind) as subscription:
            woken = Woken(frozenset(), full=True)
            last_full_pass = time.monotonic()
            while not renewing.done():
                with counters.LOOP_SECONDS.labels(loop.name).time():
                    deadline = await loop.make_pass(context, woken)
                counters.LOOP_PASSES.labels(loop.name).inc()
                woken = await subscription.wait(MAX_WAIT_S if deadline is None else deadline)
                if time.monotonic() - last_full_pass >= MAX_WAIT_S:
                    woken = Woken(frozenset(), woken.full)
                if woken.full or not woken.ids:
                    last_full_pass = time.monotonic()
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
