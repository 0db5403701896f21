"""Objects between the ranks of one job: a star of sockets around its hub. Standard library only, Python 3.9.

Every collective is made of two: ``gather`` to the hub and ``broadcast`` from it. Rules: all ranks call the same
collectives in the same order (a rank that calls another is named in an error); a rank that leaves ends the collective
of the others with an error that names it, so that nobody waits for ever for a dead peer; there is no other time-out,
since ranks may compute for hours between two calls.

Objects are pickled, so a peer is let in only with the job's secret (HMAC-SHA256 over nonces, in both directions);
sockets in the file system lie in a directory of this user alone. One star serves one thread at a time.
"""

from __future__ import annotations

import hmac
import os
import pickle
import selectors
import socket
import stat
import struct
import time
from contextlib import suppress

from tenax.core.hangs import beats
from tenax.errors import TenaxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Union

    #: A path (unix socket), or host and port.
    Address = Union[str, "tuple[str, int]"]

_LENGTH = struct.Struct("!Q")
_RANK = struct.Struct("!I")
_NONCE = 32
_HANDSHAKE_SECONDS = 10.0
#: Who has come and said nothing yet, besides the ranks: of more, whoever has waited longest has to leave.
_MAX_GUESTS = 128


class PeerLost(TenaxError):
    """A rank of this job is gone."""


class OutOfStep(TenaxError):
    """Ranks called different collectives."""


class Star:
    """The ranks ``0 .. size - 1`` of a group; rank 0 is the hub. ``names`` turns a rank into words for errors."""

    def __init__(self, rank: int, sockets: dict[int, socket.socket], name: str) -> None:
        self.rank = rank
        self.size = 1 + (len(sockets) if rank == 0 else 0)
        self._sockets = sockets
        self._name = name
        self._calls = 0

    def gather(self, value: object) -> Optional[list[object]]:
        """At the hub: the values of all ranks, by rank; elsewhere None."""
        self._calls += 1
        if self.rank != 0:
            self._send(0, "gather", value)
            beats.OWN.beat()
            return None
        values = [value, *(self._receive(peer, "gather") for peer in sorted(self._sockets))]
        beats.OWN.beat()
        return values

    def broadcast(self, value: object) -> object:
        """The hub's value, on every rank."""
        self._calls += 1
        if self.rank != 0:
            received = self._receive(0, "broadcast")
            beats.OWN.beat()
            return received
        payload = self._pack("broadcast", value)
        for peer in self._sockets:
            self._send_bytes(peer, payload)
        beats.OWN.beat()
        return value

    def allgather(self, value: object) -> list[object]:
        """The values of all ranks, by rank, on every rank."""
        values = self.broadcast(self.gather(value))
        assert isinstance(values, list)
        return values

    def detach(self) -> list[socket.socket]:
        """The connections themselves, for a talk of another kind; the star is left without."""
        sockets = [self._sockets[peer] for peer in sorted(self._sockets)]
        self._sockets = {}
        return sockets

    def close(self) -> None:
        for sock in self._sockets.values():
            with suppress(OSError):
                sock.close()
        self._sockets = {}

    def _pack(self, operation: str, value: object) -> bytes:
        payload = pickle.dumps((self._calls, operation, value), protocol=4)
        return _LENGTH.pack(len(payload)) + payload

    def _send(self, peer: int, operation: str, value: object) -> None:
        self._send_bytes(peer, self._pack(operation, value))

    def _send_bytes(self, peer: int, payload: bytes) -> None:
        try:
            self._sockets[peer].sendall(payload)
        except (OSError, KeyError) as error:
            raise self._lost(peer) from error

    def _receive(self, peer: int, operation: str) -> object:
        try:
            sock = self._sockets[peer]
            (length,) = _LENGTH.unpack(_read_exactly(sock, _LENGTH.size))
            calls, theirs, value = pickle.loads(_read_exactly(sock, length))
        except (OSError, KeyError) as error:
            raise self._lost(peer) from error
        if theirs != operation or calls != self._calls:
            raise OutOfStep(
                f"{self._name} {self.rank} is in {operation} (call {self._calls}) while {self._name} {peer} is in "
                f"{theirs} (call {calls}): all ranks must call the same collectives, checkpoint uploads and "
                "should_preempt in step"
            )
        result: object = value
        return result

    def _lost(self, peer: int) -> PeerLost:
        return PeerLost(f"{self._name} {peer} has left while {self._name} {self.rank} waits for it: look at its output")


