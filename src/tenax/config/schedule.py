"""Schedules as people write them: every so often (a duration, `durations`), or a cron line. Pure.

A cron line has five fields (minute, hour, day of the month, month, day of the week from 0, Sunday, to 7, Sunday), each
``*``, a number, a range, a list, with ``/step``; names such as @daily are known. Where both kinds of day are given,
either is enough. In UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Union

from tenax.config.durations import parse_duration

_NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day of the month", 1, 31), ("month", 1, 12), ("day of the week", 0, 7))
#: A time that never comes (the 30th of February) is given up after so many years.
_YEARS = 9
_MAX_PERIOD_S = 3650 * 86400.0


@dataclass(frozen=True, slots=True)
class Every:
    """Again after so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Cron:
    """At these minutes, in UTC."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    #: Both kinds of day are given: either is enough.
    either_day: bool


Schedule = Union[Every, Cron]


def parse_schedule(text: str) -> Schedule:
    """From what a person wrote. Raises ValueError, with a sentence for people."""
    given = _NICKNAMES.get(text.strip(), text.strip())
    fields = given.split()
    if len(fields) == 5:
        sets = [_field(part, *bounds) for part, bounds in zip(fields, _FIELDS)]
        weekdays = frozenset(day % 7 for day in sets[4])
        return Cron(sets[0], sets[1], sets[2], sets[3], weekdays, not (fields[2] == "*" or fields[4] == "*"))
    if len(fields) != 1:
        raise ValueError(f"{text!r} is no schedule: write a duration such as 24h, or the five fields of a cron line")
    seconds = parse_duration(given)
    if not 1.0 <= seconds <= _MAX_PERIOD_S:
        raise ValueError(f"{text!r} is not from a second to ten years")
    return Every(seconds)


def next_after(schedule: Schedule, moment: datetime) -> datetime | None:
    """The first time after ``moment``; None for one that never comes."""
    if isinstance(schedule, Every):
        return moment + timedelta(seconds=schedule.seconds)
    candidate = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
    while candidate.year <= moment.year + _YEARS:
        if candidate.month not in schedule.months or not _is_day(schedule, candidate):
            candidate = candidate.replace(hour=0, minute=0) + timedelta(days=1)
        elif candidate.hour not in schedule.hours:
            candidate = candidate.replace(minute=0) + timedelta(hours=1)
        elif candidate.minute not in schedule.minutes:
            candidate += timedelta(minutes=1)
        else:
            return candidate
    return None


def _is_day(schedule: Cron, moment: datetime) -> bool:
    of_month, of_week = moment.day in schedule.days, moment.isoweekday() % 7 in schedule.weekdays
    return of_month or of_week if schedule.either_day else of_month and of_week


def _field(text: str, what: str, low: int, high: int) -> frozenset[int]:
    values: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, dash, last = span.partition("-")
        if span == "*":
            first, last = str(low), str(high)
        elif not dash:
            last = str(high) if step else first
        numbers = (first, last, step or "1")
        if not all(number.isdecimal() and number.isascii() for number in numbers):
            raise ValueError(f"{part!r} is no {what}: write *, a number, a range such as 1-5, or */2")
        begin, end, stride = (int(number) for number in numbers)
        if not low <= begin <= end <= high or stride < 1:
            raise ValueError(f"{part!r} is no {what}: it goes from {low} to {high}")
        values.update(range(begin, end + 1, stride))
    return frozenset(values)
