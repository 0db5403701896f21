"""Back-off: waits that grow, up to a ceiling, until something works."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.backoff import Backoff, Retry


@pytest.mark.parametrize(
    ("backoff", "waits"),
    [
        (Backoff(1.0, 8.0), [0, 1, 2, 4, 8, 8, 8]),
        (Backoff(0.1, 3.0), [0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.0]),
        (Backoff(1.0, 9.0, factor=3.0), [0, 1, 3, 9, 9]),
        (Backoff(2.0, 1.0), [0, 1, 1]),
    ],
)
def test_waits_grow_to_the_ceiling(backoff: Backoff, waits: list[float]) -> None:
    """No failure, no wait; then the first wait, times the factor after each further failure, up to the ceiling."""
    assert [backoff.after(failures) for failures in range(len(waits))] == pytest.approx(waits)


def test_no_count_of_failures_overflows() -> None:
    """What fails for years waits for the ceiling."""
    assert Backoff(0.005, 3600.0, factor=1.5).after(10**9) == 3600.0


@given(st.integers(1, 100), st.integers())
def test_jitter_cuts_to_between_half_and_all(failures: int, seed: int) -> None:
    """A random wait is never longer than the schedule says, nor shorter than half of it."""
    backoff = Backoff(0.1, 5.0)
    whole = backoff.after(failures)
    assert whole / 2 <= backoff.after(failures, random.Random(seed).random) <= whole


def test_a_success_begins_anew() -> None:
    """Failures are counted until something works, and a wait is at least what the other side asked for."""
    retry = Retry(Backoff(1.0, 8.0))
    assert [retry.pause() for _ in range(5)] == [1, 2, 4, 8, 8]
    assert retry.pause(at_least=100) == 100
    retry.reset()
    assert (retry.failures, retry.pause()) == (0, 1)
