"""A trace of recorded work as a file, for `tenax simulate`: JSON as the command saves it, or CSV, an attempt in a row.

A CSV names the fields of `AttemptRecord`; it says nothing of machines, nor of rules. Lines of one are counted from 1,
the names being the first.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from typing import Annotated, Any

from tenax.config.problems import ConfigError, Path, Problem, ProblemReport
from tenax.config.schema.constraints import CONSTRAINTS, ConstraintsConfig
from tenax.config.schema.resources import PRIORITY, WEIGHT
from tenax.config.schema.sizes import SIZE
from tenax.config.shapes import Flag, IntShape, ListOf, MapOf, Number, OneOf, Respelled, TextShape
from tenax.config.structs import Struct
from tenax.ids import AgentId, JobId, PoolName
from tenax.jsonvalue import Json, JsonObject, as_object
from tenax.scheduler.constraints import constraints_of
from tenax.scheduler.devices import DeviceKind, SlotDevice
from tenax.scheduler.registry import POLICIES, USUAL
from tenax.scheduler.simulation.trace import Trace, TraceAgent, TraceAttempt
from tenax.scheduler.snapshot import DEFAULT_PRIORITY, Fitting, PoolRules

#: More would be replayed for hours.
MAX_ATTEMPTS = 1_000_000
#: Of all machines together.
MAX_SLOTS = 1_000_000
_WHAT = "trace"


def _moment(value: Json, at: Path, report: ProblemReport) -> Json:
    """RFC 3339 in seconds since 1970, which a number is already."""
    if not isinstance(value, str):
        return value
    try:
        parsed = datetime.fromisoformat(value.strip())
    except ValueError:
        report.add(at, f"{value!r} is no time: write 2026-11-21T08:00:00Z, or seconds")
        return None
    return (parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=timezone.utc)).timestamp()


def _is_policy(value: Json, at: Path, report: ProblemReport) -> None:
    if value not in POLICIES:
        report.unknown_choice(at, str(value), list(POLICIES))


#: To the end of the year 9999.
_TIME = Respelled(Number(minimum=0, maximum=253402300799), _moment)
_SLOTS = IntShape(minimum=0, maximum=MAX_SLOTS)
#: A hundred years.
_SECONDS = {"maximum": 3.2e9}


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRecord:
    """The rules of a pool."""

    name: Annotated[str, TextShape(filled=True)]
    policy: Annotated[str, TextShape(rule=_is_policy)] = USUAL
    preemption: Annotated[bool, Flag()] = False
    fitting: Annotated[Fitting, OneOf(Fitting)] = Fitting.BEST
    reservation: Annotated[bool, Flag()] = False
    uneven_gangs: Annotated[bool, Flag()] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRecord:
    """So many slots of one make."""

    name: Annotated[str, TextShape()] = ""
    memory: Annotated[int | None, SIZE] = None
    slots: Annotated[int, _SLOTS]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRecord:
    """A machine and its slots."""

    id: Annotated[str, TextShape(filled=True)]
    pool: Annotated[str, TextShape(filled=True)] = "default"
    slots: Annotated[int, _SLOTS]
    kind: Annotated[DeviceKind, OneOf(DeviceKind)] = DeviceKind.CPU
    labels: Annotated[Mapping[str, str], MapOf(TextShape())] = field(default_factory=dict)
    #: What its slots are, as far as constraints ask for it.
    devices: Annotated[tuple[DeviceRecord, ...], ListOf(Struct(DeviceRecord))] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """What an attempt asked for, and when it had it: from ``started_at`` to ``ended_at``, or for ``seconds``."""

    slots: Annotated[int, _SLOTS]
    requested_at: Annotated[float, _TIME]
    started_at: Annotated[float | None, _TIME] = None
    ended_at: Annotated[float | None, _TIME] = None
    seconds: Annotated[float | None, Number(minimum=0, **_SECONDS)] = None
    #: None: one of its own.
    task: Annotated[str | None, TextShape(filled=True)] = None
    #: None: its task is all of it.
    job: Annotated[str | None, TextShape(filled=True)] = None
    user: Annotated[str, TextShape()] = ""
    workspace: Annotated[str, TextShape()] = ""
    pool: Annotated[str, TextShape(filled=True)] = "default"
    priority: Annotated[int, PRIORITY] = DEFAULT_PRIORITY
    weight: Annotated[float, WEIGHT] = 1.0
    max_slots: Annotated[int | None, _SLOTS] = None
    single_node: Annotated[bool, Flag()] = False
    preemptible: Annotated[bool, Flag()] = True
    time_limit_s: Annotated[float | None, Number(above=0, **_SECONDS)] = None
    constraints: Annotated[ConstraintsConfig | None, CONSTRAINTS] = None


def _has_a_length(value: Json, at: Path, report: ProblemReport) -> None:
    given = as_object(value)
    begins, ends = given.get("started_at"), given.get("ended_at")
    if (begins is None) != (ends is None) or (begins is None) == (given.get("seconds") is None):
        report.add(at, "says not for how long: give started_at and ended_at, or seconds")
    elif isinstance(begins, (int, float)) and isinstance(ends, (int, float)):
        asked_for = given.get("requested_at")
        if ends < begins or (isinstance(asked_for, (int, float)) and begins < asked_for):
            report.add(at, "goes backwards: requested_at comes first, then started_at, then ended_at")


_ATTEMPT = Struct(AttemptRecord, rule=_has_a_length)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFile:
    """All that a replay needs."""

    attempts: Annotated[tuple[AttemptRecord, ...], ListOf(_ATTEMPT)]
    agents: Annotated[tuple[AgentRecord, ...], ListOf(Struct(AgentRecord))] = ()
    pools: Annotated[tuple[PoolRecord, ...], ListOf(Struct(PoolRecord))] = ()
    #: The members of each group.
    groups: Annotated[Mapping[str, tuple[str, ...]], MapOf(ListOf(TextShape()))] = field(default_factory=dict)
    #: The quota file that held; empty: none.
    quotas: Annotated[str, TextShape()] = ""


_FILE = Struct(TraceFile)


def parse_trace(text: str) -> TraceFile:
    """JSON, or CSV where it begins otherwise. Raises `ConfigError` with what is wrong."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            return trace_file(json.loads(text))
        except ValueError as error:
            raise _refusal(f"is no JSON: {error}") from None
        except RecursionError:
            raise _refusal("is no trace: it is nested too deeply") from None
    document, lines = _of_rows(text)
    return trace_file(document, lines)


