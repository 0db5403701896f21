"""Ships what an ended container has left in its spool (see ``tenax.wire.spool``), before its exit is reported.

Rules it keeps:

- A master that is away is waited for, for as long as it takes; one that refuses, for a stated time, then the rest is
  declared lost, with the reason.
- The files are a task's: no link is followed, nothing but a plain file is read.
- A last line without newline was torn by a crash and does not count.
- Where to go on is the master's word: a database that was restored has less than was acknowledged, and gets it again.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import structlog

from tenax.agent.link import Link, MasterRefused, MasterUnreachable, decoded, pause, retry
from tenax.wire.agents import ContainerSpec
from tenax.wire.spool_names import BATCH_BYTES, MAX_LINE_BYTES, ack_path

log = structlog.get_logger("tenax.agent")

#: Share of the budget for a master that does not know the task or its token (any more): it will hardly learn of it.
_HOPELESS = 0.1
_HOPELESS_STATUS = frozenset({401, 403, 404, 410})


class _Ack(msgspec.Struct):
    n: int = 0
    offset: int = 0


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
    lost = []
    for path in _streams(directory):
        shipping = _Shipping(link, path, spec, budget)
        try:
            loss = await shipping.run(ask=not acks_hold)
        except OSError as error:
            loss = f"the reports in {path.name} cannot be read: {error.strerror}"
        if loss:
            lost.append(loss)
    return "; ".join(lost)


def _streams(directory: Path) -> list[Path]:
    try:
        return sorted(path for path in directory.iterdir() if path.suffix == ".jsonl")
    except OSError:
        return []


class _Shipping:
    """One stream."""

    def __init__(self, link: Link, path: Path, spec: ContainerSpec, budget: _RetryBudget) -> None:
        self._link = link
        self._path = path
        self._spec = spec
        self._budget = budget
        self._ack = _read_ack(path)
        self._went_back = False

    async def run(self, *, ask: bool) -> str:
        attempts = retry()
        # A batch of nothing asks what is acknowledged.
        while (batch := _lines(self._path, self._ack.offset)) or ask:
            try:
                acked = await self._post(batch)
            except MasterUnreachable as away:
                await pause(attempts.pause(away.retry_after))
                continue
            except MasterRefused as refused:
                if not batch and refused.status in _HOPELESS_STATUS:
                    return ""
                started = time.monotonic()
                await pause(attempts.pause())
                if not self._budget.spend(time.monotonic() - started, refused.status):
                    return self._lost(refused.message)
                continue
            ask = False
            if self._go_back(acked) or self._advance(batch, acked) or not batch:
                attempts.reset()
                continue
            await pause(attempts.pause())
            if not self._budget.spend(1.0, 200):
                return self._lost("the master acknowledges nothing")
        return ""

    async def _post(self, batch: bytes) -> int:
        query = {"container_id": self._spec.container_id, "stream": self._path.stem}
        path = f"/api/v1/allocations/{self._spec.allocation_id}/spool"
        token = self._spec.env.get("DET_SESSION_TOKEN", "")
        body = await self._link.post(path, batch, query=query, token=token, content_type="application/x-ndjson")
        return decoded(body, _Reply).acked

    def _go_back(self, acked: int) -> bool:
        """To the line after ``acked`` where the master has less than it once acknowledged; whether it has.

        It may say so of one stream only as often as a database is restored under it: more often costs time.
        """
        if acked >= self._ack.n or (self._went_back and not self._budget.spend(1.0, 200)):
            return False
        log.warning("the master has less than it acknowledged", container=self._spec.container_id, lines=acked)
        self._went_back = True
        self._ack = _Ack()
        while (batch := _lines(self._path, self._ack.offset)) and self._advance(batch, acked):
            pass
        return True

    def _advance(self, batch: bytes, acked: int) -> bool:
        """Note what is acknowledged; whether there was anything new."""
        offset, n = self._ack.offset, self._ack.n
        for line in batch.splitlines(keepends=True):
            number = _number(line, n + 1)
            if number > acked:
                break
            offset, n = offset + len(line), number
        if offset == self._ack.offset:
            return False
        self._ack = _Ack(n, offset)
        # Only for the agent that comes after a killed one: sending again what is stored does no harm.
        with contextlib.suppress(OSError):
            _write_ack(self._path, self._ack)
        return True

    def _lost(self, why: str) -> str:
        kinds: dict[str, int] = {}
        offset = self._ack.offset
        while batch := _lines(self._path, offset):
            offset += len(batch)
            for line in batch.splitlines():
                kind = _kind(line)
                kinds[kind] = kinds.get(kind, 0) + 1
        if not kinds:
            log.warning("the master does not say what it has", container=self._spec.container_id, reason=why)
            return ""
        counted = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        log.error("reports lost", container=self._spec.container_id, lost=counted, reason=why)
        return f"reports of the task were not stored ({counted}): {why}"


def _number(line: bytes, otherwise: int) -> int:
    try:
        return msgspec.json.decode(line, type=_Line).n
    except msgspec.MsgspecError:
        return otherwise


def _kind(line: bytes) -> str:
    try:
        return msgspec.json.decode(line, type=_Line).kind or "unknown"
    except msgspec.MsgspecError:
        return "unreadable"


def _open(path: Path) -> int:
    """Raises OSError, also for what is not a plain file."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(0, "it is not a plain file")
    return fd


def _lines(path: Path, offset: int) -> bytes:
    """Whole lines from ``offset`` on, of one batch's size or one line; empty at the end."""
    with os.fdopen(_open(path), "rb") as file:
        file.seek(offset)
        data = file.read(BATCH_BYTES)
        if len(data) == BATCH_BYTES and b"\n" not in data:
            data += file.readline(MAX_LINE_BYTES)
    return data[: data.rfind(b"\n") + 1]


def _read_ack(path: Path) -> _Ack:
    """Never beyond the end of the file: an ack that claims more is not believed."""
    try:
        with os.fdopen(_open(Path(ack_path(str(path)))), "rb") as file:
            ack = msgspec.json.decode(file.read(4096), type=_Ack)
        size = os.stat(path, follow_symlinks=False).st_size
    except (OSError, msgspec.MsgspecError):
        return _Ack()
    return ack if 0 <= ack.offset <= size else _Ack()


def _write_ack(path: Path, ack: _Ack) -> None:
    target = ack_path(str(path))
    staged = f"{target}.agent"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(staged)
    with os.fdopen(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(msgspec.json.encode(ack))
    os.rename(staged, target)
