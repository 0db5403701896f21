"""What a framework says of a step, as reports of a trial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenax.core import Context


class LoopReports:
    """Reports each name of a step once, with what searches count time in.

    Frameworks evaluate again after a training, the best model for example, and say it of the same step. ``context``:
    only its chief reports. Values are numbers, or tensors of one.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        #: Of each group: the latest step, and what was reported of it.
        self._names: dict[str, tuple[int, set[str]]] = {}

    def has(self, group: str, step: int) -> bool:
        """Whether anything of this step was reported."""
        return self._names.get(group, (-1, set()))[0] == step

    def report(self, group: str, step: int, epochs: float, metrics: Mapping[str, Any]) -> None:
        """What is new of ``metrics``, with ``batches`` and ``epochs``."""
        names = self._names[group][1] if self.has(group, step) else set()
        new = {name: value for name, value in metrics.items() if name not in names}
        if not new or self._context.distributed.rank != 0:
            return
        self._names[group] = step, names | set(new)
        self._context.train.report_metrics(group, step, {"batches": step, "epochs": epochs, **new})
