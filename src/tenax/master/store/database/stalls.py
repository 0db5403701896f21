"""Connections on which an answer is waited for in vain, though TCP is content: what was said is lost on the way.

Rules:
- A statement that takes long is looked for on the server, over a connection on which that has just answered. Where
  nothing of it moves any more and the server is not at work on it, its connection is cut: it is "try again".
- A statement is said in parts. Where the server has some and waits for the rest, that may be in what stands between, or
  still to come from a process that is busy: its connection is cut when nothing of it has moved for a while.
- A statement that the server is at work on is left to the limits of its lane, however long it takes.
- No limit of the server's ends the wait for the rest of a statement. Where another process was stopped in the middle of
  one, and what its transaction has locked is waited for, any master has the server end it.
- Where the server is silent on every way that was tried, what is waited for is given up, since an answer to it would
  come no other way.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import socket
import termios
import time
from collections.abc import Iterable, Mapping
from typing import Protocol

import structlog
from asyncpg import Connection

from tenax.master.store.database.queries import load

Q = load("database")
log = structlog.get_logger("tenax.database")

#: What takes so long is looked for; and the server must not have been at work for so long.
LONG_S = 3.0
_IDLE_S = 2.0
#: What stands in the middle of a statement for so long is ended; of others, if somebody was held up for so long.
_HALF_SENT_S, _HELD_UP_S = 10.0, 3.0


class Waiting(Protocol):
    """A connection that says what it waits for."""

    #: Of its process on the server.
    backend_pid: int
    #: When the statement was sent that is not answered yet; None: nothing is waited for.
    waiting_since: float | None
    #: Bytes on their way when it was looked at last.
    outstanding: int | None
    #: Since when each look has found that the server waits for the rest of it, and nothing moves; None: it is not so.
    half_sent_since: float | None

    def bytes_outstanding(self) -> int:
        """What was said and has not arrived."""

    def terminate(self) -> None:
        """Cut it."""


async def cut_stalled(connections: Iterable[Waiting], probed: Connection) -> int:
    """Cut those whose answer will not come; how many. ``probed``: a connection on which the server answers."""
    suspects = [(each, each.waiting_since) for each in _waiting_for(connections, LONG_S) if not _moves(each)]
    if not suspects:
        return 0
    pids = [each.backend_pid for each, _ in suspects]
    working = {row["pid"]: row["waits_for_rest"] for row in await probed.fetch(Q.at_work, pids, _IDLE_S)}
    # What was answered while we asked waits no more, or for the next answer, of which we did not ask.
    same = [each for each, since in suspects if each.waiting_since == since]
    stalled = [each for each in same if _is_stalled(each, working)]
    for each in stalled:
        each.terminate()
    if stalled:
        log.warning("connections to the database have stalled; they are cut", connections=len(stalled))
    return len(stalled)


async def end_half_sent(probed: Connection) -> int:
    """End transactions of other processes that stand in the middle of a statement and hold others up.

    How many there were; the server does it. ``probed``: a connection on which the server answers.
    """
    ended = len(await probed.fetch(Q.end_half_sent, _HELD_UP_S, _HALF_SENT_S))
    if ended:
        log.warning("a process stands still in the middle of a statement; its transaction is ended", transactions=ended)
    return ended


def cut_waiting(connections: Iterable[Waiting], seconds: float) -> int:
    """Cut those that have waited so long, whatever for; how many."""
    waiting = _waiting_for(connections, seconds)
    for each in waiting:
        each.terminate()
    if waiting:
        log.warning("the database is silent; what was asked of it is given up", connections=len(waiting))
    return len(waiting)


def bytes_outstanding(transport: object) -> int:
    """Bytes that a transport holds, or that were sent and not acknowledged."""
    held = getattr(transport, "get_write_buffer_size", lambda: 0)()
    connected: socket.socket | None = getattr(transport, "get_extra_info", lambda _: None)("socket")
    if connected is not None:
        sent = array.array("i", [0])
        with contextlib.suppress(OSError):
            fcntl.ioctl(connected.fileno(), termios.TIOCOUTQ, sent)
        held += sent[0]
    return int(held)


def _is_stalled(each: Waiting, working: Mapping[int, bool]) -> bool:
    """Whether its answer will not come. ``working``: processes at work, and whether they wait for the rest."""
    if each.backend_pid not in working:
        return True
    if not working[each.backend_pid]:
        each.half_sent_since = None
    elif each.half_sent_since is None:
        each.half_sent_since = time.monotonic()
    return each.half_sent_since is not None and each.half_sent_since <= time.monotonic() - _HALF_SENT_S


def _waiting_for(connections: Iterable[Waiting], seconds: float) -> list[Waiting]:
    until = time.monotonic() - seconds
    return [each for each in connections if each.waiting_since is not None and each.waiting_since <= until]


def _moves(each: Waiting) -> bool:
    """Whether something of what was said still arrives, as far as is known after one look or more."""
    before, each.outstanding = each.outstanding, each.bytes_outstanding()
    if each.outstanding == 0 or each.outstanding == before:
        return False
    each.half_sent_since = None
    return True
