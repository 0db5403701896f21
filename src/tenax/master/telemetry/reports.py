"""A report of metrics as it arrives: checked, and in one form, before it joins a group; a bad one costs itself only.

Rules:
- A group has a name without "."; a report in a group other than the profiler's has a step (left out: 0).
- What stays with the trial is the newest of its reports, so that metrics (without those of batches) have at most
  `METRICS_BYTES`.
- A report has at most `MAX_NAMES` metrics, as has its group in all: each is summed up with every report.
- Refused: NUL and lone surrogates anywhere (they cannot be stored or shown), nesting deeper than `MAX_DEPTH`, more than
  `MAX_BYTES`, a metric without a name, an ``epoch`` that is not a finite number or null.
- NaN and infinities come as the strings "NaN", "Infinity", "-Infinity" and stay so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import msgspec

from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, is_deeper
from tenax.master.telemetry.cuts import NO_STEP, PROFILING
from tenax.wire.spool_names import MAX_LINE_BYTES

MAX_BYTES = MAX_LINE_BYTES
METRICS_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 32
MAX_NAMES, MAX_VALUES = 10_000, 1_000_000
_MAX_STEP = 2**62
#: The end of the year 9999, in seconds since 1970.
_MAX_SECONDS = 253_402_300_800
#: The first and last microsecond, since 1970, that can be shown: those of the years 1 to 9999.
MIN_US, MAX_US = -62_135_596_800 * 10**6, _MAX_SECONDS * 10**6 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
#: The key of an index has room for so much.
_NAME_BYTES = 1024
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
#: Names whose values place a report on an axis.
_EPOCHS = ("epoch", "epochs")


@dataclass(frozen=True, slots=True)
class MetricReport:
    """One report of one group at one step."""

    trial_id: int
    run_id: int
    group: str
    #: NO_STEP in groups of the profiler.
    step: int
    #: Microseconds since 1970, as the reporter gave it; None: when it is stored.
    at_us: int | None
    metrics: dict[str, Json]
    #: ``metrics`` as JSON text.
    text: bytes
    #: Batch metrics as JSON text; None for none.
    batch: bytes | None = None

    @property
    def size(self) -> int:
        """Bytes that it takes in a queue."""
        return len(self.text) + len(self.batch or b"") + 200


class _Spooled(msgspec.Struct):
    """``body`` of a spool record of kind "metrics"."""

    group: str
    metrics: msgspec.Raw
    stepsCompleted: int | None = None
    #: Not ``Raw | None``: the decoder takes nothing but null for that then.
    batchMetrics: msgspec.Raw = msgspec.Raw(b"null")
    reportTime: str | None = None


_SPOOLED = msgspec.json.Decoder(_Spooled)
_METRICS = msgspec.json.Decoder(dict[str, object])


def from_spool(trial_id: int, run_id: int, at: float, body: bytes) -> MetricReport:
    """The report in a record of a spool, written at ``at`` (seconds since 1970). Raises InvalidInput."""
    try:
        spooled = _SPOOLED.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidInput(f"this is not a report of metrics: {error}") from None
    text = bytes(spooled.metrics)
    batch: bytes | None = bytes(spooled.batchMetrics)
    at_us = _from_seconds(at) if spooled.reportTime is None else microseconds(spooled.reportTime)
    if batch in (b"null", b"[]"):
        batch = None
    _check_size(text, batch)
    metrics = _decoded(text)
    return _checked(trial_id, run_id, spooled.group, spooled.stepsCompleted, at_us, metrics, text, batch)


def from_values(
    trial_id: int, run_id: int, group: str, step: int | None, time: str | None, values: Mapping[str, Json]
) -> MetricReport:
    """The report in a request of Determined's route; ``values`` is ``metrics`` there. Raises InvalidInput."""
    metrics = values.get("avgMetrics", values.get("avg_metrics"))
    batch = values.get("batchMetrics", values.get("batch_metrics"))
    if metrics is None:
        metrics = {}
    if not isinstance(metrics, dict):
        raise InvalidInput("avgMetrics must be an object of names and values")
    if batch is not None and not isinstance(batch, list):
        raise InvalidInput("batchMetrics must be a list of objects")
    at_us = None if time is None else microseconds(time)
    encoded = msgspec.json.encode(batch) if batch else None
    return _checked(trial_id, run_id, group, step, at_us, metrics, msgspec.json.encode(metrics), encoded)


