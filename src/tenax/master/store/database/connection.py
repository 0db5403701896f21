"""The way to PostgreSQL: pools of connections, one for each kind of work, and transactions.

Rules:
- Whatever is PostgreSQL's state and not the statement's fault is TryAgain (`tenax.master.store.database.faults`).
- Each kind of work has its connections and limits (`tenax.master.store.database.lanes`). A connection on which nothing
  arrives any more is noticed: by keepalive where the other end is gone, by asking the server where it only stands still
  (`tenax.master.store.database.stalls`), and by the limits in any case.
- Connections of a pool carry no state from one use to the next: no session locks, no LISTEN, no settings.
- ``json`` and ``jsonb`` are Python values (`tenax.master.store.database.json_columns`).
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from datetime import datetime
from functools import partial

import asyncpg
from asyncpg import Connection

from tenax.errors import Impossible, InvalidInput, UserError
from tenax.master.observability import counters, tracing
from tenax.master.store.database import json_columns, stalls
from tenax.master.store.database.faults import committing, translated
from tenax.master.store.database.identity import DatabaseIdentity
from tenax.master.store.database.lanes import REQUESTS, Lane, connections
from tenax.master.store.database.queries import load

Q = load("database")

#: Of PostgreSQL: what our statements need.
OLDEST_MAJOR = 15
#: Wake-ups go over it.
CHANNEL = "tenax"
#: A connection is made in this time or not at all.
_CONNECT_S = 10.0
#: A statement that was called off has this long to end; then its connection is cut.
_CANCEL_S = 3.0
#: Seconds until a silent peer is probed, between probes, and until unacknowledged data ends a connection.
_KEEPALIVE_IDLE_S, _KEEPALIVE_INTERVAL_S, _KEEPALIVE_PROBES, _UNACKNOWLEDGED_S = 10, 5, 3, 20
#: Statements that a connection keeps prepared: all that the busiest paths use, with room for the others.
_PREPARED = 1000
#: What `NOTIFY` takes without quoting.
_PLAIN = re.compile(r"[A-Za-z0-9_.:-]{1,200}", re.ASCII)


class NoAddress(InvalidInput):
    """db.url is not the address of a PostgreSQL: write postgresql://USER@HOST/NAME."""


class DatabaseTooOld(UserError):
    """The database server is of a version that Tenax does not work with."""


