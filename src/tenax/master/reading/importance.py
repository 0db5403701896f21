"""Which hyperparameters decided about a metric: shares of what a forest of regression trees explains by each.

Rules:
- A share is by how much worse the trees foretell trials that they have not seen, once the values of that hyperparameter
  are shuffled among these (Breiman, Random Forests, 2001). The shares sum to 1; nothing is said where nothing helps.
- Values and metrics count by their ranks: scales do not matter, nor does one trial that diverged.
- Trees split at random places (Geurts et al., Extremely randomized trees, 2006). The same trials and seed give the same
  shares. All of it is bounded: trials beyond `MAX_TRIALS` are thinned evenly, from the best to the worst.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tenax.jsonvalue import Json

#: With fewer, chance says more than any hyperparameter.
MIN_TRIALS = 12
#: Of the trials and of the hyperparameters so many are looked at.
MAX_TRIALS, MAX_HYPERPARAMETERS = 400, 64
_TREES, _MIN_LEAF, _MAX_DEPTH = 32, 3, 10
#: A split is tried so often at another place of each hyperparameter.
_TRIES = 3
Table = npt.NDArray[np.float64]
Column = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sample:
    """A trial: what it tried, by name, and its metric, which is finite."""

    hparams: tuple[tuple[str, Json], ...]
    metric: float


@dataclass(frozen=True, slots=True)
class ImportanceShare:
    """One hyperparameter; `importance` in [0, 1], `correlation` in [-1, 1] or None where values are no numbers."""

    name: str
    importance: float
    correlation: float | None


@dataclass(frozen=True, slots=True)
class _Feature:
    """What the trials tried of one hyperparameter: ranks in [0, 1], or numbers of categories; -1: not set."""

    name: str
    column: Column
    is_number: bool


@lru_cache(maxsize=32)
def of(samples: tuple[Sample, ...], seed: int) -> tuple[ImportanceShare, ...]:
    """The most important first; empty where there are fewer than `MIN_TRIALS`, or nothing helps. For a thread."""
    if len(samples) < MIN_TRIALS:
        return ()
    if len(samples) > MAX_TRIALS:
        rising = sorted(samples, key=lambda sample: sample.metric)
        samples = tuple(rising[place] for place in np.linspace(0, len(rising) - 1, MAX_TRIALS).astype(int).tolist())
    features = _features(samples)
    outcomes = _ranks(np.array([sample.metric for sample in samples]))
    if not features or outcomes.min() == outcomes.max():
        return ()
    rng = np.random.Generator(np.random.PCG64(seed))
    gains = np.maximum(_losses(features, outcomes, rng), 0)
    if gains.sum() <= 0:
        return ()
    shares = [
        ImportanceShare(feature.name, float(gain), _correlation(feature, outcomes))
        for feature, gain in zip(features, gains / gains.sum())
    ]
    return tuple(sorted(shares, key=lambda share: (-share.importance, share.name)))


def _features(samples: Sequence[Sample]) -> list[_Feature]:
    """Those that vary, by name."""
    rows = [dict(sample.hparams) for sample in samples]
    features = []
    for name in sorted({name for row in rows for name in row}):
        values = [row.get(name) for row in rows]
        if len({(type(value) is bool, str(value)) for value in values}) > 1:
            features.append(_feature(name, values))
    return features[:MAX_HYPERPARAMETERS]


def _feature(name: str, values: Sequence[Json]) -> _Feature:
    given = np.array([value is not None for value in values])
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values if value is not None):
        column = np.full(len(values), -1.0)
        column[given] = _ranks(np.array([float(str(value)) for value in values if value is not None]))
        return _Feature(name, column, True)
    numbers = {text: float(number) for number, text in enumerate(sorted({str(value) for value in values}))}
    return _Feature(name, np.array([numbers[str(value)] for value in values]), False)


def _ranks(values: Column) -> Column:
    """In [0, 1]; equal values have the mean of their ranks."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    upper = np.cumsum(counts)
    ranks: Column = ((upper - counts + upper - 1) / 2)[group] / max(1, len(values) - 1)
    return ranks


