"""Whose silence counts: only that of those whom somebody could have heard."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tenax.lifecycle.listening import GAP_S, Listening, observe


def test_who_looks_again_and_again_has_listened_since_the_first() -> None:
    """Looks a few seconds apart are one watch."""
    watch = observe(None, 100.0)
    for moment in (105.0, 110.0, 115.0):
        watch = observe(watch, moment)
    assert watch == Listening(100.0, 115.0)
    assert watch.seconds == 15.0


def test_who_was_away_begins_anew() -> None:
    """After an outage, after a pause, after a clock that went back, and when it is said."""
    watch = Listening(0.0, 100.0)
    assert observe(watch, 100.0 + GAP_S + 1).seconds == 0.0
    assert observe(watch, 99.0).seconds == 0.0
    assert observe(watch, 101.0, anew=True).seconds == 0.0


@given(st.lists(st.floats(0, 1000), min_size=1))
def test_nobody_listens_longer_than_without_a_gap(moments: list[float]) -> None:
    """However the looks fall, the watch never spans a gap."""
    watch = None
    for number, moment in enumerate(moments):
        watch = observe(watch, moment)
        within = [moments[number - step] for step in range(number + 1) if moments[number - step] >= watch.since]
        assert watch.last == moment
        assert watch.since in within
        if watch.seconds:
            assert moment - moments[number - 1] <= GAP_S