class NotifyingConnection(asyncpg.Connection):  # type: ignore[misc]  # the driver has no types
    """A connection that sends what everybody waits for in the round trip of the commit, and never waits for ever.

    That is wake-ups, and the revisions of agents: statements before the COMMIT, so they are done if it succeeds, and
    only then; and rows of agents are locked for that round trip alone, however far away the database is.
    """

    __slots__ = ("_raised", "_unfinished", "_wakeups", "backend_pid", "half_sent_since", "outstanding", "waiting_since")
    #: In the order of sending; None outside of a transaction of `Database.transaction`.
    _wakeups: dict[str, None] | None
    #: Agents whose revision is raised.
    _raised: set[str]
    #: As `tenax.master.store.database.stalls.Waiting` has them.
    backend_pid: int
    waiting_since: float | None
    outstanding: int | None
    half_sent_since: float | None

    def __init__(self, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **named)
        self._wakeups = None
        self._raised = set()
        #: A statement was parsed by the server and then neither executed nor said to be over.
        self._unfinished = False
        self.backend_pid = 0
        self._answered()

    def collect_wakeups(self) -> NotifyingConnection:
        """From here on wake-ups wait for the commit; returns this connection, whatever proxy stood for it."""
        self._wakeups = {}
        self._raised = set()
        return self

    def drop_wakeups(self) -> None:
        """What was not sent by now is not sent: the transaction has ended."""
        self._wakeups = None
        self._raised = set()

    @property
    def has_wakeups(self) -> bool:
        """Whether something still waits for a commit."""
        return bool(self._wakeups or self._raised)

    def notify_with_commit(self, payload: str) -> bool:
        """Whether ``payload`` is sent when the transaction commits; False: send it now."""
        if self._wakeups is None or _PLAIN.fullmatch(payload) is None:
            return False
        self._wakeups[payload] = None
        return True

    def raise_with_commit(self, agent_ids: Iterable[str]) -> bool:
        """Whether the revisions of these agents are raised when the transaction commits; False: raise them now."""
        names = set(agent_ids)
        if self._wakeups is None or not all(map(_PLAIN.fullmatch, names)):
            return False
        self._raised |= names
        return True

    async def execute(self, query: str, *args: object, timeout: float | None = None) -> str:  # noqa: ASYNC109
        with self._waiting():
            return await self._execute_with_wakeups(query, args, timeout)

    async def _execute(self, *arguments: object, **named: object) -> object:
        with self._waiting():
            return await super()._execute(*arguments, **named)

    async def _executemany(self, *arguments: object, **named: object) -> object:
        with self._waiting():
            return await super()._executemany(*arguments, **named)

    async def _copy_in_records(self, *arguments: object, **named: object) -> object:
        with self._waiting():
            return await super()._copy_in_records(*arguments, **named)

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        if self.waiting_since is not None:
            # Part of another.
            yield
            return
        self.waiting_since = began = time.monotonic()
        try:
            yield
        except BaseException as error:
            # What the server itself said ended the statement. The driver has this one error in common with it.
            self._unfinished = not isinstance(error, asyncpg.PostgresError) or isinstance(error, asyncpg.DataError)
            raise
        else:
            self._unfinished = False
        finally:
            counters.DB_STATEMENT_SECONDS.observe(time.monotonic() - began)
            self._answered()

    async def finish(self) -> None:
        """End what began with a statement that was called off, or a value of which was refused here, after its parsing:
        what comes next on this connection would be in one transaction with it.

        Called by the pool when the connection comes back, unless it was lost. Nothing else is reset (see the rules),
        which saves a round trip at each release.
        """
        if not self._unfinished:
            return
        self._unfinished = False
        try:
            await self.execute("rollback", timeout=_CANCEL_S)
        except Exception:
            self.terminate()

    def _answered(self) -> None:
        self.waiting_since = self.outstanding = self.half_sent_since = None

    def bytes_outstanding(self) -> int:
        """What was said and has not arrived."""
        return stalls.bytes_outstanding(self._transport)

    async def _execute_with_wakeups(self, query: str, args: tuple[object, ...], seconds: float | None) -> str:
        if query != "COMMIT;" or self._wakeups is None:
            return str(await super().execute(query, *args, timeout=seconds))
        before = [f"notify {CHANNEL}, '{payload}'" for payload in self._wakeups]
        if self._raised:
            before.append(Q.raise_revisions.replace("$1", f"'{{{','.join(sorted(self._raised))}}}'"))
        query = "; ".join([*before, query])
        self._wakeups, self._raised = None, set()
        with committing():
            return str(await super().execute(query, *args, timeout=seconds))

    def _cancel_current_command(self, *waiters: object) -> None:
        # The driver asks the server over another connection, and waits for the answer on this one.
        super()._cancel_current_command(*waiters)
        self._loop.call_later(_CANCEL_S, self._cut_if_still_busy, self._protocol.queries_count)

    def _cut_if_still_busy(self, queries: int) -> None:
        protocol = self._protocol
        if protocol is not None and protocol.queries_count == queries and protocol._is_cancelling():
            self.terminate()


