"""When a learning rate scheduler takes its step."""

from __future__ import annotations

import enum
from typing import Any, ClassVar


class StepMode(enum.Enum):
    """After each epoch, batch or step of the optimizer; or only when the trial calls ``step()`` itself."""

    STEP_EVERY_EPOCH = 1
    STEP_EVERY_BATCH = 2
    MANUAL_STEP = 3
    STEP_EVERY_OPTIMIZER_STEP = 4


_StepMode = StepMode


class LRScheduler:
    """One of PyTorch's, with when it steps: each ``frequency`` epochs or batches; STEP_EVERY_OPTIMIZER_STEP: after each
    step of the optimizer at a number of batches that ``frequency`` divides, as in Determined.

    Raises TypeError for a ``step_mode`` that is none.
    """

    StepMode: ClassVar = StepMode

    def __init__(self, scheduler: Any, step_mode: _StepMode, frequency: int = 1) -> None:
        require_step_mode(step_mode)
        self._scheduler = scheduler
        self.step_mode = step_mode
        self.frequency = max(1, frequency)

    def step(self, *arguments: Any, **named: Any) -> None:
        self._scheduler.step(*arguments, **named)

    def get_last_lr(self) -> list[float]:
        rates: list[float] = self._scheduler.get_last_lr()
        return rates

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = self._scheduler.state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._scheduler.load_state_dict(state_dict)

    def due(self, batch_idx: int, epoch_length: int, aggregation: int) -> int:
        """How many steps are due after the batch of this index (from 0), the last of which stepped the optimizer.

        ``aggregation``: batches to a step of the optimizer. A rate never changes where no optimizer has stepped.
        """
        if self.step_mode is _StepMode.MANUAL_STEP or (batch_idx + 1) % aggregation:
            return 0
        if self.step_mode is _StepMode.STEP_EVERY_OPTIMIZER_STEP:
            return int((batch_idx + 1) % self.frequency == 0)
        if self.step_mode is _StepMode.STEP_EVERY_BATCH:
            first, last = batch_idx + 1 - aggregation, batch_idx + 1
        else:
            # The epoch is over when the optimizer's next step belongs to another one.
            first, last = batch_idx // epoch_length, (batch_idx + aggregation) // epoch_length
        return last // self.frequency - first // self.frequency


def require_step_mode(given: object) -> None:
    """Raises TypeError."""
    if not isinstance(given, StepMode):
        raise TypeError(f"step_mode must be an LRScheduler.StepMode, not {given!r}")
