"""What the settings of a pool let be rented, as the scheduler takes it, and what it decides on it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, time, timezone

from tenax.config.master import PoolSettings
from tenax.config.provider import OfferChoice, ScalingRule, needs_price
from tenax.config.provider.gcp import AnyProviderSettings
from tenax.lifecycle.budget import BudgetState, used_up
from tenax.lifecycle.offer import OF_ALL_ZONES, RestCause
from tenax.lifecycle.offer_facts import OfferFacts, OfferPrice, PriceSource, current_price
from tenax.master.store.machines.offer_facts import FactsOfPools
from tenax.master.store.machines.offer_rests import OfferOrder, StoredRest
from tenax.master.store.machines.rows import MachineRow, RentedPool
from tenax.scheduler.demand import OfferLaunch, RentedMachine, Scaling, demand
from tenax.scheduler.devices import DeviceKind
from tenax.scheduler.offers import MachineOffer, OfferRest, ScalingLimits, by_hand, most_machines, not_used, unfit
from tenax.scheduler.snapshot import PoolAgent, PoolSnapshot


def prospects(pools: Sequence[PoolSettings], facts: FactsOfPools) -> Mapping[str, Sequence[PoolAgent]]:
    """The agents of all machines that may be rented, by pool: of each size as many as there may be of it alone."""
    return {
        pool.name: _prospects(pool, pool.provider, facts.get(pool.name, {}))
        for pool in pools
        if pool.provider is not None
    }


def price_of(offer: AnyProviderSettings, facts: Mapping[str, OfferFacts]) -> OfferPrice | None:
    """What one offer costs now, and from where that is known; ``facts``: of its pool. None: nobody knows."""
    page = offer.list_price
    listed = None
    if page is not None:
        day = datetime.combine(page.day, time(), timezone.utc)
        listed = OfferPrice(page.amount, PriceSource.LISTED, day, page.page)
    return current_price(offer.price, facts.get(offer.offer_name), listed)


def slots_of(offer: AnyProviderSettings, facts: Mapping[str, OfferFacts]) -> int | None:
    """How many slots a machine of one offer has; None: nobody knows yet."""
    if offer.instance_slots >= 0:
        return offer.instance_slots
    return facts[offer.offer_name].slots if offer.offer_name in facts else None


def offers_of(
    pool: PoolSettings,
    provider: AnyProviderSettings,
    facts: Mapping[str, OfferFacts],
    budgets: Sequence[BudgetState] = (),
) -> tuple[MachineOffer, ...]:
    """What may be rented for a pool, in its order; ``facts``: what its provider has said."""
    return tuple(_offer(pool, provider, offer, facts, budgets) for offer in provider.each_offer())


def _offer(
    pool: PoolSettings,
    provider: AnyProviderSettings,
    offer: AnyProviderSettings,
    facts: Mapping[str, OfferFacts],
    budgets: Sequence[BudgetState],
) -> MachineOffer:
    price, slots = price_of(offer, facts), slots_of(offer, facts)
    needs = needs_price(offer) or ("choose: cheapest" if provider.choose is OfferChoice.CHEAPEST else "")
    if not needs and budgets:
        needs = "renting.budget_per_month"
    return MachineOffer(
        offer.offer_name,
        slots or 0,
        DeviceKind.CPU if offer.cpu_slots_allowed else DeviceKind.CUDA,
        pool.max_aux_containers_per_agent,
        None if price is None else price.amount,
        offer.max_price,
        needs,
        slots is not None,
    )


def limits_of(provider: AnyProviderSettings, budgets: Sequence[BudgetState] = ()) -> ScalingLimits:
    """How many machines there may be; ``budgets`` that hold for the pool."""
    over = used_up(budgets)
    return ScalingLimits(
        provider.min_instances,
        provider.max_instances,
        provider.max_idle_agent_period,
        provider.rule is ScalingRule.DETERMINED,
        provider.choose is OfferChoice.CHEAPEST,
        provider.max_cost_per_hour,
        over.reason if over is not None else "",
        over is not None and over.budget.stops,
        provider.advises,
    )


def decided(
    pool: PoolSettings,
    provider: AnyProviderSettings,
    snapshot: PoolSnapshot,
    there: RentedPool | None,
    budgets: Sequence[BudgetState] = (),
) -> Scaling:
    """What to do now for a pool with these machines; None: it has none."""
    there = there or RentedPool()
    offers = offers_of(pool, provider, there.facts, budgets)
    machines = _priced(offers, there)
    return demand(snapshot, offers, limits_of(provider, budgets), machines, _rests(provider, there), there.returning)


def rented_by_hand(
    pool: PoolSettings,
    provider: AnyProviderSettings,
    there: RentedPool | None,
    budgets: Sequence[BudgetState],
    at: float,
    count: int,
    name: str = "",
) -> OfferLaunch:
    """So many machines of one offer (``name``, else the first that may be used), where the limits of a pool allow it.

    ``at``: now, in seconds since 1970. Raises NotFound, NotNow.
    """
    there = there or RentedPool()
    offers = offers_of(pool, provider, there.facts, budgets)
    present = [each.price for each in _priced(offers, there)]
    unusable = not_used(offers, _rests(provider, there), at)
    offer = by_hand(offers, limits_of(provider, budgets), unusable, present, count, name)
    return OfferLaunch(offer.name, count)


def offer_named(pool: PoolSettings, name: str) -> AnyProviderSettings | None:
    """An offer of a pool, as it is written; None: it is none any more."""
    offers = pool.provider.each_offer() if pool.provider is not None else ()
    return next((offer for offer in offers if offer.offer_name == name), None)


def with_slots(offer: AnyProviderSettings, slots: int) -> AnyProviderSettings:
    """An offer with the slots that its provider has said, where they are not written."""
    return offer if offer.instance_slots >= 0 else offer.model_copy(update={"instance_slots": slots})


def order_of(pool: PoolSettings | None, machine: MachineRow, cause: RestCause) -> OfferOrder | None:
    """What rests after something went wrong with a machine; None: what it was ordered by is there no more."""
    offer = offer_named(pool, machine.offer) if pool is not None else None
    if offer is None:
        return None
    name = offer.offer_family if cause in OF_ALL_ZONES else offer.offer_name
    return OfferOrder(machine.pool, name, offer.offer_settings)


def offer_states(
    pool: PoolSettings, facts: Mapping[str, OfferFacts], rests: Sequence[StoredRest], at: float
) -> Counter[str]:
    """How many offers of a pool are usable, resting, off or unfit at a moment (seconds since 1970)."""
    counts = Counter(dict.fromkeys(("usable", "resting", "off", "unfit"), 0))
    if pool.provider is None:
        return counts
    its = _rests(pool.provider, RentedPool(rests=tuple(rests)))
    for offer in offers_of(pool, pool.provider, facts):
        until = its[offer.name].until if offer.name in its else 0.0
        is_resting = "off" if math.isinf(until) else "resting"
        counts["unfit" if unfit(offer) else is_resting if until > at else "usable"] += 1
    return counts


def _priced(offers: Sequence[MachineOffer], there: RentedPool) -> list[RentedMachine]:
    """Its machines; what was rented before prices were written costs what it would cost now."""
    prices = {offer.name: offer.price for offer in offers}
    return [each if each.price is not None else replace(each, price=prices.get(each.offer)) for each in there.machines]


def _rests(provider: AnyProviderSettings, there: RentedPool) -> dict[str, OfferRest]:
    """By offer the one that lasts longest, of its zone or of all, with the settings that it has now."""
    rests: dict[str, OfferRest] = {}
    for offer in provider.each_offer():
        names, settings = (offer.offer_name, offer.offer_family), offer.offer_settings
        its = [each.rest for each in there.rests if each.offer in names and each.settings == settings]
        if its:
            rests[offer.offer_name] = max(its, key=lambda each: each.until)
    return rests


def _prospects(
    pool: PoolSettings, provider: AnyProviderSettings, facts: Mapping[str, OfferFacts]
) -> tuple[PoolAgent, ...]:
    most: dict[int, tuple[int, MachineOffer]] = {}
    for offer in offers_of(pool, provider, facts):
        count = 0 if unfit(offer) else most_machines(offer, provider.max_instances, provider.max_cost_per_hour)
        most[offer.slots] = max(most.get(offer.slots, (0, offer)), (count, offer), key=lambda it: it[0])
    begun = 0
    agents: list[PoolAgent] = []
    for count, offer in most.values():
        agents += offer.agents(count, begun)
        begun += count
    return tuple(agents)
