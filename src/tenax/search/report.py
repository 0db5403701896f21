"""What a search reads from a validation report, and what it refuses.

Rules:
- Where validations decide (asynchronous halving), a report without the searcher's metric or time metric is refused with
  what was expected and what came. Elsewhere such a report is simply not the searcher's.
- NaN and infinities are numbers here, also as the strings that carry them through JSON; only the time must be finite.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tenax.errors import InvalidInput
from tenax.jsonvalue import SPECIAL, Json
from tenax.search.config import SearchConfig


@dataclass(frozen=True, slots=True)
class Reading:
    """The searcher's part of a validation report."""

    #: As reported; may be NaN or infinite.
    metric: float
    #: 0 under methods without a time metric.
    time: float


class ReportRefused(InvalidInput):
    """A validation report lacks what the search decides by."""


def read_report(config: SearchConfig, metrics: Mapping[str, Json]) -> Reading | None:
    """The searcher's metric and time of a validation report, all of whose merged metrics are given.

    None where the method can do without and the metric is not there. Raises ReportRefused, with a message for the
    author of the script, where it cannot.
    """
    metric = _number(metrics.get(config.metric))
    if not config.method.needs_validations:
        return None if metric is None else Reading(metric, 0.0)
    if metric is None:
        raise ReportRefused(_refusal("searcher metric", config.metric, metrics, "searcher.metric"))
    unit = config.method.unit()
    if unit is None:
        return Reading(metric, 0.0)
    time = _number(metrics.get(unit))
    if time is None or not math.isfinite(time):
        raise ReportRefused(_refusal("searcher time metric", unit, metrics, "searcher.time_metric"))
    return Reading(metric, time)


def _number(value: Json) -> float | None:
    if isinstance(value, str):
        return SPECIAL.get(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    return None


def _refusal(what: str, name: str, metrics: Mapping[str, Json], key: str) -> str:
    if name in metrics:
        found = f"what it holds there is {type(metrics[name]).__name__} {str(metrics[name])[:80]!r}"
    elif metrics:
        found = f"what it holds is {', '.join(sorted(metrics)[:20])}"
    else:
        found = "it is empty"
    return (
        f"error parsing {what}: the search needs a number named {name!r} in every validation report; {found}. "
        f"Report {name!r} with each validation, or set {key} to a name that is reported."
    )
