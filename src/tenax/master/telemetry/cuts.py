"""Which reports are visible: a newer run that went on from an earlier step hides what lies beyond it.

Rules (rollback never rewrites; it moves a line):
- A report of a newer run at step ``s`` of one kind hides reports of older runs: of its own kind from ``s`` on, of the
  other kinds after ``s``. All custom groups are one kind.
- Profiling has no steps: it hides nothing and is never hidden.
- A run never hides reports of its own, and an older one never hides anything of a newer one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

TRAINING, VALIDATION, OTHER = "training", "validation", "other"
KINDS = (TRAINING, VALIDATION, OTHER)
#: Groups of the profiler.
PROFILING = frozenset({"gpu", "cpu", "memory", "disk", "network"})
#: The step of a report without one.
NO_STEP = -1
#: Beyond every step.
_FAR = 2**63 - 1


def kind_of(group: str) -> str | None:
    """The kind of a group of metrics; None for profiling."""
    if group in PROFILING:
        return None
    return group if group in (TRAINING, VALIDATION) else OTHER


@dataclass(frozen=True, slots=True)
class Cuts:
    """Of one trial: (run, kind) -> the first step at which older runs are hidden."""

    at: Mapping[tuple[int, str], int] = field(default_factory=dict)

    def limit(self, run_id: int, group: str) -> int:
        """The first step of ``run_id`` in ``group`` that is not visible."""
        kind = kind_of(group)
        if kind is None:
            return _FAR
        return min((step for (run, of), step in self.at.items() if run > run_id and of == kind), default=_FAR)

    def after(self, run_id: int, group: str, step: int) -> Cuts:
        """With what a report of ``run_id`` at ``step`` hides; itself when that is nothing new."""
        kind = kind_of(group)
        if kind is None:
            return self
        lowered = {
            (run_id, other): at
            for other in KINDS
            if (at := step if other == kind else step + 1) < self.at.get((run_id, other), _FAR)
        }
        return Cuts({**self.at, **lowered}) if lowered else self
