"""Experiment, master and agent configuration: schema, defaults, merge, dialects, and errors that say where and what.

The names below are for experiments; settings of the servers are in `tenax.config.master` and `tenax.config.agent`.
"""

from __future__ import annotations

from tenax.config.display import may_hold_secrets, may_name_secrets
from tenax.config.problems import ConfigError, Problem
from tenax.config.resolve import (
    Layers,
    PoolLayer,
    ResolvedExperiment,
    Wishes,
    experiment_schema,
    parse_experiment,
    stored_experiment,
    wishes_of,
    with_priority,
    written_secrets,
)
from tenax.display.secrets import without_secrets

__all__ = [
    "ConfigError",
    "Layers",
    "PoolLayer",
    "Problem",
    "ResolvedExperiment",
    "Wishes",
    "experiment_schema",
    "may_hold_secrets",
    "may_name_secrets",
    "parse_experiment",
    "stored_experiment",
    "wishes_of",
    "with_priority",
    "without_secrets",
    "written_secrets",
]
