"""What the settings of a pool mean to the scheduler."""

from __future__ import annotations

from tenax.config.master import PoolSettings
from tenax.scheduler.snapshot import PoolRules


def rules(pool: PoolSettings) -> PoolRules:
    """A pool's settings, as the scheduler takes them."""
    return PoolRules(
        policy=pool.scheduler.type,
        preemption=pool.scheduler.preemption,
        fitting=pool.scheduler.fitting_policy,
        uneven_gangs=pool.scheduler.allow_heterogeneous_fits,
    )
