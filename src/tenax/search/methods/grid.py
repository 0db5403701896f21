"""Every point of a grid over the space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tenax.search import grid
from tenax.search.brackets import BracketPlan, without_rungs
from tenax.search.config import Map, Method


@dataclass(frozen=True, slots=True)
class Grid(Method):
    """Every point of the grid that the axes' counts and values span."""

    name: ClassVar[str] = "grid"
    on_grid: ClassVar[bool] = True

    max_concurrent_trials: int = 16

    def brackets(self, space: Map) -> tuple[BracketPlan, ...]:
        """One bracket of as many trials as the grid has points."""
        return (without_rungs(grid.size(space), self.max_concurrent_trials),)

    def most_at_once(self) -> int | None:
        """The cap."""
        return self.max_concurrent_trials or None