def make_hub(address: Address, size: int, secret: bytes, seconds: float, name: str = "rank") -> Star:
    """Wait for ranks 1 .. size - 1 at ``address``. Raises PeerLost naming those that did not come in time.

    All who come are asked at the same time: a stranger who says nothing holds nobody up.
    """
    deadline = time.monotonic() + seconds
    lobby = _Lobby(_listen(address), secret, size)
    try:
        while len(lobby.admitted) < size - 1:
            lobby.wait(deadline)
            if time.monotonic() >= deadline and len(lobby.admitted) < size - 1:
                missing = ", ".join(str(rank) for rank in range(1, size) if rank not in lobby.admitted)
                raise PeerLost(f"{name} {missing} did not join {name} 0 at {address} within {seconds:.0f} s")
    except BaseException:
        for sock in lobby.admitted.values():
            sock.close()
        raise
    finally:
        lobby.close()
        if isinstance(address, str):
            with suppress(OSError):
                os.unlink(address)
    for sock in lobby.admitted.values():
        sock.setblocking(True)
    return Star(0, lobby.admitted, name)


class _Guest:
    """Who has come and not yet proved to know the secret."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.nonce = os.urandom(_NONCE)
        self.answer = b""
        self.until = time.monotonic() + _HANDSHAKE_SECONDS
        sock.setblocking(False)
        _tune(sock)
        sock.send(self.nonce)  # the first bytes of a connection: there is room for them

    def hear(self, secret: bytes, size: int) -> Optional[int]:
        """Read on: its rank once it has proved itself, None until then. Raises OSError for a stranger."""
        part = self.sock.recv(_RANK.size + 2 * _NONCE - len(self.answer))
        if not part:
            raise ConnectionError("the connection was closed")
        self.answer += part
        if len(self.answer) < _RANK.size + 2 * _NONCE:
            return None
        packed, theirs = self.answer[: _RANK.size], self.answer[_RANK.size : -_NONCE]
        (rank,) = _RANK.unpack(packed)
        if not hmac.compare_digest(self.answer[-_NONCE:], _proof(secret, b"spoke", self.nonce, packed)):
            raise ConnectionError("it does not know the secret")
        if not 0 < rank < size:
            raise ConnectionError("it has a rank that there is not")
        self.sock.send(_proof(secret, b"hub", theirs, packed))
        return int(rank)


class _Lobby:
    """Where the ranks of a job meet: a listener, those who have come, and those who are let in, by rank."""

    def __init__(self, listener: socket.socket, secret: bytes, size: int) -> None:
        self.admitted: dict[int, socket.socket] = {}
        self._secret = secret
        self._size = size
        #: In the order in which they came.
        self._guests: dict[int, _Guest] = {}
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)

    def wait(self, deadline: float) -> None:
        """Until somebody has come or said something, or the time (monotonic seconds) has come."""
        until = min([deadline, *(guest.until for guest in self._guests.values())])
        for key, _ in self._selector.select(max(0.0, until - time.monotonic())):
            if key.fileobj is self._listener:
                self._meet()
                continue
            guest = self._guests.get(key.fd)
            # Others may have made it leave meanwhile.
            if guest is not None and guest is key.data:
                self._hear(guest)
        now = time.monotonic()
        for guest in [guest for guest in self._guests.values() if guest.until <= now]:
            self._leave(guest).close()

    def close(self) -> None:
        for guest in list(self._guests.values()):
            self._leave(guest).close()
        self._selector.close()
        self._listener.close()

    def _meet(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return  # it has gone again
        try:
            guest = _Guest(sock)
        except OSError:
            sock.close()
            return
        if len(self._guests) >= _MAX_GUESTS + self._size:
            self._leave(next(iter(self._guests.values()))).close()
        self._guests[sock.fileno()] = guest
        self._selector.register(sock, selectors.EVENT_READ, guest)

    def _hear(self, guest: _Guest) -> None:
        try:
            rank = guest.hear(self._secret, self._size)
        except BlockingIOError:
            return
        except OSError:
            self._leave(guest).close()
            return
        if rank is not None:
            before = self.admitted.pop(rank, None)
            if before is not None:
                before.close()
            self.admitted[rank] = self._leave(guest)

    def _leave(self, guest: _Guest) -> socket.socket:
        del self._guests[guest.sock.fileno()]
        self._selector.unregister(guest.sock)
        return guest.sock


def join_hub(address: Address, rank: int, secret: bytes, seconds: float, name: str = "rank") -> Star:
    """Join the hub at ``address`` as ``rank``. Raises PeerLost when there is none in time."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            sock = _connect(address)
            try:
                _introduce(sock, secret, rank)
            except BaseException:
                sock.close()
                raise
            return Star(rank, {0: sock}, name)
        except OSError as error:
            if time.monotonic() > deadline:
                raise PeerLost(
                    f"{name} {rank} could not reach {name} 0 at {address} within {seconds:.0f} s: {error}"
                ) from error
            time.sleep(0.05)


