"""The agent's websocket to the master: connects for ever, reports what changed, obeys the desired states.

Rules it keeps:

- Desired states are obeyed if they are of the credential's cluster and of the generation that this connection was
  welcomed with, and if their revision is not below the last one obeyed.
- The first frame of a connection is the full state; a frame lost with its connection is made good by the next hello.
- With each connection agent and master agree anew upon what of output and spools is stored; an exit waits for that.
- At least two frames are sent in each heartbeat.
- What the cloud says of this machine's end is said at once, and with each connection, to a master that asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import aiohttp
import msgspec
import structlog

import tenax
from tenax.agent.container_reports import ContainerReports
from tenax.agent.fleet import Fleet
from tenax.agent.hooks import run_hook
from tenax.agent.link import Link, MasterRefused, MasterUnreachable, pause, retry
from tenax.agent.notices import Forewarning
from tenax.agent.orphaned import MasterContact
from tenax.backoff import Retry
from tenax.errors import UserError
from tenax.wire.agents import (
    PROTOCOL,
    AgentReport,
    Allowed,
    DesiredStates,
    FromMaster,
    Hello,
    MachineNotices,
    Ping,
    SessionRefused,
    SlotInfo,
    Welcome,
)

log = structlog.get_logger("tenax.agent")

#: Pings of the websocket itself: a connection whose other end is silent for one and a half of this is given up.
_PING_S = 10.0
_WELCOME_WITHIN_S = 30.0
_decode = msgspec.json.Decoder(FromMaster).decode
_encode = msgspec.json.Encoder().encode


class RefusedForNow(MasterUnreachable):
    """The master does not serve this agent now: it is to try again."""


@dataclass(frozen=True, slots=True)
class Face:
    """What a hello says beside the containers."""

    hostname: str
    runtime: str
    slots: tuple[SlotInfo, ...]
    allowed: Allowed
    place: str
    labels: Mapping[str, str] = field(default_factory=dict)


class AgentSession:
    """`run` is the agent's life."""

    def __init__(
        self,
        link: Link,
        fleet: Fleet,
        reports: ContainerReports,
        face: Face,
        cluster_id: str,
        contact: MasterContact,
        on_lost: Sequence[str] = (),
        forewarning: Forewarning | None = None,
    ) -> None:
        self._link = link
        self._fleet = fleet
        self._reports = reports
        self._face = face
        self._cluster_id = cluster_id
        self._contact = contact
        self._forewarning = forewarning or Forewarning()
        #: The program that is run when a connection that stood is lost.
        self._on_lost = on_lost
        self._hook: asyncio.Task[None] | None = None
        #: Set when a hello would say something else of this machine than the last one did.
        self._has_changed = asyncio.Event()
        #: Of the desired states obeyed last.
        self._generation = 0
        self._revision = -1
        self._proof = ""

    async def run(self, connected: Callable[[str], None]) -> None:
        """Connect and connect again; ``connected`` is told our address of each connection.

        Raises UserError when the master says that trying again will not help, MasterRefused when it does not know the
        credential (any more).
        """
        try:
            await self._connect_again(connected)
        finally:
            if self._hook is not None:
                self._hook.cancel()
                await asyncio.gather(self._hook, return_exceptions=True)

    def offer(self, slots: tuple[SlotInfo, ...]) -> None:
        """The slots are these from now on: the master hears of it by the hello of the next connection, made at once."""
        self._face = replace(self._face, slots=slots)
        self._has_changed.set()

    async def _connect_again(self, connected: Callable[[str], None]) -> None:
        attempts = retry()
        broken = retry()
        while True:
            try:
                await self._once(connected, attempts)
                log.warning("connection to the master ended")
                broken.reset()
            except MasterUnreachable as away:
                log.warning("not connected", reason=away.message)
                broken.reset()
                await pause(away.retry_after)
            except MasterRefused as refused:
                if refused.status in (401, 403):
                    raise
                log.warning("connection refused", reason=refused.message)
            except UserError:
                raise
            except Exception:
                # Of this machine, or a mistake of ours: whatever it is, an agent that left could mend nothing. It may
                # come after each welcome, which resets the other pauses.
                log.exception("the connection to the master broke")
                await pause(broken.pause())
            await pause(attempts.pause())

    async def _once(self, connected: Callable[[str], None], attempts: Retry) -> None:
        url = self._link.url
        socket = await self._link.websocket("/agents/session", _PING_S)
        try:
            connected(_own_address(socket))
            self._fleet.connecting()
            try:
                await self._say(socket, self._hello())
                welcome = await self._welcome(socket)
            except (ConnectionError, MasterUnreachable) as error:
                # What it refuses this agent, the next one would too.
                if not isinstance(error, RefusedForNow):
                    self._link.move_on(url)
                raise
            attempts.reset()
            self._contact.made()
            try:
                if await self._until_lost(socket, welcome):
                    return
            except UserError:
                raise
            except Exception:
                self._run_hook()
                self._link.move_on(url)
                raise
            # It ends, or has a reason to end this connection: another may be there.
            self._link.move_on(url)
        finally:
            self._contact.lost()
            await socket.close()

    def _run_hook(self) -> None:
        """Beside the next connection, which waits for no program; one that still runs is enough."""
        if self._hook is None or self._hook.done():
            self._hook = asyncio.ensure_future(run_hook("on_connection_lost", self._on_lost))

    def _hello(self) -> Hello:
        self._has_changed.clear()
        return Hello(
            protocol=PROTOCOL,
            agent_version=tenax.__version__,
            hostname=self._face.hostname,
            runtime=self._face.runtime,
            slots=list(self._face.slots),
            containers=self._reports.all(),
            generation=self._generation if self._revision >= 0 else -1,
            revision=self._revision,
            allowed=self._face.allowed,
            place=self._face.place,
            proof=self._proof,
            labels=dict(self._face.labels),
        )

    async def _welcome(self, socket: aiohttp.ClientWebSocketResponse) -> Welcome:
        try:
            async with asyncio.timeout(_WELCOME_WITHIN_S / 3 if self._link.has_others else _WELCOME_WITHIN_S):
                frame = await self._hear(socket)
        except TimeoutError:
            raise MasterUnreachable("the master did not answer the hello") from None
        if not isinstance(frame, Welcome):
            raise MasterUnreachable("the master did not welcome this agent")
        if frame.cluster_id != self._cluster_id:
            raise MasterUnreachable(
                f"the master at {self._link.url} is of cluster {frame.cluster_id}, this agent of {self._cluster_id}: "
                "point it at its own master, or remove its credential file to join the other"
            )
        log.info("connected", session=frame.session, generation=frame.generation)
        if frame.generation != self._generation:
            self._generation, self._revision, self._proof = frame.generation, -1, ""
        self._fleet.generation(frame.generation)
        return frame

    async def _until_lost(self, socket: aiohttp.ClientWebSocketResponse, welcome: Welcome) -> bool:
        """Both directions, until one of them fails; True: until there is something new to say of this machine."""
        talking = asyncio.ensure_future(self._talk(socket, welcome.heartbeat_s / 2))
        listening = asyncio.ensure_future(self._listen(socket))
        changing = asyncio.ensure_future(self._has_changed.wait())
        tasks = {talking, listening, changing}
        if welcome.notices:
            tasks.add(asyncio.ensure_future(self._forewarn(socket)))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            return changing in done
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _talk(self, socket: aiohttp.ClientWebSocketResponse, interval_s: float) -> None:
        while True:
            await pause(interval_s, self._reports.news)
            await self._say(socket, self._reports.take() if self._reports.news.is_set() else Ping())

    async def _forewarn(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """For each connection anew: what was said over another one may have been lost."""
        while True:
            self._forewarning.news.clear()
            message = self._forewarning.message()
            if message is not None:
                await self._say(socket, message)
            await self._forewarning.news.wait()

    async def _listen(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        while True:
            frame = await self._hear(socket)
            if isinstance(frame, DesiredStates):
                self._obey(frame)

    def _obey(self, desired: DesiredStates) -> None:
        if desired.cluster_id != self._cluster_id or desired.generation != self._generation:
            log.error("desired states of another cluster or generation are not obeyed", cluster=desired.cluster_id)
        elif desired.revision < self._revision:
            log.warning("outdated desired states are not obeyed", revision=desired.revision, obeyed=self._revision)
        else:
            self._fleet.obey(desired)
            self._revision, self._proof = desired.revision, desired.proof

    async def _say(
        self, socket: aiohttp.ClientWebSocketResponse, frame: Hello | AgentReport | Ping | MachineNotices
    ) -> None:
        try:
            await socket.send_str(_encode(frame).decode())
        except (aiohttp.ClientError, ConnectionError, RuntimeError) as error:
            raise MasterUnreachable(f"the connection broke: {error}") from None

    async def _hear(self, socket: aiohttp.ClientWebSocketResponse) -> Welcome | DesiredStates | SessionRefused:
        """The next frame. Raises MasterUnreachable when the connection ends, UserError if it is refused for good."""
        message = await socket.receive()
        if message.type is not aiohttp.WSMsgType.TEXT:
            raise MasterUnreachable(f"the connection ended (code {socket.close_code})")
        try:
            frame: Welcome | DesiredStates | SessionRefused = _decode(message.data)
        except msgspec.MsgspecError as error:
            raise MasterUnreachable(
                f"the master sent something that this version does not understand: {error}"
            ) from None
        if isinstance(frame, SessionRefused):
            if frame.retry:
                raise RefusedForNow(f"the master refuses this agent for now: {frame.message}")
            raise UserError(f"the master refuses this agent: {frame.message}")
        return frame


def _own_address(socket: aiohttp.ClientWebSocketResponse) -> str:
    address = socket.get_extra_info("sockname")
    return str(address[0]) if address else ""
