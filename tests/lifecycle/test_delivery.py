"""What becomes of a message to a webhook after each attempt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.lifecycle.delivery import BACKOFF, DeliveryOutcome, DeliveryState, decide


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (DeliveryOutcome(200, ""), DeliveryState.DELIVERED),
        (DeliveryOutcome(204, ""), DeliveryState.DELIVERED),
        (DeliveryOutcome(301, ""), DeliveryState.FAILED),
        (DeliveryOutcome(404, ""), DeliveryState.FAILED),
        (DeliveryOutcome(410, ""), DeliveryState.FAILED),
        (DeliveryOutcome(408, ""), DeliveryState.WAITING),
        (DeliveryOutcome(425, ""), DeliveryState.WAITING),
        (DeliveryOutcome(429, ""), DeliveryState.WAITING),
        (DeliveryOutcome(500, ""), DeliveryState.WAITING),
        (DeliveryOutcome(None, "no answer"), DeliveryState.WAITING),
        (DeliveryOutcome(None, "refused", final=True), DeliveryState.FAILED),
    ],
)
def test_an_answer_decides(outcome: DeliveryOutcome, state: DeliveryState) -> None:
    """Taken is taken; what would be refused again is not repeated; all else is."""
    assert decide(outcome, 1, 0.0, 3600.0).state is state


def test_it_is_tried_later_each_time() -> None:
    """A second, two, four, up to a minute."""
    waits = [decide(DeliveryOutcome(503, ""), attempt, 0.0, 3600.0).wait_s for attempt in range(1, 9)]
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]


def test_what_is_too_old_is_given_up() -> None:
    """With the number of attempts and how the last one ended."""
    verdict = decide(DeliveryOutcome(503, "the receiver answered 503"), 12, 3600.0, 3600.0)
    assert verdict.state is DeliveryState.FAILED
    assert verdict.reason == "given up after 12 attempts: the receiver answered 503"


@given(
    st.one_of(st.none(), st.integers(100, 599)),
    st.booleans(),
    st.integers(1, 10_000),
    st.floats(0, 1e9),
    st.floats(1, 1e6),
)
def test_every_message_ends(status: int | None, final: bool, attempts: int, age: float, limit: float) -> None:
    """Whatever comes back, a message is taken, given up, or waits a bounded time while it is young enough."""
    verdict = decide(DeliveryOutcome(status, "", final), attempts, age, limit)
    assert (verdict.state is DeliveryState.DELIVERED) == (status is not None and 200 <= status < 300)
    if verdict.state is DeliveryState.WAITING:
        assert age < limit
        assert 0 < verdict.wait_s <= BACKOFF.ceiling
