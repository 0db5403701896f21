"""Amounts of memory and of disk, as configurations write them."""

from __future__ import annotations

import math
import re

from tenax.config.problems import Path, ProblemReport
from tenax.config.shapes import INT64, IntShape, Respelled
from tenax.jsonvalue import Json

_SIZE = re.compile(r"^(\d+(?:\.\d+)?) ?(?:b|([kmgtp])(?:i?b)?)?$", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


def _bytes(value: Json, at: Path, report: ProblemReport) -> Json:
    """``"1.5 gb"`` as 1610612736: units are powers of 1024."""
    if not isinstance(value, str):
        return value
    match = _SIZE.match(value.strip())
    if match is None:
        report.add(at, f"{value!r} is not a size: write bytes, or a number with a unit such as '512 mb' or '1.5 GiB'")
        return None
    size = float(match[1]) * 1024 ** _POWERS[(match[2] or "").lower()]
    return int(size) if math.isfinite(size) else INT64 + 1


SIZE = Respelled(IntShape(minimum=0, maximum=INT64), _bytes)
