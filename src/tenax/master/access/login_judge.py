"""Judging passwords: who is judged when, so that guessing is slow and nobody is kept out by the guesses of others.

Rules it keeps:

- of one name from one address one password is judged at a time, and counted before it is: a hundred guesses that come
  at once are refused like a hundred in a row, and a hundred programs that know the password get in;
- the same holds over all masters of a database, which count there together;
- suspect tries (`tenax.master.access.login_throttle`) have one of the places where passwords are hashed, others all;
- both lines have an end: whoever finds them full is told to come again, and it does not count.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field

from tenax.errors import TooOften
from tenax.master.access.client_address import counted_as
from tenax.master.access.login_throttle import FORGET_S, LoginSource, Throttle, check_wait
from tenax.master.access.passwords import Passwords
from tenax.master.store.database.connection import Database
from tenax.master.store.users import failed_logins

#: How many may be there at a time, by whether they are suspect.
_MAX_PRESENT = {False: 256, True: 64}
#: No name is longer; what is longer needs not be kept.
_NAME = 255


@dataclass(slots=True)
class _Line:
    """Those who wait for one thing, or have it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    length: int = 0


class LoginJudge:
    """Judges passwords. One per master, owned by its event loop."""

    def __init__(self, passwords: Passwords, db: Database) -> None:
        self._passwords = passwords
        self._db = db
        self._throttle = Throttle()
        #: How many wait or are judged, by whether they are suspect.
        self._present = {False: 0, True: 0}
        self._suspects = asyncio.Lock()
        #: By name and address.
        self._lines: dict[str, _Line] = {}

    async def is_right(self, name: str, address: str, stored: str | None, sent: str) -> bool:
        """Whether ``sent`` is the password that ``name`` has (``stored``). Raises TooOften."""
        source = LoginSource(name[:_NAME].lower(), counted_as(address))
        now = time.monotonic()
        self._throttle.check(source, now)
        suspect = self._throttle.is_suspect(source, now)
        if self._present[suspect] >= _MAX_PRESENT[suspect]:
            raise TooOften("too many want to log in at this moment: try again in a second")
        self._throttle.arrived(source, now)
        self._present[suspect] += 1
        try:
            async with self._turn_of(source):
                now = time.monotonic()
                self._throttle.check(source, now)
                key = hashlib.sha256(source.pair.encode("utf-8", "surrogatepass")).digest()
                await self._admit(key)
                self._throttle.admitted(source, now)
                async with self._suspects if suspect else nullcontext():
                    right = await self._passwords.matches(stored, sent)
                if right:
                    self._throttle.succeeded(source)
                    async with self._db.transaction() as conn:
                        await failed_logins.forget(conn, key)
                return right
        finally:
            self._present[suspect] -= 1

    async def _admit(self, key: bytes) -> None:
        """Count a try that is judged now, by whatever master. Raises TooOften."""
        async with self._db.transaction() as conn:
            past = await failed_logins.lock(conn, key)
            check_wait(past.count, past.seconds)
            failures = past.count if past.seconds < FORGET_S else 0
            await failed_logins.count(conn, key, failures + 1, FORGET_S)

    @asynccontextmanager
    async def _turn_of(self, source: LoginSource) -> AsyncIterator[None]:
        line = self._lines.setdefault(source.pair, _Line())
        line.length += 1
        try:
            async with line.lock:
                yield
        finally:
            line.length -= 1
            if not line.length:
                del self._lines[source.pair]
