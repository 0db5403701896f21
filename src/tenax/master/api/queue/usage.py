"""What slots were used for: each attempt, or slot seconds by day and month; as JSON and as CSV.

The periods of the accounts come last: pure functions from what a caller writes to moments in UTC.
"""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Annotated

from fastapi import Query
from fastapi.responses import StreamingResponse

from tenax.errors import InvalidInput
from tenax.master.access.authorization import Allow
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.queue import messages
from tenax.master.context import Master
from tenax.master.store.queue import usage
from tenax.master.store.queue.usage import Period, SlotSeconds, SlotUse
from tenax.wire.message import rfc3339

routes = Routes("Usage")

#: A caller who asks for more has made a mistake.
MAX_PERIODS = 4000
#: An answer in one piece that would hold more is refused: the CSV is a stream.
_MAX_ENTRIES = 200_000

Text = Annotated[str, Query()]
PeriodParameter = Annotated[messages.AggregationPeriod, Query()]
ByParameter = Annotated[messages.UsageBy | None, Query()]

_RAW = (
    "experiment_id", "kind", "username", "user_id", "labels", "slots", "start_time", "end_time", "seconds",
    "allocation_id", "resource_pool", "agents", "workspace_name",
)  # fmt: skip
_ALLOCATIONS = (
    "allocation_id", "task_id", "task_type", "username", "workspace_name", "experiment_id", "resource_pool", "agents",
    "slots", "queued_time", "start_time", "end_time", "seconds", "slot_hours",
)  # fmt: skip
_AGGREGATED = ("aggregation_type", "aggregation_key", "date", "seconds")


@routes.get("/api/v1/resources/allocation/raw", "ResourceAllocationRaw", allow=Allow.USER)
async def get_raw(master: MasterDep, timestamp_after: Text, timestamp_before: Text) -> messages.RawResponse:
    """Every attempt that held slots in a time."""
    entries: list[messages.RawEntry] = []
    async for part in usage.raw(master.db, window(timestamp_after, timestamp_before)):
        entries += [_entry(attempt) for attempt in part]
        if len(entries) > _MAX_ENTRIES:
            raise InvalidInput(
                f"there are more than {_MAX_ENTRIES} attempts in this time: ask for a shorter one, or for the CSV "
                "(GET /resources/allocation/raw), which comes as a stream"
            )
    return messages.RawResponse(resource_entries=entries)


@routes.get("/api/v1/resources/allocation/aggregated", "ResourceAllocationAggregated", allow=Allow.USER)
async def get_aggregated(
    master: MasterDep,
    start_date: Text,
    end_date: Text,
    period: PeriodParameter = messages.AggregationPeriod.DAILY,
    by: ByParameter = None,
) -> messages.AggregatedResponse:
    """Slot seconds of each day, or month, from one date to another: by users, labels, pools, agents and experiments.

    ``by``: by this alone, which may be something else as well, and with what was waited for it.
    """
    if by is not None:
        return await _by(master, (start_date, end_date), period, by)
    monthly, parts, shares = await _aggregate(master, start_date, end_date, period)
    kind = messages.AggregationPeriod.MONTHLY if monthly else messages.AggregationPeriod.DAILY
    entries = {
        part.begins: messages.AggregatedEntry(period_start=name_of(part, monthly=monthly), period=kind, seconds=0.0)
        for part in parts
    }
    for share in shares:
        entry = entries[share.begins]
        if share.by == "total":
            entry.seconds = float(share.seconds)
        else:
            getattr(entry, f"by_{share.by}")[share.key] = float(share.seconds)
    return messages.AggregatedResponse(resource_entries=list(entries.values()))


#: Where the sums of each stand.
_BY = {
    messages.UsageBy.USER: "by_username",
    messages.UsageBy.LABEL: "by_experiment_label",
    messages.UsageBy.POOL: "by_resource_pool",
}


async def _by(
    master: Master, dates: tuple[str, str], period: messages.AggregationPeriod, by: messages.UsageBy
) -> messages.AggregatedResponse:
    monthly = period is messages.AggregationPeriod.MONTHLY
    kind = messages.AggregationPeriod.MONTHLY if monthly else messages.AggregationPeriod.DAILY
    whole = days(*dates)
    parts = split(whole, monthly=monthly)
    async with master.db.snapshot() as conn:
        shares = await usage.aggregated_by(conn, whole, parts, by.value)
    entries = []
    for part, share in zip(parts, shares, strict=True):
        entry = messages.AggregatedEntry(
            period_start=name_of(part, monthly=monthly),
            period=kind,
            seconds=float(share.used.pop(None, 0)),
            waited_seconds=float(share.waited.pop(None, 0)),
            waited=_named(share.waited, by),
        )
        setattr(entry, _BY.get(by, f"by_{by.value}"), _named(share.used, by))
        entries.append(entry)
    return messages.AggregatedResponse(resource_entries=entries)


def _named(seconds: Mapping[str | None, Decimal], by: messages.UsageBy) -> dict[str, float]:
    """By name; types have those that `get_raw` gives them."""
    names = {name or "": float(sum_of_it) for name, sum_of_it in seconds.items()}
    return {_kind(name): used for name, used in names.items()} if by is messages.UsageBy.TYPE else names


