"""One trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tenax.search.brackets import BracketPlan, without_rungs
from tenax.search.config import Map, Method


@dataclass(frozen=True, slots=True)
class Single(Method):
    """One trial."""

    name: ClassVar[str] = "single"
    one_trial: ClassVar[bool] = True

    def brackets(self, space: Map) -> tuple[BracketPlan, ...]:
        """A bracket of one."""
        return (without_rungs(1, 1),)
