"""Ships one container's output to the master while it runs, and to its end (see ``tenax.wire.logs``).

Rules it keeps:

- Where to go on is the master's word, asked at the start (but of a container that begins here) and after each failure;
  nothing is remembered here.
- What the master does not take (its log budget is full) is dropped and counted; training is never held up by logs.
- One chunk per container is in memory at a time.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import cast

import msgspec
import structlog

from tenax.agent.link import Link, MasterRefused, MasterUnreachable, decoded, pause, retry
from tenax.runtime.port import OutputStream, Runtime, RuntimeAway
from tenax.wire.logs import CHUNK_BYTES, STREAMS

log = structlog.get_logger("tenax.agent")

#: Between two chunks of a chatty container: enough for tens of lines to travel together, too short to be noticed.
_INTERVAL_S = 0.02
_BACKSTOP_S = 1.0
#: Above this, compression would hold up the event loop.
_COMPRESS_IN_THREAD = 64 * 1024
_UNKNOWN = frozenset({404, 410})
_NOT_NOW = frozenset({401, 403, 408, 425, 429})
_FULL = 507
#: How long a master that is there may refuse the output of an ended container, whose exit waits for it.
_REFUSED_S = 60.0


class _Next(msgspec.Struct):
    next: int


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
        self._offsets: dict[OutputStream, int] | None = _at_start() if fresh else None
        #: Whether what was shipped ends within a line; where that is not known, it may.
        self._within_line: dict[OutputStream, bool] = {}
        self._trimmed: dict[OutputStream, int] = {}
        self._finished: set[OutputStream] = set()
        #: Bytes that the master did not take.
        self.dropped = 0

    def poke(self) -> None:
        """There may be more."""
        self._wake.set()

    def end(self) -> None:
        """The container has ended: what is there now is all."""
        self._end.set()
        self._wake.set()

    async def run(self) -> None:
        """Until all output of an ended container is shipped, or it is clear that the master will not have it."""
        attempts = retry()
        refused_s = 0.0
        while len(self._finished) < len(STREAMS):
            try:
                more = await self._pass()
                attempts.reset()
                refused_s = 0.0
            except MasterUnreachable as away:
                self._forget()
                await pause(attempts.pause(away.retry_after))
                continue
            except RuntimeAway as away:
                log.warning("output cannot be read now", container=self._container_id, reason=away.message)
                await pause(attempts.pause())
                continue
            except MasterRefused as refused:
                if refused.status in _UNKNOWN:
                    log.warning("output is not wanted", container=self._container_id, reason=refused.message)
                    return
                self._forget()
                waited = attempts.pause()
                refused_s += waited
                if self._end.is_set() and refused_s > _REFUSED_S:
                    log.error("output given up", container=self._container_id, reason=refused.message)
                    return
                await pause(waited)
                continue
            if more:
                await pause(_INTERVAL_S, self._end)
            elif len(self._finished) < len(STREAMS):
                await pause(_BACKSTOP_S, self._wake)
                self._wake.clear()

    async def _pass(self) -> bool:
        """One chunk of each stream; whether there was any."""
        if self._offsets is None:
            self._offsets = await self._ask_offsets()
        more = False
        for stream in cast("tuple[OutputStream, ...]", STREAMS):
            if stream in self._finished:
                continue
            # Before the read: what comes between a read and the end is met by another pass.
            ended = self._end.is_set()
            offset = self._offsets[stream]
            first, data = await self._runtime.read_output(self._container_id, stream, offset, CHUNK_BYTES)
            if data:
                more = True
                self._offsets[stream] = await self._ship(stream, offset, first, data)
                self._within_line[stream] = not data.endswith(b"\n")
                await self._trim(stream, self._offsets[stream])
            elif ended:
                if self._within_line.get(stream, offset > 0):
                    await self._ship(stream, offset, offset, b"", final=True)
                self._finished.add(stream)
        return more

    def _forget(self) -> None:
        """After a failure: what was sent may have been stored, or not."""
        self._offsets = None
        self._within_line.clear()

    async def _ask_offsets(self) -> dict[OutputStream, int]:
        body = await self._link.get("/agents/logs/offsets", {"container_id": self._container_id})
        return {**_at_start(), **decoded(body, dict[OutputStream, int])}

    async def _ship(self, stream: OutputStream, requested: int, first: int, data: bytes, *, final: bool = False) -> int:
        """Where to go on."""
        end = first + len(data)
        try:
            async with self._slots:
                following = await self._post(stream, first, data, final=final)
        except MasterRefused as refused:
            if refused.status in _UNKNOWN | _NOT_NOW or refused.status < 400 or refused.status in range(500, 507):
                raise
            if self.dropped == 0 or refused.status != _FULL:
                log.warning("output dropped", container=self._container_id, bytes=len(data), reason=refused.message)
            self.dropped += len(data)
            return end
        # The master may ask for what it lost; what is not here any more cannot be asked for again.
        return following if following >= end or following > requested else end

    async def _post(self, stream: OutputStream, offset: int, data: bytes, *, final: bool) -> int:
        if len(data) > _COMPRESS_IN_THREAD:
            body = await asyncio.to_thread(zlib.compress, data, 1)
        else:
            body = zlib.compress(data, 1)
        query = {"container_id": self._container_id, "stream": stream, "offset": str(offset)}
        if final:
            query["final"] = "true"
        reply = await self._link.post("/agents/logs", body, query=query)
        return decoded(reply, _Next).next

    async def _trim(self, stream: OutputStream, offset: int) -> None:
        if offset - self._trimmed.get(stream, 0) >= CHUNK_BYTES:
            await self._runtime.trim_output(self._container_id, stream, offset)
            self._trimmed[stream] = offset


def _at_start() -> dict[OutputStream, int]:
    return dict.fromkeys(cast("tuple[OutputStream, ...]", STREAMS), 0)
