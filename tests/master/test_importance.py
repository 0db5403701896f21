"""Which hyperparameters decided about a metric: a pure function of what trials tried and what came of it."""

from __future__ import annotations

import math
import random

import pytest

from tenax.jsonvalue import Json
from tenax.master.reading.importance import MIN_TRIALS, ImportanceShare, Sample, of


def tried(count: int, seed: int = 0) -> tuple[Sample, ...]:
    """Trials of which the learning rate decides nearly everything, with an optimum in the middle."""
    rng = random.Random(seed)
    samples = []
    for _ in range(count):
        rate = 10 ** rng.uniform(-5, -1)
        hparams: dict[str, Json] = {
            "lr": rate,
            "dropout": rng.random(),
            "net.layers": rng.randint(1, 8),
            "optimizer": rng.choice(["adam", "sgd", "lion"]),
            "seed": 7,
        }
        metric = (math.log10(rate) + 3) ** 2 + 0.1 * rng.random()
        samples.append(Sample(tuple(sorted(hparams.items())), metric))
    return tuple(samples)


def names(shares: tuple[ImportanceShare, ...]) -> list[str]:
    return [share.name for share in shares]


@pytest.mark.parametrize("count", [40, 120])
def test_what_decides_is_first(count: int) -> None:
    """Also where more is better first and worse then; shares sum to 1, what never varied has none."""
    shares = of(tried(count), 1)
    assert names(shares)[0] == "lr"
    assert shares[0].importance > 0.8
    assert sum(share.importance for share in shares) == pytest.approx(1)
    assert sorted(names(shares)) == ["dropout", "lr", "net.layers", "optimizer"]
    assert abs(shares[0].correlation or 0) < 0.5
    assert {share.name: share.correlation for share in shares}["optimizer"] is None


def test_a_category_can_decide() -> None:
    """Its values have no order, and need none; the correlation is said of numbers alone."""
    rng = random.Random(3)
    worth = {"adam": 0.2, "sgd": 0.9, "lion": 0.1}
    samples = []
    for _ in range(60):
        name, size = rng.choice(sorted(worth)), rng.random()
        samples.append(Sample((("optimizer", name), ("size", size)), worth[name] + 0.01 * size))
    shares = of(tuple(samples), 1)
    assert names(shares)[0] == "optimizer"
    assert shares[0].correlation is None


def test_the_same_trials_give_the_same_shares() -> None:
    """In whatever order of calls; one trial that diverged changes little."""
    samples = tried(40)
    first = of(samples, 5)
    of.cache_clear()
    assert of(samples, 5) == first
    diverged = (*samples[:-1], Sample(samples[-1].hparams, 1e300))
    assert names(of(diverged, 5))[0] == "lr"


def test_where_nothing_can_be_said() -> None:
    """Too few trials; nothing that varies; a metric that is always the same."""
    assert of(tried(MIN_TRIALS - 1), 1) == ()
    assert of(tuple(Sample((("lr", 1),), float(n)) for n in range(40)), 1) == ()
    assert of(tuple(Sample((("lr", n),), 1.0) for n in range(40)), 1) == ()


def test_hyperparameters_that_not_all_have() -> None:
    """One that only some trials have counts by whether they have it, too."""
    rng = random.Random(2)
    samples = []
    for number in range(60):
        hparams: dict[str, Json] = {"depth": rng.random()}
        if number % 2:
            hparams["momentum"] = rng.random()
        samples.append(Sample(tuple(sorted(hparams.items())), float("momentum" in hparams) + 0.01 * rng.random()))
    assert names(of(tuple(samples), 1))[0] == "momentum"