def microseconds(text: str) -> int:
    """An RFC 3339 time as microseconds since 1970 (UTC if it has no offset). Raises InvalidInput."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{text!r} is not a time like 2026-01-31T12:00:00Z") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    at_us = (moment - _EPOCH) // timedelta(microseconds=1)
    if not MIN_US <= at_us <= MAX_US:
        raise InvalidInput(f"{text!r} is not in the years 1 to 9999 of UTC")
    return at_us


def check_group(group: str) -> None:
    """Raises InvalidInput for a name that no group may have."""
    if not group.strip():
        raise InvalidInput("the group of a report of metrics has no name: give it one, such as 'training'")
    if "." in group:
        raise InvalidInput(f"the group {group!r} has a '.' in its name: a metric is named group.metric, leave it out")
    if len(group.encode()) > 200 or "\x00" in group:
        raise InvalidInput("the name of a group has at most 200 bytes, and no NUL")


def _from_seconds(at: float) -> int:
    if not 0 <= at < _MAX_SECONDS:
        raise InvalidInput(f"a report was made at {at}: that is no time in seconds since 1970")
    return int(at * 1e6)


def _decoded(text: bytes) -> dict[str, Json]:
    try:
        decoded = _METRICS.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidInput(f"the metrics are not an object of names and values: {error}") from None
    return decoded  # type: ignore[return-value]  # JSON decodes to JSON


def _checked(
    trial_id: int,
    run_id: int,
    group: str,
    step: int | None,
    at_us: int | None,
    metrics: dict[str, Json],
    text: bytes,
    batch: bytes | None,
) -> MetricReport:
    check_group(group)
    if group in PROFILING:
        step = NO_STEP if step is None else step
    elif step is None:
        step = 0
    if not NO_STEP <= step <= _MAX_STEP or (step == NO_STEP and group not in PROFILING):
        raise InvalidInput(f"steps_completed is {step}: it must be 0 or more")
    _check_size(text, batch)
    _check_text(text, metrics)
    if batch is not None:
        _check_batch(batch)
    if len(metrics) > MAX_NAMES:
        raise InvalidInput(f"a report has at most {MAX_NAMES} metrics, and this one has {len(metrics)}")
    for name in _EPOCHS:
        if name in metrics and not _is_epoch(metrics[name]):
            raise InvalidInput(f"the metric {name!r} must be a finite number or null, and is {metrics[name]!r}")
    for name in metrics:
        if not name or (len(name) > _NAME_BYTES // 4 and len(name.encode()) > _NAME_BYTES):
            raise InvalidInput(f"a metric has a name of 1 to {_NAME_BYTES} bytes, and {name[:60]!r} is not one")
    return MetricReport(trial_id, run_id, group, step, at_us, metrics, text, batch)


def _check_size(text: bytes, batch: bytes | None) -> None:
    if len(text) > METRICS_BYTES:
        raise InvalidInput(f"the metrics of a report have at most {METRICS_BYTES // 2**20} MiB, and these have more")
    if len(text) + len(batch or b"") > MAX_BYTES:
        raise InvalidInput(f"a report of metrics has at most {MAX_BYTES // 2**20} MiB, and this one has more")
    # To read them holds up every thread.
    if text.count(b",") + (batch or b"").count(b",") > MAX_VALUES:
        raise InvalidInput(f"a report of metrics has at most {MAX_VALUES} values, and this one has more")


def _check_batch(batch: bytes) -> None:
    try:
        rows = msgspec.json.decode(batch)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidInput(f"the batch metrics are not a list of objects: {error}") from None
    if not isinstance(rows, list):
        raise InvalidInput("the batch metrics are not a list of objects")
    _check_text(batch, rows)


def _check_text(text: bytes, value: Json) -> None:
    if b"\\u0000" in text and _NUL.search(text):
        raise InvalidInput("a report of metrics holds a NUL character, which cannot be stored: remove it")
    # More than one bracket: something is nested.
    if text.count(b"{") + text.count(b"[") > 1 and is_deeper(value, MAX_DEPTH):
        raise InvalidInput(f"a report of metrics is nested more than {MAX_DEPTH} levels deep")


def _is_epoch(value: Json) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
