"""What a search is asked to do: the hyperparameter space and the method, as plain values.

Rules:
- Values arrive here checked (``tenax.config`` turns YAML into them and refuses what is wrong, with paths and lines);
  nothing is parsed or defaulted from text here.
- A ``Map`` keeps its children sorted by name, at every level: the order of iteration is the order of random draws.
- ``max_time`` is in units of ``time_metric``; translating the older ``max_length`` is the configuration's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Union

from tenax.jsonvalue import Json


@dataclass(frozen=True, slots=True)
class Const:
    """The same value for every trial."""

    value: Json


@dataclass(frozen=True, slots=True)
class Int:
    """Uniform over the integers ``minimum`` .. ``maximum``, both included."""

    minimum: int
    maximum: int
    #: Points on this axis of a grid; None where no grid is asked for.
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Double:
    """Uniform over [``minimum``, ``maximum``)."""

    minimum: float
    maximum: float
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Log:
    """``base ** x`` with ``x`` uniform over [``minimum``, ``maximum``): the bounds are exponents."""

    minimum: float
    maximum: float
    base: float = 10.0
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Categorical:
    """One of ``values``, each as likely."""

    values: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Map:
    """Named hyperparameters, nested to any depth; iterating ``children`` goes in sorted order."""

    children: Mapping[str, Hyperparameter] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "children", dict(sorted(self.children.items())))


Hyperparameter = Union[Const, Int, Double, Log, Categorical, Map]


@dataclass(frozen=True, slots=True)
class Single:
    """One trial."""


@dataclass(frozen=True, slots=True)
class Random:
    """``max_trials`` independent samples, at most ``max_concurrent_trials`` at a time (0: no cap)."""

    max_trials: int
    max_concurrent_trials: int = 16


@dataclass(frozen=True, slots=True)
class Grid:
    """Every point of the grid that the axes' counts and values span."""

    max_concurrent_trials: int = 16


@dataclass(frozen=True, slots=True)
class AsyncHalving:
    """One bracket of ASHA, stopping variant, with ``num_rungs`` rungs."""

    #: Name of the validation metric that tells how far a trial is.
    time_metric: str
    #: Where the top rung lies, in units of ``time_metric``.
    max_time: int
    max_trials: int
    num_rungs: int = 5
    divisor: float = 4.0
    max_concurrent_trials: int = 16


class Mode(str, Enum):
    """How many brackets with fewer rungs stand beside the longest one."""

    STANDARD = "standard"
    AGGRESSIVE = "aggressive"
    CONSERVATIVE = "conservative"


@dataclass(frozen=True, slots=True)
class AdaptiveAsha:
    """Several brackets of ASHA over one random stream; the brackets follow from mode, rungs, trials and time."""

    time_metric: str
    max_time: int
    max_trials: int
    mode: Mode = Mode.STANDARD
    divisor: float = 4.0
    max_rungs: int = 5
    max_concurrent_trials: int = 16
    #: Rungs of each bracket; overrides ``mode`` and ``max_rungs`` where it is not empty.
    bracket_rungs: tuple[int, ...] = ()


Method = Union[Single, Random, Grid, AsyncHalving, AdaptiveAsha]


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """A whole search: what to sample, how, and which validation metric ranks the trials."""

    hyperparameters: Map
    method: Method
    metric: str
    smaller_is_better: bool = True
