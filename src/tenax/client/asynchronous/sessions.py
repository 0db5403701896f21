"""The sessions of one client: each serves one thread at a time, and those of one login are made from the first.

A value in an asynchronous client has `CURRENT` for its session, which is whichever its thread was lent for the call.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from typing import Callable, Iterator, List, Optional, cast

from tenax.client.connection.session import RETRY_S, Session, SessionAborted
from tenax.errors import NotAuthenticated

_lent: contextvars.ContextVar[Session] = contextvars.ContextVar("tenax_session")


class _Current:
    def __getattr__(self, name: str) -> object:
        return getattr(_lent.get(), name)


CURRENT = cast(Session, _Current())


class Loan:
    """Of a session to one call, which may be ended from another thread."""

    def __init__(self) -> None:
        self._session: Optional[Session] = None
        self._ended = False
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def of(self, session: Session) -> Iterator[None]:
        """Until the end of the block. Raises SessionAborted where it has ended already."""
        with self._lock:
            if self._ended:
                raise SessionAborted()
            self._session = session
        try:
            yield
        finally:
            with self._lock:
                self._session = None

    def end(self) -> None:
        """End what the master streams for the call, and make it ask nothing more."""
        with self._lock:
            self._ended = True
            if self._session is not None:
                self._session.abort()


class Sessions:
    """Thread-safe. ``open_first`` makes the first, which logs in for all; it may take its time."""

    def __init__(self, open_first: Callable[[], Session]) -> None:
        self._open_first = open_first
        self._first: Optional[Session] = None
        self._free: List[Session] = []
        self._closed = False
        self._lock = threading.Lock()
        self._making = threading.Lock()

    @contextlib.contextmanager
    def lent(self, session: Optional[Session] = None) -> Iterator[Session]:
        """For this thread until the end of the block; without a ``session`` a free one."""
        own = session is None
        session = self.take() if session is None else session
        token = _lent.set(session)
        try:
            yield session
        except NotAuthenticated:
            # The login is over: the next call begins with whatever login there is then.
            self._forget()
            raise
        finally:
            _lent.reset(token)
            if own:
                self._give_back(session)

    def take(self) -> Session:
        """One that is free, or a new one. Raises what making a session raises."""
        with self._lock:
            if self._free:
                return self._free.pop()
        with self._making:
            if self._first is None:
                self._first = self._open_first()
            return self._first.another(retry_for_s=RETRY_S)

    def close(self) -> None:
        """Let go of the connections; those in use are let go of after it."""
        with self._lock:
            self._closed = True
        self._forget()

    def _give_back(self, session: Session) -> None:
        with self._lock:
            if not self._closed and not session.aborted:
                self._free.append(session)
                return
        session.close()

    def _forget(self) -> None:
        with self._lock:
            free, self._free = self._free, []
            first, self._first = self._first, None
        for session in (*free, *([] if first is None else [first])):
            session.close()
