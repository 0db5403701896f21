"""What follows from what a cloud says of a machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.lifecycle.notice import CloudNotice, Heeded, NoticePlan, Rebalance, heeded, log_text

NOTICES = st.lists(
    st.builds(
        CloudNotice,
        st.sampled_from(["interruption", "maintenance", "rebalance", "eclipse"]),
        st.sampled_from(["a", "b"]),
        st.none() | st.floats(allow_nan=False, allow_infinity=False),
    ),
    max_size=4,
)


def test_the_most_urgent_notice_holds() -> None:
    """What ends the machine before what may end it, and of those what ends it first."""
    advice, late, soon = (
        CloudNotice("rebalance", "it may"),
        CloudNotice("maintenance", "it is stopped", 600.0),
        CloudNotice("interruption", "it is taken", 120.0),
    )
    assert heeded([advice, late, soon], Rebalance.DRAIN) == Heeded(NoticePlan.LEAVE, "it is taken", 120.0)
    assert heeded([advice, late], Rebalance.DRAIN) == Heeded(NoticePlan.LEAVE, "it is stopped", 600.0)


@pytest.mark.parametrize(
    ("rebalance", "plan"),
    [(Rebalance.IGNORE, None), (Rebalance.DRAIN, NoticePlan.DRAIN), (Rebalance.REPLACE_FIRST, NoticePlan.REPLACE)],
)
def test_advice_is_what_the_pool_makes_of_it(rebalance: Rebalance, plan: NoticePlan | None) -> None:
    """Nothing at all, unless somebody has said so."""
    notice = heeded([CloudNotice("rebalance", "it may")], rebalance)
    assert (notice and notice.plan) == plan


def test_a_part_of_the_time_is_kept_for_telling_what_was_saved() -> None:
    """A quarter of it, ten seconds at most."""
    assert [Heeded(NoticePlan.LEAVE, "", each).to_save_s for each in (None, 0.0, 20.0, 120.0)] == [
        None,
        0.0,
        15.0,
        110.0,
    ]


@given(NOTICES, st.sampled_from(Rebalance))
def test_whatever_is_said_there_is_time_or_none(notices: list[CloudNotice], rebalance: Rebalance) -> None:
    """Never less than none, and never for what is not known."""
    notice = heeded(notices, rebalance)
    if notice is None:
        assert all(each.kind in ("rebalance", "eclipse") for each in notices)
    else:
        assert notice.to_save_s is None or 0 <= notice.to_save_s <= 30 * 86400


def test_a_trial_is_told_why_and_whether_the_time_is_too_short() -> None:
    """By what its last save took; nothing is said of what is not known."""
    notice = Heeded(NoticePlan.LEAVE, "it is taken", 30.0)
    first = "it is taken: it is asked to save and leave within 22 s"
    assert log_text(notice, None) == log_text(notice, 22.0) == first
    assert log_text(notice, 61.2).startswith(f"{first}\nnotice_too_short: storing its last checkpoint took 61 s")
    assert log_text(Heeded(NoticePlan.LEAVE, "it is taken"), 61.2) == "it is taken: it is asked to save and leave"
