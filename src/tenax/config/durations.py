"""Lengths of time as people write them: ``90m``, ``1h30m``, ``7d``. Pure; the one place that knows their units.

A duration is a number and a unit, several in a row: ns, us, ms, s, m, h (as Go writes them), d and w.
"""

from __future__ import annotations

import re

#: Seconds of each unit.
_UNITS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 7 * 86400.0,
}
_PART = re.compile(r"([0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(ns|us|µs|μs|ms|s|m|h|d|w)")


def parse_duration(text: str) -> float:
    """Seconds, finite. Raises ValueError, with a sentence for people."""
    given = text.strip()
    parts = _PART.findall(given)
    if not parts or "".join(number + unit for number, unit in parts) != given:
        raise ValueError(f"{text[:80]!r} is no duration: write a number and a unit, such as 90m, 24h, 7d or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
