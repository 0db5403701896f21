"""What is only said of machines, where the settings of a pool say so (``scaling: advise``).

Rules: to the same state belong the same words, and the log has them once; what carries our mark and has no row is left
alone where its pool, or every pool of its place, only advises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import structlog

from tenax.config.master import PoolSettings
from tenax.master.provision.port import ProviderPlace, SeenMachine
from tenax.master.provision.sightings import place_of_pool
from tenax.scheduler.demand import Scaling

log = structlog.get_logger("tenax.scaling")


class Advice:
    """What was said last. Cache: without it, it is said once more."""

    def __init__(self) -> None:
        self._plans: dict[str, str] = {}
        self._strays: set[str] = set()

    def plan(self, pool: str, scaling: Scaling) -> None:
        """Say what would be done for a pool, if it is something else than before."""
        advice = advised(scaling)
        if advice and self._plans.get(pool) != advice:
            log.info("machines would be rented or ended, and it is only said", pool=pool, advice=advice)
        self._plans[pool] = advice

    def stray(self, stray: SeenMachine) -> None:
        """Say that something carries our mark and has no row."""
        if stray.provider_id not in self._strays:
            log.error("a machine has no row, and is left alone", machine=stray.provider_id, pool=stray.pool)
            self._strays.add(stray.provider_id)


def advised(scaling: Scaling) -> str:
    """What would be done, for people; empty: nothing."""
    rent = [f"rent {each.count} of {each.offer}{_for(each.wanted_by)}" for each in scaling.launches]
    end = [f"end {name}: {why}" for name, why in sorted(scaling.end.items())]
    drain = [f"give nothing new to {name}: {why}" for name, why in sorted(scaling.drain.items())]
    return "; ".join([*rent, *end, *drain])


def is_left_alone(place: ProviderPlace, stray: SeenMachine, renting: Mapping[str, PoolSettings]) -> bool:
    """Whether nothing is done to a machine without a row; ``renting``: pools with a provider, by name."""
    its = renting.get(stray.pool)
    pools = [its] if its is not None else [pool for pool in renting.values() if place_of_pool(pool) == place]
    return bool(pools) and all(pool.provider is not None and pool.provider.advises for pool in pools)


def _for(requests: Iterable[str]) -> str:
    names = ", ".join(list(requests)[:3])
    return f" for {names}" if names else ", since min_instances asks for it"
