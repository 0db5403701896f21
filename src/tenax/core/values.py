"""Metrics as users give them, to JSON text, or to what becomes it. Standard library only, Python 3.9.

Rules: a report of floats and ints is packed in a microsecond, and made to text by whoever sends it; another usual one
(numbers and strings) is encoded by C code in a few; whatever that does not take goes the slow way, where NaN and
infinities become the strings "NaN", "Infinity" and "-Infinity", numpy and torch values Python's, dates ISO 8601, paths
text; bytes are left out with a warning; anything else is a TypeError that names the metric.
"""

from __future__ import annotations

import sys
from struct import error as struct_error

from tenax.client.connection import fast_json
from tenax.wire.spool_records import text_of_values, values_packer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Dict, Optional, Union

    from tenax.jsonvalue import Json

    #: What may stand in a report; numpy and torch values too.
    Metrics = Mapping[str, object]

#: Nesting beyond this is a mistake (or a loop).
_DEPTH = 100
_LEFT_OUT = object()
#: What that was said of, once each.
_LEFT_OUT_NAMES: set[str] = set()


#: What packs values of a type.
_CODES = {float: "d", int: "q"}
#: Groups whose last kind of report is remembered.
_MAX_GROUPS = 64


class MetricsPacker:
    """Packs reports of floats and ints; what it knows of a group is its last report's names and types. Thread-safe."""

    def __init__(self) -> None:
        self._kinds: Dict[str, _Kind] = {}

    def pack(self, group: str, steps: object, metrics: Metrics) -> Optional[bytes]:
        """`VALUES` of `tenax.wire.spool_records`; None where `metrics_body` must say it, or what is wrong with it."""
        if steps.__class__ is not int or steps < 0 or metrics.__class__ is not dict:
            return None
        values = metrics.values()
        kind = self._kinds.get(group)
        if kind is None or kind.names != tuple(metrics) or kind.types != tuple(map(type, values)):
            kind = self._learn(group, tuple(metrics), tuple(map(type, values)))
        if kind.packer is None:
            return None
        try:
            return kind.packer(1, kind.count, kind.length, steps, kind.texts, *values)
        except struct_error:  # an int of more than 64 bits, more names than anybody has
            return None

    def _learn(self, group: str, names: tuple[str, ...], types: tuple[type, ...]) -> _Kind:
        if len(self._kinds) >= _MAX_GROUPS:
            self._kinds.clear()
        kind = self._kinds[group] = _Kind(group, names, types)
        return kind


class _Kind:
    """Reports of one group with the same names and types."""

    __slots__ = ("count", "length", "names", "packer", "texts", "types")

    def __init__(self, group: str, names: tuple[str, ...], types: tuple[type, ...]) -> None:
        self.names, self.types, self.count = names, types, len(names)
        #: None: they cannot be packed.
        self.packer: Optional[Callable[..., bytes]] = None
        if not names or not all(type(name) is str for name in (group, *names)) or not _CODES.keys() >= set(types):
            return
        texts = "\0".join(fast_json.dumps(name) for name in (group, *names)).encode("ascii")
        codes = "".join(_CODES[each] for each in types)
        self.length, self.texts = len(texts), texts + codes.encode("ascii")
        self.packer = values_packer(texts, codes)


def text_of(body: Union[str, bytes]) -> str:
    """The JSON of a report, packed or not."""
    return body if isinstance(body, str) else text_of_values(body)


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
