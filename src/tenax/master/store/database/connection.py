"""The way to PostgreSQL: a pool of connections, transactions, and which of its errors mean "try again".

Rules:
- Whatever is PostgreSQL's state and not the statement's fault (away, starting, shutting down, out of connections, a
  deadlock, a full disk) is TryAgain, here and nowhere else. The statement may have been done: writes can be repeated.
- Connections of the pool carry no state from one use to the next: no session locks, no LISTEN, no settings.
- ``json`` and ``jsonb`` are Python values on both sides. A number that JSON does not have is refused, never dropped.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime

import asyncpg
import msgspec
from asyncpg import Connection

from tenax.errors import Impossible, TryAgain
from tenax.jsonvalue import Json, JsonObject
from tenax.master.store.database.queries import load

Q = load("database")

#: Wake-ups go over it.
CHANNEL = "tenax"
#: A master that hangs inside a transaction loses it, and its locks, after this.
_IDLE_IN_TRANSACTION_MS = 60_000
#: How long one waits for a connection of the pool.
_ACQUIRE_S = 30.0
#: Statements that a connection keeps prepared: all that the busiest paths use, with room for the others.
_PREPARED = 1000
#: What `NOTIFY` takes without quoting.
_PLAIN = re.compile(r"[A-Za-z0-9_.:-]{1,200}", re.ASCII)

_PASSING = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.TransactionRollbackError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.LockNotAvailableError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)


class DatabaseAway(TryAgain):
    """The database cannot be reached at the moment: try again shortly."""


class DatabaseFull(TryAgain):
    """The database's disk is full: make room, nothing can be stored meanwhile."""


class NotifyingConnection(asyncpg.Connection):  # type: ignore[misc]  # the driver has no types
    """A connection that sends what everybody waits for in the round trip of the commit: wake-ups, agents' revisions.

    They are statements before the COMMIT, so they are done if it succeeds, and only then; and rows of agents are locked
    for that round trip alone, however far away the database is.
    """

    __slots__ = ("_raised", "_wakeups")
    #: In the order of sending; None outside of a transaction of `Database.transaction`.
    _wakeups: dict[str, None] | None
    #: Agents whose revision is raised.
    _raised: set[str]

    def __init__(self, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **named)
        self._wakeups = None
        self._raised = set()

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
        if query == "COMMIT;" and self.has_wakeups:
            raised = Q.raise_revisions.replace("$1", f"'{{{','.join(sorted(self._raised))}}}'") if self._raised else ""
            query = "".join(f"notify {CHANNEL}, '{payload}'; " for payload in self._wakeups or ()) + f"{raised};{query}"
            self._wakeups, self._raised = None, set()
        status: str = await super().execute(query, *args, timeout=timeout)
        return status


class Database:
    """A pool of connections to one database. For one event loop."""

    def __init__(self, pool: asyncpg.Pool, dsn: str, name: str) -> None:
        self._pool = pool
        self._dsn = dsn
        self._name = name

    @classmethod
    async def open(cls, dsn: str, *, max_connections: int = 16, name: str = "tenax-master") -> Database:
        """Connect. ``name`` is shown in pg_stat_activity. Raises TryAgain while the server cannot be reached."""
        with translated():
            pool = await asyncpg.create_pool(
                dsn,
                min_size=1,
                max_size=max_connections,
                max_inactive_connection_lifetime=300.0,
                init=prepare,
                connection_class=NotifyingConnection,
                statement_cache_size=_PREPARED,
                reset=_nothing_to_reset,
                server_settings=_server_settings(name),
            )
        return cls(pool, dsn, name)

    async def close(self) -> None:
        """Wait for the transactions under way, then disconnect; cut off what takes longer than ten seconds."""
        try:
            await asyncio.wait_for(self._pool.close(), 10.0)
        except asyncio.TimeoutError:
            self._pool.terminate()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """One transaction: committed when the block ends, rolled back when it raises. Raises TryAgain."""
        with translated():
            async with self._pool.acquire(timeout=_ACQUIRE_S) as conn:
                notifying: NotifyingConnection = conn.collect_wakeups()
                try:
                    async with conn.transaction():
                        yield conn
                    if notifying.has_wakeups:
                        raise Impossible("a transaction was committed without its wake-ups")
                finally:
                    notifying.drop_wakeups()

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Connection]:
        """A read-only transaction of which every statement sees the same state. Raises TryAgain."""
        with translated():
            async with self._pool.acquire(timeout=_ACQUIRE_S) as conn:
                async with conn.transaction(isolation="repeatable_read", readonly=True):
                    yield conn

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection without a transaction around it: for reads of one statement. Raises TryAgain."""
        with translated():
            async with self._pool.acquire(timeout=_ACQUIRE_S) as conn:
                try:
                    yield conn
                except asyncpg.DataError:
                    # The driver refused a value after the server had parsed the statement, and has not said that it is
                    # over: what came next on this connection would be in one transaction with it.
                    await conn.execute("rollback")
                    raise

    async def dedicated(self) -> Connection:
        """A connection outside the pool, for LISTEN and session locks; the caller closes it. Raises TryAgain."""
        with translated():
            conn = await asyncpg.connect(self._dsn, server_settings=_server_settings(f"{self._name}-listener"))
            await prepare(conn)
            return conn


async def now(conn: Connection) -> datetime:
    """The database's time; the same throughout a transaction."""
    moment: datetime = await conn.fetchval("select now()")
    return moment


@contextmanager
def translated() -> Iterator[None]:
    """Errors of the driver that pass by themselves, as TryAgain."""
    try:
        yield
    except asyncpg.DiskFullError as error:
        raise DatabaseFull from error
    except (*_PASSING, OSError, asyncio.TimeoutError) as error:
        raise DatabaseAway from error
    except asyncpg.InterfaceError as error:
        if "clos" in str(error):
            raise DatabaseAway from error
        raise


async def prepare(conn: Connection) -> None:
    """What every connection of ours can: JSON as Python values."""
    await conn.set_type_codec("json", schema="pg_catalog", format="binary", encoder=_encode, decoder=_decode)
    await conn.set_type_codec("jsonb", schema="pg_catalog", format="binary", encoder=_encode_b, decoder=_decode_b)


async def _nothing_to_reset(conn: Connection) -> None:
    """Saves a round trip at each release; see the rules."""


def _server_settings(name: str) -> dict[str, str]:
    return {
        "application_name": name,
        "timezone": "UTC",
        "idle_in_transaction_session_timeout": str(_IDLE_IN_TRANSACTION_MS),
    }


def _encode(value: Json) -> bytes:
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


def _encode_b(value: Json) -> bytes:
    # The first byte is the version of PostgreSQL's binary format of jsonb.
    return b"\x01" + _encode(value)


def _decode(data: bytes) -> Json:
    value: Json = msgspec.json.decode(data)
    return value


def decoded(text: str) -> JsonObject:
    """A document that was read as text."""
    value: JsonObject = msgspec.json.decode(text)
    return value


def _decode_b(data: bytes) -> Json:
    return _decode(data[1:])