class Database:
    """The connections to one database, as one kind of work uses them. For one event loop."""

    def __init__(
        self, pools: Mapping[Lane, asyncpg.Pool], identity: DatabaseIdentity, dsn: str, name: str, lane: Lane = REQUESTS
    ) -> None:
        self._pools = pools
        self._identity = identity
        #: Of tasks whose transactions are all one.
        self._whole: dict[asyncio.Task[object] | None, _WholeTransaction] = {}
        self._pool = pools[lane]
        self._lane = lane
        self._acquire_seconds = counters.DB_ACQUIRE_SECONDS.labels(lane.name)
        self._dsn = dsn
        self._name = name

    @classmethod
    async def open(cls, dsn: str, *, max_connections: int = 24, name: str = "tenax") -> Database:
        """Connect. ``name`` is shown in pg_stat_activity.

        Raises TryAgain while the server cannot be reached, DatabaseTooOld.
        """
        pools: dict[Lane, asyncpg.Pool] = {}
        identity = DatabaseIdentity()
        try:
            with translated():
                for lane, count in connections(max_connections).items():
                    # One of them finds out whether anybody is there; the others connect when they are needed.
                    pools[lane] = await _open_pool(dsn, lane, 1 if lane is REQUESTS else 0, count, name, identity)
        except BaseException:
            for pool in pools.values():
                pool.terminate()
            raise
        for lane, pool in pools.items():
            counters.DB_MAX_CONNECTIONS.labels(lane.name).set(pool.get_max_size())
            counters.DB_CONNECTIONS.labels(lane.name, "idle").set_function(pool.get_idle_size)
            counters.DB_CONNECTIONS.labels(lane.name, "used").set_function(partial(_used, pool))
        return cls(pools, identity, dsn, name)

    def on(self, lane: Lane) -> Database:
        """The same database, with the connections of another kind of work."""
        return Database(self._pools, self._identity, self._dsn, self._name, lane)

    async def adopt(self) -> None:
        """Take the database for the cluster's, and from then on use no other in its place. Raises TryAgain."""
        async with self.transaction() as conn:
            await self._identity.adopt(conn)

    @property
    def replaced(self) -> asyncio.Event:
        """Set when the database is not the one any more that this process began with: what it remembers is void."""
        return self._identity.replaced

    async def close(self) -> None:
        """Wait for the transactions under way, then disconnect; cut off what takes longer than ten seconds."""
        try:
            async with asyncio.timeout(10.0):
                await asyncio.gather(*(pool.close() for pool in self._pools.values()))
        except (asyncio.TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            for pool in self._pools.values():
                pool.terminate()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """One transaction: committed when the block ends, rolled back when it raises. Raises TryAgain."""
        whole = self._whole.get(asyncio.current_task())
        async with self._transaction() if whole is None else whole.part() as conn:
            yield conn

    @asynccontextmanager
    async def as_one(self, begin: Callable[[Connection], Awaitable[None]]) -> AsyncIterator[_WholeTransaction]:
        """Make one transaction of all that this task makes inside, committed when the block ends.

        It begins with the first of them, and with ``begin``. What waits outside of a transaction holds no connection.
        """
        task = asyncio.current_task()
        async with AsyncExitStack() as stack:
            self._whole[task] = _WholeTransaction(self._transaction, begin, stack)
            try:
                yield self._whole[task]
            finally:
                del self._whole[task]

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Connection]:
        """A read-only transaction of which every statement sees the same state. Raises TryAgain."""
        whole = self._whole.get(asyncio.current_task())
        async with self._snapshot() if whole is None or whole.conn is None else whole.part() as conn:
            yield conn

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection without a transaction around it: for reads of one statement. Raises TryAgain."""
        whole = self._whole.get(asyncio.current_task())
        async with self._connection() if whole is None or whole.conn is None else whole.part() as conn:
            yield conn

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Connection]:
        with translated():
            async with self._acquired("transaction") as conn:
                notifying: NotifyingConnection = conn.collect_wakeups()
                try:
                    async with conn.transaction():
                        yield conn
                    if notifying.has_wakeups:
                        raise Impossible("a transaction was committed without its wake-ups")
                finally:
                    notifying.drop_wakeups()

    @asynccontextmanager
    async def _snapshot(self) -> AsyncIterator[Connection]:
        with translated():
            async with self._acquired("snapshot") as conn:
                async with conn.transaction(isolation="repeatable_read", readonly=True):
                    yield conn

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        with translated():
            async with self._acquired("read") as conn:
                yield conn

    @asynccontextmanager
    async def _acquired(self, why: str) -> AsyncIterator[Connection]:
        """``why``: what is done with it, in spans."""
        began = time.monotonic()
        with tracing.leaf(f"database {why}", db__system__name="postgresql", tenax__lane=self._lane.name) as span:
            async with self._pool.acquire(timeout=self._lane.acquire_s) as conn:
                waited_s = time.monotonic() - began
                self._acquire_seconds.observe(waited_s)
                span.set_attribute("tenax.acquire_s", waited_s)
                yield conn

    async def cut_stalled(self, probed: Connection) -> None:
        """Cut connections that wait for an answer in vain; on ``probed`` the server answers. Raises TryAgain."""
        with translated():
            await stalls.cut_stalled(self._open_connections(), probed)

    async def end_half_sent(self, probed: Connection) -> None:
        """End transactions of others that hold somebody up in the middle of a statement; ``probed`` as above."""
        with translated():
            await stalls.end_half_sent(probed)

    def cut_idle(self) -> None:
        """Cut connections that nobody uses: whatever made another one stall may have met them."""
        for pool in self._pools.values():
            for holder in pool._holders:
                if holder._con is not None and holder._in_use is None:
                    holder._con.terminate()

    def cut_waiting(self, seconds: float) -> None:
        """Cut connections on which an answer is waited for, for so long: the server is silent."""
        stalls.cut_waiting(self._open_connections(), seconds)

    def _open_connections(self) -> list[NotifyingConnection]:
        # The driver's own list; there is no public one.
        held = [holder._con for pool in self._pools.values() for holder in pool._holders]
        return [conn for conn in held if conn is not None and not conn.is_closed()]

    async def dedicated(self, lane: Lane) -> Connection:
        """A connection outside the pools, for LISTEN and session locks; the caller closes it. Raises TryAgain."""
        return await connect(self._dsn, self._name, lane)


class _WholeTransaction:
    """A transaction of which others are parts. Of one task."""

    def __init__(
        self,
        transaction: Callable[[], AbstractAsyncContextManager[Connection]],
        begin: Callable[[Connection], Awaitable[None]],
        stack: AsyncExitStack,
    ) -> None:
        self._transaction, self._begin, self._stack = transaction, begin, stack
        #: None until it has begun.
        self.conn: Connection | None = None

    @asynccontextmanager
    async def part(self) -> AsyncIterator[Connection]:
        """As a transaction of its own, but what it wrote is committed with the whole."""
        if self.conn is None:
            conn = await self._stack.enter_async_context(self._transaction())
            await self._begin(conn)
            self.conn = conn
        with translated():
            async with self.conn.transaction():
                yield self.conn


def _used(pool: asyncpg.Pool) -> int:
    count: int = pool.get_size() - pool.get_idle_size()
    return count


async def _open_pool(
    dsn: str, lane: Lane, least: int, most: int, name: str, identity: DatabaseIdentity
) -> asyncpg.Pool:
    async def prepare_pooled(conn: NotifyingConnection) -> None:
        await prepare(conn)
        conn.backend_pid = await identity.look(conn)

    return await asyncpg.create_pool(
        dsn,
        min_size=least,
        max_size=most,
        max_inactive_connection_lifetime=300.0,
        init=prepare_pooled,
        connection_class=NotifyingConnection,
        statement_cache_size=_PREPARED,
        reset=NotifyingConnection.finish,
        timeout=min(_CONNECT_S, lane.acquire_s),
        command_timeout=lane.command_s,
        server_settings=_server_settings(name, lane),
    )


async def connect(dsn: str, name: str, lane: Lane) -> Connection:
    """A connection of no pool; the caller closes it. Raises TryAgain, DatabaseTooOld."""
    with translated():
        conn = await asyncpg.connect(
            dsn,
            timeout=_CONNECT_S if lane.command_s is None else lane.command_s,
            command_timeout=lane.command_s,
            connection_class=NotifyingConnection,
            server_settings=_server_settings(name, lane),
        )
        try:
            await prepare(conn)
        except BaseException:
            conn.terminate()
            raise
        return conn


async def now(conn: Connection) -> datetime:
    """The database's time; the same throughout a transaction."""
    moment: datetime = await conn.fetchval("select now()")
    return moment


