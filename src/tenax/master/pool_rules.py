"""What the settings of a pool mean to the scheduler."""

from __future__ import annotations

from tenax.config.master import FittingPolicy, PoolSettings
from tenax.scheduler.snapshot import Fitting, PoolRules


def rules(pool: PoolSettings) -> PoolRules:
    """A pool's settings, as the scheduler takes them."""
    fitting = Fitting.WORST if pool.scheduler.fitting_policy is FittingPolicy.WORST else Fitting.BEST
    return PoolRules(
        preemption=pool.scheduler.preemption,
        fitting=fitting,
        uneven_gangs=pool.scheduler.allow_heterogeneous_fits,
    )
