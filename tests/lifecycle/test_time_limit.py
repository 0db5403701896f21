"""How long an attempt may hold what it was given."""

from __future__ import annotations

import pytest

from tenax.lifecycle.time_limit import asked_after_s, leave_reason, span, within_s


@pytest.mark.parametrize(
    ("limit_s", "asked"),
    [(4.0, 2.0), (60.0, 30.0), (120.0, 90.0), (3600.0, 3240.0), (14400.0, 13800.0), (864000.0, 863400.0)],
)
def test_a_part_of_it_is_for_saving(limit_s: float, asked: float) -> None:
    """A tenth, from half a minute to ten minutes, and half of it at most."""
    assert asked_after_s(limit_s) == asked
    assert within_s(limit_s, asked) == limit_s - asked


def test_who_is_late_has_the_time_for_saving_all_the_same() -> None:
    """After a limit was lowered, or while no master was there."""
    assert within_s(3600.0, 7200.0) == 360.0


@pytest.mark.parametrize(
    ("seconds", "text"), [(90.0, "90s"), (2.5, "2.5s"), (120.0, "2m"), (3600.0, "1h"), (93784.0, "1d2h3m4s")]
)
def test_spans_are_written_as_in_a_configuration(seconds: float, text: str) -> None:
    assert span(seconds) == text
    assert leave_reason(seconds) == f"its time limit of {text} is almost over"
