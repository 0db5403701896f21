"""What the live stream remembers, and what waits for each of its followers. For one event loop; no I/O.

Rules:
- A change has a number, and the newest are kept: whoever says how far they are is sent what they missed.
- Of a follower waits, for each thing that changed, the newest of what is said of it: a slow one is sent less, not late.
- What waits for a follower is bounded. Beyond that it is dropped, and the follower is told to fetch everything again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass

#: Changes that are remembered.
MAX_CHANGES = 20_000
#: Things that wait for one follower.
MAX_WAITING = 500
#: Changes in one part of a follower's stream.
MAX_AT_ONCE = 100

#: Kind and id.
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """Something changed, as all followers are told of it."""

    number: int
    key: Key
    topics: tuple[str, ...]
    #: As it is sent.
    text: bytes


class Ring:
    """The newest changes."""

    def __init__(self, remembered: int = MAX_CHANGES) -> None:
        self._changes: deque[Change] = deque(maxlen=remembered)
        #: Of the newest change.
        self.number = 0
        #: Changes up to it are not remembered.
        self.forgotten = 0

    def add(self, key: Key, topics: tuple[str, ...], text: bytes) -> Change:
        """Remember one more."""
        change = Change(self.step(), key, topics, text)
        if len(self._changes) == self._changes.maxlen:
            self.forgotten = self._changes[0].number
        self._changes.append(change)
        return change

    def step(self) -> int:
        """The next number: whoever is at an earlier one has not seen what it stands for."""
        self.number += 1
        return self.number

    def forget(self) -> None:
        """Changes may be missing: none is remembered."""
        self._changes.clear()
        self.forgotten = self.number

    def after(self, number: int) -> Iterator[Change]:
        """Those later than one, oldest first; the caller has looked at ``forgotten``."""
        later: list[Change] = []
        for change in reversed(self._changes):
            if change.number <= number:
                break
            later.append(change)
        return reversed(later)


class StreamFollower:
    """One stream: its topics, and what is to be sent."""

    def __init__(self, topics: Collection[str], user_id: int, tags: Collection[str]) -> None:
        self.topics = set(topics)
        self.user_id = user_id
        #: What its right to be here depends on, as the database announces changes of it.
        self.tags = frozenset(tags)
        #: Whether it may go on has to be asked before anything is sent.
        self.doubted = False
        #: It is over.
        self.ended = False
        #: Topics of which it does not have everything.
        self.stale: set[str] = set()
        #: In the order of sending: number of the change since which it waits, and the newest text.
        self._waiting: dict[Key, tuple[int, bytes]] = {}
        self._event = asyncio.Event()

    def push(self, change: Change) -> None:
        """Something that it follows has changed."""
        since, _ = self._waiting.get(change.key, (change.number, b""))
        self._waiting[change.key] = (since, change.text)
        if len(self._waiting) > MAX_WAITING:
            self.reset(self.topics)
            self._waiting.clear()
        self._event.set()

    def reset(self, topics: Collection[str]) -> None:
        """Of these topics something is missing: all of them has to be fetched again."""
        self.stale |= self.topics.intersection(topics)
        self._event.set()

    def doubt(self) -> None:
        """Ask again whether it may go on."""
        self.doubted = True
        self._event.set()

    def end(self) -> None:
        """It is over: the peer has gone, or this process ends."""
        self.ended = True
        self._event.set()

    def take(self) -> list[bytes]:
        """What is to be sent now, `MAX_AT_ONCE` at most; the rest waits on."""
        keys = [key for key, _ in zip(self._waiting, range(MAX_AT_ONCE))]
        return [self._waiting.pop(key)[1] for key in keys]

    def position(self, newest: int) -> int:
        """The number of a change up to which nothing waits any more."""
        first = next(iter(self._waiting.values()), None)
        return newest if first is None else first[0] - 1

    async def wait(self, seconds: float) -> None:
        """Until there is something to do, ``seconds`` at most."""
        if self._waiting or self.stale or self.doubted or self.ended:
            return
        self._event.clear()
        with contextlib.suppress(asyncio.TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()
