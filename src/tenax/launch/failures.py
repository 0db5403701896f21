"""Which rank failed first: ranks tell the launcher of their machine, launchers the chief's, which tells them all.

A rank that fails takes the others with it, within milliseconds: their connections to it break. What they say then
explains nothing, so the first is looked for; one that failed for want of another rank is never taken for it while there
is one with a reason of its own, however late its words are read. By clocks of machines that differ nothing can be
compared: what is sent is how long ago it failed. Standard library only, Python 3.9.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from contextlib import suppress

from tenax.client.connection import fast_json
from tenax.core.collectives import PeerLost, join_hub, make_hub, private_directory
from tenax.core.sharding import OtherRankFailed
from tenax.errors import TenaxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Optional

    from tenax.core.collectives import Star
    from tenax.jsonvalue import Json, JsonObject

#: The variable that says where a launcher listens for its ranks: a unix socket.
MAILBOX = "TENAX_LAUNCH_MAILBOX"
_MAX_RECORD = 16 * 1024
#: Seconds that the machines of a trial may take to reach each other; they have met at the master before.
MEETING_S = 60.0
#: What ranks raise for want of another one: our own, and in the words of gloo, NCCL and Horovod.
_OF_OTHERS = (PeerLost.__name__, OtherRankFailed.__name__)
_LOST_PEER = ("/gloo/transport/", "remote process exited", "Connection closed by peer", "Horovod has been shut down")


class LaunchersApart(TenaxError):
    """The machines of this trial do not reach each other."""


class Failure:
    """A rank that failed with ``code``, at ``at`` of this machine's monotonic clock, on a member of the allocation.

    ``exception``: what it raised, and where; empty for none.
    """

    def __init__(self, rank: int, code: int, at: float, exception: str = "", member: int = 0) -> None:
        self.rank = rank
        self.code = code
        self.at = at
        self.exception = exception
        self.member = member

    def __str__(self) -> str:
        if self.follows:
            reason = self.exception or how(self.code)
            return f"a rank ended without a word: it was killed, or its machine is gone (rank {self.rank}: {reason})"
        return f"rank {self.rank} failed first{f': {self.exception}' if self.exception else f', {how(self.code)}'}"

    @property
    def follows(self) -> bool:
        """Whether it failed for want of another rank, or was asked to end: that one is to blame, if it is known."""
        raised, _, text = self.exception.partition(": ")
        return (
            raised.rpartition(".")[2] in _OF_OTHERS
            or any(words in text for words in _LOST_PEER)
            or (not self.exception and self.code == 128 + signal.SIGTERM)
        )

    def encode(self) -> bytes:
        """A line."""
        age = max(0.0, time.monotonic() - self.at)
        fields: Json = {
            "rank": self.rank,
            "code": self.code,
            "age": age,
            "exception": self.exception,
            "member": self.member,
        }
        return fast_json.dumps(fields).encode()

    @classmethod
    def decode(cls, line: bytes) -> Optional[Failure]:
        """None: not understood."""
        try:
            read: Json = fast_json.loads(line.decode())
        except ValueError:
            return None
        if not isinstance(read, dict):
            return None
        rank, code, age, exception, member = (read.get(name) for name in ("rank", "code", "age", "exception", "member"))
        if not (isinstance(rank, int) and isinstance(code, int) and isinstance(member, int)):
            return None
        at = time.monotonic() - (age if isinstance(age, float) else 0.0)
        return cls(rank, code, at, exception if isinstance(exception, str) else "", member)


def first_of(failures: Sequence[Failure]) -> Failure:
    """The one that the others follow from."""
    return min(failures, key=lambda failure: (failure.follows, failure.at))


def how(code: int) -> str:
    """An exit code in words, as a shell has it."""
    if code > 128:
        with suppress(ValueError):
            return f"killed by {signal.Signals(code - 128).name}"
    return f"with exit code {code}"


def post(failure: Failure) -> None:
    """Tell the launcher of this machine, if there is one."""
    path = os.environ.get(MAILBOX)
    if path:
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.sendto(failure.encode(), path)


class Mailbox:
    """Where the ranks of this machine say that they failed: ``take`` is called with each failure, in a thread."""

    def __init__(self, take: Callable[[Failure], None]) -> None:
        self.path = os.path.join(private_directory(), f"ranks-{os.urandom(8).hex()}.sock")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.path)
        self._take = take
        threading.Thread(target=self._read, daemon=True).start()

    def close(self) -> None:
        """Nothing more is taken."""
        with suppress(OSError):
            os.unlink(self.path)
        self._socket.close()

    def _read(self) -> None:
        with suppress(OSError):
            while True:
                failure = Failure.decode(self._socket.recv(_MAX_RECORD))
                if failure is not None:
                    self._take(failure)


class Peers:
    """The launchers of the other members: of the chief all others, of another one the chief's.

    ``take`` is called, in a thread, with the failures that they tell, and ``news`` with all else.
    """

    def __init__(
        self, sockets: list[socket.socket], take: Callable[[Failure], None], news: Callable[[JsonObject], None]
    ) -> None:
        self._sockets = sockets
        self._take = take
        self._news = news
        self._sending = threading.Lock()
        for sock in sockets:
            threading.Thread(target=self._read, args=(sock,), daemon=True).start()

    def tell(self, failure: Failure) -> None:
        """One that has left needs to know nothing."""
        self._send(failure.encode())

    def tell_news(self, fields: JsonObject) -> None:
        """Of ranks that have not failed."""
        self._send(fast_json.dumps({"news": fields}).encode())

    def close(self) -> None:
        for sock in self._sockets:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _send(self, line: bytes) -> None:
        with self._sending:
            for sock in self._sockets:
                with suppress(OSError):
                    sock.sendall(line + b"\n")

    def _read(self, sock: socket.socket) -> None:
        with suppress(OSError, ValueError), sock.makefile("rb") as lines:
            for line in lines:
                failure = Failure.decode(line)
                if failure is not None:
                    self._take(failure)
                    continue
                read: Json = fast_json.loads(line.decode())
                news = read.get("news") if isinstance(read, dict) else None
                if isinstance(news, dict):
                    self._news(news)


def connect(member: int, addresses: list[str], port: int, seconds: float = MEETING_S) -> Star:
    """All launchers of a trial, by the credential of its allocation. Raises LaunchersApart."""
    secret = os.environ.get("DET_SESSION_TOKEN", "").encode()
    try:
        if member == 0:
            return make_hub((addresses[0], port), len(addresses), secret, seconds, "machine")
        return join_hub((addresses[0], port), member, secret, seconds, "machine")
    except TenaxError as error:
        raise LaunchersApart(
            f"the machines of this trial do not reach each other: {error}. Port {port} (and what else "
            f"docs/distributed.md names) must be open from {addresses[1]} to {addresses[0]}; an agent's setting "
            "`address` says where the other machines reach it"
        ) from None
