"""What may be spent on machines in a month, and what follows as it is spent.

Rules it keeps:

- A budget is of one pool, or of all; where several hold, the first that is used up decides.
- Once it is used up nothing more is rented, until the next month begins (in UTC) or the budget is raised. What is there
  goes on, and costs: only with *stops* it takes nothing new, and what can be asked to leave is.
- Before that there is a warning. To the same state belong the same words.
- What has no price is not counted, and said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum

#: Of the budget: from then on there is a warning.
WARN_AT = 0.8


class BudgetStage(str, Enum):
    """How much of a budget is spent."""

    WITHIN = "WITHIN"
    NEARLY = "NEARLY"
    USED_UP = "USED_UP"


@dataclass(frozen=True, slots=True)
class MachineHours:
    """For how long machines of one offer at one price were paid for."""

    pool: str
    offer: str
    #: Per hour; None: none was written with them.
    price: float | None
    hours: float


@dataclass(frozen=True, slots=True)
class MonthlyHours:
    """All of this month, so far."""

    begins: datetime
    #: When the next one begins.
    ends: datetime
    hours: Sequence[MachineHours]


@dataclass(frozen=True, slots=True)
class MonthlyBudget:
    """What may be spent in a month."""

    #: Of which pool; empty: of all together.
    pool: str
    amount: float
    #: Whether what is there is let go, too.
    stops: bool = False


@dataclass(frozen=True, slots=True)
class BudgetState:
    """A budget, and what is spent of it."""

    budget: MonthlyBudget
    spent: float
    #: Hours of machines without a price.
    unpriced_hours: float
    begins: datetime
    #: When it is whole again.
    ends: datetime

    @property
    def stage(self) -> BudgetStage:
        """How far it is."""
        if self.spent >= self.budget.amount:
            return BudgetStage.USED_UP
        return BudgetStage.NEARLY if self.spent >= WARN_AT * self.budget.amount else BudgetStage.WITHIN

    @property
    def reason(self) -> str:
        """Why nothing is rented, for people; empty: it is not used up."""
        if self.stage is not BudgetStage.USED_UP:
            return ""
        again = self.ends.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        return f"the {self.name} of {self._amount} for {self.month} is used up; it is whole again on {again}"

    @property
    def warning(self) -> str:
        """What is said of it now, for people; empty: nothing."""
        if self.stage is not BudgetStage.NEARLY:
            return self.reason
        return f"{WARN_AT:.0%} of the {self.name} of {self._amount} for {self.month} are spent"

    @property
    def _amount(self) -> str:
        """``800``, ``0.5``, ``1234567.89``; `:g` would write 1.23457e+06."""
        return f"{self.budget.amount:.6f}".rstrip("0").rstrip(".")

    @property
    def name(self) -> str:
        """For people."""
        return f"budget of pool {self.budget.pool}" if self.budget.pool else "budget of all pools"

    @property
    def month(self) -> str:
        """``2026-11``."""
        return self.begins.astimezone(timezone.utc).strftime("%Y-%m")


def state_of(budget: MonthlyBudget, month: MonthlyHours, prices: Mapping[tuple[str, str], float]) -> BudgetState:
    """What is spent of a budget. ``prices``: of what was rented before prices were written, by pool and offer."""
    spent = unpriced = 0.0
    for each in month.hours:
        if budget.pool in ("", each.pool):
            price = each.price if each.price is not None else prices.get((each.pool, each.offer))
            if price is None:
                unpriced += each.hours
            else:
                spent += price * each.hours
    return BudgetState(budget, spent, unpriced, month.begins, month.ends)


def used_up(states: Sequence[BudgetState]) -> BudgetState | None:
    """The budget that decides, of those that hold for a pool: one that stops before one that does not."""
    over = [each for each in states if each.stage is BudgetStage.USED_UP]
    return min(over, key=lambda each: not each.budget.stops, default=None)
