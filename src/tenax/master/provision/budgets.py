"""The budgets of settings, and what is spent of them: read where there are any, and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

import structlog
from asyncpg import Connection

from tenax.config.master import PoolSettings
from tenax.config.provider import MonthlyBudgetSettings
from tenax.lifecycle.budget import BudgetState, MonthlyBudget, MonthlyHours, state_of
from tenax.master.provision.offers import price_of
from tenax.master.store.machines import costs, offer_facts
from tenax.master.store.machines.offer_facts import FactsOfPools

log = structlog.get_logger("tenax.scaling")


async def budget_states(
    conn: Connection, pools: Sequence[PoolSettings], overall: MonthlyBudgetSettings
) -> Mapping[str, tuple[BudgetState, ...]]:
    """What holds for each pool that rents: its own budget, and that of all; pools without any are not there."""
    renting = [pool for pool in pools if pool.provider is not None]
    given: Sequence[MonthlyBudgetSettings] = [overall, *(pool.provider for pool in renting if pool.provider)]
    if not renting or all(each.budget_per_month is None for each in given):
        return {}
    return states(renting, overall, await costs.this_month(conn), await offer_facts.all_of(conn))


def states(
    renting: Sequence[PoolSettings], overall: MonthlyBudgetSettings, month: MonthlyHours, facts: FactsOfPools
) -> Mapping[str, tuple[BudgetState, ...]]:
    """The same of hours that are known."""
    prices = prices_of(renting, facts)
    of_all = [state_of(each, month, prices) for each in _budgets("", overall)]
    by_pool = {
        pool.name: (*(state_of(each, month, prices) for each in _budgets(pool.name, pool.provider)), *of_all)
        for pool in renting
        if pool.provider is not None
    }
    return {name: its for name, its in by_pool.items() if its}


def prices_of(pools: Sequence[PoolSettings], facts: FactsOfPools) -> Mapping[tuple[str, str], float]:
    """What a machine of an offer costs per hour now, by pool and offer; those without a price are not there."""
    return {
        (pool.name, offer.offer_name): price.amount
        for pool in pools
        if pool.provider is not None
        for offer in pool.provider.each_offer()
        if (price := price_of(offer, facts.get(pool.name, {}))) is not None
    }


def spent_by_pool(
    pools: Sequence[PoolSettings], month: MonthlyHours, prices: Mapping[tuple[str, str], float]
) -> Mapping[str, float]:
    """What was spent in a month, budget or not: of the pools that there are, and of those that machines were of."""
    names = {*(pool.name for pool in pools), *(each.pool for each in month.hours)}
    return {name: state_of(MonthlyBudget(name, math.inf), month, prices).spent for name in sorted(names)}


def _budgets(pool: str, settings: MonthlyBudgetSettings) -> list[MonthlyBudget]:
    amount = settings.budget_per_month
    return [] if amount is None else [MonthlyBudget(pool, amount, settings.budget_stops)]


class BudgetWarnings:
    """Says once of each budget, whichever master sees it, that it is nearly spent, and that it is."""

    def __init__(self) -> None:
        #: What was said. Cache: the database knows it, too.
        self._given: set[str] = set()

    async def give(
        self, begin: Callable[[], AbstractAsyncContextManager[Connection]], budgets: Iterable[Sequence[BudgetState]]
    ) -> None:
        """What is new of these; ``begin``: a transaction."""
        for state in {it.budget.pool: it for its in budgets for it in its}.values():
            if state.warning and state.warning not in self._given:
                async with begin() as conn:
                    is_new = await costs.warn_once(conn, state)
                self._given.add(state.warning)
                if is_new:
                    spent, unpriced = round(state.spent, 2), round(state.unpriced_hours, 1)
                    log.warning(state.warning, spent=spent, hours_without_price=unpriced)