def _losses(features: Sequence[_Feature], outcomes: Column, rng: np.random.Generator) -> Column:
    """By how much the squared error grows, over all trees, when each of them is shuffled."""
    losses = np.zeros(len(features))
    count = len(outcomes)
    for _ in range(_TREES):
        drawn = rng.integers(0, count, count)
        unseen = np.setdiff1d(np.arange(count), drawn)
        if len(unseen) < 2:
            continue
        table = np.stack([_coded(feature, rng) for feature in features], axis=1)
        tree = _Tree(table[drawn], outcomes[drawn], rng)
        truth = outcomes[unseen]
        error = _squared(tree.foretold(table[unseen]) - truth)
        for place in tree.splits_on():
            shuffled = table[unseen]
            shuffled[:, place] = rng.permutation(shuffled[:, place])
            losses[place] += _squared(tree.foretold(shuffled) - truth) - error
    return losses


def _coded(feature: _Feature, rng: np.random.Generator) -> Column:
    """Categories have no order: each tree gives them another one."""
    if feature.is_number:
        return feature.column
    order = rng.permutation(int(feature.column.max()) + 1).astype(np.float64)
    coded: Column = order[feature.column.astype(np.int64)]
    return coded


def _squared(errors: Column) -> float:
    return float(np.mean(errors * errors))


class _Tree:
    """A regression tree in parallel lists: where a node splits, and its value."""

    def __init__(self, table: Table, outcomes: Column, rng: np.random.Generator) -> None:
        self._features: list[int] = []
        self._limits: list[float] = []
        self._left: list[int] = []
        self._right: list[int] = []
        self._values: list[float] = []
        self._grow(table, outcomes, rng, _MAX_DEPTH)

    def _grow(self, table: Table, outcomes: Column, rng: np.random.Generator, depth: int) -> int:
        node = len(self._values)
        for column, value in ((self._features, -1), (self._left, node), (self._right, node)):
            column.append(value)
        self._limits.append(0.0)
        self._values.append(float(outcomes.mean()))
        split = _split(table, outcomes, rng) if depth and len(outcomes) >= 2 * _MIN_LEAF else None
        if split is not None:
            feature, limit = split
            low = table[:, feature] <= limit
            self._features[node], self._limits[node] = feature, limit
            self._left[node] = self._grow(table[low], outcomes[low], rng, depth - 1)
            self._right[node] = self._grow(table[~low], outcomes[~low], rng, depth - 1)
        return node

    def splits_on(self) -> list[int]:
        """The features that it uses."""
        return sorted({feature for feature in self._features if feature >= 0})

    def foretold(self, table: Table) -> Column:
        """The outcome of each row."""
        features, limits = np.array(self._features), np.array(self._limits)
        left, right = np.array(self._left), np.array(self._right)
        rows, nodes = np.arange(len(table)), np.zeros(len(table), dtype=np.int64)
        for _ in range(_MAX_DEPTH):
            # A leaf leads to itself, whatever is compared.
            low = table[rows, features[nodes]] <= limits[nodes]
            nodes = np.where(low, left[nodes], right[nodes])
        foretold: Column = np.array(self._values)[nodes]
        return foretold


def _split(table: Table, outcomes: Column, rng: np.random.Generator) -> tuple[int, float] | None:
    """The best of some random places of every feature; None: none leaves enough on both sides."""
    lowest, highest = table.min(axis=0), table.max(axis=0)
    limits = lowest + rng.random((_TRIES, table.shape[1])) * (highest - lowest)
    low = table[None, :, :] <= limits[:, None, :]
    count = low.sum(axis=1)
    total = np.einsum("n,tnf->tf", outcomes - outcomes.mean(), low)
    rest = len(outcomes) - count
    fits = (count >= _MIN_LEAF) & (rest >= _MIN_LEAF)
    # What a split takes from the variance; the sums of both sides are opposite.
    gain = np.where(fits, total * total * (1 / np.maximum(count, 1) + 1 / np.maximum(rest, 1)), -1)
    attempt, feature = np.unravel_index(int(gain.argmax()), gain.shape)
    if gain[attempt, feature] <= 1e-12:
        return None
    return int(feature), float(limits[attempt, feature])


def _correlation(feature: _Feature, outcomes: Column) -> float | None:
    """Spearman's, over the trials that have it."""
    if not feature.is_number:
        return None
    given = feature.column >= 0
    values = feature.column[given]
    if given.sum() < MIN_TRIALS or values.min() == values.max() or outcomes[given].min() == outcomes[given].max():
        return None
    return float(np.clip(np.corrcoef(_ranks(values), _ranks(outcomes[given]))[0, 1], -1, 1))
