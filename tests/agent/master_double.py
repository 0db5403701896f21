"""A small real master over a real websocket: it keeps what the agent says, and things go wrong on demand.

It keeps the wire's promises (chunks once by offset, lines up to ``acked``), so that a test can compare what arrived
with what was written; of output and spools it passes the kit of the real one (``tests/kits/intake_kit.py``).
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import ssl
import tarfile
import zlib
from collections.abc import Callable
from types import TracebackType

import msgspec
from aiohttp import WSMsgType, web

from tenax.master.telemetry.output_offsets import admit
from tenax.wire.agents import (
    AgentReport,
    ContainerReport,
    ContainerSpec,
    DesiredGone,
    DesiredRun,
    DesiredState,
    DesiredStates,
    DesiredStop,
    FromAgent,
    FromMaster,
    Hello,
    JoinReply,
    JoinRequest,
    MachineNotices,
    Ping,
    SessionRefused,
    Welcome,
)
from tests.kits.ports import free_port

TOKEN = "join-me"
CLUSTER = "11111111-1111-1111-1111-111111111111"
_decode = msgspec.json.Decoder(FromAgent).decode


class MasterDouble:
    """``async with MasterDouble() as master``: serves until the end of the block, `away` and `back` in between."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.cluster_id = CLUSTER
        self.generation = 1
        self.revision = 1
        self.wants: dict[str, DesiredState] = {}
        self.joins: list[JoinRequest] = []
        self.hellos: list[Hello] = []
        self.pings = 0
        self.notices: list[MachineNotices] = []
        #: Whether its welcome asks for them.
        self.takes_notices = True
        self.reports: dict[str, ContainerReport] = {}
        self.states: dict[str, list[str]] = {}
        self.gone: set[str] = set()
        self.output: dict[tuple[str, str], bytearray] = {}
        #: Bytes that the agent said are gone; they stand as question marks in the output.
        self.missing: dict[tuple[str, str], int] = {}
        self.finals: set[tuple[str, str]] = set()
        self.spool: dict[tuple[str, str], list[dict[str, object]]] = {}
        self.contexts: dict[str, bytes] = {}
        self.context_requests = 0
        #: Answers with these statuses instead of working, while set.
        self.fail_logs = 0
        self.fail_spool = 0
        self.fail_session = 0
        #: Of the agent that joined last.
        self.credential = "none"
        #: Whether the answer to the next join is lost.
        self.lose_answer = False
        self.fail_context = 0
        self.refuse: SessionRefused | None = None
        self.spool_refusals = 0
        self.spool_requests = 0
        self.held: set[str] = set()
        self._sockets: list[web.WebSocketResponse] = []
        self._changed = asyncio.Condition()
        self._runner: web.AppRunner | None = None
        # Kept while it is away, which no port of the system's own range is.
        self._port = free_port()

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self._port}"

    async def __aenter__(self) -> MasterDouble:
        await self.back()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        await self.away()

    async def back(self) -> None:
        """Listen, at the same port as before."""
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_get("/info", self._info)
        app.router.add_post("/agents/join", self._join)
        app.router.add_get("/agents/session", self._session)
        app.router.add_post("/agents/logs", self._logs)
        app.router.add_get("/agents/logs/offsets", self._offsets)
        app.router.add_get("/agents/contexts/{digest}", self._context)
        app.router.add_post("/api/v1/allocations/{allocation}/spool", self._spool)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True, ssl_context=self._tls)
        await site.start()

    async def away(self) -> None:
        """Stop listening and cut all connections."""
        await self.cut()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def cut(self) -> None:
        """Break the agents' connections, without a word."""
        for socket in self._sockets:
            transport = socket._req.transport if socket._req is not None else None
            if transport is not None:
                transport.abort()
        self._sockets.clear()

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait for something that the agent brings about."""
        async with asyncio.timeout(240), self._changed:
            await self._changed.wait_for(lambda: bool(holds()))

    # What is wanted

    async def run(self, spec: ContainerSpec) -> None:
        await self.want(DesiredRun(spec.container_id, spec))

    async def stop(self, container_id: str, within_s: float) -> None:
        await self.want(DesiredStop(container_id, within_s))

    async def remove(self, container_id: str) -> None:
        await self.want(DesiredGone(container_id))

    async def want(self, want: DesiredState) -> None:
        self.revision += 1
        self.wants[want.container_id] = want
        await self.say_wants()

    async def say_wants(self) -> None:
        wants = [
            DesiredRun(want.container_id) if isinstance(want, DesiredRun) and want.container_id in self.held else want
            for want in self.wants.values()
        ]
        await self.say(DesiredStates(self.cluster_id, self.generation, self.revision, wants))

    async def say(self, frame: FromMaster) -> None:
        for socket in [socket for socket in self._sockets if not socket.closed]:
            await socket.send_str(msgspec.json.encode(frame).decode())

    def add_context(self, files: dict[str, str]) -> str:
        """Model code; its hash."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(content.encode())
                tar.addfile(info, io.BytesIO(content.encode()))
        digest = hashlib.sha256(buffer.getvalue()).hexdigest()
        self.contexts[digest] = buffer.getvalue()
        return digest

    # What arrived

    def state(self, container_id: str) -> str:
        return self.reports[container_id].state if container_id in self.reports else ""

    def exited(self, container_id: str) -> bool:
        return self.state(container_id) == "exited"

    def pid(self, container_id: str) -> int | None:
        """Of its main process; None before a report has it, which output may overtake."""
        return self.reports[container_id].pid if container_id in self.reports else None

    def text(self, container_id: str, stream: str = "stdout") -> str:
        return bytes(self.output.get((container_id, stream), b"")).decode()

    async def _note(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _info(self, _: web.Request) -> web.Response:
        return web.json_response({"version": "0.38.1"})

    async def _join(self, request: web.Request) -> web.Response:
        join = msgspec.json.decode(await request.read(), type=JoinRequest)
        self.joins.append(join)
        await self._note()
        if join.token != TOKEN:
            return web.json_response({"error": {"message": "the join token is wrong"}}, status=403)
        self.credential = join.credential
        if self.lose_answer:
            self.lose_answer = False
            return web.Response(status=503)
        return web.Response(body=msgspec.json.encode(JoinReply(join.credential, self.cluster_id)))

    async def _session(self, request: web.Request) -> web.StreamResponse:
        if self.fail_session or request.headers.get("Authorization") != f"Bearer {self.credential}":
            return web.Response(status=self.fail_session or 401)
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        hello = _decode((await socket.receive()).data)
        assert isinstance(hello, Hello)
        self.hellos.append(hello)
        self.held = {report.container_id for report in hello.containers}
        for report in hello.containers:
            self._take(report)
        if self.refuse is not None:
            await socket.send_str(msgspec.json.encode(self.refuse).decode())
            return socket
        welcome = Welcome(self.cluster_id, self.generation, len(self.hellos), 0.2, self.takes_notices)
        await socket.send_str(msgspec.json.encode(welcome).decode())
        self._sockets.append(socket)
        await self._note()
        await self.say_wants()
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                break
            frame = _decode(message.data)
            self.pings += isinstance(frame, Ping)
            if isinstance(frame, MachineNotices):
                self.notices.append(frame)
            if isinstance(frame, AgentReport):
                for report in frame.containers:
                    self._take(report)
                self.gone.update(frame.gone)
                for name in frame.gone:
                    self.wants.pop(name, None)
            await self._note()
        if socket in self._sockets:
            self._sockets.remove(socket)
        return socket

    def _take(self, report: ContainerReport) -> None:
        self.held.add(report.container_id)
        self.reports[report.container_id] = report
        states = self.states.setdefault(report.container_id, [])
        if not states or states[-1] != report.state:
            states.append(report.state)

    async def _offsets(self, request: web.Request) -> web.Response:
        name = request.query["container_id"]
        if name not in self.wants and name not in self.reports:
            return web.json_response({"message": f"there is no container {name}"}, status=404)
        return web.json_response({stream: len(self.output.get((name, stream), b"")) for stream in ("stdout", "stderr")})

    async def _logs(self, request: web.Request) -> web.Response:
        data = zlib.decompress(await request.read())
        if self.fail_logs and (data or self.fail_logs != 507):
            return web.json_response({"message": "no room"}, status=self.fail_logs)
        key = request.query["container_id"], request.query["stream"]
        if key[0] not in self.wants and key[0] not in self.reports:
            return web.json_response({"message": f"there is no container {key[0]}"}, status=404)
        kept = self.output.setdefault(key, bytearray())
        offset, gone_from = int(request.query["offset"]), int(request.query.get("gone_from", 0))
        admitted = admit(len(kept), gone_from, offset, len(data))
        if admitted is None:
            return web.json_response({"next": len(kept)})
        if admitted.missing:
            self.missing[key] = self.missing.get(key, 0) + admitted.missing
        kept += b"?" * admitted.missing + data[admitted.known :]
        if request.query.get("final") == "true":
            self.finals.add(key)
        await self._note()
        return web.json_response({"next": len(kept)})

    async def _context(self, request: web.Request) -> web.Response:
        self.context_requests += 1
        await self._note()
        content = self.contexts.get(request.match_info["digest"])
        if self.fail_context or content is None:
            return web.json_response({"message": "no such model code"}, status=self.fail_context or 404)
        return web.Response(body=content)

    async def _spool(self, request: web.Request) -> web.Response:
        if self.fail_spool or request.headers.get("Authorization") != "Bearer task-token":
            self.spool_refusals += 1
            await self._note()
            return web.json_response({"message": "not now"}, status=self.fail_spool or 401)
        lines = [msgspec.json.decode(line) for line in (await request.read()).split(b"\n")[:-1]]
        self.spool_requests += 1
        kept = self.spool.setdefault((request.query["container_id"], request.query["stream"]), [])
        fresh = [line for line in lines if line["n"] > len(kept)]
        for line in fresh:
            if line["n"] != len(kept) + 1:
                break
            kept.append(line)
        await self._note()
        return web.json_response({"acked": len(kept), "refused": []})
