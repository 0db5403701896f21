"""Passwords: argon2 of what the client sends, in a thread, two at a time.

One hash costs 64 MiB and 0.2 s of a core: the limit keeps a flood of logins from taking the machine.
"""

from __future__ import annotations

import asyncio
import hashlib

import anyio.to_thread
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerifyMismatchError

#: Put before a password before it is hashed by the client, so that what travels is of no use elsewhere.
PASSWORD_SALT = "GubPEmmotfiK9TMD6Zdw"  # noqa: S105
#: Hashes computed at a time.
AT_ONCE = 2


class Passwords:
    """Makes and checks password hashes. One per master; safe to share between requests of one event loop."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        self._turn = asyncio.Semaphore(AT_ONCE)
        #: What an unknown user's password is checked against, so that names cannot be told by the time it takes.
        self._decoy: str | None = None

    async def hash(self, sent: str) -> str | None:
        """The hash of what a client sent; None for a blank password."""
        if not sent:
            return None
        async with self._turn:
            return await anyio.to_thread.run_sync(self._hasher.hash, sent)

    async def matches(self, stored: str | None, sent: str) -> bool:
        """Whether ``sent`` is the password of ``stored``."""
        if stored is None or not sent:
            return stored is None and not sent
        async with self._turn:
            return await anyio.to_thread.run_sync(self._verify, stored, sent)

    async def refuse(self, sent: str) -> None:
        """Take as long as a wrong password takes."""
        if self._decoy is None:
            self._decoy = await self.hash("nobody's password")
        await self.matches(self._decoy, sent or "-")

    def _verify(self, stored: str, sent: str) -> bool:
        try:
            return self._hasher.verify(stored, sent)
        except (VerifyMismatchError, InvalidHashError):
            return False


def as_sent(password: str, is_hashed: bool) -> str:
    """What a client that hashes would have sent: older clients send the password itself."""
    return password if is_hashed else hashed_password(password)


def hashed_password(password: str) -> str:
    """What a client sends for ``password``: hex of a salted SHA-512; a blank password stays blank."""
    return hashlib.sha512((PASSWORD_SALT + password).encode()).hexdigest() if password else ""
