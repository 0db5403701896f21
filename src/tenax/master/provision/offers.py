"""What the settings of a pool let be rented, as the scheduler takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenax.config.master import PoolSettings
from tenax.config.provider import ProviderSettings, ScalingRule
from tenax.scheduler.demand import MachineOffer, ScalingLimits
from tenax.scheduler.devices import DeviceKind
from tenax.scheduler.snapshot import PoolAgent


def prospects(pools: Sequence[PoolSettings]) -> Mapping[str, Sequence[PoolAgent]]:
    """The agents of all machines that may be rented, by pool."""
    return {
        pool.name: offer_of(pool, pool.provider).agents(pool.provider.max_instances)
        for pool in pools
        if pool.provider is not None
    }


def offer_of(pool: PoolSettings, provider: ProviderSettings) -> MachineOffer:
    """What may be rented for a pool."""
    return MachineOffer(
        f"{provider.instance_type} in {provider.region}",
        provider.instance_slots,
        DeviceKind.CPU if provider.cpu_slots_allowed else DeviceKind.CUDA,
        pool.max_aux_containers_per_agent,
    )


def limits_of(provider: ProviderSettings) -> ScalingLimits:
    """How many machines there may be."""
    return ScalingLimits(
        provider.min_instances,
        provider.max_instances,
        provider.max_idle_agent_period,
        provider.rule is ScalingRule.DETERMINED,
    )
