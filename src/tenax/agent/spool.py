"""Ships what an ended container has left in its spool (see ``tenax.wire.spool``), before its exit is reported.

Rules it keeps:

- A master that is away is waited for, for as long as it takes; one that refuses, for a stated time, then the rest is
  declared lost, with the reason.
- The files are a task's: they are read with its user's rights, no link is followed, not even that of the folder, and
  nothing but a plain file is read (`tenax.agent.spool_folder`).
- What cannot be read now is tried again for as long as a master may refuse: only what is gone, or is no plain file that
  its user may read, is lost at once.
- A task that leaves very many files gets for them the time for which a master may refuse; the rest is declared lost.
- A last line without newline was torn by a crash and does not count.
- What a file holds when its shipping begins is what the container has left: another task of the same user may write on,
  and must not keep this one from ending. A file whose name no stream can have is lost at once.
- Where to go on is the master's word: a database that was restored has less than was acknowledged, and gets it again,
  but for files that were removed since: what is missing of those is declared lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
import structlog

from tenax.agent.link import Link, MasterRefused, MasterUnreachable, decoded, pause, retry
from tenax.agent.spool_folder import SpoolAck, SpoolFolder
from tenax.backoff import Retry
from tenax.host.disk import is_there
from tenax.wire.agents import ContainerSpec
from tenax.wire.spool_names import LINES_SUFFIX, SEGMENT_SUFFIX
from tenax.wire.spool_records import SpoolLines

log = structlog.get_logger("tenax.agent")

Result = TypeVar("Result")

#: Share of the budget for a master that does not know the task or its token (any more), or does not understand what is
#: sent: it will hardly learn of it.
_HOPELESS = 0.1
_HOPELESS_STATUS = frozenset({400, 401, 403, 404, 410})
#: For an error of this machine, and for lines that the master answers by taking none: their numbers do not follow what
#: it has.
_FAILED_HERE, _NOT_NEXT = 500, 400
#: Errors that another try meets again: it is gone, or not its user's, or no plain file (0), or a link.
_FINAL = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ELOOP, 0})
#: So many files of a task take what time they take: each process that reports has one.
_FREE_FILES = 500
#: Characters of a stream's name, as the master takes it.
_MAX_NAME = 200


class _Line(msgspec.Struct):
    n: int
    kind: str = ""


class _Reply(msgspec.Struct):
    acked: int


@dataclass(slots=True)
class _RetryBudget:
    """How long a reachable master may refuse, in seconds; it may become less."""

    seconds: Callable[[], float]
    spent: float = 0.0

    def spend(self, seconds: float, status: int) -> bool:
        """False when it is used up."""
        self.spent += seconds / (_HOPELESS if status in _HOPELESS_STATUS else 1.0)
        return self.spent < self.seconds()


async def ship(
    link: Link, directory: Path, spec: ContainerSpec, retry_for_s: Callable[[], float], *, acks_hold: bool = False
) -> str:
    """Ship all streams to their ends; "" when all was acknowledged, else a sentence about what was lost.

    ``acks_hold``: the database is the one that the task's acknowledgements are from, so that it need not be asked.
    """
    budget = _RetryBudget(retry_for_s)
    try:
        folder = await _opened(directory, spec, budget)
        if folder is None:
            return ""
        try:
            return "; ".join([loss async for loss in _losses(link, folder, spec, budget, acks_hold=acks_hold)])
        finally:
            folder.close()
    except _Deleted:
        return "its run directory was deleted, and with it all reports that had not been sent"
    except OSError as error:
        return f"the reports of the task cannot be read: {error.strerror}"


class _Deleted(Exception):
    """The run directory is gone."""


async def _opened(directory: Path, spec: ContainerSpec, budget: _RetryBudget) -> SpoolFolder | None:
    """None where there are no reports. Raises _Deleted, OSError."""
    try:
        return await _tried(budget, spec, lambda: asyncio.to_thread(SpoolFolder, directory))
    except FileNotFoundError:
        if await _tried(budget, spec, lambda: asyncio.to_thread(is_there, directory.parent)):
            return None
        raise _Deleted from None


async def _losses(
    link: Link, folder: SpoolFolder, spec: ContainerSpec, budget: _RetryBudget, *, acks_hold: bool
) -> AsyncIterator[str]:
    """Ship all; sentences about what was lost. Raises OSError."""
    names = await _tried(budget, spec, folder.streams)
    for count, name in enumerate(names, 1):
        started = time.monotonic()
        if not _can_be_stream(name):
            yield f"{name!a} cannot hold reports: no stream has such a name"
            continue
        try:
            shipping = _Shipping(link, folder, name, spec, budget)
            loss = await _tried(budget, spec, partial(shipping.run, ask=not acks_hold))
        except OSError as error:
            loss = f"the reports in {name} cannot be read: {error.strerror}"
        if loss:
            yield loss
        if not _goes_on(budget, count, started):
            yield f"{len(names) - count} of {len(names)} files of reports were not sent: so many take too long"
            return
    removed = {} if acks_hold else await _tried(budget, spec, folder.removed)
    for count, (name, taken) in enumerate(removed.items(), 1):
        started = time.monotonic()
        if loss := await _Shipping(link, folder, name, spec, budget).missing(taken):
            yield loss
        if not _goes_on(budget, count, started):
            return


def _goes_on(budget: _RetryBudget, count: int, started: float) -> bool:
    """Whether a further file is looked at; of very many the time that each took counts as if the master had refused."""
    return count < _FREE_FILES or budget.spend(time.monotonic() - started, 200)


async def _tried(budget: _RetryBudget, spec: ContainerSpec, work: Callable[[], Awaitable[Result]]) -> Result:
    """The result of what reads this machine's disk. Raises OSError: for good."""
    attempts = retry()
    while True:
        try:
            return await work()
        except OSError as error:
            if error.errno in _FINAL:
                raise
            if not attempts.failures:
                log.warning("reports cannot be read now", container=spec.container_id, reason=str(error))
            pausing = attempts.pause()
            await pause(pausing)
            if not budget.spend(pausing, _FAILED_HERE):
                raise


