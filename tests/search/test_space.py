"""Samples of a space: order of draws, shapes, ids."""

from __future__ import annotations

import re
import uuid

from hypothesis import given
from hypothesis import strategies as st

from tenax.search import space
from tenax.search.config import Categorical, Const, Double, Int, Log, Map
from tenax.search.stream import RandomStream

NESTED = Map({"z": Int(0, 9), "a": Map({"y": Double(0, 1), "b": Categorical(("p", "q", "r"))}), "c": Const([1])})


def test_names_are_drawn_in_sorted_order_at_every_level() -> None:
    """The order of writing does not matter: names are visited sorted, inside nested maps too."""
    shuffled = Map({"c": Const([1]), "a": Map({"b": Categorical(("p", "q", "r")), "y": Double(0, 1)}), "z": Int(0, 9)})
    assert space.sample(NESTED, RandomStream(5)) == space.sample(shuffled, RandomStream(5))
    stream = RandomStream(5)
    expected = {
        "a": {"b": "pqr"[stream.integer(0, 3)], "y": stream.uniform(0, 1)},
        "c": [1],
        "z": stream.integer(0, 10),
    }
    assert space.sample(NESTED, RandomStream(5)) == expected
    assert list(space.sample(NESTED, RandomStream(5))) == ["a", "c", "z"]


def test_golden_trial() -> None:
    """Golden values: the first trial of seed 0 over one of each type."""
    stream = RandomStream(0)
    tree = Map({"cat": Categorical(("a", "b", "c", "d")), "lr": Log(-4, -1), "n": Int(8, 64), "p": Double(0.2, 0.8)})
    assert space.sample(tree, stream) == {
        "cat": "a",
        "lr": 0.006005288202683084,
        "n": 8,
        "p": 0.5616580256429864,
    }
    assert space.draw_request_id(stream) == "c3767d8b-677d-45d8-89a4-746cd3dea19f"
    assert space.draw_seed(stream) == 626610453


@given(st.integers(0, 2**32 - 1))
def test_values_stay_in_their_bounds(seed: int) -> None:
    """Integers include both bounds, floats lie between theirs, request ids are UUIDs of version 4."""
    stream = RandomStream(seed)
    sample = space.sample(Map({"d": Double(-1, 1), "i": Int(-2, 2), "l": Log(-3, 1, 2.0)}), stream)
    assert -1 <= float(str(sample["d"])) < 1
    assert sample["i"] in range(-2, 3)
    assert 0.125 <= float(str(sample["l"])) < 2
    assert uuid.UUID(space.draw_request_id(stream)).version == 4


def test_an_overflowing_exponent_stays_a_number() -> None:
    """A base raised beyond the largest float is that float: a sample is always a JSON number."""
    assert re.match(r"1\.79\d+e\+308", repr(space.power(10.0, 400.0)))
