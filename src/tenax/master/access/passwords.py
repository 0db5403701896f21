"""Passwords: argon2 of what the client sends, in a thread, two at a time.

Rules it keeps:

- one hash costs 64 MiB and 0.2 s of a core: the limit keeps a flood of logins from taking the machine;
- to say no takes one hash, whoever is meant and whatever was sent: the time tells nothing of who there is;
- a password that is seen in clear has `LEAST` characters; of one that comes as a hash only a blank one is known.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets

import anyio.to_thread
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerifyMismatchError

from tenax.errors import InvalidInput

#: Put before a password before it is hashed by the client, so that what travels is of no use elsewhere.
PASSWORD_SALT = "GubPEmmotfiK9TMD6Zdw"  # noqa: S105
#: Hashes computed at a time.
AT_ONCE = 2
#: Characters of a password.
LEAST = 8
#: What a client would send that hashes a blank password, too.
HASH_OF_NOTHING = hashlib.sha512(PASSWORD_SALT.encode()).hexdigest()


class Passwords:
    """Makes and checks password hashes. One per master; safe to share between requests of one event loop."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        self._turn = asyncio.Semaphore(AT_ONCE)
        #: A hash of no password, with the parameters of any other.
        self.decoy = _decoy(self._hasher)

    async def hash(self, sent: str) -> str | None:
        """The hash of what a client sent; None for a blank password."""
        if not sent:
            return None
        async with self._turn:
            return await anyio.to_thread.run_sync(self._hasher.hash, sent)

    async def matches(self, stored: str | None, sent: str) -> bool:
        """Whether ``sent`` is the password of ``stored``: None is a blank one, and what is no hash is nobody's."""
        comparable = stored is not None and stored.startswith("$argon2") and sent != ""
        against = stored if comparable and stored is not None else self.decoy
        async with self._turn:
            same = await anyio.to_thread.run_sync(self._verify, against, sent or "-")
        return (same and comparable) or (stored is None and not sent)

    def _verify(self, stored: str, sent: str) -> bool:
        try:
            return self._hasher.verify(stored, sent)
        except (VerifyMismatchError, InvalidHashError):
            return False


def as_sent(password: str, is_hashed: bool) -> str:
    """What a client that hashes would have sent: older clients send the password itself."""
    return password if is_hashed else hashed_password(password)


def new_as_sent(password: str, is_hashed: bool) -> str:
    """The same of a password that is to be set; a blank one stays blank. Raises InvalidInput for one too short."""
    if is_hashed:
        return "" if password == HASH_OF_NOTHING else password
    if password:
        check_length(password, "the password")
    return hashed_password(password)


def check_length(password: str, what: str) -> None:
    """Raises InvalidInput for a password that is too short."""
    if len(password) < LEAST:
        raise InvalidInput(f"{what} has {len(password)} characters: it needs at least {LEAST} characters")


def hashed_password(password: str) -> str:
    """What a client sends for ``password``: hex of a salted SHA-512; a blank password stays blank."""
    return hashlib.sha512((PASSWORD_SALT + password).encode()).hexdigest() if password else ""


def _decoy(hasher: PasswordHasher) -> str:
    salt, digest = (
        base64.b64encode(secrets.token_bytes(length)).decode().rstrip("=")
        for length in (hasher.salt_len, hasher.hash_len)
    )
    costs = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    return f"$argon2id$v=19${costs}${salt}${digest}"
