"""Metrics as users give them, to JSON text. Standard library only, Python 3.9.

Rules: the usual report (numbers and strings) is encoded by C code in a few microseconds; whatever it does not take goes
the slow way, where NaN and infinities become the strings "NaN", "Infinity" and "-Infinity", numpy and torch values
Python's, dates ISO 8601, paths text; bytes are left out with a warning; anything else is a TypeError that names the
metric.
"""

from __future__ import annotations

import sys

from tenax.client.connection import fast_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Optional

    from tenax.jsonvalue import Json

    #: What may stand in a report; numpy and torch values too.
    Metrics = Mapping[str, object]

#: Nesting beyond this is a mistake (or a loop).
_DEPTH = 100
_LEFT_OUT = object()
#: What that was said of, once each.
_LEFT_OUT_NAMES: set[str] = set()


def metrics_body(
    group: str, steps_completed: object, metrics: Metrics, batch_metrics: Optional[Sequence[Metrics]] = None
) -> str:
    """The body of a ``metrics`` record. Raises TypeError or ValueError with the metric's name."""
    steps = steps_completed if steps_completed.__class__ is int and steps_completed >= 0 else _steps(steps_completed)
    try:
        "".join(metrics)  # one C loop that fails at a name which is no string
        encoded = fast_json.dumps(metrics)
    except (TypeError, ValueError, RecursionError, AttributeError):
        encoded = _encode_slowly(metrics, "metrics")
    batches = "null" if batch_metrics is None else _batches(batch_metrics)
    return (
        f'{{"group":{fast_json.dumps(group)},"stepsCompleted":{steps},"metrics":{encoded},'
        f'"batchMetrics":{batches},"reportTime":null}}'
    )


def plain(value: object, name: str = "value") -> Json:
    """A value as JSON has it. Raises TypeError naming ``name``; bytes become None."""
    result = _plain(value, name, 0)
    return None if result is _LEFT_OUT else result  # type: ignore[return-value]


def require_finished(metrics: Metrics) -> None:
    """A validation has a value for each metric. Raises ValueError."""
    for name, value in metrics.items():
        if value is None:
            raise ValueError(f"the validation metric {name!r} is None: report a number, or leave it out")


def _steps(steps: object) -> int:
    index = getattr(steps, "__index__", None)
    if index is None:
        raise TypeError(f"steps_completed must be a whole number, not {type(steps).__name__} ({steps!r})")
    whole: int = index()
    if whole < 0:
        raise ValueError(f"steps_completed is {whole}: it must be 0 or more")
    return whole


def _batches(batch_metrics: Sequence[Metrics]) -> str:
    try:
        return fast_json.dumps(batch_metrics)
    except (TypeError, ValueError, RecursionError):
        return fast_json.dumps([plain(batch, f"batch_metrics[{i}]") for i, batch in enumerate(batch_metrics)])


def _encode_slowly(metrics: Metrics, name: str) -> str:
    if not hasattr(metrics, "items"):
        raise TypeError(f"metrics must be a dict of names and values, not {type(metrics).__name__}")
    return fast_json.dumps(plain(metrics, name))


def _plain(value: object, name: str, depth: int) -> object:
    if depth > _DEPTH:
        raise ValueError(f"{name} is nested more than {_DEPTH} deep")
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value) if value - value == 0 else _special(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        if name not in _LEFT_OUT_NAMES:
            _LEFT_OUT_NAMES.add(name)
            sys.stderr.write(f"tenax: warning: {name} holds bytes, which cannot be reported; it is left out\n")
        return _LEFT_OUT
    if hasattr(value, "items"):
        return _plain_map(value, name, depth)
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [_plain(item, f"{name}[{i}]", depth + 1) for i, item in enumerate(value)]
        return [item for item in items if item is not _LEFT_OUT]
    for method in ("tolist", "isoformat", "__fspath__"):
        convert = getattr(value, method, None)
        if convert is not None:
            return _plain(convert(), name, depth + 1)
    raise TypeError(
        f"{name} is a {type(value).__name__}, which cannot be reported: give a number, a string, a list or a dict"
    )


def _plain_map(value: object, name: str, depth: int) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, item in value.items():  # type: ignore[attr-defined]
        if not isinstance(key, str):
            raise TypeError(f"{name} has the name {key!r}, a {type(key).__name__}: names are strings")
        converted = _plain(item, key if depth == 0 else f"{name}.{key}", depth + 1)
        if converted is not _LEFT_OUT:
            result[key] = converted
    return result


def _special(value: float) -> str:
    if value != value:
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
