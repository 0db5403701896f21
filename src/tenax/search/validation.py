"""What a search reads from a validation report, and what it refuses.

Rules:
- A report is all that was reported at one step together.
- Where validations decide (asynchronous halving), a report without the searcher's metric or time metric is refused with
  what was expected and what came. Elsewhere such a report is simply not the searcher's.
- A time in ``batches`` that no report names is the step of the report.
- NaN and infinities are numbers here, also as the strings that carry them through JSON; only the time must be finite.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, to_number

#: The time metric that every report has without naming it: its step.
_STEPS = "batches"
#: So many metrics of a report are named in a refusal, each value with so many characters.
_NAMED = 20
_MAX_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Objective:
    """The part of a search that validation reports are read by."""

    #: Name of the metric that ranks the trials.
    metric: str
    #: Name of the metric that tells how far a trial is; None under methods that need none.
    time_metric: str | None = None
    #: Validations change what the search does, so that each must hold what it decides by.
    needs_validations: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """The searcher's part of a validation report."""

    #: As reported; may be NaN or infinite.
    metric: float
    #: 0 under methods without a time metric.
    time: float


class UnusableReport(InvalidInput):
    """A validation report lacks what the search decides by."""


def read_report(objective: Objective, metrics: Mapping[str, Json], step: int) -> Reading | None:
    """The searcher's metric and time of the report at ``step``.

    None where the method can do without and the metric is not there. Raises UnusableReport, with a message for the
    author of the script, where it cannot.
    """
    metric = to_number(metrics.get(objective.metric))
    if not objective.needs_validations:
        return None if metric is None else Reading(metric, 0.0)
    time = _time(objective.time_metric, metrics, step)
    if metric is None or time is None:
        missing = [("metric", objective.metric)] if metric is None else []
        if time is None:
            missing.append(("time_metric", objective.time_metric or ""))
        raise UnusableReport(_refusal(missing, metrics, step))
    return Reading(metric, time)


def shortened(value: Json) -> str:
    """A value as JSON text, for a message to a person."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."


def _time(name: str | None, metrics: Mapping[str, Json], step: int) -> float | None:
    """How far the trial is, as the search counts it; None: nobody said, or not in a finite number."""
    if name is None:
        return 0.0
    if name == _STEPS and name not in metrics:
        return float(step)
    time = to_number(metrics.get(name))
    return time if time is not None and math.isfinite(time) else None


def _refusal(missing: list[tuple[str, str]], metrics: Mapping[str, Json], step: int) -> str:
    """``missing``: settings of the searcher, with the names that they hold."""
    what = " and ".join(f"searcher {setting.replace('_', ' ')}" for setting, _ in missing)
    names = " and ".join(repr(name) for _, name in missing)
    settings = " and ".join(f"searcher.{setting}" for setting, _ in missing)
    numbers, those = ("numbers", "names that are") if len(missing) > 1 else ("a number", "a name that is")
    came = ", ".join(f"{name} = {shortened(value)}" for name, value in sorted(metrics.items())[:_NAMED]) or "nothing"
    return (
        f"error parsing {what}: the search needs {numbers} named {names} in every validation report, and the one at "
        f"step {step} holds {came}. Report {names} with each validation, or set {settings} to {those} reported."
    )
