"""What the settings of a pool let be rented, as the scheduler takes it, and what it decides on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tenax.config.master import PoolSettings
from tenax.config.provider import OfferChoice, ScalingRule
from tenax.config.provider.gcp import AnyProviderSettings
from tenax.lifecycle.budget import BudgetState, used_up
from tenax.lifecycle.offer import OF_ALL_ZONES, RestCause
from tenax.master.store.machines.offer_rests import OfferOrder
from tenax.master.store.machines.rows import MachineRow, RentedPool
from tenax.scheduler.demand import OfferLaunch, RentedMachine, Scaling, demand
from tenax.scheduler.devices import DeviceKind
from tenax.scheduler.offers import MachineOffer, OfferRest, ScalingLimits, by_hand, most_machines, not_used, too_dear
from tenax.scheduler.snapshot import PoolAgent, PoolSnapshot


def prospects(pools: Sequence[PoolSettings]) -> Mapping[str, Sequence[PoolAgent]]:
    """The agents of all machines that may be rented, by pool: of each size as many as there may be of it alone."""
    return {pool.name: _prospects(pool, pool.provider) for pool in pools if pool.provider is not None}


def offers_of(pool: PoolSettings, provider: AnyProviderSettings) -> tuple[MachineOffer, ...]:
    """What may be rented for a pool, in its order."""
    return tuple(
        MachineOffer(
            offer.offer_name,
            offer.instance_slots,
            DeviceKind.CPU if offer.cpu_slots_allowed else DeviceKind.CUDA,
            pool.max_aux_containers_per_agent,
            offer.price,
            offer.max_price,
        )
        for offer in provider.each_offer()
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
    offers = offers_of(pool, provider)
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
    offers = offers_of(pool, provider)
    present = [each.price for each in _priced(offers, there)]
    unusable = not_used(offers, _rests(provider, there), at)
    offer = by_hand(offers, limits_of(provider, budgets), unusable, present, count, name)
    return OfferLaunch(offer.name, count)


def offer_named(pool: PoolSettings, name: str) -> AnyProviderSettings | None:
    """An offer of a pool; None: it is none any more."""
    offers = pool.provider.each_offer() if pool.provider is not None else ()
    return next((offer for offer in offers if offer.offer_name == name), None)


def order_of(pool: PoolSettings | None, machine: MachineRow, cause: RestCause) -> OfferOrder | None:
    """What rests after something went wrong with a machine; None: what it was ordered by is there no more."""
    offer = offer_named(pool, machine.offer) if pool is not None else None
    if offer is None:
        return None
    name = offer.offer_family if cause in OF_ALL_ZONES else offer.offer_name
    return OfferOrder(machine.pool, name, offer.offer_settings)


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


def _prospects(pool: PoolSettings, provider: AnyProviderSettings) -> tuple[PoolAgent, ...]:
    most: dict[int, tuple[int, MachineOffer]] = {}
    for offer in offers_of(pool, provider):
        count = 0 if too_dear(offer) else most_machines(offer, provider.max_instances, provider.max_cost_per_hour)
        most[offer.slots] = max(most.get(offer.slots, (0, offer)), (count, offer), key=lambda it: it[0])
    begun = 0
    agents: list[PoolAgent] = []
    for count, offer in most.values():
        agents += offer.agents(count, begun)
        begun += count
    return tuple(agents)
