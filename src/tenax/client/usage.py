"""What slots were used for."""

from __future__ import annotations

from typing import Iterator, List

from tenax.client import reading
from tenax.client.session import Session
from tenax.jsonvalue import JsonObject

_MONTHLY = "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_MONTHLY"
_DAILY = "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY"


def aggregated(session: Session, start: str, end: str, *, monthly: bool = False) -> List[JsonObject]:
    """Slot seconds of each day or month from ``start`` to ``end`` (``2026-11-21``, ``2026-11``), both included."""
    query = {"startDate": start, "endDate": end, "period": _MONTHLY if monthly else _DAILY}
    return reading.records(session.get("/api/v1/resources/allocation/aggregated", query), "resourceEntries")


def aggregated_csv(session: Session, start: str, end: str, *, monthly: bool = False) -> Iterator[str]:
    """The same as CSV, piece by piece."""
    query = {"start_date": start, "end_date": end, "period": _MONTHLY if monthly else _DAILY}
    with session.stream("GET", "/resources/allocation/aggregated", query=query, accept="text/csv") as response:
        yield from response.iter_text()


def attempts(session: Session, after: str, before: str) -> List[JsonObject]:
    """Every attempt that held slots between two times (RFC 3339, or days)."""
    query = {"timestampAfter": after, "timestampBefore": before}
    return reading.records(session.get("/api/v1/resources/allocation/raw", query), "resourceEntries")


def attempts_csv(session: Session, after: str, before: str) -> Iterator[str]:
    """The same as CSV with how long each waited, piece by piece."""
    query = {"timestamp_after": after, "timestamp_before": before}
    with session.stream("GET", "/resources/allocation/allocations-csv", query=query, accept="text/csv") as response:
        yield from response.iter_text()
