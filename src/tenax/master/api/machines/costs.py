"""What rented machines cost, shown to everyone as usage is: divided among what ran on them, by one thing at a time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated

from fastapi import Query

from tenax.errors import InvalidInput
from tenax.lifecycle.machine_cost import DAY, HOUR, IDLE, CostPart, CostSums, to_cents
from tenax.master.access.authorization import Allow
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.machines.messages import GetMachineCostResponse, MachineCostView
from tenax.master.api.queue.usage import moment
from tenax.master.store.machines.costs import CostBy, costs

routes = Routes("Machines")

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@routes.get("/api/v1/machines/cost", "GetMachineCost", allow=Allow.USER)
async def get_cost(
    master: MasterDep,
    by: Annotated[CostBy, Query()] = CostBy.USER,
    since: Annotated[str, Query()] = "",
    until: Annotated[str, Query()] = "",
    resource_pool: Annotated[str, Query()] = "",
) -> GetMachineCostResponse:
    """What machines cost by their prices from ``since`` (this month's beginning) until ``until`` (now)."""
    begins, ends = _window(since, until, datetime.now(timezone.utc))
    async with master.db.snapshot() as conn:
        sums = await costs(conn, begins, ends, by, resource_pool or None)
    return _answer(sums, begins, ends, by)


def _window(since: str, until: str, now: datetime) -> tuple[datetime, datetime]:
    """Raises InvalidInput. A day that is the end belongs to it."""
    begins = moment(since, "since") if since else now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    ends = moment(until, "until") if until else now
    if _is_day(until):
        ends += timedelta(days=1)
    if ends <= begins:
        raise InvalidInput(f"until is {until or 'now'!r}, which is not later than since ({since or 'this month'!r})")
    return begins, ends


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text.strip())
    except ValueError:
        return False
    return True


def _answer(sums: CostSums, begins: datetime, ends: datetime, by: CostBy) -> GetMachineCostResponse:
    cents = to_cents({name: part.cost for name, part in sums.parts.items()})
    total = sums.total()
    return GetMachineCostResponse(
        since=begins,
        until=ends,
        costs=[_view(name, sums.parts[name], cents[name], by) for name in _ordered(sums.parts, by)],
        total=_view("", total, sum(cents.values(), Decimal()), CostBy.USER),
    )


def _ordered(parts: Mapping[str | None, CostPart], by: CostBy) -> list[str | None]:
    if by is CostBy.DAY:
        return sorted(parts, key=lambda name: int(name or 0))
    return sorted(parts, key=lambda name: (name is IDLE, -parts[name].cost, -parts[name].held, name or ""))


def _view(name: str | None, part: CostPart, cents: Decimal, by: CostBy) -> MachineCostView:
    if by is CostBy.DAY and name is not IDLE:
        name = (_EPOCH + timedelta(microseconds=int(name) * DAY)).strftime("%Y-%m-%d")
    return MachineCostView(
        name=name or "",
        idle=name is IDLE,
        hours=float(part.held / HOUR),
        cost=float(cents) if part.is_known else None,
        unpriced_hours=float(part.unpriced / HOUR),
    )
