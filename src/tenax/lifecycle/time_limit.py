"""``resources.time_limit``: how long an attempt may hold what it was given.

Rules:
- It is counted from when the attempt got its slots, and each attempt has all of it. One that was lowered counts at
  once, one that was raised from the next attempt on: those who were let pass for it must keep to it.
- Before its end the attempt is asked to save and leave; at its end it is ended. So what was given comes free by then.
- Who saved goes on in a new attempt, when its turn comes: behind those who waited meanwhile. Who saved nothing would
  come no further the next time, and ends.
"""

from __future__ import annotations

#: A tenth of the limit is for saving, within these seconds, and never more than half of it.
_SAVING_S = (30.0, 600.0)

#: Why what was ended over time is not tried again.
NOT_BEGUN = "its time limit was over before it had begun"


def nothing_saved(again: str) -> str:
    """The same of what had begun. ``again``: the command that gives it another try."""
    return (
        "its time limit was over before it had saved anything, so the next run would come no further: save more often, "
        f"or raise resources.time_limit ({again} --config resources.time_limit=8h)"
    )


def asked_after_s(limit_s: float) -> float:
    """Seconds after which an attempt is asked to save and leave."""
    return limit_s - _saving_s(limit_s)


def within_s(limit_s: float, held_s: float) -> float:
    """Seconds that an attempt has for it from then on: until its limit, but never less than what is for saving, when a
    limit was lowered, or nobody was there to ask it in time."""
    return max(limit_s - held_s, _saving_s(limit_s))


def _saving_s(limit_s: float) -> float:
    least, most = _SAVING_S
    return min(limit_s / 2, max(least, min(most, limit_s / 10)))


def leave_reason(limit_s: float) -> str:
    """Why an attempt is asked to leave."""
    return f"its time limit of {span(limit_s)} is almost over"


def span(seconds: float) -> str:
    """A length of time as configurations write it: ``"1d2h"``, ``"90s"``."""
    if seconds < 120 or seconds % 1:
        return f"{seconds:g}s"
    parts, left = [], int(seconds)
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        if left >= size:
            parts.append(f"{left // size}{unit}")
            left %= size
    return "".join(parts)