async def prepare(conn: Connection) -> None:
    """What every connection of ours can: JSON as Python values; and it notices that the other end is gone.

    Raises DatabaseTooOld.
    """
    version = conn.get_server_version()
    if version.major < OLDEST_MAJOR:
        raise DatabaseTooOld(
            f"The database is PostgreSQL {version.major}.{version.minor}, and Tenax needs PostgreSQL {OLDEST_MAJOR} or "
            "newer: upgrade the server, or name another one as db.url. Nothing was changed."
        )
    _keep_alive(conn)
    await json_columns.use(conn)


def _keep_alive(conn: Connection) -> None:
    """Let the kernel end a connection whose other end is gone without a word."""
    transport = getattr(conn, "_transport", None)
    connected = None if transport is None else transport.get_extra_info("socket")
    if connected is None or connected.family == getattr(socket, "AF_UNIX", None):
        return
    options = {
        "TCP_KEEPIDLE": _KEEPALIVE_IDLE_S,
        "TCP_KEEPINTVL": _KEEPALIVE_INTERVAL_S,
        "TCP_KEEPCNT": _KEEPALIVE_PROBES,
        "TCP_USER_TIMEOUT": _UNACKNOWLEDGED_S * 1000,
    }
    with socket.socket(fileno=os.dup(connected.fileno())) as ours:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in options.items():
            if hasattr(socket, option):
                ours.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _server_settings(name: str, lane: Lane) -> dict[str, str]:
    return {
        "application_name": f"{name}-{lane.name}",
        "timezone": "UTC",
        # The server, too, lets go of what belongs to a machine that is gone: locks, and the session we are known by.
        "tcp_keepalives_idle": str(_KEEPALIVE_IDLE_S),
        "tcp_keepalives_interval": str(_KEEPALIVE_INTERVAL_S),
        "tcp_keepalives_count": str(_KEEPALIVE_PROBES),
        "tcp_user_timeout": str(_UNACKNOWLEDGED_S * 1000),
        **lane.server_settings(),
    }
