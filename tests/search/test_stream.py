"""The random stream is numpy's, and a position is all that has to be remembered."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.errors import Impossible, InvalidInput
from tenax.search.stream import RandomStream

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(-(2**62), 2**62), st.integers(1, 2**61))
def test_integers_are_those_of_numpy(seed: int, low: int, width: int) -> None:
    """randint gives the same numbers as numpy's RandomState, in narrow and in wide ranges."""
    theirs, ours = np.random.RandomState(seed), RandomStream(seed)
    expected = [int(theirs.randint(low, low + width, dtype=np.int64)) for _ in range(20)]
    assert [ours.integer(low, low + width) for _ in range(20)] == expected


@given(seeds, st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_floats_are_those_of_numpy(seed: int, low: float, width: float) -> None:
    """uniform gives the same numbers as numpy's RandomState."""
    theirs, ours = np.random.RandomState(seed), RandomStream(seed)
    assert [ours.uniform(low, low + width) for _ in range(20)] == [
        float(theirs.uniform(low, low + width)) for _ in range(20)
    ]


def test_first_numbers() -> None:
    """Golden values: the first words, integers and floats of seed 42."""
    assert [RandomStream(42).word(), RandomStream(42).integer(0, 100)] == [1608637542, 51]
    assert RandomStream(42).uniform(0, 1) == 0.3745401188473625


@given(seeds, st.lists(st.sampled_from(["word", "integer", "uniform"]), max_size=30))
def test_a_position_says_the_whole_state(seed: int, draws: list[str]) -> None:
    """A new stream moved to the position of another goes on exactly as that one does."""
    stream = RandomStream(seed)
    for draw in draws:
        {"word": stream.word, "integer": lambda: stream.integer(0, 1000), "uniform": lambda: stream.uniform(0, 1)}[
            draw
        ]()
    again = RandomStream(seed)
    again.seek(stream.position)
    assert [again.word() for _ in range(5)] == [stream.word() for _ in range(5)]
    assert again.position == stream.position


def test_far_positions_are_reached() -> None:
    """A position beyond one leap is reached exactly."""
    far, near = RandomStream(7), RandomStream(7)
    far.seek(200_000)
    for _ in range(200_000):
        near.word()
    assert far.word() == near.word()


def test_a_stream_never_goes_back() -> None:
    """Seeking behind what was drawn is refused, and nothing moves."""
    stream = RandomStream(1)
    stream.word()
    with pytest.raises(Impossible):
        stream.seek(0)
    assert stream.position == 1


def test_a_fork_moves_on_its_own() -> None:
    """A fork gives the same numbers, and drawing from it leaves the first alone."""
    stream = RandomStream(3)
    stream.word()
    fork = stream.fork()
    drawn = [fork.word() for _ in range(3)]
    assert stream.position == 1
    assert [stream.word() for _ in range(3)] == drawn


def test_one_possible_value_draws_nothing() -> None:
    """An integer with one possible value leaves the stream where it is, as numpy does."""
    stream = RandomStream(3)
    assert stream.integer(5, 6) == 5
    assert stream.position == 0


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seeds_out_of_range_are_refused(seed: int) -> None:
    """A seed beyond 32 bits is refused."""
    with pytest.raises(InvalidInput, match="random seed"):
        RandomStream(seed)
