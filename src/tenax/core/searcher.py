"""``context.searcher``: for scripts written before 0.38, which asked the searcher how long to train.

There is exactly one operation, of the length in ``searcher.max_length``. New scripts need none of this: they train as
long as they like, report validations, and stop when ``should_preempt`` says so. Standard library only, Python 3.9.
"""

from __future__ import annotations

import enum

from tenax.core.spool import say
from tenax.errors import InvalidInput, NotNow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Optional

    from tenax.core.info import ClusterInfo
    from tenax.core.train import TrainContext
    from tenax.jsonvalue import Json


class SearcherMode(enum.Enum):
    """Who asks for operations; with one operation known from the configuration it makes no difference."""

    WorkersAskChief = "WORKERS_ASK_CHIEF"
    ChiefOnly = "CHIEF_ONLY"


class Unit(enum.Enum):
    """What a length counts."""

    EPOCHS = "EPOCHS"
    RECORDS = "RECORDS"
    BATCHES = "BATCHES"


class SearcherOperation:
    """Train until ``length`` units are done in all."""

    def __init__(self, train: TrainContext, length: int, chief: bool) -> None:
        self._train = train
        self._length = length
        self._chief = chief
        self._completed = False

    @property
    def length(self) -> int:
        """Units from the beginning of the trial, not from the last checkpoint."""
        return self._length

    def report_progress(self, length: float) -> None:
        """``length`` units are done. Only the chief."""
        if not self._chief:
            raise NotNow("only the chief may report progress: ask distributed.rank == 0 first")
        self._train.report_progress(min(1.0, max(0.0, length / self._length)))

    def report_completed(self, searcher_metric: object) -> None:
        """The operation is done. The metric itself is what ``report_validation_metrics`` reported. Only the chief."""
        if not self._chief:
            raise NotNow("only the chief may complete an operation: ask distributed.rank == 0 first")
        if self._completed:
            raise NotNow("this operation is completed already")
        self._completed = True


class SearcherContext:
    """``length`` and ``unit`` as configured."""

    def __init__(self, train: TrainContext, length: int, unit: Optional[Unit], chief: bool) -> None:
        self._train = train
        self._length = length
        self._unit = unit
        self._chief = chief

    def operations(
        self, searcher_mode: SearcherMode = SearcherMode.WorkersAskChief, auto_ack: bool = True
    ) -> Iterator[SearcherOperation]:
        """The one operation."""
        SearcherMode(searcher_mode)
        yield SearcherOperation(self._train, self._length, self._chief)

    def acknowledge_out_of_ops(self) -> None:
        """Nothing: there is one operation, and its end is the script's."""

    def get_configured_units(self) -> Optional[Unit]:
        """What lengths count, where the configuration says."""
        return self._unit


def length_of(max_length: Json) -> tuple[int, Optional[Unit]]:
    """``searcher.max_length`` -> (length, unit): a number, or one of batches, records and epochs.

    Raises InvalidInput where there is none.
    """
    if isinstance(max_length, int) and not isinstance(max_length, bool) and max_length > 0:
        return max_length, None
    if isinstance(max_length, dict) and len(max_length) == 1:
        ((name, value),) = max_length.items()
        if name.upper() in Unit.__members__ and isinstance(value, int):
            return value, Unit[name.upper()]
    raise InvalidInput(
        "context.searcher needs searcher.max_length in the experiment's configuration; without it, loop as long as the "
        "trial should train at most, report validations, and leave when context.preempt.should_preempt() says so"
    )


def compare_with_search(info: Optional[ClusterInfo], length: int, unit: str) -> None:
    """Warn where a trial trains ``length`` of ``unit`` (batches or epochs), and its search counts on something else.

    A search that stops trials early counts their time by a metric (``time_metric``), to the longest that it was told.
    """
    searcher = info.trial._config.get("searcher") if info is not None and info.is_trial else None
    if not isinstance(searcher, dict) or searcher.get("time_metric") is None:
        return
    counted, longest = searcher["time_metric"], searcher.get("max_time")
    if counted not in ("batches", "epochs"):
        say(f"searcher.time_metric is {counted!r}: the script must report it; it is not how long it trains")
    elif counted != unit or length != longest:
        say(f"warning: this trial trains {length} {unit}, and the search expects {longest} {counted} (its max_time)")
