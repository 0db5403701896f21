"""Lengths of time, as configurations write them."""

from __future__ import annotations

from tenax.config.durations import parse_duration
from tenax.config.problems import Path, ProblemReport
from tenax.config.shapes import Number, Respelled
from tenax.jsonvalue import Json


def duration(value: Json, at: Path, report: ProblemReport) -> Json:
    """``"1h30m"`` as 5400."""
    if not isinstance(value, str):
        return value
    try:
        return parse_duration(value)
    except ValueError as error:
        report.add(at, f"{error}; a number alone is seconds")
        return None


#: Ten years: nobody means more.
MAX_TIME_LIMIT_S = 10 * 365 * 86400.0
#: ``resources.time_limit``, in seconds.
TIME_LIMIT = Respelled(Number(minimum=1, maximum=MAX_TIME_LIMIT_S), duration)