def trace_file(document: Json, lines: Mapping[Path, int] = {}) -> TraceFile:
    """A document, checked. Raises `ConfigError` with every problem found."""
    report = ProblemReport(lines=lines)
    checked = _FILE.check(document, (), report)
    report.raise_if_any(what=_WHAT)
    filled = as_object(_FILE.fill(checked))
    _FILE.finish(filled, (), report)
    report.raise_if_any(what=_WHAT)
    file = _FILE.build(filled)
    if len(file.attempts) > MAX_ATTEMPTS:
        raise _refusal(f"has {len(file.attempts)} attempts: at most {MAX_ATTEMPTS} are replayed")
    if sum(agent.slots for agent in file.agents) > MAX_SLOTS:
        raise _refusal(f"has more than {MAX_SLOTS} slots")
    ids = [agent.id for agent in file.agents]
    if len(set(ids)) < len(ids):
        twice = next(each for each in ids if ids.count(each) > 1)
        raise _refusal(f"has two agents {twice!r}: each has an id of its own")
    return file


def trace_of(file: TraceFile) -> Trace:
    """Its values, as the replay takes them; a pool without rules has the usual ones."""
    pools = {each.pool for each in file.agents} | {each.pool for each in file.attempts}
    rules = {PoolName(name): PoolRules() for name in pools}
    for pool in file.pools:
        rules[PoolName(pool.name)] = PoolRules(
            pool.policy, pool.preemption, pool.fitting, pool.uneven_gangs, pool.reservation
        )
    groups: dict[str, list[str]] = {}
    for group, members in file.groups.items():
        for member in members:
            groups.setdefault(member, []).append(group)
    attempts = [_attempt(number, record) for number, record in enumerate(file.attempts)]
    return Trace(
        rules,
        tuple(map(_agent, file.agents)),
        tuple(sorted(attempts, key=lambda attempt: attempt.requested_at)),
        {user: tuple(names) for user, names in groups.items()},
    )


def _agent(record: AgentRecord) -> TraceAgent:
    devices: list[SlotDevice] = []
    for device in record.devices:
        # No more than it has slots, whatever is written.
        devices += [SlotDevice(device.name, device.memory)] * min(device.slots, record.slots - len(devices))
    return TraceAgent(
        AgentId(record.id), PoolName(record.pool), record.slots, record.kind, record.labels, tuple(devices)
    )


def _attempt(number: int, record: AttemptRecord) -> TraceAttempt:
    started_at = record.requested_at if record.started_at is None else record.started_at
    ended_at = started_at + (record.seconds or 0.0) if record.ended_at is None else record.ended_at
    task = record.task or f"row {number + 1}"
    return TraceAttempt(
        task,
        JobId(record.job or task),
        record.user,
        record.workspace,
        PoolName(record.pool),
        record.slots,
        record.requested_at,
        started_at,
        ended_at,
        record.priority,
        record.weight,
        record.max_slots,
        record.single_node,
        record.preemptible,
        record.time_limit_s,
        None if record.constraints is None else constraints_of(asdict(record.constraints)),
    )


def _of_rows(text: str) -> tuple[Json, Mapping[Path, int]]:
    """The document of a CSV, and the line of each row."""
    rows = csv.reader(io.StringIO(text.lstrip("\ufeff")))
    try:
        return _of_csv(rows)
    except csv.Error as error:
        raise _refusal(f"is no CSV: line {rows.line_num}: {error}") from None


def _of_csv(rows: Any) -> tuple[Json, Mapping[Path, int]]:
    names = [name.strip() for name in next(rows, [])]
    if "slots" not in names or "requested_at" not in names:
        raise _refusal(
            "begins with no names of columns: the first line of a CSV names slots, requested_at, and seconds or "
            "started_at and ended_at, and may name others"
        )
    attempts: list[Json] = []
    lines: dict[Path, int] = {}
    for row in rows:
        if not any(cell.strip() for cell in row):
            continue
        if len(row) > len(names):
            raise _refusal(f"has more cells than names: line {rows.line_num}")
        lines["attempts", len(attempts)] = rows.line_num
        record: JsonObject = {name: _cell(name, cell.strip()) for name, cell in zip(names, row) if cell.strip()}
        attempts.append(record)
    return {"attempts": attempts}, lines


def _cell(name: str, text: str) -> Json:
    """A name is text, whatever it looks like; what else is not a number or a truth is refused where it is checked."""
    if name in ("task", "job", "user", "workspace", "pool"):
        return text
    if name == "constraints":
        try:
            return json.loads(text)  # type: ignore[no-any-return]
        except ValueError:
            return text
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def _refusal(message: str) -> ConfigError:
    return ConfigError([Problem("", None, message)], what=_WHAT)
