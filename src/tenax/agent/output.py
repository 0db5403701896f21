"""Ships one container's output to the master while it runs, and to its end (see ``tenax.wire.logs``).

Rules it keeps:

- Where to go on is the master's word: asked at the start (but of a container that begins here), after each failure and
  with each new connection, and obeyed when a chunk's answer says something else. Nothing is remembered here.
- What there is no room for stays with the runtime, which drops the oldest at its cap: training is never held up by
  logs. Once a container has ended, nothing waits for room.
- What is gone for good is said to the master, which writes one line for it; where not even that is taken, ``lost`` says
  so, and the exit brings it along.
- What waited, for this agent or for the master, goes with its age, in chunks of about one time: a line keeps its own.
- One chunk per container is in memory at a time.
"""

from __future__ import annotations

import asyncio
import math
import time
import zlib
from dataclasses import dataclass
from typing import cast

import msgspec
import structlog

from tenax.agent.link import Link, MasterRefused, MasterUnreachable, decoded, pause, retry
from tenax.runtime.port import OutputStream, Runtime, RuntimeAway
from tenax.wire.logs import CHUNK_BYTES, STREAMS

log = structlog.get_logger("tenax.agent")

_STREAMS = cast("tuple[OutputStream, ...]", STREAMS)
#: Between two chunks of a chatty container: enough for tens of lines to travel together, too short to be noticed.
_INTERVAL_S = 0.02
_BACKSTOP_S = 1.0
#: Output that nobody looked for in so long may have waited.
_WAITED_S = 2.5
#: Above this, compression would hold up the event loop.
_COMPRESS_IN_THREAD = 64 * 1024
_UNKNOWN = frozenset({404, 410})
_FULL = 507
#: For an error of this machine, which is tried again as a refusal is.
_FAILED_HERE = 500
#: What may be taken when it is sent again; any other refusal is of these bytes, and for good.
_PASSING = _UNKNOWN | {401, 403, 408, 425, 429, *range(500, 507), _FULL}
#: How long a master that is there may refuse the output of an ended container, whose exit waits for it.
_REFUSED_S = 60.0
#: Offered while the master has no room, to learn when it has.
_PROBE_BYTES = 16 * 1024


class _Next(msgspec.Struct):
    next: int


@dataclass(slots=True)
class _Position:
    """How far one stream is shipped."""

    #: The first byte that the master does not have, as it said.
    next: int
    #: Where reading goes on: beyond ``next`` where what lies between is gone.
    read: int
    #: Whether what the master has ends within a line; None where that is not known: it may.
    within_line: bool | None = None
    finished: bool = False
    #: When it was looked at, on the monotonic clock; what is found long after that was written before now.
    looked_at: float = -math.inf

    def move(self, following: int) -> None:
        self.next = self.read = following


