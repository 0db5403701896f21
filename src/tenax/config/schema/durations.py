"""Lengths of time, as configurations write them."""

from __future__ import annotations

import re

from tenax.config.problems import Path, ProblemReport
from tenax.config.shapes import Number, Respelled
from tenax.jsonvalue import Json

_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_WHOLE = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:d|h|ms|m|s))+")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(d|h|ms|m|s)")


def duration(value: Json, at: Path, report: ProblemReport) -> Json:
    """``"1h30m"`` as 5400."""
    if not isinstance(value, str):
        return value
    if not _WHOLE.fullmatch(value):
        report.add(at, f"{value!r} is not a duration: write seconds, or hours, minutes and seconds as in '1h30m'")
        return None
    return sum(float(count) * _SECONDS[unit] for count, unit in _PART.findall(value))


#: Ten years: nobody means more.
MAX_TIME_LIMIT_S = 10 * 365 * 86400.0
#: ``resources.time_limit``, in seconds.
TIME_LIMIT = Respelled(Number(minimum=1, maximum=MAX_TIME_LIMIT_S), duration)
