"""Which connections are taken: so many in all, and so many of one address; counted before a byte of theirs is read.

Rules it keeps:

- a connection beyond either number is closed at once, without an answer: whoever holds too many gets no more by it;
- an address is that of the socket, and of IPv6 the network of 64 bits that one machine usually has to itself;
- a handshake of TLS counts, and ends within `HANDSHAKE_S`;
- the process may hold as many files as the system lets it, and connections leave `_SPARE_FILES` of them to the rest: a
  master that can open no file or database connection would serve nobody.
"""

from __future__ import annotations

import asyncio
import resource
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
import uvicorn

from tenax.config.master import ConnectionSettings
from tenax.errors import UserError
from tenax.master.access.client_address import counted_as
from tenax.master.api.http.protocol import HEAD_S, Bounded, BoundedHttp, relieve
from tenax.master.observability import counters

log = structlog.get_logger("tenax.http")

HANDSHAKE_S = HEAD_S
#: For the database, files and what else is not counted here.
_SPARE_FILES = 256
#: With fewer a master serves nobody.
_LEAST_CONNECTIONS = 64
#: Connections that are taken before something else has its turn.
_AT_ONCE = 64
#: How long none are taken when the system has no files left.
_PAUSE_S = 0.5


class Gate:
    """Counts connections by address."""

    def __init__(self, most: int, most_per_address: int) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._count = 0
        self._by_place: Counter[str] = Counter()

    def admit(self, address: str) -> bool:
        """Count one more connection; False, and not counted: there are too many."""
        place = counted_as(address)
        if self._count >= self._most or self._by_place[place] >= self._most_per_address:
            return False
        self._count += 1
        self._by_place[place] += 1
        return True

    def leave(self, address: str) -> None:
        """One that was admitted has ended."""
        place = counted_as(address)
        self._count -= 1
        self._by_place[place] -= 1
        if not self._by_place[place]:
            del self._by_place[place]


def gate_for(settings: ConnectionSettings) -> Gate:
    """The gate that settings and system allow; raises the process's own limit of open files as far as it may.

    Raises UserError where that is too low to serve anybody.
    """
    needed = settings.most + _SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        files = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
        if files < _SPARE_FILES + _LEAST_CONNECTIONS:
            raise UserError(
                f"this master may open {files} files at once, and needs {_SPARE_FILES + _LEAST_CONNECTIONS} at least: "
                "raise the limit of whoever starts it (ulimit -n, or LimitNOFILE= of a unit of systemd)"
            )
        if files < needed:
            log.warning("fewer connections than connections.most: the limit of open files is low", files=files)
            return Gate(max(1, files - _SPARE_FILES), settings.most_per_address)
    return Gate(settings.most, settings.most_per_address)


class Server(uvicorn.Server):
    """uvicorn, which takes its connections through a gate and looks after their time.

    Without its signal handlers: they would send the signal on after the end, and spoil the exit status.
    """

    def __init__(self, config: uvicorn.Config, gate: Gate) -> None:
        super().__init__(config)
        self._gate = gate
        self._handshakes: set[asyncio.Task[None]] = set()
        self._listening: list[socket.socket] = []

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.servers = []
        self._listening = list(sockets or [])
        loop = asyncio.get_running_loop()
        for listening in self._listening:
            loop.add_reader(listening, self._take, listening)
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listening in self._listening:
            asyncio.get_running_loop().remove_reader(listening)
        for handshake in self._handshakes:
            handshake.cancel()
        await super().shutdown(sockets)

    async def on_tick(self, counter: int) -> bool:
        # Ten ticks are a second.
        if counter % 10 == 0:
            now = asyncio.get_running_loop().time()
            connections = [each for each in self.server_state.connections if isinstance(each, Bounded)]
            for connection in connections:
                connection.check_time(now)
            relieve(connections, now)
        return await super().on_tick(counter)

    def _take(self, listening: socket.socket) -> None:
        """Take those that wait at the door."""
        for _ in range(_AT_ONCE):
            try:
                taken, peer = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.warning("no connection can be taken for the moment", reason=str(error))
                self._pause(listening)
                return
            address = str(peer[0])
            if not self._gate.admit(address):
                counters.CONNECTIONS_REFUSED.inc()
                taken.close()
                continue
            taken.setblocking(False)
            handshake = asyncio.get_running_loop().create_task(self._connect(taken, address))
            self._handshakes.add(handshake)
            handshake.add_done_callback(self._handshakes.discard)

    def _pause(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(listening)

        def again() -> None:
            if not self.should_exit:
                loop.add_reader(listening, self._take, listening)

        loop.call_later(_PAUSE_S, again)

    async def _connect(self, taken: socket.socket, address: str) -> None:
        """Hand a connection over to its protocol, which tells of its end."""

        def protocol() -> BoundedHttp:
            made = BoundedHttp(self.config, self.server_state, self.lifespan.state)
            made.on_gone = gone
            return made

        left = False

        def gone() -> None:
            nonlocal left
            if not left:
                left = True
                self._gate.leave(address)

        limit = HANDSHAKE_S if self.config.ssl is not None else None
        made = False
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                protocol, taken, ssl=self.config.ssl, ssl_handshake_timeout=limit
            )
            made = True
        except OSError as error:
            # A peer that went, or that speaks no TLS: nothing that this side could mend.
            log.debug("a connection did not come about", reason=str(error))
        finally:
            if not made:
                gone()
                taken.close()
