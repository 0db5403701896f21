"""How a loop lives: it holds a lease, is woken, makes a pass, and survives what one object does to it.

Rules:

- A pass handles what it was woken for, or everything after a (re)LISTEN; it never sleeps past its deadline or 30 s,
  and however often it is woken, it goes through everything every 30 s.
- Every write transaction checks the lease first; a lost lease ends the pass, and the loop applies for it again.
- One object that cannot be handled costs itself: it is tried again later, its error is in the log, the others go on.
- A pass that fails costs itself: the loop lives, and goes through everything again after a while. One that gets nowhere
  has hung: it is cancelled, and its lease is for whoever takes it first.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol

import structlog
from asyncpg import Connection
from structlog.contextvars import bind_contextvars, bound_contextvars

from tenax.backoff import Backoff
from tenax.errors import Stale, TenaxError, TryAgain
from tenax.master.loops.lease_keeper import LeaseKeeper, Tenure
from tenax.master.observability import counters, tracing
from tenax.master.store.database.connection import Database
from tenax.master.store.database.lanes import LOOPS
from tenax.master.store.database.leases import Lease, LeaseLost
from tenax.master.store.database.wakeups import MAX_WAIT_S, Listener, Subscription, Woken
from tenax.master.store.experiments.rows import ExperimentGone

log = structlog.get_logger("tenax.loops")

#: A step of a pass that takes longer has hung, unless its loop allows more: a transaction, or what is between two.
STEP_S = 120.0
#: For loops whose steps delete files, or very many rows.
LONG_STEP_S = 3600.0
#: Tries of one object before it is left alone until something changes.
TRIES = 3
#: Between a pass that failed and the next.
_BROKEN = Backoff(first=1.0, ceiling=30.0)


class PassContext:
    """What a pass works with: reads, and transactions that hold the loop's lease."""

    def __init__(self, database: Database, lease: Lease, get_on: Callable[[], None] = lambda: None) -> None:
        """``get_on`` is called at the beginning and end of whatever is done through this."""
        self._database = database.on(LOOPS)
        self._lease = lease
        self._get_on = get_on

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Connection]:
        """Reads, each for itself: good for seeing whether there is anything to do. Raises TryAgain.

        The lease is not checked, as its row lock would make a write of it, with a flush to disk: whoever lost the lease
        may read, and is stopped on the first write.
        """
        async with self._database.connection() as conn:
            self._get_on()
            yield conn
        self._get_on()

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Connection]:
        """As `reading`, but all reads see one state. Raises TryAgain."""
        async with self._database.snapshot() as conn:
            self._get_on()
            yield conn
        self._get_on()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A transaction that is rolled back if the lease is lost. Raises LeaseLost, TryAgain."""
        async with self._database.transaction() as conn:
            await self._lease.check(conn)
            self._get_on()
            yield conn
        self._get_on()


class Loop(Protocol):
    """One loop: what wakes it, and what it does when woken."""

    name: str
    kind: str

    async def make_pass(self, context: PassContext, woken: Woken) -> float | None:
        """Load, decide, apply; returns the seconds until the next pass is due, None for no deadline of its own."""


class PassHung(TenaxError):
    """A pass got nowhere for too long."""


async def run(loop: Loop, database: Database, listener: Listener, keeper: LeaseKeeper) -> None:
    """Run a loop until cancelled, in a task of its own."""
    bind_contextvars(loop=loop.name)
    failures, began = 0, 0.0
    while True:
        with listener.subscribe(loop.kind) as subscription:
            tenure = await keeper.wait_for(loop.name, _step_s(loop), subscription.wake_all)
            try:
                began = time.monotonic()
                await _make_passes(loop, PassContext(database, tenure.lease, tenure.get_on), subscription, tenure)
                continue
            except LeaseLost:
                if not tenure.has_ended:
                    _count_failure(loop, counters.LEASE_LOST)
                log.warning("another master has taken over this loop", loop=loop.name)
                continue
            except TryAgain as error:
                _count_failure(loop, counters.NO_DATABASE)
                log.warning("the database is away", loop=loop.name, reason=str(error.__cause__ or error))
                pause = 0.2
            except PassHung:
                _count_failure(loop, counters.HUNG)
                log.exception("a pass has hung; its lease is given up", loop=loop.name, limit_s=tenure.step_s)
                await keeper.give_up(tenure)
                pause = _BROKEN.first
            except Exception:
                _count_failure(loop, counters.ERROR)
                failures = 1 if time.monotonic() - began > _BROKEN.ceiling else failures + 1
                pause = _BROKEN.after(failures)
                log.exception("a pass failed; the next goes through everything again", loop=loop.name, after_s=pause)
            finally:
                keeper.let_go(tenure)
        await asyncio.sleep(pause)


async def each(
    ids: list[str],
    handle: Callable[[str], Awaitable[None]],
    *,
    loop: str,
    noun: str,
    quarantine: Callable[[str, str], Awaitable[None]] | None = None,
) -> None:
    """Handle objects one by one; a stale one is tried again, one whose experiment was deleted is forgotten.

    One that cannot be handled is logged with its traceback and tried again, then given to ``quarantine`` with the error
    in a line, or left where there is none. ``noun``: what each is, in lines of the log.
    """
    tries: Counter[str] = Counter()
    waiting = list(ids)
    while waiting:
        name = waiting.pop(0)
        tries[name] += 1
        try:
            with bound_contextvars(**{noun: name}), tracing.span(f"{loop} {noun}", tenax__object=name):
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
            counters.LOOP_FAILED_OBJECTS.labels(loop).inc()
            log.exception("this object could not be handled", **{noun: name})
            if quarantine is None:
                continue
            if tries[name] < TRIES:
                waiting.append(name)
            else:
                await quarantine(name, f"{type(error).__name__}: {error}")


def _count_failure(loop: Loop, reason: str) -> None:
    counters.LOOP_FAILURES.labels(loop.name, reason).inc()


async def _make_passes(loop: Loop, context: PassContext, subscription: Subscription, tenure: Tenure) -> None:
    """One pass after the other, until the lease is lost."""
    woken = Woken(frozenset(), full=True)
    last_full_pass = time.monotonic()
    while not tenure.has_ended:
        with counters.LOOP_SECONDS.labels(loop.name).time():
            deadline = await _make_pass(loop, context, woken, tenure)
        counters.LOOP_PASSES.labels(loop.name).inc()
        woken = await subscription.wait(MAX_WAIT_S if deadline is None else deadline)
        if time.monotonic() - last_full_pass >= MAX_WAIT_S:
            woken = Woken(frozenset(), woken.full)
        if woken.full or not woken.ids:
            last_full_pass = time.monotonic()


async def _make_pass(loop: Loop, context: PassContext, woken: Woken, tenure: Tenure) -> float | None:
    """One pass. Raises PassHung."""
    limit = asyncio.timeout(tenure.step_s)
    try:
        async with limit:
            tenure.begin_pass(limit)
            try:
                with tracing.span(f"loop {loop.name}", tenax__full=woken.full, tenax__woken=len(woken.ids)):
                    return await loop.make_pass(context, woken)
            finally:
                tenure.end_pass()
    except asyncio.TimeoutError as error:
        if limit.expired():
            raise PassHung from error
        raise


def _step_s(loop: Loop) -> float:
    return float(getattr(loop, "step_s", STEP_S))
