"""Lengths of training in the older spelling: ``{batches: n}``, ``{records: n}``, ``{epochs: n}``, or a bare number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tenax.config.problems import Path, ProblemReport
from tenax.config.shapes import AnyOf, IntShape
from tenax.config.structs import Struct
from tenax.jsonvalue import Json

#: The largest whole number that a float holds exactly.
_MAX_UNITS = 1 << 53
UNITS = ("batches", "records", "epochs")
#: What a length without a unit counts: what scripts report as the number of steps done.
DEFAULT_UNIT = "batches"


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """Exactly one of the three is set."""

    batches: Annotated[int | None, IntShape(minimum=0, maximum=_MAX_UNITS)] = None
    records: Annotated[int | None, IntShape(minimum=0, maximum=_MAX_UNITS)] = None
    epochs: Annotated[int | None, IntShape(minimum=0, maximum=_MAX_UNITS)] = None


def _has_single_unit(value: Json, at: Path, report: ProblemReport) -> None:
    assert isinstance(value, dict)
    if len(value) != 1:
        report.add(at, f"a length has exactly one unit: one of {', '.join(UNITS)}")


def _positive(value: Json, at: Path, report: ProblemReport) -> None:
    assert isinstance(value, dict)
    for unit, count in value.items():
        if isinstance(count, int) and count <= 0:
            report.add((*at, unit), f"{count} is too small: at least 1")


class _Length(Struct[Length]):
    """Written with the one unit that is set, never with nulls beside it; no batches where nothing is set."""

    def fill(self, value: Json) -> Json:
        return value or {DEFAULT_UNIT: 0}


LENGTH = _Length(Length, atomic=True, rule=_has_single_unit)
POSITIVE_LENGTH = _Length(Length, atomic=True, rule=_positive)
MAX_LENGTH = AnyOf(number=IntShape(minimum=0, maximum=_MAX_UNITS), map=LENGTH)


def unit_and_count(value: Json) -> tuple[str, int] | None:
    """``{epochs: 5}`` as ``("epochs", 5)``; a bare 5 counts batches. None where there is no length."""
    if isinstance(value, int) and not isinstance(value, bool):
        return DEFAULT_UNIT, value
    if isinstance(value, dict):
        for unit in UNITS:
            count = value.get(unit)
            if isinstance(count, int):
                return unit, count
    return None
