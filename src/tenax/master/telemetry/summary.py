"""What the reports of a group come to, per metric: type, last value; of numbers count, sum, minimum, maximum, mean.

Rules:
- Types are number, string, boolean, date, object, array and null; a metric that was of two types is a string for good.
  "NaN", "Infinity" and "-Infinity" are numbers; a date is an RFC 3339 date and time, with or without an offset.
- A minimum or maximum over NaN is NaN, unless -Infinity (or Infinity) decides it.
- ``last`` is the value in the newest report of the group: null when that report does not have the metric.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from tenax.jsonvalue import SPECIAL, Json, JsonObject, to_json, to_number

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})?")


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """The summary of one metric of one group. The numbers mean something for type "number" only."""

    type: str
    last: Json
    count: int = 0
    total: float = 0.0
    low: float = math.inf
    high: float = -math.inf

    def document(self) -> JsonObject:
        """As the API gives it; special numbers are strings."""
        if self.type != "number":
            return {"type": self.type, "last": self.last}
        return {
            "type": "number",
            "count": self.count,
            "sum": to_json(self.total),
            "min": to_json(self.low),
            "max": to_json(self.high),
            "mean": to_json(self.total / self.count if self.count else math.nan),
            "last": self.last,
        }


Summaries = dict[str, MetricSummary]


def add(summaries: Summaries, reports: Sequence[Mapping[str, Json]]) -> Summaries:
    """With these reports counted; ``last`` is left as it is (see `with_last`)."""
    grown = dict(summaries)
    for names, rows in _of_like_names(reports):
        table = _as_numbers(rows)
        for place, name in enumerate(names):
            added = _any([row[name] for row in rows]) if table is None else _numbers(table[:, place])
            before = grown.get(name)
            grown[name] = added if before is None else _union(before, added)
    return grown


def with_last(summaries: Summaries, newest: Mapping[str, Json]) -> Summaries:
    """With ``newest`` as the newest report of the group."""
    return {name: replace(summary, last=newest.get(name)) for name, summary in summaries.items()}


def encode(summaries: Summaries) -> bytes:
    """As stored."""
    return msgspec.json.encode(
        {
            name: [s.type, s.last, s.count, to_json(s.total), to_json(s.low), to_json(s.high)]
            for name, s in summaries.items()
        }
    )


def decode(data: bytes) -> Summaries:
    """What `encode` wrote."""
    rows: dict[str, list[Json]] = msgspec.json.decode(data)
    return {name: _read(row) for name, row in rows.items()}


def type_of(value: Json) -> str:
    """The type of one value."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        if value in SPECIAL:
            return "number"
        return "date" if _DATE.fullmatch(value) else "string"
    if value is None:
        return "null"
    return "object" if isinstance(value, dict) else "array"


def _of_like_names(
    reports: Sequence[Mapping[str, Json]],
) -> Iterable[tuple[tuple[str, ...], list[Mapping[str, Json]]]]:
    """Reports with the same names in the same order, together: they make a table."""
    tables: dict[tuple[str, ...], list[Mapping[str, Json]]] = {}
    for report in reports:
        tables.setdefault(tuple(report), []).append(report)
    return tables.items()


def _as_numbers(rows: list[Mapping[str, Json]]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]] | None:
    """(reports, metrics) as float64; None when something in it is not a plain number."""
    for row in rows:
        for value in row.values():
            if type(value) is not float and type(value) is not int:
                return None
    try:
        return np.array([list(row.values()) for row in rows], dtype=np.float64)
    except OverflowError:
        return None


def _numbers(column: np.ndarray[tuple[int], np.dtype[np.float64]]) -> MetricSummary:
    with np.errstate(all="ignore"):
        return MetricSummary("number", None, len(column), float(column.sum()), float(column.min()), float(column.max()))


def _any(values: list[Json]) -> MetricSummary:
    summary = _of_value(values[0])
    for value in values[1:]:
        summary = _union(summary, _of_value(value))
    return summary


def _of_value(value: Json) -> MetricSummary:
    number = to_number(value)
    return MetricSummary(type_of(value), None) if number is None else MetricSummary("number", None, 1, *[number] * 3)


def _union(first: MetricSummary, second: MetricSummary) -> MetricSummary:
    if first.type != second.type:
        return MetricSummary("string", first.last)
    if first.type != "number":
        return first
    return MetricSummary(
        "number",
        first.last,
        first.count + second.count,
        first.total + second.total,
        _low(first.low, second.low),
        -_low(-first.high, -second.high),
    )


def _low(a: float, b: float) -> float:
    if -math.inf in (a, b):
        return -math.inf
    return math.nan if math.isnan(a) or math.isnan(b) else min(a, b)


def _read(row: list[Json]) -> MetricSummary:
    kind, last, count, *numbers = row
    total, low, high = (to_number(number) for number in numbers)
    assert isinstance(kind, str)
    assert isinstance(count, int)
    assert total is not None
    assert low is not None
    assert high is not None
    return MetricSummary(kind, last, count, total, low, high)
