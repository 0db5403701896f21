"""What the settings of a pool let be rented, as the scheduler takes it, and what it decides on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tenax.config.master import PoolSettings
from tenax.config.provider import OfferChoice, ProviderSettings, ScalingRule
from tenax.lifecycle.offer import OF_ALL_ZONES, RestCause
from tenax.master.store.machines.offer_rests import OfferOrder
from tenax.master.store.machines.rows import RentedPool
from tenax.scheduler.demand import Scaling, demand
from tenax.scheduler.devices import DeviceKind
from tenax.scheduler.offers import MachineOffer, OfferRest, ScalingLimits, most_machines, too_dear
from tenax.scheduler.snapshot import PoolAgent, PoolSnapshot


def prospects(pools: Sequence[PoolSettings]) -> Mapping[str, Sequence[PoolAgent]]:
    """The agents of all machines that may be rented, by pool: of each size as many as there may be of it alone."""
    return {pool.name: _prospects(pool, pool.provider) for pool in pools if pool.provider is not None}


def offers_of(pool: PoolSettings, provider: ProviderSettings) -> tuple[MachineOffer, ...]:
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


def limits_of(provider: ProviderSettings) -> ScalingLimits:
    """How many machines there may be."""
    return ScalingLimits(
        provider.min_instances,
        provider.max_instances,
        provider.max_idle_agent_period,
        provider.rule is ScalingRule.DETERMINED,
        provider.choose is OfferChoice.CHEAPEST,
        provider.max_cost_per_hour,
    )


def decided(
    pool: PoolSettings, provider: ProviderSettings, snapshot: PoolSnapshot, there: RentedPool | None
) -> Scaling:
    """What to do now for a pool with these machines; None: it has none."""
    there = there or RentedPool()
    offers = offers_of(pool, provider)
    prices = {offer.name: offer.price for offer in offers}
    # What was rented before prices were written costs what it would cost now.
    machines = [
        each if each.price is not None else replace(each, price=prices.get(each.offer)) for each in there.machines
    ]
    return demand(snapshot, offers, limits_of(provider), machines, _rests(provider, there), there.returning)


def order_of(provider: ProviderSettings, offer: str, cause: RestCause, pool: str) -> OfferOrder | None:
    """What rests when something goes wrong with a machine of that offer; None: it is none any more."""
    its = next((each for each in provider.each_offer() if each.offer_name == offer), None)
    if its is None:
        return None
    return OfferOrder(pool, its.offer_family if cause in OF_ALL_ZONES else its.offer_name, its.offer_settings)


def _rests(provider: ProviderSettings, there: RentedPool) -> dict[str, OfferRest]:
    """By offer the one that lasts longest, of its zone or of all, with the settings that it has now."""
    rests: dict[str, OfferRest] = {}
    for offer in provider.each_offer():
        names, settings = (offer.offer_name, offer.offer_family), offer.offer_settings
        its = [each.rest for each in there.rests if each.offer in names and each.settings == settings]
        if its:
            rests[offer.offer_name] = max(its, key=lambda each: each.until)
    return rests


def _prospects(pool: PoolSettings, provider: ProviderSettings) -> tuple[PoolAgent, ...]:
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
