"""Taking in output: raw bytes from agents, lines from Determined's shipper.

Rules:
- What an agent sends is known by (container, stream, offset). Sent twice it is stored once. After a gap the agent is
  asked to go back, unless it says that what is missing is gone: then one line says how much. Nothing of this is kept in
  memory: any master may be asked, also one that was just started.
- Decompressing, splitting and compressing happen in a thread, before the transaction; it moves the stream on only from
  where it was when that began, and begins anew otherwise.
- What waits is bounded in bytes.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

import structlog
from asyncpg import Connection

from tenax.errors import InvalidInput, NotFound, Stale, TryAgain
from tenax.master.concurrency.threads import Threads
from tenax.master.ingest.budget import Budget, NoRoom, Notices
from tenax.master.ingest.log_policies import LogPolicies, Match, Rule, Watch, matches_in
from tenax.master.observability import counters
from tenax.master.store.database.connection import Database
from tenax.master.store.logs import packing as log_packing
from tenax.master.store.logs import rows as logs
from tenax.master.store.logs.packing import JOINED_BYTES, JOINED_LINES, Chunk
from tenax.master.store.logs.rows import LogSpan, Member, Place, Stream
from tenax.master.telemetry.log_lines import NO_RANK, Origin, OutputLine, Texts, gap_line, level_number, lines_of
from tenax.master.telemetry.output_offsets import admit
from tenax.wire.logs import CHUNK_BYTES, STREAMS

log = structlog.get_logger("tenax.logs")

#: Bytes of requests that are worked on at most.
_WAITING_BYTES = 64 * 1024 * 1024
#: Raw bytes in one request at most; an agent sends `CHUNK_BYTES`.
_RAW_BYTES = 8 * CHUNK_BYTES
#: Transactions at a time, so that logs never take all connections.
_AT_ONCE = 4
_TRIES = 5

#: Whose output it is, as of now. Raises NotFound.
LoadMember = Callable[[Connection], Awaitable[Member]]


class LogIngest:
    """Takes in output. For one event loop; `run` is a task of the owner's."""

    def __init__(self, database: Database, budget: Budget, threads: Threads, notices: Notices) -> None:
        self._database = database
        self._budget = budget
        self._notices = notices
        self._policies = LogPolicies(database)
        self._threads = threads
        self._waiting = 0
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._to_join: asyncio.Queue[Place] = asyncio.Queue()

    async def output(
        self,
        agent_id: str,
        container_id: str,
        stream: str,
        offset: int,
        body: bytes,
        *,
        gone_from: int = 0,
        final: bool = False,
        age_us: int = 0,
    ) -> int:
        """Raw output, zlib-compressed, from byte ``offset`` on, of which the agent has nothing from ``gone_from`` up to
        there; returns the first byte that is not here yet. ``age_us``: how long ago it was written.

        Raises InvalidInput, NotFound (no such container of this agent), TryAgain (NoRoom among them).
        """

        async def member(conn: Connection) -> Member:
            return await self._member(conn, agent_id, container_id)

        return await self._output(member, stream, (gone_from, offset), body, final, age_us)

    async def output_elsewhere(
        self, task_id: str, name: str, host: str, stream: str, offset: int, body: bytes, final: bool, age_us: int
    ) -> int:
        """As `output`, of a script that runs outside of the cluster, under a ``name`` of its own."""

        async def member(conn: Connection) -> Member:
            return await logs.script(conn, task_id, name, host)

        return await self._output(member, stream, (0, offset), body, final, age_us)

    async def _output(
        self, member: LoadMember, stream: str, gap: tuple[int, int], body: bytes, final: bool, age_us: int
    ) -> int:
        """``gap``: from where to where the sender has nothing; the output begins at its end."""
        if stream not in STREAMS:
            raise InvalidInput(f"there is no stream {stream!r}: {' and '.join(STREAMS)} are all")
        if not 0 <= gap[0] <= gap[1]:
            raise InvalidInput("an offset is 0 or more, and what is gone lies before it")
        async with self._room(len(body)):
            raw = await self._threads.run(_decompress, body)
            # What says only that something is missing needs no room.
            if raw:
                await self._check_room(member)
            for _ in range(_TRIES):
                try:
                    following = await self._take(member, stream, gap, raw, final, age_us)
                    counters.INGESTED.labels("output_bytes").inc(len(raw))
                    return following
                except Stale:
                    continue
        raise TryAgain("the same output is being stored by another request")

    async def offsets(self, agent_id: str, container_id: str) -> dict[str, int]:
        """The first byte of each stream that is not here yet. Raises NotFound."""
        async with self._database.connection() as conn:
            streams = (await self._member(conn, agent_id, container_id)).streams
        return {name: streams[name].next_offset if name in streams else 0 for name in STREAMS}

    async def posted(self, task_id: str, lines: Sequence[OutputLine], origins: Sequence[Origin]) -> None:
        """Lines as another shipper made them. Raises NotFound, TryAgain."""
        await self._budget.check_logs()
        async with self._room(sum(len(line.text) + 50 for line in lines)):
            chunk = await self._threads.run(log_packing.pack, lines, origins)
            matched = await self._matches_in(task_id, lines, origins)
            async with self._slots, self._database.transaction() as conn:
                place = await logs.place_of(conn, task_id)
                whose = tuple(replace(origin, task_id=place.name_of(task_id)) for origin in chunk.origins)
                loose = await logs.append(conn, place, replace(chunk, origins=whose))
                for watch, matches, agent_id in matched:
                    await self._policies.record(conn, watch, matches, agent_id)
            for watch, matches, agent_id in matched:
                self._policies.recorded(watch, matches, agent_id)
            self._grown(place, loose)

    async def run(self) -> None:
        """Join small chunks, until cancelled."""
        while True:
            place = await self._to_join.get()
            try:
                await self.join(place)
            except TryAgain:
                log.warning("joining of output waits: the database is away", task=place.task_id)
            except Exception:
                log.exception("output could not be joined; it stays as it is", task=place.task_id)

    async def join(self, place: Place) -> None:
        """Join the small chunks of a task. Raises TryAgain."""
        async with self._database.transaction() as conn:
            groups = _neighbours(await logs.loose(conn, place))
            for group in groups:
                if len(group) > 1:
                    chunk: Chunk = await self._threads.run(log_packing.join, [span.chunk for span in group])
                    await logs.replace(conn, place, group, chunk)
            if groups:
                # The last one may grow.
                await logs.joined(conn, place, groups[-1][0].first_line)

    async def _check_room(self, load: LoadMember) -> None:
        """Raises NoRoom, once a line of the log says what will be missing."""
        try:
            await self._budget.check_logs()
        except NoRoom as full:
            async with self._database.connection() as conn:
                member = await load(conn)
            await self._notices.once(member.task_id, "output waits where it was made", full.message)
            raise

    async def _take(
        self, load: LoadMember, stream: str, gap: tuple[int, int], raw: bytes, final: bool, age_us: int
    ) -> int:
        async with self._database.connection() as conn:
            member = await load(conn)
        agent_id, container_id = member.origin.agent_id, member.origin.container_id
        before = member.streams.get(stream, Stream())
        admitted = admit(before.next_offset, *gap, len(raw))
        if admitted is None:
            return before.next_offset
        end = admitted.following
        fresh = raw[admitted.known :]
        watch = await self._policies.watch(member.task_id)
        rules = [] if watch is None else watch.open_rules(agent_id)
        packed = await self._threads.run(
            _pack, fresh, before.carry, member.now_us - age_us, final, admitted.missing, member, stream, rules
        )
        carry, chunk = packed.carry, packed.chunk
        if Stream(end, carry) == before:
            return end
        async with self._slots, self._database.transaction() as conn:
            await logs.advance(conn, member.place, container_id, stream, before, Stream(end, carry))
            loose = 0 if chunk is None else await logs.append(conn, member.place, chunk)
            if watch is not None and packed.matches:
                await self._policies.record(conn, watch, packed.matches, agent_id)
        if watch is not None and packed.matches:
            self._policies.recorded(watch, packed.matches, agent_id)
        self._grown(member.place, loose)
        return end

    async def _matches_in(
        self, task_id: str, lines: Sequence[OutputLine], origins: Sequence[Origin]
    ) -> list[tuple[Watch, list[Match], str]]:
        """What policies match in lines that the task printed itself, by agent."""
        watch = await self._policies.watch(task_id)
        if watch is None:
            return []
        by_agent: dict[str, list[str]] = {}
        for line in lines:
            if origins[line.origin].source == "task":
                by_agent.setdefault(origins[line.origin].agent_id, []).append(line.text)
        matched = []
        for agent_id, texts in by_agent.items():
            matches = await self._threads.run(matches_in, texts, watch.open_rules(agent_id), agent_id)
            matched.append((watch, matches, agent_id))
        return matched

    async def _member(self, conn: Connection, agent_id: str, container_id: str) -> Member:
        member = await logs.member(conn, container_id, agent_id)
        if member is None:
            raise NotFound(f"container {container_id} of agent {agent_id} not found")
        return member

    def _grown(self, place: Place, loose: int) -> None:
        # At each multiple, so that a joining that failed is not the last.
        if loose and loose % logs.JOIN_AT == 0:
            self._to_join.put_nowait(place)

    def _room(self, size: int) -> _Room:
        if self._waiting and self._waiting + size > _WAITING_BYTES:
            raise TryAgain("more output is waiting to be stored than fits in memory: try again in a moment")
        return _Room(self, size)


