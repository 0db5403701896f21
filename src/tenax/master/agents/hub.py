"""The master's end of agents' connections: reports in, desired state out.

Rules:

- The desired state is read from the database on every wake-up and sent in full; nothing is promised in memory.
- A connection has a number; one that is not its agent's newest is closed, and what it says changes nothing.
- Two machines with one credential, as of a copied image, would end each other's containers: while one is heard, the
  other is refused. Each master knows its own connections only.
- A container of this cluster and generation that the database does not know as one of this agent is to be removed, by
  name; one of another cluster, or of an earlier generation and unknown, is left alone and shown to the operator.
- An agent that has obeyed what the database does not hold yet, before this connection or over it, proves that this is
  a restored copy: the generation is raised, all agents are welcomed anew, and obey the copy from then on. The master
  ends for it: what it remembers may be of the database before. So an agent is believed only what it was sent.
- Whoever runs an agent may say anything with its credential: `tenax.master.agents.bounds`.
- A report that cannot be applied is tried again with every sign of life of its agent.
- What an agent says is taken off its connection at once, and waits, by container, while what came before is applied;
  its signs of life are noted by themselves (`tenax.master.agents.life`), and never wait for what its reports wait for.
- Reports are applied many at a time; where that fails, each by itself, so that one that cannot be applied costs itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
import structlog
from asyncpg import Connection

from tenax.errors import Forbidden, InvalidInput, Stale, TenaxError, TryAgain
from tenax.jsonvalue import Json
from tenax.lifecycle.container import ContainerState, Ending
from tenax.master.access.task_tokens import allocation_token, task_session_token, token_hash
from tenax.master.agents import specs
from tenax.master.agents.admission import AgentAdmission, admit
from tenax.master.agents.bounds import bounded, check_hello, check_report, has_obeyed, proof_of
from tenax.master.agents.desired_state import desired_state_of
from tenax.master.agents.life import SignsOfLife
from tenax.master.agents.notices import Forewarned
from tenax.master.agents.setbacks import Setbacks
from tenax.master.allocations import events as allocation_events
from tenax.master.allocations.events import AT_ONCE, MemberReport
from tenax.master.observability import counters
from tenax.master.store.agents import rows as agents
from tenax.master.store.allocations import containers
from tenax.master.store.cluster import rows as cluster_rows
from tenax.master.store.cluster.rows import ClusterRow
from tenax.master.store.database.connection import Database
from tenax.master.store.database.wakeups import Listener, notify
from tenax.master.store.machines import rows as machines
from tenax.master.store.users import sessions
from tenax.wire.agents import (
    CREDENTIAL_PREFIX,
    PROTOCOL,
    AgentReport,
    ContainerReport,
    DesiredGone,
    DesiredState,
    DesiredStates,
    FromAgent,
    FromMaster,
    Hello,
    JoinReply,
    JoinRequest,
    MachineNotices,
    SessionRefused,
    Welcome,
)

log = structlog.get_logger("tenax.hub")

AGENT_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
CREDENTIAL_FORM = re.compile(CREDENTIAL_PREFIX + r"[A-Za-z0-9_-]{43}")
HEARTBEAT_S = 5.0
#: A connection on which nothing came for this long is taken for dead.
_SILENCE_S = 4 * HEARTBEAT_S
_TRIES = 5
#: Transactions of reports at a time: those of one experiment wait for each other, and must not take all connections.
_REPORTING = 2
_decode = msgspec.json.Decoder(FromAgent).decode
_encode = msgspec.json.Encoder().encode

_STATES = {
    "pulling": ContainerState.PULLING,
    "starting": ContainerState.STARTING,
    "running": ContainerState.RUNNING,
    "exited": ContainerState.TERMINATED,
}


class Replaced(TenaxError):
    """A newer connection of this agent is open."""


class Channel(Protocol):
    """One connection, as text frames."""

    async def send(self, frame: str) -> None:
        """Raises ConnectionError when it has ended."""

    async def receive(self) -> str:
        """Raises ConnectionError when it has ended."""


@dataclass(slots=True)
class _Session:
    agent_id: str
    number: int
    generation: int
    channel: Channel
    setbacks: Setbacks
    forewarned: Forewarned
    #: Containers that the agent has, so that it needs no specification for them.
    held: set[str] = field(default_factory=set)
    #: Containers of ours that the database does not know.
    unknown: set[str] = field(default_factory=set)
    #: What the agent has said and was not applied yet, the newest of each container.
    waiting: dict[str, ContainerReport] = field(default_factory=dict)
    #: Containers that it said are gone, after the reports that wait.
    gone: dict[str, None] = field(default_factory=dict)
    #: Containers of which it has said here that they ended.
    ended: set[str] = field(default_factory=set)
    #: Reports that failed, to be tried again.
    failed: dict[str, ContainerReport] = field(default_factory=dict)
    #: Of the desired states sent last; lowered, to send them again.
    revision: int = -1
    #: The highest that was sent.
    sent: int = -1
    #: Set by each message; and by each that brings something to be applied.
    alive: asyncio.Event = field(default_factory=asyncio.Event)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def count_ends(self, applied: Sequence[ContainerReport]) -> None:
        """For monitoring; an end is reported until its container is gone."""
        for each in applied:
            if each.state == "exited" and each.container_id not in self.ended:
                self.ended.add(each.container_id)
                outcome = "ok" if each.exit is None or each.exit.code == 0 else "failed"
                if each.exit is not None and each.exit.platform:
                    outcome = "platform"
                counters.CONTAINERS_ENDED.labels(self.agent_id, outcome).inc()


class Hub:
    """Serves agents. One per master process."""

    def __init__(
        self,
        database: Database,
        listener: Listener,
        cluster: ClusterRow,
        pools: Mapping[str, specs.PoolDefaults],
        kill_timeout_s: float = 5.0,
    ) -> None:
        """``pools``: what every task of each gets; ``kill_timeout_s``: from SIGTERM to SIGKILL."""
        self._db = database
        self._listener = listener
        self._cluster_id = cluster.cluster_id
        self._secret = cluster.secret
        #: By name. Others may take its place: what is placed from then on gets what they say.
        self.pools = pools
        self._kill_timeout_s = kill_timeout_s
        self._life = SignsOfLife(database)
        self._reporting = asyncio.Semaphore(_REPORTING)
        #: Where each agent that is connected here is, and by which connection.
        self._places: dict[str, tuple[str, Channel]] = {}

    async def join(self, request: JoinRequest, file_token: str | None) -> JoinReply:
        """Trade a join token for a credential bound to the agent's id.

        ``file_token``: that of the operator's file, if it lets agents in.

        Raises Forbidden, InvalidInput, AlreadyExists, TryAgain.
        """
        given = request.token.encode()
        by_file = file_token is not None and secrets.compare_digest(given, file_token.encode())
        credential = request.credential or CREDENTIAL_PREFIX + secrets.token_urlsafe(32)
        if not CREDENTIAL_FORM.fullmatch(credential):
            raise InvalidInput(f"a credential is {CREDENTIAL_PREFIX} and 43 random characters")
        if not AGENT_ID.fullmatch(request.agent_id):
            raise InvalidInput(
                "an agent's id is 1 to 128 letters, digits, dots, dashes and underscores: choose another"
            )
        async with self._db.transaction() as conn:
            owner = await sessions.agent_of(conn, token_hash(credential))
            if owner not in (None, request.agent_id):
                raise Forbidden(f"that credential is not one of {request.agent_id!r}")
            admission = AgentAdmission()
            if owner is None:
                admission = await admit(conn, request, self._secret, by_file=by_file)
            if request.pool not in self.pools:
                raise InvalidInput(f"there is no pool {request.pool!r}; the pools are {', '.join(self.pools)}")
            hashed = token_hash(credential)
            await agents.join(conn, request.agent_id, request.pool, hashed, replace=admission.replaces)
        if admission.since_ordered_s is not None:
            counters.MACHINE_JOIN_SECONDS.labels(request.pool).observe(admission.since_ordered_s)
        log.info("agent joined", agent=request.agent_id, pool=request.pool)
        return JoinReply(credential, self._cluster_id)

    async def serve(self, channel: Channel, agent_id: str, address: str, shutdown: asyncio.Event) -> None:
        """Serve one connection of an agent whose credential was checked, until it ends or ``shutdown`` is set."""
        hello = await _receive_hello(channel)
        if hello is None:
            return
        try:
            check_hello(hello)
        except InvalidInput as error:
            log.error("the hello of an agent is refused", agent=agent_id, reason=error.message)
            await _send(channel, SessionRefused(error.message, retry=False))
            return
        place = self._places.get(agent_id, ("", channel))[0]
        if place and hello.place and place != hello.place:
            log.error("two machines use the credential of one agent", agent=agent_id, refused=address)
            text = f"another machine is connected as {agent_id}: give each one an id and a credential of its own"
            await _send(channel, SessionRefused(text, retry=True))
            return
        self._places[agent_id] = hello.place, channel
        counters.AGENT_CONNECTS.inc()
        counters.AGENT_CONNECTIONS.set(len(self._places))
        try:
            await self._serve(channel, agent_id, address, hello, shutdown)
        finally:
            if agent_id in self._places and self._places[agent_id][1] is channel:
                del self._places[agent_id]
                counters.AGENT_CONNECTIONS.set(len(self._places))

    async def _serve(
        self, channel: Channel, agent_id: str, address: str, hello: Hello, shutdown: asyncio.Event
    ) -> None:
        session = await self._open(channel, agent_id, address, hello)
        if session is None:
            return
        log.info("agent connected", agent=agent_id, session=session.number, containers=len(hello.containers))
        tasks = [
            asyncio.ensure_future(work)
            for work in (
                _receive(session),
                self._note_life(session),
                self._apply(session),
                self._keep_informed(session),
                session.forewarned.run(self._db, lambda pool: self.pools.get(pool, specs.PoolDefaults()).rebalance),
                shutdown.wait(),
            )
        ]
        reason, silent = "the master is ending", False
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                try:
                    task.result()
                except (ConnectionError, Replaced, TryAgain, InvalidInput, TimeoutError, msgspec.DecodeError) as error:
                    reason, silent = str(error) or type(error).__name__, isinstance(error, TimeoutError)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with contextlib.suppress(TryAgain):
                async with self._db.transaction() as conn:
                    await agents.disconnected(conn, agent_id, session.number, silent=silent)
            log.info("agent disconnected", agent=agent_id, session=session.number, reason=reason)

    async def _open(self, channel: Channel, agent_id: str, address: str, hello: Hello) -> _Session | None:
        async with self._db.transaction() as conn:
            standing = await agents.standing(conn, agent_id)
            generation, is_older = standing.generation, _has_obeyed_more(hello, standing)
            if is_older and not has_obeyed(self._secret, agent_id, hello):
                log.error("an agent says that it has obeyed what it was never sent", agent=agent_id, address=address)
                text = "this agent says that it has obeyed what it was never sent: end it, and start it again"
                await _send(channel, SessionRefused(text, retry=True))
                return None
            ours = [report for report in hello.containers if report.cluster_id == self._cluster_id]
            known = await agents.known_containers(conn, agent_id, [report.container_id for report in ours])
            new = [each for each in ours if each.generation == generation and each.container_id not in known]
            # The first that a machine says which is older than the database: it may hold what nobody else tells of.
            is_older |= bool(new) and standing.session == 0 and await machines.is_adopted(conn, agent_id)
            if is_older:
                generation = await self._older_copy(conn, agent_id, standing, hello.revision)
            kept = {report.container_id for report in ours if report.generation == generation} | known
            shown: list[Json] = [
                {"container_id": report.container_id, "cluster_id": report.cluster_id, "state": report.state}
                for report in hello.containers
                if report.container_id not in kept
            ]
            number = (await agents.open_session(conn, agent_id, hello, address, shown)).session
        if is_older:
            self._db.replaced.set()
        for outcome in ("ok", "failed", "platform"):
            counters.CONTAINERS_ENDED.labels(agent_id, outcome)
        session = _Session(agent_id, number, generation, channel, Setbacks(agent_id), Forewarned(agent_id, number))
        await _send(channel, Welcome(self._cluster_id, generation, number, HEARTBEAT_S, notices=True))
        await self._apply_reports(session, [bounded(report) for report in hello.containers])
        return session

    async def _older_copy(self, conn: Connection, agent_id: str, standing: agents.AgentStanding, obeyed: int) -> int:
        log.error(
            "the database is an older copy: an agent has obeyed more than it holds; what it does not know is kept",
            agent=agent_id,
            revision=standing.revision,
            obeyed=obeyed,
        )
        return await cluster_rows.raise_generation(conn, standing.generation)

    async def _note_life(self, session: _Session) -> None:
        """Note each sign of life, soon; several that come together are one."""
        while True:
            await session.alive.wait()
            session.alive.clear()
            if not await self._life.note(session.agent_id, session.number):
                raise Replaced

    async def _apply(self, session: _Session) -> None:
        """Apply what waits, in the order of its coming: reports, and then what is gone."""
        while True:
            await session.news.wait()
            session.news.clear()
            reports, session.waiting = list(session.waiting.values()), {}
            gone, session.gone = list(session.gone), {}
            await self._apply_reports(session, [*session.failed.values(), *reports])
            for first in range(0, len(gone), AT_ONCE):
                await self._apply_gone(session, gone[first : first + AT_ONCE])

    @asynccontextmanager
    async def _heartbeat(self, session: _Session) -> AsyncIterator[Connection]:
        """A transaction that is rolled back if a newer connection is open, and notes a sign of life of the agent.

        Raises Replaced.
        """
        async with self._db.transaction() as conn:
            yield conn
            # At the end: agents are locked after allocations.
            if not await agents.heartbeat(conn, session.agent_id, session.number):
                raise Replaced

    async def _keep_informed(self, session: _Session) -> None:
        with self._listener.subscribe("agent", session.agent_id) as subscription:
            while True:
                await self._send_desired_state(session)
                await subscription.wait()

    async def _send_desired_state(self, session: _Session) -> None:
        async with self._db.connection() as conn:
            standing = await agents.standing(conn, session.agent_id)
            if standing.session != session.number or standing.generation != session.generation:
                raise Replaced
            if standing.revision < session.sent:
                await self._older_copy(conn, session.agent_id, standing, session.sent)
                self._db.replaced.set()
                raise Replaced
            if standing.revision == session.revision and not session.unknown:
                return
            # Read after the revision they are sent with: they may be newer than that, and are sent again then.
            rows = await agents.desired_containers(conn, session.agent_id)
        wants: list[DesiredState] = [DesiredGone(name) for name in sorted(session.unknown)]
        for row in rows:
            known = row["container_id"] in session.held
            try:
                defaults = self.pools.get(str(row["pool"]), specs.PoolDefaults())
                wants.append(desired_state_of(row, known, self._tokens, defaults, self._kill_timeout_s))
            except Exception:
                # What is not named is left as it is; the agent's other containers do not suffer for it.
                log.exception("the desired state of a container cannot be sent", container=row["container_id"])
        proof = proof_of(self._secret, session.agent_id, session.generation, standing.revision)
        states = DesiredStates(self._cluster_id, session.generation, standing.revision, wants, proof)
        await _send(session.channel, states)
        session.revision = session.sent = standing.revision

    def _tokens(self, allocation_id: str) -> specs.Tokens:
        return specs.Tokens(
            allocation_token(self._secret, allocation_id), task_session_token(self._secret, allocation_id)
        )

    async def _apply_reports(self, session: _Session, reports: Iterable[ContainerReport]) -> None:
        """Apply reports of containers, the newest of each; what fails is tried again later."""
        newest = {report.container_id: report for report in reports if report.cluster_id == self._cluster_id}
        for name in newest:
            session.held.add(name)
            session.failed.pop(name, None)
        ours = list(newest.values())
        for first in range(0, len(ours), AT_ONCE):
            chunk = ours[first : first + AT_ONCE]
            try:
                await self._apply_chunk(session, chunk)
            except (TryAgain, Replaced):
                raise
            except Exception:
                for report in chunk:
                    await self._apply_alone(session, report)

    async def _apply_alone(self, session: _Session, report: ContainerReport) -> None:
        try:
            await self._apply_chunk(session, [report])
        except (TryAgain, Replaced):
            raise
        except Exception:
            log.exception("a report could not be applied", container=report.container_id, state=report.state)
            session.failed[report.container_id] = report

    async def _apply_chunk(self, session: _Session, chunk: Sequence[ContainerReport]) -> None:
        """In one transaction; a stale row is read again."""
        reports = [MemberReport(each.container_id, _STATES[each.state], _ending(each), each.address) for each in chunk]
        async with self._db.connection() as conn:
            lines = await allocation_events.lines_of_failed(conn, reports)
        for _ in range(_TRIES):
            try:
                with counters.AGENT_REPORT_SECONDS.time():
                    async with self._reporting, self._heartbeat(session) as conn:
                        done = await allocation_events.members_reported(conn, reports, lines, agent_id=session.agent_id)
                        await session.setbacks.note(conn, done.changes)
                        unknown = [each for each in chunk if each.container_id not in done.known]
                        await self._disown(conn, session, unknown)
            except Stale:
                continue
            counters.AGENT_REPORTS.inc(len(reports))
            session.count_ends(chunk)
            await session.setbacks.judge(self._db)
            return
        # The agent reports it again on its next connection.
        raise TryAgain(f"the reports of agent {session.agent_id} met a change each time they were applied")

    async def _disown(self, conn: Connection, session: _Session, unknown: Sequence[ContainerReport]) -> None:
        """Let what the database does not know, of the generation of now, be removed."""
        ended = [each.container_id for each in unknown if each.state == "exited"]
        if ended:
            await agents.foreign_ended(conn, session.agent_id, ended)
        names = [report.container_id for report in unknown if report.generation == session.generation]
        if not names:
            return
        session.unknown.update(names)
        session.revision = -1
        log.warning("unknown containers", agent=session.agent_id, containers=names)
        # Sent when this is committed, not when something else changes.
        await notify(conn, "agent", session.agent_id)

    async def _apply_gone(self, session: _Session, container_ids: Sequence[str]) -> None:
        for name in container_ids:
            session.held.discard(name)
            session.unknown.discard(name)
            session.ended.discard(name)
            session.failed.pop(name, None)
        async with self._heartbeat(session) as conn:
            await containers.gone(conn, container_ids, session.agent_id)


def _has_obeyed_more(hello: Hello, standing: agents.AgentStanding) -> bool:
    return hello.generation == standing.generation and hello.revision > standing.revision


async def _receive(session: _Session) -> None:
    while True:
        async with asyncio.timeout(_SILENCE_S):
            message = _decode(await session.channel.receive())
        session.alive.set()
        if isinstance(message, MachineNotices):
            session.forewarned.hear(message)
        if isinstance(message, AgentReport):
            check_report(message, len(session.waiting) + len(session.held) + len(session.unknown))
            for report in map(bounded, message.containers):
                session.waiting[report.container_id] = report
            session.gone.update(dict.fromkeys(message.gone))
        if session.failed or isinstance(message, AgentReport):
            session.news.set()


async def _receive_hello(channel: Channel) -> Hello | None:
    try:
        async with asyncio.timeout(_SILENCE_S):
            message: FromAgent | None = _decode(await channel.receive())
    except (msgspec.DecodeError, TimeoutError):
        message = None
    if not isinstance(message, Hello):
        await _send(channel, SessionRefused("the first frame of a connection is a hello", retry=False))
        return None
    if message.protocol != PROTOCOL:
        text = f"this master speaks protocol {PROTOCOL}, the agent {message.protocol}: upgrade the older one"
        await _send(channel, SessionRefused(text, retry=False))
        return None
    return message


async def _send(channel: Channel, message: FromMaster) -> None:
    await channel.send(_encode(message).decode())


def _ending(report: ContainerReport) -> Ending | None:
    if report.exit is None:
        return None
    ended = report.exit
    reason = ended.reason or ("" if ended.code == 0 else f"it ended with exit code {ended.code}")
    if ended.spool_lost:
        reason = f"{reason}; {ended.spool_lost}" if reason else ended.spool_lost
    return Ending(ended.code, ended.signal, reason, ended.platform, disk_full=ended.disk_full)
