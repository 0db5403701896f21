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
from typing import ClassVar, Union

from tenax.jsonvalue import Json
from tenax.search.brackets import BracketPlan


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
class Method:
    """How trials are made and stopped: its settings as fields, and what it can as constants of the class.

    The methods are in `tenax.search.methods`. What is said here holds for one that says nothing else.
    """

    #: As configurations spell it.
    name: ClassVar[str]
    #: It makes one trial and no other.
    one_trial: ClassVar[bool] = False
    #: Its trials are points of a grid: every axis needs a count.
    on_grid: ClassVar[bool] = False
    #: It compares trials on rungs: they are measured by a time metric, up to a time at which they are done.
    has_rungs: ClassVar[bool] = False
    #: Validations change what it does: each must hold what it decides by.
    needs_validations: ClassVar[bool] = False
    #: It may go on after it has ended: what it decided does not stand in the way.
    continuable: ClassVar[bool] = True

    def brackets(self, space: Map) -> tuple[BracketPlan, ...]:
        """The brackets of a search in ``space``, those with most rungs first."""
        raise NotImplementedError

    def unit(self) -> str | None:
        """The validation metric that rungs are counted in; None without rungs."""
        return None

    def most_at_once(self) -> int | None:
        """How many trials run at once, whatever its brackets hold; None: no cap."""
        return None


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """A whole search: what to sample, how, and which validation metric ranks the trials."""

    hyperparameters: Map
    method: Method
    metric: str
    smaller_is_better: bool = True

    def brackets(self) -> tuple[BracketPlan, ...]:
        """The brackets of this search, those with most rungs first."""
        return self.method.brackets(self.hyperparameters)
