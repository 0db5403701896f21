"""Five shapes of curves that a picture of them has to get right."""

from __future__ import annotations

import math
import random

from tenax.cli.console.plots.curves import Curve, Panel


def _loss(count: int, every: int, seed: int, high: float = 2.3) -> Curve:
    rng = random.Random(seed)
    steps = [every * (at + 1) for at in range(count)]
    values = [high * math.exp(-4 * at / count) + 0.1 + rng.gauss(0, 0.03) for at in range(count)]
    return Curve(f"trial {seed}", steps, values)


def _with_nan() -> Panel:
    curve = _loss(40, 100, 1)
    values = [math.nan if 15 <= at < 20 else math.inf if at == 30 else value for at, value in enumerate(curve.values)]
    return Panel("validation_loss", [Curve(curve.name, curve.steps, values)])


def _two() -> Panel:
    first, second = _loss(30, 10, 12), _loss(20, 15, 7, 1.4)
    return Panel("validation_loss", [first, second])


def _log() -> Panel:
    steps = list(range(0, 5000, 50))
    fast = [0.0 if step == 2500 else 10 ** (-step / 1000) for step in steps]
    slow = [10 ** (-step / 3000) for step in steps]
    return Panel("training_loss", [Curve("lr=0.1", steps, fast), Curve("lr=0.01", steps, slow)], log=True)


SHAPES = {
    "nan": _with_nan(),
    "one-point": Panel("validation_accuracy", [Curve("trial 3", [500], [0.9125])]),
    "100000-points": Panel("loss", [_loss(100_000, 1, 5)]),
    "two-series": _two(),
    "log-scale": _log(),
}