def _listen(address: Address) -> socket.socket:
    if isinstance(address, str):
        with suppress(FileNotFoundError):
            os.unlink(address)  # left by a hub that died
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(address)
    else:
        family = socket.getaddrinfo(address[0], address[1], type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        loopback = address[0] in ("127.0.0.1", "::1", "localhost")
        try:
            listener.bind((address[0] if loopback else "", address[1]))
        except OSError as error:
            listener.close()
            raise PeerLost(
                f"port {address[1]} is in use on this machine: another job uses it? Give DistributedContext a pub_port"
            ) from error
    listener.listen(1024)
    return listener


def _connect(address: Address) -> socket.socket:
    if isinstance(address, str):
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.connect(address)
        except BaseException:
            sock.close()
            raise
        return sock
    sock = socket.create_connection(address, timeout=_HANDSHAKE_SECONDS)
    _tune(sock)
    return sock


def _tune(sock: socket.socket) -> None:
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def _introduce(sock: socket.socket, secret: bytes, rank: int) -> None:
    sock.settimeout(_HANDSHAKE_SECONDS)
    packed = _RANK.pack(rank)
    nonce = _read_exactly(sock, _NONCE)
    ours = os.urandom(_NONCE)
    sock.sendall(packed + ours + _proof(secret, b"spoke", nonce, packed))
    if not hmac.compare_digest(_read_exactly(sock, _NONCE), _proof(secret, b"hub", ours, packed)):
        raise ConnectionError("what listens there is not this job")
    sock.settimeout(None)


def _proof(secret: bytes, side: bytes, nonce: bytes, rank: bytes) -> bytes:
    return hmac.new(secret, side + nonce + rank, "sha256").digest()


def _read_exactly(sock: socket.socket, length: int) -> bytes:
    buffer = bytearray(length)
    view = memoryview(buffer)
    while view:
        count = sock.recv_into(view)
        if count == 0:
            raise ConnectionError("the connection was closed")
        view = view[count:]
    return bytes(buffer)


def private_directory() -> str:
    """A directory for sockets that only this user can enter."""
    import tempfile

    for parent in (tempfile.gettempdir(), "/tmp"):  # the path of a socket may have 107 bytes
        path = os.path.join(parent, f"tenax-{os.getuid()}")
        if len(path) < 70:
            break
    os.makedirs(path, mode=0o700, exist_ok=True)
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise TenaxError(f"{path} must be a directory of this user alone (mode 0700): remove it, or set TMPDIR")
    return path
