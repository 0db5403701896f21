"""The leases of this process: taken and renewed by a timer of its own, on connections of its own.

Rules:

- Renewing waits for no pass: a pass that takes long, or waits for a lock, costs no lease.
- A loop that gets nowhere for longer than a step of its may take has hung: its lease is given up, whatever the loop
  does or does not do about it, and whoever takes it first goes on. One that does not end even when it is cancelled is
  told to the owner, who ends the process: with no other master nobody would ever go on.
- What can be had is applied for all at once, several times a second while a loop waits, and when a lease is given up.
- After a new connection of the listener the leases carry its name at once: the old name is that of a dead process.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import structlog

from tenax.errors import TryAgain
from tenax.master.observability import counters
from tenax.master.store.database import leases
from tenax.master.store.database.connection import Database
from tenax.master.store.database.lanes import LEASES
from tenax.master.store.database.leases import Lease
from tenax.master.store.database.wakeups import Listener

log = structlog.get_logger("tenax.leases")

LEASE_S = 15.0
#: A lease is renewed when this much of it has passed.
_RENEW_S = 5.0
#: How often the leases of others are tried.
_APPLY_S = 0.5
#: The keeper itself is well as long as it has reached the database within this time.
_WELL_S = LEASE_S
#: A pass that has hung and is cancelled has ended by then, or never will.
_DEAF_S = 5.0


@dataclass(slots=True, eq=False)
class Tenure:
    """One lease in our hands, and how its loop gets on."""

    lease: Lease
    #: What one step of a pass may take: a transaction, or what is done between two of them.
    step_s: float
    #: Called when the lease is lost, or has ended.
    on_end: Callable[[], None]
    has_ended: bool = False
    #: When the pass that is under way last got on; None between passes.
    got_on_at: float | None = None
    _limit: asyncio.Timeout | None = field(default=None, repr=False)

    def begin_pass(self, limit: asyncio.Timeout) -> None:
        """A pass begins, which ``limit`` cancels."""
        self._limit, self.got_on_at = limit, time.monotonic()
        self.get_on()

    def get_on(self) -> None:
        """The pass got on: its next step begins."""
        if self._limit is not None and not self._limit.expired():
            self.got_on_at = time.monotonic()
            self._limit.reschedule(asyncio.get_running_loop().time() + self.step_s)

    def end_pass(self) -> None:
        """It has ended, one way or another."""
        self._limit, self.got_on_at = None, None

    def hangs(self, beyond_s: float = 0.0) -> bool:
        """Whether the pass under way has got nowhere for too long, and for ``beyond_s`` more."""
        return self.got_on_at is not None and time.monotonic() - self.got_on_at >= self.step_s + beyond_s

    def end(self) -> None:
        """Not ours any more."""
        if not self.has_ended:
            self.has_ended = True
            self.on_end()


class LeaseKeeper:
    """One per process; `run` is a task of its own."""

    def __init__(
        self, database: Database, listener: Listener, on_deaf: Callable[[str], None] = lambda reason: None
    ) -> None:
        """``on_deaf`` is told in words of a loop that has hung and cannot be ended."""
        self._on_deaf = on_deaf
        #: Whose pass has hung and has not ended yet.
        self._hung: list[Tenure] = []
        self._database = database.on(LEASES)
        self._listener = listener
        self._waiting: dict[str, asyncio.Future[Lease]] = {}
        self._held: dict[str, Tenure] = {}
        self._holder = ""
        self._due = 0.0
        self._reached_at = time.monotonic()
        self._failing = False
        self._called = asyncio.Event()
        listener.attach(leases.KIND, self)

    def wake(self, id: str) -> None:
        """A lease was given up."""
        self._called.set()

    def wake_all(self) -> None:
        """The listener has a new name."""
        self._due = 0.0
        self._called.set()

    async def wait_for(self, loop: str, step_s: float, on_end: Callable[[], None]) -> Tenure:
        """Wait until this process has the lease of ``loop``."""
        future: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        self._waiting[loop] = future
        counters.LEASE_HELD.labels(loop).set_function(partial(self._holds, loop))
        self._called.set()
        try:
            tenure = Tenure(await future, step_s, on_end)
        finally:
            self._waiting.pop(loop, None)
        self._held[loop] = tenure
        return tenure

    def let_go(self, tenure: Tenure) -> None:
        """Renew it no more."""
        tenure.end()
        if self._held.get(tenure.lease.loop) is tenure:
            del self._held[tenure.lease.loop]

    def _holds(self, loop: str) -> bool:
        """Whether a lease is ours, and was renewed lately enough for nobody else to have it."""
        return loop in self._held and time.monotonic() - self._reached_at < LEASE_S

    async def give_up(self, tenure: Tenure) -> None:
        """Let another process have it at once; where the database is away, once it runs out."""
        self.let_go(tenure)
        try:
            async with self._database.transaction() as conn:
                await leases.give_up(conn, tenure.lease)
        except TryAgain as error:
            log.warning("a lease runs out by itself", loop=tenure.lease.loop, reason=_reason(error))

    def trouble(self) -> dict[str, str]:
        """What is wrong with the loops that are ours, or with the keeper itself, in words; nothing: all is well."""
        if time.monotonic() - self._reached_at > _WELL_S:
            return {"leases": "the database was not reached"}
        return {tenure.lease.loop: "it has hung" for tenure in (*self._held.values(), *self._hung) if tenure.hangs()}

    async def run(self) -> None:
        """Keep what we have, and apply for what we wait for, until cancelled."""
        while True:
            self._called.clear()
            try:
                await self._give_up_hung()
                await self._renew()
                await self._apply()
                self._reached_at, self._failing = time.monotonic(), False
            except TryAgain as error:
                if not self._failing:
                    log.warning("leases can be neither renewed nor taken", reason=_reason(error))
                self._failing = True
            pause = (
                _APPLY_S
                if self._waiting or self._failing or self._hung
                else min(_RENEW_S, self._due - time.monotonic())
            )
            with contextlib.suppress(asyncio.TimeoutError):
                async with asyncio.timeout(max(0.0, pause)):
                    await self._called.wait()

    async def _give_up_hung(self) -> None:
        for loop, tenure in list(self._held.items()):
            if tenure.hangs():
                log.error("this loop has hung: its lease is given up", loop=loop, limit_s=tenure.step_s)
                self._hung.append(tenure)
                await self.give_up(tenure)
        self._hung = [tenure for tenure in self._hung if tenure.hangs()]
        for tenure in self._hung:
            if tenure.hangs(_DEAF_S):
                self._on_deaf(f"the loop {tenure.lease.loop} has hung, and does not end")

    async def _renew(self) -> None:
        if time.monotonic() < self._due and self._listener.holder == self._holder:
            return
        holder, held = self._listener.holder, dict(self._held)
        if held:
            async with self._database.transaction() as conn:
                lost = await leases.renew(conn, [tenure.lease for tenure in held.values()], holder, LEASE_S)
            for loop in lost:
                log.warning("another master has taken over this loop", loop=loop)
                counters.LOOP_FAILURES.labels(loop, counters.LEASE_LOST).inc()
                self.let_go(held[loop])
        self._holder, self._due = holder, time.monotonic() + _RENEW_S

    async def _apply(self) -> None:
        waiting = [loop for loop, future in self._waiting.items() if not future.done()]
        # Without the listener's session we have no name that others could tell from a dead one's.
        if not waiting or not self._listener.is_connected:
            return
        async with self._database.transaction() as conn:
            taken = await leases.acquire_all(conn, waiting, self._listener.holder, LEASE_S)
        for lease in taken:
            future = self._waiting.get(lease.loop)
            if future is not None and not future.done():
                future.set_result(lease)
        if len(taken) < len(waiting):
            async with self._database.connection() as conn:
                late = await leases.end_late(conn, waiting)
            if late:
                log.warning("transactions of a master whose leases have run out were ended", transactions=late)


def _reason(error: TryAgain) -> str:
    return str(error.__cause__ or error) or type(error.__cause__).__name__
