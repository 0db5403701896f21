"""Which errors of PostgreSQL mean "try again".

Rules:
- An error is the statement's own, or it is PostgreSQL's state: away, starting, shutting down, out of connections, a
  role that may not log in, a deadlock, a full disk, a time-out, and whatever else nobody thought of. The statement's
  own are listed by their class; all others are TryAgain, here and nowhere else.
- Nothing was done, unless the COMMIT had been sent: then nobody knows, and that is an error of its own, which a request
  that creates something must not be answered with as if it were to be sent again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from tenax.errors import TryAgain
from tenax.master.observability import counters

#: SQLSTATE, or the class that it begins with, of what a statement does wrong: the same statement would fail again.
_OWN_FAULT = (
    *("0A", "0L", "0P", "0Z", "20", "21", "22", "23", "24", "26", "27", "2B", "2F", "34", "38", "39", "42", "44", "54"),
    # Of a transaction that was begun or ended wrongly; that one is read-only now, or waited too long, is not its fault.
    *("25000", "25001", "25002", "25P01", "25P02"),
    # Raised by a function or trigger of ours.
    "P0",
)
#: At a COMMIT: no answer, or none to the COMMIT. Every other error says that it was refused.
_UNANSWERED = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
#: Rights that were taken away, objects that are in use: state of the database after all.
_STATE = ("42501",)


class DatabaseTrouble(TryAgain):
    """The database cannot do this at the moment."""

    #: In `counters.DB_ERRORS`.
    counted_as = counters.AWAY

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message)
        counters.DB_ERRORS.labels(self.counted_as).inc()


class DatabaseAway(DatabaseTrouble):
    """The database cannot be reached at the moment: try again shortly."""


class DatabaseFull(DatabaseTrouble):
    """The database's disk is full: make room, nothing can be stored meanwhile."""

    counted_as = counters.FULL


class DatabaseSlow(DatabaseTrouble):
    """The database took too long over this, and it was ended: try again later, or ask for less."""

    counted_as = counters.SLOW


class OutcomeUnknown(DatabaseAway):
    """The connection to the database was lost while this was committed: it may have been done."""

    counted_as = counters.UNKNOWN


@contextmanager
def translated() -> Iterator[None]:
    """Errors of the driver that are not the statement's fault, as TryAgain."""
    try:
        yield
    except asyncpg.DiskFullError as error:
        raise DatabaseFull from error
    except (asyncpg.QueryCanceledError, asyncpg.LockNotAvailableError) as error:
        raise DatabaseSlow from error
    except asyncpg.PostgresError as error:
        if is_own_fault(error):
            raise
        raise DatabaseAway from error
    except (OSError, asyncio.TimeoutError) as error:
        raise DatabaseAway from error
    except (asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        # Of the driver: that a connection is closed, was lost between two statements (the pool took it back then),
        # still busy with what was called off, or lost track of by what the server said while it was ending.
        passing = ("clos", "released back", "cancelling")
        if isinstance(error, asyncpg.InternalClientError) or any(word in str(error) for word in passing):
            raise DatabaseAway from error
        raise


@contextmanager
def committing() -> Iterator[None]:
    """Around a COMMIT. Raises OutcomeUnknown where no answer to it came."""
    try:
        yield
    except (*_UNANSWERED, OSError, asyncio.TimeoutError) as error:
        raise OutcomeUnknown from error


def is_own_fault(error: asyncpg.PostgresError) -> bool:
    """Whether the statement is to blame, and would fail again."""
    state = str(getattr(error, "sqlstate", None) or "")
    return state.startswith(_OWN_FAULT) and not state.startswith(_STATE)
