"""What rented machines cost, read machine by machine: a page of uses is held at a time, or those of one machine.

What is told of a budget is told once, whichever master sees it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timezone
from enum import Enum

from asyncpg import Connection, Record

from tenax.jsonvalue import JsonObject
from tenax.lifecycle.budget import BudgetStage, BudgetState, MachineHours, MonthlyHours
from tenax.lifecycle.machine import MachineNews
from tenax.lifecycle.machine_cost import DAY, CostSums, MachineUse, PaidMachine, by_day, by_pool, by_use
from tenax.master.concurrency.threads import run_beside
from tenax.master.store.database.queries import load
from tenax.master.store.webhooks import events as webhook_events

Q = load("machines")
#: Rows that are read at a time.
_PAGE = 1000


class CostBy(str, Enum):
    """By what the cost of machines is divided."""

    USER = "user"
    WORKSPACE = "workspace"
    #: Those of now, as ``workspace/project``.
    PROJECT = "project"
    EXPERIMENT = "experiment"
    #: These two: whole machines, idle or not.
    POOL = "pool"
    DAY = "day"


async def costs(conn: Connection, begins: datetime, ends: datetime, by: CostBy, pool: str | None) -> CostSums:
    """The sums of a time, of a pool or of all. Of a connection with a transaction."""
    sums, held, size = CostSums(), list[tuple[PaidMachine, list[MachineUse]]](), 0
    async for machine, uses in _machines(conn, begins, ends, by, pool):
        held.append((machine, uses))
        size += 1 + (len(uses) if by is not CostBy.DAY else (machine.ends - machine.begins) // DAY)
        if size >= _PAGE:
            await run_beside(size, _add, sums, held, by)
            held, size = [], 0
    await run_beside(size, _add, sums, held, by)
    return sums


def _add(sums: CostSums, held: Sequence[tuple[PaidMachine, Sequence[MachineUse]]], by: CostBy) -> None:
    for machine, uses in held:
        if by is CostBy.POOL:
            sums.add(machine, by_pool(machine))
        elif by is CostBy.DAY:
            sums.add(machine, by_day(machine))
        else:
            sums.add(machine, by_use(machine, uses))


async def this_month(conn: Connection) -> MonthlyHours:
    """For how long machines were paid for in the month that is now."""
    rows = await conn.fetch(Q.this_month)
    hours = [
        MachineHours(row["pool"], row["offer"], row["price"], row["hours"]) for row in rows if row["pool"] is not None
    ]
    return MonthlyHours(rows[0]["begins"], rows[0]["ends"], hours)


async def warn_once(conn: Connection, state: BudgetState) -> bool:
    """Tell webhooks how far a budget is; False: that was told, be it by another master. In a transaction."""
    month, budget = state.begins.astimezone(timezone.utc).date(), state.budget
    if not await conn.fetchval(Q.warn, budget.pool, month, budget.amount, state.stage.value):
        return False
    await conn.execute(Q.forget_warnings, month)
    shown: JsonObject = {
        "resource_pool": budget.pool,
        "month": state.month,
        "per_month": budget.amount,
        "spent": round(state.spent, 2),
        "stops": budget.stops,
        "why": state.warning,
    }
    used_up = state.stage is BudgetStage.USED_UP
    news = MachineNews.BUDGET_USED_UP if used_up else MachineNews.BUDGET_NEARLY
    await webhook_events.machines_changed(conn, news, {"budget": shown})
    return True


async def _machines(
    conn: Connection, begins: datetime, ends: datetime, by: CostBy, pool: str | None
) -> AsyncIterator[tuple[PaidMachine, list[MachineUse]]]:
    name, machine, uses = "", None, list[MachineUse]()
    async for row in conn.cursor(Q.cost, begins, ends, pool, by.value, prefetch=_PAGE):
        if machine is None or row["machine_id"] != name:
            if machine is not None:
                yield machine, uses
            name, machine, uses = row["machine_id"], _machine(row), []
        if row["used"] is not None:
            uses.append(MachineUse(row["name"], row["used"], row["since"], row["until"]))
    if machine is not None:
        yield machine, uses


def _machine(row: Record) -> PaidMachine:
    return PaidMachine(row["pool"], row["slots"], row["price"], row["begins"], row["ends"])
