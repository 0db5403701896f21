"""A cache of whose a credential is, for some seconds: most requests are those of a few tasks and agents.

Rules it keeps:

- nothing is remembered longer than `KEEP_S`, nor beyond the end of the credential;
- what changes a credential (a logout, a new password, a user who is not active any more, the end of an attempt) is
  announced by the database in the transaction that changes it, and dropped when that arrives; a handler of this process
  drops it before it answers;
- what was looked up while something was dropped is not remembered: it may have been read before the change;
- only what is good is remembered, under the sha256 of the credential.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass

from tenax.errors import NotAuthenticated
from tenax.master.access.authorization import ALLOCATION_PREFIX, Allow, Caller, Identified, RequestCredential, identify
from tenax.master.access.task_tokens import token_hash
from tenax.master.store.database.connection import Database
from tenax.master.store.database.lanes import AGENTS
from tenax.master.store.database.wakeups import Listener

KEEP_S = 5.0
MAX_KEPT = 10_000

#: sha256, and whether it is an agent's.
_Key = tuple[bytes, bool]


@dataclass(frozen=True, slots=True)
class _Kept:
    caller: Caller
    #: On the monotonic clock.
    until: float
    tags: tuple[str, ...]


class CredentialCache:
    """The callers of recent requests. Owned by one event loop."""

    def __init__(self, database: Database, listener: Listener, keep_s: float = KEEP_S) -> None:
        self._database = database
        self._keep_s = keep_s
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        #: What may change -> what is remembered that depends on it.
        self._by_tag: dict[str, set[_Key]] = {}
        #: Raised whenever something is dropped.
        self._generation = 0
        listener.attach("credential", self)

    async def caller(self, credential: RequestCredential, allow: Allow) -> Caller:
        """Who calls a route of that policy. Raises NotAuthenticated, Forbidden, TryAgain."""
        if credential.by_cookie and credential.token.startswith(ALLOCATION_PREFIX):
            raise NotAuthenticated
        key = (token_hash(credential.token), allow is Allow.AGENT)
        kept = self._kept.get(key)
        if kept is not None:
            if time.monotonic() < kept.until:
                return kept.caller
            self._drop(key)
        generation = self._generation
        began = time.monotonic()
        # An agent that comes back does not wait behind what people ask for.
        database = self._database.on(AGENTS) if allow is Allow.AGENT else self._database
        async with database.connection() as conn:
            identified = await identify(conn, credential, allow)
        if generation == self._generation:
            self._remember(key, identified, began)
        return identified.caller

    def forget_user(self, user_id: int) -> None:
        """A user has changed, or what they are known by."""
        self.wake(f"user:{user_id}")

    def forget_token(self, hashed: bytes) -> None:
        """A credential has ended."""
        self.wake(_token_tag(hashed))

    def wake(self, id: str) -> None:
        """Something has changed, named as the database names it."""
        self._generation += 1
        for key in tuple(self._by_tag.get(id, ())):
            self._drop(key)

    def wake_all(self) -> None:
        """Anything may have changed."""
        self._generation += 1
        self._kept.clear()
        self._by_tag.clear()

    def _remember(self, key: _Key, identified: Identified, began: float) -> None:
        until = began + min(self._keep_s, identified.seconds_left)
        kept = _Kept(identified.caller, until, _tags(identified, key))
        self._kept[key] = kept
        for tag in kept.tags:
            self._by_tag.setdefault(tag, set()).add(key)
        while len(self._kept) > MAX_KEPT:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: _Key) -> None:
        known = self._kept.pop(key, None)
        for tag in known.tags if known is not None else ():
            keys = self._by_tag[tag]
            keys.discard(key)
            if not keys:
                del self._by_tag[tag]


def _tags(identified: Identified, key: _Key) -> tuple[str, ...]:
    """As the triggers of the database announce them."""
    caller = identified.caller
    tags = [_token_tag(key[0])]
    if caller.user is not None:
        tags.append(f"user:{caller.user.id}")
    if caller.agent_id is not None:
        tags.append(f"agent:{caller.agent_id}")
    if identified.allocation_id is not None:
        tags.append(f"allocation:{identified.allocation_id}")
    return tuple(tags)


def _token_tag(hashed: bytes) -> str:
    return f"token:\\x{hashed.hex()}"