class OutputShipper:
    """One per container. `run` is its task; the others only wake it."""

    def __init__(
        self, link: Link, runtime: Runtime, container_id: str, slots: asyncio.Semaphore, *, fresh: bool = False
    ) -> None:
        """``fresh``: nobody can have shipped anything of it before."""
        self._link = link
        self._runtime = runtime
        self._container_id = container_id
        #: How many chunks of all containers travel at once.
        self._slots = slots
        self._wake = asyncio.Event()
        self._end = asyncio.Event()
        self._positions = {stream: _Position(0, 0, within_line=False) for stream in _STREAMS}
        #: Whether they are the master's word; else it is to be asked.
        self._agreed = fresh
        self._trimmed: dict[OutputStream, int] = {}
        self._no_room = False
        self._attempts = retry()
        #: For how long the master has refused, in seconds, since it last took something.
        self._refused_s = 0.0
        #: A sentence about what is lost and could not be said to the master; "" for nothing.
        self.lost = ""

    def poke(self) -> None:
        """There may be more."""
        self._wake.set()

    def ask_again(self) -> None:
        """What the master has may be less than it was: another connection, perhaps another copy of the database."""
        self._agreed = False
        self._wake.set()

    def end(self) -> None:
        """The container has ended: what is there now is all."""
        if not self._end.is_set():
            # Before the rest is given up it is offered once.
            self._no_room = False
        self._end.set()
        self._wake.set()

    async def run(self) -> None:
        """Until all output of an ended container is shipped, or it is clear that the master will not have it."""
        while not self._finished:
            try:
                more = await self._pass()
            except MasterUnreachable as away:
                # What was sent may have been stored, or not.
                self._agreed = False
                await pause(self._attempts.pause(away.retry_after))
                continue
            except RuntimeAway as away:
                log.warning("output cannot be read now", container=self._container_id, reason=away.message)
                await pause(self._attempts.pause())
                continue
            except MasterRefused as refused:
                self._agreed = False
                if await self._is_over(refused):
                    return
                continue
            except Exception as error:
                # Of this machine: no descriptor left, a disk that fails. Ended here, nobody would ship the rest.
                log.exception("output could not be read or sent", container=self._container_id)
                self._agreed = False
                if await self._is_over(MasterRefused(_FAILED_HERE, f"{type(error).__name__}: {error}")):
                    return
                continue
            if not self._no_room:
                self._attempts.reset()
            if more:
                await pause(_INTERVAL_S, self._end)
            elif not self._finished:
                await pause(_BACKSTOP_S, self._wake)
                self._wake.clear()

    @property
    def _finished(self) -> bool:
        return self._agreed and all(position.finished for position in self._positions.values())

    async def _is_over(self, refused: MasterRefused) -> bool:
        """After a refusal: wait before the next try; True: there is none."""
        if refused.status in _UNKNOWN:
            log.warning("output is not wanted", container=self._container_id, reason=refused.message)
            return True
        if refused.status == _FULL and not self._no_room:
            self._no_room = True
            log.warning("output waits: there is no room for it", container=self._container_id, reason=refused.message)
            if self._end.is_set():
                # Said to be gone without a further wait.
                return False
        pausing = self._attempts.pause()
        if self._end.is_set():
            self._refused_s += pausing
            if self._refused_s > _REFUSED_S:
                self.lost = f"{await self._rest()} of output were not stored: {refused.message}"
                log.error("output given up", container=self._container_id, reason=self.lost)
                return True
        await pause(pausing, None if self._end.is_set() else self._end)
        return False

    async def _pass(self) -> bool:
        """One chunk of each stream; whether there was any."""
        if not self._agreed:
            # Before the question: a call of `ask_again` meanwhile makes it another one.
            self._agreed = True
            self._positions = await self._ask_positions()
        more = False
        for stream, position in self._positions.items():
            if position.finished:
                continue
            # Before the read: what comes between a read and the end is met by another pass.
            ended = self._end.is_set()
            limit = _PROBE_BYTES if self._no_room and not ended else CHUNK_BYTES
            first, data = await self._runtime.read_output(self._container_id, stream, position.read, limit)
            data, age_s = await self._of_one_time(stream, position, first, data)
            if data and ended and self._no_room:
                position.read = first + len(data)
                more = True
            elif data:
                more = True
                await self._ship(stream, position, first, data, age_s)
            elif ended:
                await self._finish(stream, position, first)
                more = more or not position.finished
        return more

    async def _of_one_time(
        self, stream: OutputStream, position: _Position, first: int, data: bytes
    ) -> tuple[bytes, float]:
        """As much of ``data`` as was written at about one time, and how many seconds ago that was; 0: just now."""
        now = time.monotonic()
        waited = now - position.looked_at > _WAITED_S
        position.looked_at = now
        if not data or not waited:
            return data, 0.0
        age_s, later = await self._runtime.output_time(self._container_id, stream, first)
        if later is not None and first < later < first + len(data):
            # The rest is looked at in the same way.
            position.looked_at = -math.inf
            data = data[: later - first]
        return data, age_s

    async def _ask_positions(self) -> dict[OutputStream, _Position]:
        async with self._slots:
            body = await self._link.get("/agents/logs/offsets", {"container_id": self._container_id})
        offsets = decoded(body, dict[str, int])
        return {stream: _Position(offsets.get(stream, 0), offsets.get(stream, 0)) for stream in _STREAMS}

    async def _ship(self, stream: OutputStream, position: _Position, first: int, data: bytes, age_s: float) -> None:
        end = first + len(data)
        try:
            following = await self._post(stream, position.next, first, data, age_s=age_s)
        except MasterRefused as refused:
            if refused.status in _PASSING or refused.status < 400:
                raise
            log.warning("output refused", container=self._container_id, bytes=len(data), reason=refused.message)
            position.read = end
            return
        self._no_room = False
        if following == position.next:
            # Not of a master that keeps the promises of `tenax.wire.logs`.
            raise MasterRefused(200, "the master takes nothing of the output")
        position.move(following)
        position.within_line = not data.endswith(b"\n") if following == end else None
        await self._trim(stream, following)

    async def _finish(self, stream: OutputStream, position: _Position, end: int) -> None:
        """Tell the end of a stream, where it ends within a line or its last bytes are gone."""
        within_line = position.next > 0 if position.within_line is None else position.within_line
        if within_line or end > position.next:
            following = await self._post(stream, position.next, end, b"", final=True)
            if following != end:
                position.move(following)
                position.within_line = None
                return
        position.finished = True

    async def _post(
        self,
        stream: OutputStream,
        gone_from: int,
        offset: int,
        data: bytes,
        *,
        final: bool = False,
        age_s: float = 0.0,
    ) -> int:
        """The first byte that the master does not have."""
        async with self._slots:
            if len(data) > _COMPRESS_IN_THREAD:
                body = await asyncio.to_thread(zlib.compress, data, 1)
            else:
                body = zlib.compress(data, 1)
            query = {"container_id": self._container_id, "stream": stream, "offset": str(offset)}
            query["gone_from"] = str(gone_from)
            if final:
                query["final"] = "true"
            if age_s:
                query["age_ms"] = str(int(age_s * 1000))
            reply = await self._link.post("/agents/logs", body, query=query)
        self._attempts.reset()
        self._refused_s = 0.0
        return decoded(reply, _Next).next

    async def _rest(self) -> str:
        """How many bytes the master is not known to have."""
        try:
            return f"{await self._rest_bytes()} bytes"
        except Exception:
            log.exception("output that is given up cannot be counted", container=self._container_id)
            return "bytes (how many cannot be read)"

    async def _rest_bytes(self) -> int:
        rest = 0
        for stream, position in self._positions.items():
            end, data = position.next, b"?"
            while data:
                first, data = await self._runtime.read_output(self._container_id, stream, end, CHUNK_BYTES)
                end = first + len(data)
            rest += end - position.next
        return rest

    async def _trim(self, stream: OutputStream, offset: int) -> None:
        if offset - self._trimmed.get(stream, 0) >= CHUNK_BYTES:
            await self._runtime.trim_output(self._container_id, stream, offset)
            self._trimmed[stream] = offset
