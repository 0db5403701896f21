"""Ids as ranges, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.errors import InvalidInput
from tenax.master.api.changes import key_ranges

SOME = st.sets(st.integers(0, 60))


@given(SOME, SOME)
def test_ranges_stand_for_their_ids(known: set[int], there: set[int]) -> None:
    """Written and read they are the same; what is taken out of them is out, and nothing else."""
    ranges = key_ranges.parse(key_ranges.text(key_ranges.of(known)))
    assert key_ranges.holds(ranges, there) == known & there
    assert key_ranges.text(key_ranges.without(ranges, there)) == key_ranges.text(key_ranges.of(known - there))


def test_a_range_of_any_length_costs_nothing() -> None:
    """It is never counted out."""
    whole = key_ranges.parse(f"0-{2**62}")
    assert key_ranges.text(key_ranges.without(whole, [5, 7])) == f"0-4,6,8-{2**62}"


@pytest.mark.parametrize("text", ["x", "1,", "4-1", "1-", "-1", "3,2", "1-4,4", "9" * 5000, "1-" + "9" * 5000])
def test_what_is_no_range_is_refused(text: str) -> None:
    """The part that is wrong is named."""
    with pytest.raises(InvalidInput):
        key_ranges.parse(text)
