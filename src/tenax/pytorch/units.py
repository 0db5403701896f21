"""Lengths and periods of training: in batches or in epochs. Pure; standard library only, Python 3.9."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container
    from typing import Union


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


class Batch(TrainUnit):
    """``Batch(100)``: a length of 100 batches, or after each 100; ``Batch([5, 30])``: after the 5th and the 30th."""


class Epoch(TrainUnit):
    """``Epoch(2)``: two passes over the training data, or after each two; ``Epoch([1, 5])``: after those."""


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


#: A period that never ends.
NEVER = Batch(())
