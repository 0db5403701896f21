"""What is spent of a month's budget of machines, and what is said of it."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from tenax.lifecycle.budget import (
    BudgetStage,
    BudgetState,
    MachineHours,
    MonthlyBudget,
    MonthlyHours,
    state_of,
    used_up,
)

_BEGINS, _ENDS = (datetime(2026, month, 1, tzinfo=timezone.utc) for month in (11, 12))


def month(*hours: MachineHours) -> MonthlyHours:
    return MonthlyHours(_BEGINS, _ENDS, hours)


def spent(amount: float, budget: MonthlyBudget) -> BudgetState:
    return state_of(budget, month(MachineHours("p", "o", 1.0, amount)), {})


@pytest.mark.parametrize(
    ("amount", "stage"),
    [(0, "WITHIN"), (47.99, "WITHIN"), (48, "NEARLY"), (59.99, "NEARLY"), (60, "USED_UP"), (70, "USED_UP")],
)
def test_a_budget_is_nearly_used_up_from_four_fifths_on(amount: float, stage: str) -> None:
    """And used up once all of it is spent, or more."""
    assert spent(amount, MonthlyBudget("p", 60.0)).stage is BudgetStage(stage)


def test_a_pool_pays_for_its_own_machines_and_all_for_all() -> None:
    """By the price that was written with them, else by that of the offer now; others are told in hours."""
    hours = month(
        MachineHours("p", "o", 2.0, 10.0), MachineHours("p", "o", None, 3.0), MachineHours("p", "gone", None, 4.0),
        MachineHours("q", "o", 1.0, 5.0),
    )  # fmt: skip
    prices = {("p", "o"): 3.0}
    own, of_all = (state_of(MonthlyBudget(pool, 60.0), hours, prices) for pool in ("p", ""))
    assert (own.spent, own.unpriced_hours) == (29.0, 4.0)
    assert (of_all.spent, of_all.unpriced_hours) == (34.0, 4.0)


def test_it_is_said_which_budget_how_much_and_until_when() -> None:
    """The same words however much beyond it is spent; nothing while there is enough."""
    own, of_all = MonthlyBudget("p", 60.0), MonthlyBudget("", 60.0)
    assert spent(60, own).reason == spent(61, own).warning == (
        "the budget of pool p of 60 for 2026-11 is used up; it is whole again on 2026-12-01 00:00 UTC"
    )  # fmt: skip
    assert spent(60, of_all).reason.startswith("the budget of all pools of 60 for 2026-11")
    assert spent(50, own).warning == "80% of the budget of pool p of 60 for 2026-11 are spent"
    assert (spent(50, own).reason, spent(1, own).warning) == ("", "")


def test_of_several_that_are_used_up_one_that_stops_decides() -> None:
    """None that is not used up does."""
    goes_on, stops, enough = MonthlyBudget("p", 5.0), MonthlyBudget("", 5.0, stops=True), MonthlyBudget("", 9.0)
    states = [spent(5, each) for each in (goes_on, stops, enough)]
    decides = used_up(states)
    assert decides is not None
    assert decides.budget is stops
    assert used_up(states[2:]) is None
