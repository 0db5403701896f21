"""Wake-ups: NOTIFY inside the transaction that changed something, LISTEN on one dedicated connection.

Rules:
- A wake-up names a kind and an id, never what changed: who is woken reads the rows.
- After every (re)LISTEN each subscriber is woken for a full pass: what was sent meanwhile did not arrive.
- Nobody sleeps past ``MAX_WAIT_S``, so a wake-up that was lost costs a delay and nothing else.
- The listening connection also holds the session lock on ``holder``: when it ends, others know this process dead. Each
  connection has a name of its own, so that none waits for what its predecessor left on the server.
- Whatever ends the listening, it begins anew: a process that hears nothing would not know it.
- The listening connection is also the one that is probed: what it finds out is good for all others, so that those which
  have stalled are cut as soon as it is there again, and at the latest when the server is silent on a new one as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import structlog
from asyncpg import Connection

from tenax.master.observability import counters
from tenax.master.store.database.connection import CHANNEL, Database
from tenax.master.store.database.faults import DatabaseAway, translated
from tenax.master.store.database.lanes import LISTENER
from tenax.master.store.database.queries import load

Q = load("database")
log = structlog.get_logger("tenax.wakeups")

#: Names of holders that keep a session lock on their name begin so.
SESSION_PREFIX = "session:"
#: No loop sleeps longer.
MAX_WAIT_S = 30.0
#: How often a connection is probed; one that does not answer within the limits of its lane is given up.
_PROBE_S = 2.0
#: What was asked of a server that is silent on new connections, too, is given up after so long.
_SILENT_S = 8.0
#: How long a connection may take to end in good order.
_CLOSE_S = 1.0
_RECONNECT_S = (0.05, 0.2, 0.5, 1.0)


async def notify(conn: Connection, kind: str, id: int | str) -> None:
    """Wake whoever waits for ``kind``, once the caller's transaction is committed; twice in it is once."""
    payload = f"{kind}:{id}"
    notify_with_commit = getattr(conn, "notify_with_commit", None)
    if notify_with_commit is None or not notify_with_commit(payload):
        await conn.execute(Q.notify, payload)


@dataclass(frozen=True, slots=True)
class Woken:
    """What a subscriber was woken for."""

    ids: frozenset[str]
    #: Everything: the connection is new, so what was sent before is not known.
    full: bool

    def __bool__(self) -> bool:
        return self.full or bool(self.ids)


class Subscription:
    """The wake-ups of one waiter. For one task at a time."""

    def __init__(self, *, full: bool) -> None:
        self._ids: set[str] = set()
        self._full = full
        self._event = asyncio.Event()
        if full:
            self._event.set()

    async def wait(self, seconds: float = MAX_WAIT_S) -> Woken:
        """The wake-ups since the last wait, as soon as there is one; none after ``seconds`` at most."""
        # Not wait_for: before Python 3.12 it can swallow a cancellation that comes with the event.
        with contextlib.suppress(asyncio.TimeoutError):
            async with asyncio.timeout(max(0.0, min(seconds, MAX_WAIT_S))):
                await self._event.wait()
        woken = Woken(frozenset(self._ids), self._full)
        self._ids.clear()
        self._full = False
        self._event.clear()
        return woken

    def wake(self, id: str) -> None:
        """Called by the listener; also good for waking oneself."""
        self._ids.add(id)
        self._event.set()

    def wake_all(self) -> None:
        """A full pass is due."""
        self._full = True
        self._event.set()


class WakeupSink(Protocol):
    """Takes wake-ups as they come; must not wait."""

    def wake(self, id: str) -> None:
        """Something of that id has changed."""

    def wake_all(self) -> None:
        """What was sent before is not known."""


class Listener:
    """Listens for a whole process. ``run`` is a task of its own; subscribe at any time."""

    def __init__(
        self, database: Database, announce: Callable[[Connection, str], Awaitable[None]] | None = None
    ) -> None:
        """``announce`` is called whenever it begins to listen, with the connection and the name that it holds."""
        self._database = database
        self._announce = announce
        self._subscriptions: dict[tuple[str, str | None], set[WakeupSink]] = {}
        self._connected = asyncio.Event()
        #: Names this process in leases, for as long as the connection lives that listens now, or listened last.
        self.holder = ""

    @contextmanager
    def subscribe(self, kind: str, id: int | str | None = None) -> Iterator[Subscription]:
        """Be woken for one id, or for every id of a kind (``id`` None). The first wait returns at once, ``full``."""
        key = (kind, None if id is None else str(id))
        subscription = Subscription(full=True)
        self._subscriptions.setdefault(key, set()).add(subscription)
        try:
            yield subscription
        finally:
            rest = self._subscriptions[key]
            rest.discard(subscription)
            if not rest:
                del self._subscriptions[key]

    def attach(self, kind: str, sink: WakeupSink) -> None:
        """Wake ``sink`` for every id of a kind, for as long as this process lives."""
        self._subscriptions.setdefault((kind, None), set()).add(sink)

    @property
    def is_connected(self) -> bool:
        """Whether it listens, as far as is known."""
        return self._connected.is_set()

    async def connected(self) -> None:
        """Wait until it listens."""
        await self._connected.wait()

    async def run(self) -> None:
        """Listen until cancelled; a connection that is lost is made again."""
        attempt = 0
        while True:
            try:
                await self._listen()
            except Exception as error:
                reason = str(error.__cause__ or error) or type(error.__cause__ or error).__name__
                log.warning("cannot listen for wake-ups; trying again", reason=reason, attempt=attempt)
                self._let_go(error)
            finally:
                listened = self._connected.is_set()
                self._connected.clear()
                counters.LISTENER_CONNECTED.set(0)
            attempt = 0 if listened else attempt + 1
            await asyncio.sleep(_RECONNECT_S[min(attempt, len(_RECONNECT_S) - 1)])

    def _let_go(self, error: Exception) -> None:
        """After a failure: of what may have met other connections as well."""
        self._database.cut_idle()
        if isinstance(error.__cause__, asyncio.TimeoutError) and not self._connected.is_set():
            self._database.cut_waiting(_SILENT_S)

    async def _listen(self) -> None:
        holder = f"{SESSION_PREFIX}{uuid.uuid4()}"
        conn = await self._database.dedicated(LISTENER)
        lost = asyncio.Event()
        try:
            conn.add_termination_listener(lambda _: lost.set())
            with translated():
                await conn.execute(Q.hold_name, holder)
                if self._announce is not None:
                    await self._announce(conn, holder)
                await conn.add_listener(CHANNEL, self._received)
            self.holder = holder
            self._connected.set()
            counters.LISTENER_CONNECTED.set(1)
            await self._database.cut_stalled(conn)
            for subscriptions in self._subscriptions.values():
                for subscription in subscriptions:
                    subscription.wake_all()
            await self._watch(conn, lost)
        finally:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_CLOSE_S):
                    await conn.close()

    async def _watch(self, conn: Connection, lost: asyncio.Event) -> None:
        while True:
            with contextlib.suppress(asyncio.TimeoutError):
                async with asyncio.timeout(_PROBE_S):
                    await lost.wait()
                raise DatabaseAway("the connection was lost")
            with translated():
                await conn.execute(Q.probe)
            await self._database.cut_stalled(conn)
            await self._database.end_half_sent(conn)

    def _received(self, _conn: object, _pid: int, _channel: str, payload: object) -> None:
        kind, _, id = str(payload).partition(":")
        for key in ((kind, None), (kind, id)):
            for subscription in self._subscriptions.get(key, ()):
                subscription.wake(id)