@routes.stream("/resources/allocation/raw", "ResourceAllocationRawCsv", allow=Allow.USER)
async def raw_csv(master: MasterDep, timestamp_after: Text, timestamp_before: Text) -> StreamingResponse:
    """`get_raw` as CSV."""
    return _stream(_RAW, _pages(master, window(timestamp_after, timestamp_before), _raw_row))


@routes.stream("/resources/allocation/allocations-csv", "ResourceAllocationsCsv", allow=Allow.USER)
async def allocations_csv(master: MasterDep, timestamp_after: Text, timestamp_before: Text) -> StreamingResponse:
    """The attempts of a time with how long they waited and where they ran, as CSV."""
    return _stream(_ALLOCATIONS, _pages(master, window(timestamp_after, timestamp_before), _allocation_row))


@routes.stream("/resources/allocation/aggregated", "ResourceAllocationAggregatedCsv", allow=Allow.USER)
async def aggregated_csv(
    master: MasterDep, start_date: Text, end_date: Text, period: PeriodParameter = messages.AggregationPeriod.DAILY
) -> StreamingResponse:
    """`get_aggregated` as CSV: a row for each period and each user, label, pool, agent and experiment."""
    monthly, parts, shares = await _aggregate(master, start_date, end_date, period)
    names = {part.begins: name_of(part, monthly=monthly) for part in parts}

    async def pages() -> AsyncIterator[list[Sequence[object]]]:
        yield [(share.by, share.key or "total", names[share.begins], f"{share.seconds:f}") for share in shares]

    return _stream(_AGGREGATED, pages())


async def _aggregate(
    master: Master, start: str, end: str, period: messages.AggregationPeriod
) -> tuple[bool, list[Period], list[SlotSeconds]]:
    monthly = period is messages.AggregationPeriod.MONTHLY
    whole = days(start, end)
    parts = split(whole, monthly=monthly)
    async with master.db.snapshot() as conn:
        return monthly, parts, await usage.aggregated(conn, whole, parts)


async def _pages(
    master: Master, window: Period, row: Callable[[SlotUse], Sequence[object]]
) -> AsyncIterator[list[Sequence[object]]]:
    async for part in usage.raw(master.db, window):
        yield [row(attempt) for attempt in part]


def _stream(columns: Sequence[str], pages: AsyncIterator[list[Sequence[object]]]) -> StreamingResponse:
    async def parts() -> AsyncIterator[bytes]:
        yield _lines([columns])
        async for page in pages:
            yield _lines(page)

    return StreamingResponse(parts(), media_type="text/csv; charset=utf-8")


def _lines(rows: Iterable[Sequence[object]]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue().encode()


def _kind(kind: str) -> str:
    return "experiment" if kind == "TRIAL" else kind.lower()


def _entry(attempt: SlotUse) -> messages.RawEntry:
    return messages.RawEntry(
        kind=_kind(attempt.kind),
        start_time=attempt.started_at,
        end_time=attempt.ended_at,
        experiment_id=attempt.experiment_id,
        username=attempt.username,
        user_id=attempt.user_id,
        labels=attempt.labels,
        seconds=attempt.seconds,
        slots=attempt.slots,
        allocation_id=attempt.allocation_id,
        resource_pool=attempt.pool,
        agents=attempt.agents.split(),
        workspace_name=attempt.workspace_name,
    )


def _raw_row(attempt: SlotUse) -> Sequence[object]:
    return (
        _or_blank(attempt.experiment_id), _kind(attempt.kind), attempt.username, attempt.user_id,
        ",".join(attempt.labels), attempt.slots, _time(attempt.started_at), _time(attempt.ended_at), attempt.seconds,
        attempt.allocation_id, attempt.pool, attempt.agents, attempt.workspace_name,
    )  # fmt: skip


def _allocation_row(attempt: SlotUse) -> Sequence[object]:
    waited = (attempt.started_at - attempt.requested_at).total_seconds()
    return (
        attempt.allocation_id, attempt.task_id, attempt.kind, attempt.username, attempt.workspace_name,
        _or_blank(attempt.experiment_id), attempt.pool, attempt.agents, attempt.slots, max(0.0, waited),
        _time(attempt.started_at), _time(attempt.ended_at), attempt.seconds, attempt.seconds * attempt.slots / 3600,
    )  # fmt: skip


def _or_blank(value: object) -> object:
    return "" if value is None else value


def _time(moment: datetime | None) -> str:
    return rfc3339(moment) or ""


# Periods of the accounts: values in, values out.


def moment(text: str, field: str) -> datetime:
    """A time (RFC 3339) or the beginning of a day (``2026-11-21``). Raises InvalidInput, naming the field."""
    try:
        parsed = datetime.fromisoformat(text.strip())
        _check_year(parsed)
    except ValueError:
        raise InvalidInput(
            f"{field} is {text!r}: write a time such as 2026-11-21T08:00:00Z, or a day such as 2026-11-21"
        ) from None
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=timezone.utc)


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
    periods: list[Period] = []
    begins = whole.begins
    while begins < whole.ends:
        ends = min(_next_month(begins) if monthly else begins + timedelta(days=1), whole.ends)
        periods.append(Period(begins, ends))
        begins = ends
        if len(periods) > MAX_PERIODS:
            raise InvalidInput(f"start_date and end_date are more than {MAX_PERIODS} periods apart: ask for less")
    return periods


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
