"""Taking in spools: numbered lines of every kind, each exactly once and in order (`tenax.wire.spool`).

Rules:
- Metrics go into the group commit, in runs of lines up to the next one that changes state; progress and the runner's
  state among them are last-one-wins. Whatever changes state is a transaction of its own, with its number.
- A line that cannot be read, or asks for what cannot be, is refused for good and uses up its number.
  A repeated question gets the same answer.
- What is passing (no database, no room) stops at the last line that was stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import asyncpg
import msgspec
import structlog
from asyncpg import Connection

from tenax.errors import InvalidInput, NotFound, TryAgain, UserError
from tenax.jsonvalue import Json, JsonObject, is_deeper
from tenax.master.concurrency.threads import Threads
from tenax.master.ingest import states
from tenax.master.ingest.budget import NoRoom, Notices
from tenax.master.ingest.metrics import MetricIngest
from tenax.master.store.checkpoints import rows as checkpoints
from tenax.master.store.database.connection import Database
from tenax.master.store.logs import spool
from tenax.master.store.users.sessions import TaskOf
from tenax.master.telemetry.reports import from_spool
from tenax.master.telemetry.values import Refused, SpooledReport
from tenax.storage.port import checked_id
from tenax.wire import spool as wire
from tenax.wire.spool import Refusal, SpoolReply

log = structlog.get_logger("tenax.spool")

#: Bodies above this are read in a thread.
_LARGE = 32 * 1024
#: Bytes of a line that is no report of metrics: the files of the largest checkpoint, and what is said about it.
_MAX_STATE_BYTES, _MAX_VALUES = 4 << 20, 50_000
#: Of one request; the answer says where to go on.
_MAX_LINES = 20_000
#: Lists and objects of a line in one another; metrics have a limit of their own.
_MAX_DEPTH = 100
_LIGHT = (wire.METRICS, wire.PROGRESS, wire.RUNNER_STATE)
_MEMBERS_KEPT = 50_000
#: Of a file's bytes.
_MAX_DIGITS = 18


class _Record(msgspec.Struct):
    n: int
    kind: str
    at: float
    body: msgspec.Raw


_RECORD = msgspec.json.Decoder(_Record)


@dataclass(frozen=True, slots=True)
class SpoolLine:
    """A line as read: what it says, or why it cannot be read."""

    n: int
    kind: str
    body: bytes
    item: SpooledReport | None = None
    refused: Refused | None = None


@dataclass(slots=True)
class _Progress:
    """How far one request has come."""

    acked: int
    refused: list[Refusal] = field(default_factory=list)

    def refuse(self, n: int, why: Refused) -> None:
        self.refused.append({"n": n, "message": why.message, "fatal": why.fatal})


class SpoolIngest:
    """Takes in spools. For one event loop."""

    def __init__(self, database: Database, metrics: MetricIngest, threads: Threads, notices: Notices) -> None:
        self._database = database
        self._notices = notices
        self._metrics = metrics
        self._threads = threads
        self._members: set[tuple[str, str]] = set()
        #: Last lines taken in, as far as this process knows; the database knows better.
        self._acked: dict[tuple[str, str], int] = {}

    async def take(self, task: TaskOf, container_id: str, stream: str, body: bytes) -> SpoolReply:
        """Store the lines of a request; what `tenax.wire.spool` promises. Raises NotFound, InvalidInput, TryAgain."""
        if not stream or len(stream) > 200:
            raise InvalidInput("a spool has a name of 1 to 200 characters: give it as 'stream'")
        key = (container_id, stream)
        acked = await self._known(key, task)
        lines = await self._read(task, key, body, acked)
        if not lines or lines[0].n != acked + 1:
            # A question, lines sent again, or taken in by another master: what is remembered here may be old.
            acked = await self._look_up(key)
        fresh = [line for line in lines if line.n > acked]
        progress = _Progress(acked)
        if len(fresh) < len(lines):
            await self._repeat(key, lines, acked, progress)
        try:
            await self._store(task, key, fresh, progress)
        except TryAgain as error:
            if isinstance(error, NoRoom):
                await self._notices.once(task.task_id, "reports wait where they were made", error.message)
            if progress.acked == acked:
                raise
        self._remember(key, progress.acked)
        return {"acked": progress.acked, "refused": progress.refused}

    async def _read(self, task: TaskOf, key: tuple[str, str], body: bytes, acked: int) -> list[SpoolLine]:
        if len(body) <= _LARGE:
            return read_lines(task, key, body, acked)
        return await self._threads.run(read_lines, task, key, body, acked)

    async def _known(self, key: tuple[str, str], task: TaskOf) -> int:
        """The last line that was taken in. Raises NotFound where the container is none of the allocation."""
        container_id, stream = key
        allocation_id = task.allocation_id
        if not allocation_id and task.trial_id is not None:
            # Trained elsewhere: there is no allocation that its spools could hang on.
            if key in self._acked:
                return self._acked.pop(key)
            async with self._database.transaction() as conn:
                return await spool.begin_of_trial(conn, container_id, stream, task.trial_id)
        if (container_id, allocation_id) in self._members:
            return self._acked.pop(key, 0) or await self._look_up(key)
        async with self._database.connection() as conn:
            acked = await spool.acked_of_member(conn, container_id, stream, allocation_id)
        if acked is None:
            raise NotFound(f"container {container_id} not found in allocation {allocation_id}")
        if len(self._members) >= _MEMBERS_KEPT:
            self._members.clear()
        self._members.add((container_id, allocation_id))
        return acked

    async def _repeat(self, key: tuple[str, str], lines: Sequence[SpoolLine], last: int, progress: _Progress) -> None:
        async with self._database.connection() as conn:
            progress.refused += await spool.refused(conn, *key, lines[0].n, min(last, lines[-1].n))

    async def _look_up(self, key: tuple[str, str]) -> int:
        async with self._database.connection() as conn:
            return await spool.acked(conn, *key)

    def _remember(self, key: tuple[str, str], acked: int) -> None:
        if len(self._acked) >= _MEMBERS_KEPT:
            self._acked.clear()
        self._acked[key] = acked

    async def _store(self, task: TaskOf, key: tuple[str, str], lines: Sequence[SpoolLine], progress: _Progress) -> None:
        light: list[SpoolLine] = []
        for line in lines:
            if line.n != progress.acked + len(light) + 1:
                # A gap, or numbers that do not rise: the answer says where to go on.
                break
            if line.kind in _LIGHT or line.refused is not None:
                light.append(line)
                continue
            await self._store_light(task, key, light, progress)
            light = []
            if line.n != progress.acked + 1:
                return
            await self._store_state(task, key, line, progress)
        await self._store_light(task, key, light, progress)

    async def _store_light(
        self, task: TaskOf, key: tuple[str, str], lines: Sequence[SpoolLine], progress: _Progress
    ) -> None:
        if not lines:
            return
        lines = await self._store_latest(task, lines)
        items = [line.item or SpooledReport(None, key, line.n, line.refused) for line in lines]
        receipt = await self._metrics.submit(items, {key: task.allocation_id})
        for line, refused in zip(lines, receipt.refused):
            if refused is not None:
                progress.refuse(line.n, refused)
        if receipt.before[key] > progress.acked:
            # The same lines came by another way meanwhile.
            await self._repeat(key, lines, receipt.before[key], progress)
        progress.acked = receipt.acked[key]

    async def _store_latest(self, task: TaskOf, lines: Sequence[SpoolLine]) -> list[SpoolLine]:
        """The last progress and the last state of the runner; refused ones come back as such."""
        checked = [_checked(line) for line in lines]
        last = {line.kind: line for line in checked if line.refused is None and line.kind != wire.METRICS}
        if last:
            async with self._database.transaction() as conn:
                for line in last.values():
                    await _store_value(conn, task, line)
        return checked

    async def _store_state(self, task: TaskOf, key: tuple[str, str], line: SpoolLine, progress: _Progress) -> None:
        refused: Refused | None = None
        try:
            taken = await self._take_state(task, key, line, None)
        except TryAgain:
            raise
        except (UserError, asyncpg.DataError) as error:
            refused = Refused(str(error))
        except (ValueError, OverflowError) as error:
            # Numbers that nothing can hold, and the like: sent again they would be what they are.
            refused = Refused(f"it cannot be stored: {error}")
        except asyncpg.IntegrityConstraintViolationError as error:
            log.exception("a line of a spool contradicts the database", kind=line.kind, task=task.task_id)
            refused = Refused(f"it contradicts what is stored: {error}")
        if refused is not None:
            # What it had changed is undone, its number as well: that is used up by the refusal.
            taken = await self._take_state(task, key, line, refused)
        if not taken:
            progress.acked = await self._look_up(key)
            return
        progress.acked = line.n
        if refused is not None:
            progress.refuse(line.n, refused)

    async def _take_state(self, task: TaskOf, key: tuple[str, str], line: SpoolLine, refused: Refused | None) -> bool:
        """Let what a line says happen, or remember its refusal; False: its number is not the next one."""
        async with self._database.transaction() as conn:
            if not await spool.take(conn, *key, task.allocation_id, line.n):
                return False
            if refused is None:
                await _change_state(conn, task, line)
            else:
                await spool.refuse(conn, *key, line.n, refused.message, refused.fatal)
        return True


def read_lines(task: TaskOf, key: tuple[str, str], body: bytes, acked: int) -> list[SpoolLine]:
    """The first complete lines of a request; reports that were taken in before are not read any further."""
    read = [_decoded(text) for text in body.split(b"\n", _MAX_LINES)[:-1]]
    # A line that cannot be read has the number that its neighbours leave for it.
    first = next((record.n - place for place, record in enumerate(read) if isinstance(record, _Record)), acked + 1)
    lines: list[SpoolLine] = []
    for record in read:
        if isinstance(record, Refused):
            lines.append(SpoolLine(lines[-1].n + 1 if lines else first, "", b"", refused=record))
        else:
            lines.append(_line(task, key, record, fresh=record.n > acked))
    return lines


def _decoded(text: bytes) -> _Record | Refused:
    try:
        return _RECORD.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return Refused(f"this is not a line of a spool: {error}")


def _line(task: TaskOf, key: tuple[str, str], record: _Record, *, fresh: bool) -> SpoolLine:
    body = bytes(record.body)
    if record.kind not in wire.KINDS:
        why = f"a line of a spool cannot be of kind {record.kind[:100]!r}: is the master older than the task's library?"
        return SpoolLine(record.n, record.kind, body, refused=Refused(why))
    if record.kind != wire.METRICS and (len(body) > _MAX_STATE_BYTES or body.count(b",") > _MAX_VALUES):
        why = f"a line of kind {record.kind!r} has at most {_MAX_STATE_BYTES} bytes and {_MAX_VALUES} values: say less"
        return SpoolLine(record.n, record.kind, b"", refused=Refused(why))
    if record.kind != wire.METRICS or not fresh:
        return SpoolLine(record.n, record.kind, body)
    if task.trial_id is None:
        return SpoolLine(record.n, record.kind, body, refused=Refused("only trials report metrics"))
    try:
        report = from_spool(task.trial_id, task.run_id, record.at, body)
    except (InvalidInput, ValueError, OverflowError) as error:
        return SpoolLine(record.n, record.kind, body, refused=Refused(str(error)))
    return SpoolLine(record.n, record.kind, body, item=SpooledReport(report, key, record.n))


def _checked(line: SpoolLine) -> SpoolLine:
    if line.refused is not None or line.kind == wire.METRICS:
        return line
    try:
        values = _object(line.body)
        if line.kind == wire.PROGRESS and not 0.0 <= _number(values, "progress") <= 1.0:
            raise InvalidInput(f"progress is {values['progress']}, and must be between 0 and 1")
    except InvalidInput as error:
        return SpoolLine(line.n, line.kind, line.body, refused=Refused(str(error)))
    return line


async def _store_value(conn: Connection, task: TaskOf, line: SpoolLine) -> None:
    values = _object(line.body)
    if line.kind == wire.PROGRESS:
        await states.progress_reported(conn, task, _number(values, "progress"))
    else:
        await states.runner_state_reported(conn, task, str(values.get("state", "")).replace("\x00", ""))


async def _change_state(conn: Connection, task: TaskOf, line: SpoolLine) -> None:
    values = _object(line.body)
    if line.kind == wire.RUN_START:
        storage = values.get("checkpointStorage")
        hparams = values.get("hparams")
        if isinstance(hparams, dict):
            await states.hparams_declared(conn, task, hparams)
        await states.run_started(conn, task, storage if isinstance(storage, dict) else None)
    elif line.kind == wire.CHECKPOINT_STARTED:
        place = values.get("storage")
        if not isinstance(place, dict):
            raise InvalidInput("storage must say where the files are going to be")
        await states.upload_announced(conn, task, _text(values, "uuid"), place, _claim(values))
    elif line.kind == wire.CHECKPOINT_ABANDONED:
        await states.upload_abandoned(conn, task, _text(values, "uuid"))
    elif line.kind == wire.CHECKPOINT:
        await states.checkpoint_reported(conn, task, await _checkpoint(conn, task, values))
    elif line.kind == wire.CHECKPOINT_FILES:
        await states.checkpoint_trimmed(conn, task, _storage_id(values), _sizes(values))
    elif line.kind == wire.ACK_PREEMPTION:
        await states.preemption_acknowledged(conn, task)
    elif line.kind == wire.HANG:
        await states.hang_reported(conn, task, str(values.get("sentence", "")), values.get("ends") is True)
    else:
        await states.exited_early(conn, task, _text(values, "reason"))


async def _checkpoint(conn: Connection, task: TaskOf, values: JsonObject) -> checkpoints.CheckpointReport:
    storage = values.get("storage")
    metadata = values.get("metadata")
    return checkpoints.CheckpointReport(
        uuid=_storage_id(values),
        steps_completed=int(_number(values, "stepsCompleted")),
        resources=_sizes(values),
        metadata=metadata if isinstance(metadata, dict) else {},
        storage_id=await states.run_started(conn, task, storage) if isinstance(storage, dict) else None,
        state=str(values.get("state", "COMPLETED")).removeprefix("STATE_"),
        claim=_claim(values),
    )


def _object(body: bytes) -> JsonObject:
    try:
        values = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidInput(f"the body of a line is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise InvalidInput("the body of a line is an object")
    if is_deeper(values, _MAX_DEPTH):
        raise InvalidInput(f"the body of a line is nested more than {_MAX_DEPTH} levels deep")
    return values


def _number(values: JsonObject, name: str) -> float:
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInput(f"{name} is {value!r}, and must be a number")
    return value


def _text(values: JsonObject, name: str) -> str:
    value = values.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{name} is {value!r}, and must be a text")
    return value


def _claim(values: JsonObject) -> str:
    claim = values.get("claim", "")
    return claim if isinstance(claim, str) else ""


def _storage_id(values: JsonObject) -> str:
    """The id of a checkpoint, which is the name of its directory."""
    return checked_id(_text(values, "uuid"))


def _sizes(values: JsonObject) -> dict[str, int]:
    resources = values.get("resources")
    if not isinstance(resources, dict):
        raise InvalidInput("resources must be an object of paths and bytes")
    return {path: _bytes(path, size) for path, size in resources.items()}


def _bytes(path: str, size: Json) -> int:
    text = "" if isinstance(size, bool) or not isinstance(size, int | str) else str(size)
    if not text.isdecimal() or len(text) > _MAX_DIGITS:
        raise InvalidInput(f"the size of {path[:200]!r} is {text[:40] or size!r}, and must be a number of bytes")
    return int(text)