class _Shipping:
    """One stream."""

    def __init__(self, link: Link, folder: SpoolFolder, name: str, spec: ContainerSpec, budget: _RetryBudget) -> None:
        self._link = link
        self._folder = folder
        self._name = name
        self._spec = spec
        self._budget = budget
        self._ack = SpoolAck()
        self._end = 0
        self._went_back = False
        self._damaged = 0

    async def run(self, *, ask: bool) -> str:
        attempts = retry()
        self._end = await self._folder.size(self._name)
        self._ack = await self._folder.ack(self._name)
        # A batch of nothing asks what is acknowledged.
        while (batch := await self._lines(self._ack)).ends or ask:
            try:
                acked = await self._ask(batch.data, attempts)
            except MasterRefused as refused:
                return await self._lost(refused.message) if batch.ends or refused.status not in _HOPELESS_STATUS else ""
            ask = False
            if await self._go_back(acked) or await self._advance(batch, acked) or not batch.ends:
                attempts.reset()
                continue
            started = time.monotonic()
            await pause(attempts.pause())
            if not self._budget.spend(time.monotonic() - started, _NOT_NEXT):
                return await self._lost("the master acknowledges nothing")
        return self._damage()

    def _damage(self) -> str:
        """What to say of records that no longer stand as they were written."""
        if not self._damaged:
            return ""
        log.error("reports lost", container=self._spec.container_id, lost=self._damaged, reason="a damaged file")
        return f"{self._damaged} reports of the task were not stored: they are damaged in {self._name}"

    async def _lines(self, ack: SpoolAck) -> SpoolLines:
        return await self._folder.lines(self._name, ack, self._end)

    async def missing(self, taken: int) -> str:
        """Of a removed file, of which the master took ``taken`` lines, what it does not have any more."""
        try:
            acked = await self._ask(b"", retry())
        except MasterRefused:
            return ""
        if acked >= taken:
            return ""
        log.error("reports lost", container=self._spec.container_id, lost=taken - acked, reason="a restored database")
        return (
            f"{taken - acked} reports of the task are not stored any more: the database was restored from a copy, and "
            "their file was removed after the master had taken them"
        )

    async def _ask(self, batch: bytes, attempts: Retry) -> int:
        """What is acknowledged after ``batch``, however long the master is away. Raises MasterRefused: for good."""
        while True:
            try:
                return await self._post(batch)
            except MasterUnreachable as away:
                await pause(attempts.pause(away.retry_after))
            except MasterRefused as refused:
                if not batch and refused.status in _HOPELESS_STATUS:
                    raise
                started = time.monotonic()
                await pause(attempts.pause())
                if not self._budget.spend(time.monotonic() - started, refused.status):
                    raise

    async def _post(self, batch: bytes) -> int:
        query = {"container_id": self._spec.container_id, "stream": stream_of(self._name)}
        path = f"/api/v1/allocations/{self._spec.allocation_id}/spool"
        token = self._spec.env.get("DET_SESSION_TOKEN", "")
        body = await self._link.post(path, batch, query=query, token=token, content_type="application/x-ndjson")
        return decoded(body, _Reply).acked

    async def _go_back(self, acked: int) -> bool:
        """To the line after ``acked`` where the master has less than it once acknowledged; whether it has.

        It may say so of one stream only as often as a database is restored under it: more often costs time.
        """
        if acked >= self._ack.n or (self._went_back and not self._budget.spend(1.0, 200)):
            return False
        log.warning("the master has less than it acknowledged", container=self._spec.container_id, lines=acked)
        self._went_back = True
        self._ack = SpoolAck()
        while (batch := await self._lines(self._ack)).ends and await self._advance(batch, acked):
            pass
        return True

    async def _advance(self, batch: SpoolLines, acked: int) -> bool:
        """Note what is acknowledged; whether there was anything new."""
        offset, n, taken = self._ack.offset, self._ack.n, 0
        for line, after in zip(batch.data.splitlines(keepends=True), batch.ends, strict=True):
            number = _number(line, n + 1)
            if number > acked:
                break
            # Behind a line that stands for a damaged record it goes on at the same byte.
            offset, n, taken = after, number, taken + 1
        if not taken:
            return False
        self._damaged += sum(place < taken for place in batch.damaged)
        self._ack = SpoolAck(n, offset)
        # Only for the agent that comes after a killed one: sending again what is stored does no harm.
        with contextlib.suppress(OSError):
            await self._folder.write_ack(self._name, self._ack)
        return True

    async def _lost(self, why: str) -> str:
        kinds: dict[str, int] = {}
        ack = self._ack
        while (batch := await self._lines(ack)).ends:
            ack = SpoolAck(ack.n + len(batch.ends), batch.ends[-1])
            for line in batch.data.splitlines():
                kind = _kind(line)
                kinds[kind] = kinds.get(kind, 0) + 1
        if not kinds:
            log.warning("the master does not say what it has", container=self._spec.container_id, reason=why)
            return self._damage()
        counted = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        log.error("reports lost", container=self._spec.container_id, lost=counted, reason=why)
        return f"reports of the task were not stored ({counted}): {why}"


def stream_of(name: str) -> str:
    """The stream that a file holds."""
    return name.removesuffix(LINES_SUFFIX).removesuffix(SEGMENT_SUFFIX)


def _can_be_stream(name: str) -> bool:
    """Whether the master can be told of it: bytes that are no UTF-8 are surrogates here."""
    stream = stream_of(name)
    return 0 < len(stream) <= _MAX_NAME and not any(0xD800 <= ord(character) <= 0xDFFF for character in stream)


def _number(line: bytes, otherwise: int) -> int:
    read = _read(line)
    return otherwise if read is None else read.n


def _kind(line: bytes) -> str:
    read = _read(line)
    return "unreadable" if read is None else read.kind or "unknown"


def _read(line: bytes) -> _Line | None:
    """None: it is no line of a spool; the deepest nesting is no error of ours either."""
    try:
        return msgspec.json.decode(line, type=_Line)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