class _Room:
    """Bytes of the queue, held while a request is worked on."""

    def __init__(self, ingest: LogIngest, size: int) -> None:
        self._ingest, self._size = ingest, size

    async def __aenter__(self) -> None:
        self._ingest._waiting += self._size

    async def __aexit__(self, *_: object) -> None:
        self._ingest._waiting -= self._size


def _decompress(body: bytes) -> bytes:
    if not body:
        return b""
    worker = zlib.decompressobj()
    try:
        raw = worker.decompress(body, _RAW_BYTES)
    except zlib.error as error:
        raise InvalidInput(f"the output is not zlib-compressed: {error}") from None
    if not worker.eof:
        raise InvalidInput(f"the output is cut off, or longer than {_RAW_BYTES // 2**20} MiB")
    return raw


@dataclass(frozen=True, slots=True)
class _Packed:
    """Output as it is stored, and what was found in it."""

    carry: bytes
    chunk: Chunk | None = None
    matches: Sequence[Match] = ()


def _pack(
    fresh: bytes,
    carry: bytes,
    now_us: int,
    final: bool,
    missing: int,
    member: Member,
    stream: str,
    rules: Sequence[Rule],
) -> _Packed:
    ended = Texts([], [], [])
    if missing:
        # What was carried over is a line for itself: its end is lost.
        torn, carry = lines_of(b"", carry, final=True)
        ended = Texts([*torn.texts, gap_line(missing)], [*torn.ranks, NO_RANK], [*torn.levels, level_number("WARNING")])
    more, carry = lines_of(fresh, carry, final=final)
    ended = Texts(ended.texts + more.texts, ended.ranks + more.ranks, ended.levels + more.levels)
    if not ended.texts:
        return _Packed(carry)
    origin = replace(member.origin, stdtype=stream)
    matches = matches_in(ended.texts, rules, origin.agent_id)
    return _Packed(carry, log_packing.pack_output(ended, now_us, origin), matches)


def _neighbours(spans: Sequence[LogSpan]) -> list[list[LogSpan]]:
    """In groups that make one chunk each."""
    groups: list[list[LogSpan]] = []
    lines = size = 0
    for span in spans:
        if not groups or lines + span.chunk.lines > JOINED_LINES or size + len(span.chunk.body) > JOINED_BYTES:
            groups.append([])
            lines = size = 0
        groups[-1].append(span)
        lines += span.chunk.lines
        size += len(span.chunk.body)
    return groups
