"""Lengths and periods of training: in batches or in epochs, and as a fit takes them. Pure; standard library only,
Python 3.9."""

from __future__ import annotations

import sys
from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container
    from typing import Optional, Union


class TrainUnit:
    """A length or a period: ``Batch`` or ``Epoch``. Raises TypeError for a value that is neither a whole number nor a
    list of them."""

    def __init__(self, value: Union[int, Container[int]]) -> None:
        each = value if isinstance(value, (list, tuple, set, frozenset)) else ()
        is_container = hasattr(value, "__contains__") and not isinstance(value, (str, bytes))
        if not (_is_whole(value) or is_container) or not all(map(_is_whole, each)):
            raise TypeError(f"{type(self).__name__} takes a whole number or a list of them, not {value!r}")
        #: Every so many, or exactly at those.
        self.value = value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, TrainUnit) and self.value == other.value

    __hash__ = None  # type: ignore[assignment]

    def should_stop(self, step_num: int) -> bool:
        """Whether the period ends after so many batches (or epochs). A period below 1 ends after each."""
        if not isinstance(self.value, int):
            return step_num in self.value
        return self.value < 1 or (step_num > 0 and step_num % self.value == 0)

    def next_stop(self, step_num: int) -> int:
        """After how many batches (or epochs), more than so many, the period may end for the first time."""
        if isinstance(self.value, int):
            return step_num + 1 if self.value < 1 else (step_num // self.value + 1) * self.value
        return sys.maxsize if self is NEVER else step_num + 1


class Batch(TrainUnit):
    """``Batch(100)``: a length of 100 batches, or after each 100; ``Batch([5, 30])``: after the 5th and the 30th."""


class Epoch(TrainUnit):
    """``Epoch(2)``: two passes over the training data, or after each two; ``Epoch([1, 5])``: after those."""


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


#: A period that never ends.
NEVER = Batch(())


@dataclass(frozen=True)
class FitPlan:
    """What `Trainer.fit` was asked for."""

    length: TrainUnit
    reporting: TrainUnit
    validation: TrainUnit
    checkpoint: TrainUnit
    #: best, all or none: which validations are followed by a checkpoint.
    policy: str
    latest_checkpoint: Optional[str]
    #: The searcher's; None: there is none, and no validation is the best.
    metric: Optional[str]
    smaller_is_better: bool
    validates_first: bool
    #: One batch of training and one of validation.
    test_mode: bool
    #: Whether checkpoints are stored while the training goes on; None: large ones, where there is memory for a copy.
    async_checkpoints: Optional[bool] = None

    def next_due(self, batches: int, epoch_length: int) -> int:
        """The first number of batches, above so many, after which it may ask for something."""
        if self.test_mode:
            return batches + 1
        epoch = batches // epoch_length
        ends = epoch + 1 if isinstance(self.length, Epoch) else self.length.next_stop(batches)
        due = ends * epoch_length if isinstance(self.length, Epoch) else ends
        for period in (self.reporting, self.validation, self.checkpoint):
            of_epochs = isinstance(period, Epoch)
            due = min(due, period.next_stop(epoch) * epoch_length if of_epochs else period.next_stop(batches))
        return due
