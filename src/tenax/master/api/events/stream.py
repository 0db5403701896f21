"""One follower's stream, as server-sent events: ``hello`` first, then ``change``, ``reset``, ``refused``, and ``end``.

Rules it keeps:

- once something has changed that the right to follow depends on (`StreamFollower.doubted`), nothing is sent before that
  and the right to each topic were asked again; the first also every `RECHECK_S`, for a credential that ends by itself;
- a position (``id``) goes with the last event of each part: all before it was sent;
- `PARTS_PER_S` parts at most; where nothing happens a line of comment every `HEARTBEAT_S` keeps the connection open;
- a reader who does not read holds what waits for it in `tenax.master.reading.events.ring`, and no more.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tenax.errors import Forbidden, NotAuthenticated, TryAgain
from tenax.master.access.authorization import Caller
from tenax.master.api.events.rights import refusals
from tenax.master.context import Master
from tenax.master.reading.events.ring import StreamFollower
from tenax.master.reading.events.topics import Topic

HEARTBEAT_S = 5.0
RECHECK_S = 30.0
#: Of a task's credential, whose end is not announced under every name.
_TASK_RECHECK_S = 5.0
PARTS_PER_S = 5.0
_COMMENT = b":\n\n"
#: A browser tries again so many milliseconds after the end.
_RETRY = b"retry: 1000\n"
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    # Of nginx: send what comes as it comes.
    (b"x-accel-buffering", b"no"),
]


@dataclass(frozen=True, slots=True)
class Following:
    """What one request asks for, and who asks."""

    master: Master
    caller: Caller
    #: Who is calling, asked anew. Raises NotAuthenticated, Forbidden, TryAgain.
    identified: Callable[[], Awaitable[Caller]]
    topics: Sequence[Topic]
    position: str
    #: Of the contract that this master keeps.
    greeting: Mapping[str, object]


class EventStream(Response):
    """The answer to one request. Raises TooOften, as its first act, where there are too many streams."""

    def __init__(self, following: Following) -> None:
        super().__init__(media_type="text/event-stream")
        self._following = following

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        following = self._following
        feed = following.master.feed
        refused = await refusals(following.master, following.caller, following.topics)
        topics = [topic for topic in following.topics if topic.name not in refused]
        prepared = await feed.look_up(topics)
        with feed.follow(
            topics, prepared, following.caller.person.id, _tags(following.caller), following.position
        ) as follower:
            watching = asyncio.create_task(_watch(receive, follower))
            try:
                await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
                async for part in self._parts(follower, topics, refused):
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)

    async def _parts(
        self, follower: StreamFollower, topics: Sequence[Topic], refused: Mapping[str, str]
    ) -> AsyncIterator[bytes]:
        following, feed = self._following, self._following.master.feed
        cursor = feed.position(follower)
        hello = {**following.greeting, "cursor": cursor, "topics": [topic.name for topic in topics], "refused": refused}
        yield _RETRY + _event("hello", hello, cursor)
        recheck_s = _TASK_RECHECK_S if following.caller.is_task else RECHECK_S
        checked = spoke = time.monotonic()
        while not follower.ended:
            now = time.monotonic()
            if follower.doubted or now - checked >= recheck_s:
                topics, part, over = await self._check(follower, topics)
                checked = now
                if part:
                    yield part
                if over:
                    return
                if follower.doubted:
                    # It cannot be known now, so nothing is sent: the database is away.
                    await asyncio.sleep(1 / PARTS_PER_S)
                    continue
            part = self._next(follower)
            if part or now - spoke >= HEARTBEAT_S:
                spoke = now
                yield part or _COMMENT
                await asyncio.sleep(1 / PARTS_PER_S)
            else:
                await follower.wait(min(HEARTBEAT_S - (now - spoke), recheck_s - (now - checked)))

    def _next(self, follower: StreamFollower) -> bytes:
        """What is to be sent now; empty: nothing."""
        part = b""
        if follower.stale:
            stale = sorted(follower.stale)
            follower.stale.clear()
            part = _event("reset", {"topics": stale}, None)
        taken = follower.take()
        if not part and not taken:
            return b""
        return part + b"".join(taken[:-1]) + self._placed(follower, taken[-1:])

    def _placed(self, follower: StreamFollower, last: Sequence[bytes]) -> bytes:
        """The last event of a part, with the position after it; a position alone is an event that nobody is told of."""
        return f"id: {self._following.master.feed.position(follower)}\n".encode() + (last[0] if last else b"\n")

    async def _check(self, follower: StreamFollower, topics: Sequence[Topic]) -> tuple[Sequence[Topic], bytes, bool]:
        """Ask whether it may go on: the topics that are left, what is to be said of it, and whether it is over."""
        doubted, follower.doubted = follower.doubted, False
        following = self._following
        try:
            caller = await following.identified()
            refused = await refusals(following.master, caller, topics) if doubted else {}
        except (NotAuthenticated, Forbidden) as error:
            return topics, _event("end", {"reason": error.message}, None), True
        except TryAgain:
            follower.doubted = doubted
            return topics, b"", False
        if not refused:
            return topics, b"", False
        following.master.feed.leave(follower, list(refused))
        return (
            [each for each in topics if each.name not in refused],
            _event("refused", {"topics": refused}, None),
            False,
        )


async def _watch(receive: Receive, follower: StreamFollower) -> None:
    """Until the peer has gone."""
    with contextlib.suppress(Exception):
        while (await receive())["type"] != "http.disconnect":
            pass
    follower.end()


def _tags(caller: Caller) -> list[str]:
    """What the right to follow depends on, as the database announces its changes."""
    tags = [f"user:{caller.person.id}", f"token:\\x{caller.credential.hex()}"]
    if caller.task is not None:
        tags.append(f"allocation:{caller.task.allocation_id}")
    return tags


def _event(name: str, data: object, cursor: str | None) -> bytes:
    place = "" if cursor is None else f"id: {cursor}\n"
    return f"{place}event: {name}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"
