"""What comes from a master piece by piece, for ``async for``: fetched as it is read, one item at a time."""

from __future__ import annotations

import threading
from typing import Callable, Generator, Generic, Iterator, Optional, TypeVar

from tenax.client.asynchronous.sessions import Sessions
from tenax.client.asynchronous.threads import CallThreads
from tenax.client.connection.session import Session

Item = TypeVar("Item")


class AsyncStream(Generic[Item]):
    """Its request is closed at the end, by `aclose`, when nothing refers to it, and when whoever waits is cancelled.

    It has a session of its own, and a thread while somebody waits for an item. For one reader.
    """

    def __init__(self, begin: Callable[[], Iterator[Item]], sessions: Sessions, threads: CallThreads) -> None:
        self._begin = begin
        self._sessions = sessions
        self._threads = threads
        self._session: Optional[Session] = None
        self._items: Optional[Iterator[Item]] = None
        self._read = False
        self._over = False
        #: Held while an item is fetched, or what is open is closed.
        self._busy = threading.Lock()

    def __aiter__(self) -> AsyncStream[Item]:
        return self

    async def __anext__(self) -> Item:
        if self._over:
            raise StopAsyncIteration
        if self._read:
            raise RuntimeError("this stream is being read already: it is for one reader")
        self._read = True
        try:
            return await self._threads.result(self._fetch)
        except _End:
            self.close()
            raise StopAsyncIteration from None
        except BaseException:
            self.close()
            raise
        finally:
            self._read = False

    async def aclose(self) -> None:
        """Close the request; there is no further item."""
        self.close()

    def close(self) -> None:
        """The same, from any thread."""
        self._over = True
        session = self._session
        if session is not None:
            session.abort()
        self._let_go()

    def __del__(self) -> None:
        # A loop that was left early: nobody can read on.
        self.close()

    def _fetch(self) -> Item:
        try:
            with self._busy:
                return self._next()
        finally:
            if self._over:
                self._let_go()

    def _next(self) -> Item:
        if self._session is None:
            self._session = self._sessions.take()
        if self._over:
            raise _End
        with self._sessions.lent(self._session):
            if self._items is None:
                self._items = self._begin()
            for item in self._items:
                return item
        raise _End

    def _let_go(self) -> None:
        """Unless a thread is fetching, which does so after it."""
        if not self._busy.acquire(blocking=False):
            return
        try:
            items, self._items = self._items, None
            session, self._session = self._session, None
            if isinstance(items, Generator):
                items.close()
            if session is not None:
                session.close()
        finally:
            self._busy.release()


class _End(Exception):
    """There is nothing more; StopIteration cannot pass through a future."""
