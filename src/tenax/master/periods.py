"""Days and months of the accounts: from what a caller writes to moments, in UTC. Values in, values out."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone

from tenax.errors import InvalidInput
from tenax.master.store.usage import Period

#: A caller who asks for more has made a mistake.
MOST_PERIODS = 4000


def moment(text: str, field: str) -> datetime:
    """A time (RFC 3339) or the beginning of a day (``2026-11-21``). Raises InvalidInput, naming the field."""
    try:
        found = datetime.fromisoformat(text.strip())
        _check_year(found)
    except ValueError:
        raise InvalidInput(
            f"{field} is {text!r}: write a time such as 2026-11-21T08:00:00Z, or a day such as 2026-11-21"
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=timezone.utc)


def window(after: str, before: str) -> Period:
    """From ``timestamp_after`` until ``timestamp_before``. Raises InvalidInput."""
    begins, ends = moment(after, "timestamp_after"), moment(before, "timestamp_before")
    if ends <= begins:
        raise InvalidInput(f"timestamp_before is {before!r}, which is not later than timestamp_after ({after!r})")
    return Period(begins, ends)


def days(start: str, end: str) -> Period:
    """From the first moment of ``start_date`` to the last of ``end_date``; months are written ``2026-11``."""
    first, _ = _dates(start, "start_date")
    _, last = _dates(end, "end_date")
    if last < first:
        raise InvalidInput(f"end_date is {end!r}, which is before start_date ({start!r})")
    return Period(_midnight(first), _midnight(last) + timedelta(days=1))


def split(whole: Period, *, monthly: bool) -> list[Period]:
    """The days, or the months (the first and the last may be a part of one), of a time. Raises InvalidInput."""
    found: list[Period] = []
    begins = whole.begins
    while begins < whole.ends:
        ends = min(_next_month(begins) if monthly else begins + timedelta(days=1), whole.ends)
        found.append(Period(begins, ends))
        begins = ends
        if len(found) > MOST_PERIODS:
            raise InvalidInput(f"start_date and end_date are more than {MOST_PERIODS} periods apart: ask for less")
    return found


def name_of(period: Period, *, monthly: bool) -> str:
    """``2026-11-21``, or ``2026-11``."""
    return period.begins.strftime("%Y-%m" if monthly else "%Y-%m-%d")


def _dates(text: str, field: str) -> tuple[date, date]:
    """The first and the last day that a text names."""
    given = text.strip()
    try:
        first = date.fromisoformat(f"{given}-01" if len(given) == 7 else given)
        _check_year(first)
        return first, (_next_month(_midnight(first)) - timedelta(days=1)).date() if len(given) == 7 else first
    except ValueError:
        raise InvalidInput(f"{field} is {text!r}: write a day such as 2026-11-21, or a month such as 2026-11") from None


def _check_year(given: date) -> None:
    """Raises ValueError for what no clock of ours has shown, or will."""
    if not 1970 <= given.year <= 9000:
        raise ValueError


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=timezone.utc)


def _next_month(moment_in_it: datetime) -> datetime:
    first = moment_in_it.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return (first + timedelta(days=32)).replace(day=1)
