"""Axes: where a value stands between its least and its greatest, and which values are written beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import List, Sequence, Tuple


@dataclass(frozen=True)
class PlotAxis:
    """A range of numbers; ``log``: of their logarithms."""

    low: float
    high: float
    ticks: Tuple[float, ...]
    log: bool = False

    def place(self, value: float) -> float:
        """From 0 (the least) to 1 (the greatest)."""
        low, high, at = (math.log10(number) if self.log else number for number in (self.low, self.high, value))
        # Halves: the difference of two numbers may be larger than any number.
        return (at / 2 - low / 2) / (high / 2 - low / 2)

    def labels(self) -> List[str]:
        """One for each tick."""
        return [label(tick, (tick,) if self.log else self.ticks) for tick in self.ticks]


def axis(values: Sequence[float], count: int, *, log: bool = False, whole: bool = False) -> PlotAxis:
    """Over all of ``values``, with about ``count`` ticks; ``whole``: at whole numbers alone."""
    low, high = (min(values), max(values)) if values else (1.0, 10.0) if log else (0.0, 1.0)
    if low == high:
        low, high = _around(low, log, whole)
    ticks = _decades(low, high, count) if log else ()
    if len(ticks) < 2:
        ticks = _even(low, high, count, whole)
    return PlotAxis(low, high, tuple(ticks), log)


def label(value: float, among: Sequence[float]) -> str:
    """A tick, written as shortly as tells it from the others."""
    largest = max((abs(tick) for tick in among), default=0.0)
    if value == 0:
        return "0"
    if 1e4 <= largest < 1e15 and all(tick % 1 == 0 for tick in among):
        return _thousands(value, among)
    for digits in range(1, 16):
        texts = [f"{tick:.{digits}g}" for tick in among]
        if len(set(texts)) == len(texts) and all(_near(tick, float(text)) for tick, text in zip(among, texts)):
            break
    if 1e-4 <= largest < 1e6 and min(abs(tick) for tick in among if tick) >= 1e-4:
        decimals = max(len(f"{float(text):f}".rstrip("0").partition(".")[2]) for text in texts)
        return f"{value:.{decimals}f}"
    return f"{value:.{digits}g}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")


def _around(value: float, log: bool, whole: bool) -> Tuple[float, float]:
    if log:
        return value / 2, value * 2
    if whole:
        return value - 1, value + 1
    reach = abs(value) * 0.05 or 0.5
    return value - reach, value + reach


def _even(low: float, high: float, count: int, whole: bool) -> Tuple[float, ...]:
    rough = (high / 2 - low / 2) / max(1, count) * 2
    if rough == 0 or not math.isfinite(rough):
        return (low, high)
    power = 10.0 ** math.floor(math.log10(rough))
    if power == 0:
        return (low, high)
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.7)
    # Of a finer step there may be two in a range that has one of this, and they are round: its ends are not.
    for finer in (step, *(factor * power for factor in (5, 2, 1, 0.5, 0.2) if factor * power < step)):
        ticks = _multiples(low, high, max(finer, 1.0) if whole else finer)
        if len(ticks) > 1:
            return ticks
    return (low, high)


def _multiples(low: float, high: float, step: float) -> Tuple[float, ...]:
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(number * step for number in range(first, last + 1))


def _decades(low: float, high: float, count: int) -> Tuple[float, ...]:
    """Powers of ten; with few of them, twice and five times those."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    powers = [10.0**power for power in range(first, last + 1)]
    inside = [power for power in powers if low <= power <= high]
    if len(inside) > count:
        return tuple(inside[:: math.ceil(len(inside) / count)])
    if len(inside) >= 3:
        return tuple(inside)
    return tuple(factor * power for power in powers for factor in (1, 2, 5) if low <= factor * power <= high)


def _thousands(value: float, among: Sequence[float]) -> str:
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size and all(tick * 10 / size % 1 == 0 for tick in among if abs(tick) >= size):
            return f"{value / size:g}{letter}"
    return f"{value:.0f}"


def _near(value: float, other: float) -> bool:
    return math.isclose(value, other, rel_tol=1e-6)
