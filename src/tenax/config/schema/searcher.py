"""``searcher``: which trials are made and stopped.

Searchers of the past are read for display, with the defaults that they had, and refused when an experiment is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tenax.config.problems import Path, ProblemReport
from tenax.config.schema.lengths import MAX_LENGTH
from tenax.config.shapes import Flag, Free, IntShape, ListOf, Number, OneOf, TextShape
from tenax.config.structs import Struct, Tagged
from tenax.errors import Impossible
from tenax.jsonvalue import Json
from tenax.search.config import Method
from tenax.search.methods import adaptive_asha, async_halving, grid, random, single
from tenax.search.methods.adaptive_asha import Mode

_NAME = TextShape(filled=True)
#: More than any search needs, and few enough that making them all at once does not take a master down.
MAX_TRIALS = 1_000_000
#: ``divisor ** rungs`` must stay a float.
_MAX_RUNGS = 100
_MAX_DIVISOR = 1000

_TRIALS = IntShape(minimum=1, maximum=MAX_TRIALS)
_CONCURRENT = IntShape(minimum=0, maximum=MAX_TRIALS)
_RUNGS = IntShape(minimum=1, maximum=_MAX_RUNGS)
_TIME = IntShape(minimum=1, maximum=1 << 53)
_DIVISOR = Number(above=1, maximum=_MAX_DIVISOR)


def _few(value: Json, at: Path, report: ProblemReport) -> None:
    assert isinstance(value, list)
    if len(value) > _MAX_RUNGS:
        report.add(at, f"{len(value)} brackets are too many: at most {_MAX_RUNGS}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonConfig:
    """What every searcher has."""

    #: Validation metric that ranks the trials.
    metric: Annotated[str, _NAME]
    smaller_is_better: Annotated[bool, Flag()] = True
    #: Warm start of every trial, from a trial's latest checkpoint or from a checkpoint.
    source_trial_id: Annotated[int | None, IntShape()] = None
    source_checkpoint_uuid: Annotated[str | None, TextShape()] = None
    #: How long a trial trains, in the spelling of before 0.38; the script may read it.
    max_length: Annotated[object | None, MAX_LENGTH] = None

    def method(self) -> Method:
        """What the search is asked to do. Raises `Impossible` for a searcher that cannot run."""
        raise Impossible(f"the searcher {type(self).__name__} cannot run, and should have been refused")


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleConfig(CommonConfig):
    """One trial."""

    def method(self) -> Method:
        return single.Single()


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomConfig(CommonConfig):
    """Independent samples."""

    max_trials: Annotated[int, _TRIALS]
    #: 0: no cap.
    max_concurrent_trials: Annotated[int, _CONCURRENT] = 16

    def method(self) -> Method:
        return random.Random(self.max_trials, self.max_concurrent_trials)


@dataclass(frozen=True, slots=True, kw_only=True)
class GridConfig(CommonConfig):
    """Every point of a grid."""

    max_concurrent_trials: Annotated[int, _CONCURRENT] = 16

    def method(self) -> Method:
        return grid.Grid(self.max_concurrent_trials)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asha(CommonConfig):
    """What both forms of successive halving have."""

    max_trials: Annotated[int, _TRIALS]
    #: Validation metric that tells how far a trial is, and where the last rung lies on it.
    time_metric: Annotated[str | None, _NAME] = None
    max_time: Annotated[int | None, _TIME] = None
    divisor: Annotated[float, _DIVISOR] = 4
    max_concurrent_trials: Annotated[int, _CONCURRENT] = 16
    #: Of the time when trials could also be paused and promoted; they are stopped now, always.
    stop_once: Annotated[bool | None, Flag()] = None

    def _time(self) -> tuple[str, int]:
        """Of a complete configuration."""
        if self.time_metric is None or self.max_time is None:
            raise Impossible("a search with rungs has a time metric and a time, and should have been refused without")
        return self.time_metric, self.max_time


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncHalvingConfig(_Asha):
    """One bracket of ASHA."""

    num_rungs: Annotated[int, _RUNGS]

    def method(self) -> Method:
        time_metric, max_time = self._time()
        return async_halving.AsyncHalving(
            time_metric=time_metric,
            max_time=max_time,
            max_trials=self.max_trials,
            num_rungs=self.num_rungs,
            divisor=self.divisor,
            max_concurrent_trials=self.max_concurrent_trials,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveAshaConfig(_Asha):
    """Several brackets of ASHA."""

    mode: Annotated[Mode, OneOf(Mode)] = Mode.STANDARD
    max_rungs: Annotated[int, _RUNGS] = 5
    bracket_rungs: Annotated[tuple[int, ...], ListOf(_RUNGS, rule=_few)] = ()

    def method(self) -> Method:
        time_metric, max_time = self._time()
        return adaptive_asha.AdaptiveAsha(
            time_metric=time_metric,
            max_time=max_time,
            max_trials=self.max_trials,
            mode=self.mode,
            divisor=self.divisor,
            max_rungs=self.max_rungs,
            max_concurrent_trials=self.max_concurrent_trials,
            bracket_rungs=self.bracket_rungs,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncHalvingConfig(CommonConfig):
    """Of the past."""

    num_rungs: Annotated[int, _RUNGS]
    budget: Annotated[object, MAX_LENGTH]
    divisor: Annotated[float, _DIVISOR] = 4
    train_stragglers: Annotated[bool, Flag()] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveConfig(CommonConfig):
    """Of the past."""

    budget: Annotated[object, MAX_LENGTH]
    bracket_rungs: Annotated[tuple[int, ...], ListOf(_RUNGS, rule=_few)] = ()
    divisor: Annotated[float, _DIVISOR] = 4
    train_stragglers: Annotated[bool, Flag()] = True
    mode: Annotated[Mode, OneOf(Mode)] = Mode.STANDARD
    max_rungs: Annotated[int, _RUNGS] = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveSimpleConfig(CommonConfig):
    """Of the past."""

    max_trials: Annotated[int, _TRIALS]
    max_rungs: Annotated[int, _RUNGS] = 5
    divisor: Annotated[float, _DIVISOR] = 4
    mode: Annotated[Mode, OneOf(Mode)] = Mode.STANDARD


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomConfig(CommonConfig):
    """Of the past: a search that a program outside of the cluster steered."""

    unit: Annotated[object | None, Free()] = None


#: Read for display only, and what to use instead.
END_OF_LIFE = {
    "sync_halving": "use async_halving",
    "adaptive": "use adaptive_asha, which takes max_trials instead of a budget",
    "adaptive_simple": "use adaptive_asha with the same max_trials and max_rungs",
    "custom": "use adaptive_asha, or submit an experiment with the single searcher for each trial wanted",
}

#: Long gone: not even read.
_GONE = {"pbt": "pbt (population-based training) is not supported: use adaptive_asha or random"}


def _has_single_source(value: Json, at: Path, report: ProblemReport) -> None:
    assert isinstance(value, dict)
    if value.get("source_trial_id") is not None and value.get("source_checkpoint_uuid") is not None:
        report.add(at, "a warm start has one source: set source_trial_id or source_checkpoint_uuid, not both")


def _has_time(value: Json, at: Path, report: ProblemReport) -> None:
    assert isinstance(value, dict)
    _has_single_source(value, at, report)
    missing = [name for name in ("time_metric", "max_time") if value.get(name) is None]
    if missing:
        names = " and ".join(missing)
        report.add(
            at,
            f"{names} must be set: time_metric names the validation metric that tells how far a trial is (such as "
            "'batches' or 'epochs'), max_time is its value at the end",
        )


#: The settings of each method of `tenax.search.methods.registry`.
SCHEMAS: dict[str, Struct[CommonConfig]] = {
    single.Single.name: Struct(SingleConfig, complete=_has_single_source),
    random.Random.name: Struct(RandomConfig, complete=_has_single_source),
    grid.Grid.name: Struct(GridConfig, complete=_has_single_source),
    async_halving.AsyncHalving.name: Struct(AsyncHalvingConfig, complete=_has_time),
    adaptive_asha.AdaptiveAsha.name: Struct(AdaptiveAshaConfig, complete=_has_time),
}
_OF_THE_PAST: dict[str, Struct[CommonConfig]] = {
    "sync_halving": Struct(SyncHalvingConfig),
    "adaptive": Struct(AdaptiveConfig),
    "adaptive_simple": Struct(AdaptiveSimpleConfig),
    "custom": Struct(CustomConfig),
}

SEARCHER = Tagged(
    "name",
    {**SCHEMAS, **_OF_THE_PAST},
    gone=_GONE,
    past=END_OF_LIFE,
)
