"""Configurations written for Determined before 0.38, as they are read today; whatever was changed is in the notices.

Before 0.38 every searcher had ``max_length``, and a trial asked how long to train. Since then ASHA measures time by a
validation metric (``time_metric``, up to ``max_time``) and the script alone knows its length.
"""

from __future__ import annotations

import re

from tenax.config.problems import ProblemReport
from tenax.config.schema.lengths import unit_and_count
from tenax.jsonvalue import JsonObject
from tenax.search.methods.registry import names_of

_WITH_RUNGS = names_of(lambda method: method.has_rungs)
_AT = ("searcher",)
_TRIAL_CLASS = re.compile(r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")


def modernised(document: JsonObject, report: ProblemReport) -> JsonObject:
    """The merged document in today's terms; what was translated goes to the report's notices."""
    searcher = document.get("searcher")
    if isinstance(searcher, dict):
        document = {**document, "searcher": _searcher(searcher, report)}
    entrypoint = document.get("entrypoint")
    if isinstance(entrypoint, str) and _TRIAL_CLASS.match(entrypoint):
        message = "names a trial class, the older form: it is run by the launcher for PyTorch"
        report.note(("entrypoint",), f"{message} (python3 -m determined.launch.torch_distributed --trial {entrypoint})")
    return document


def _searcher(searcher: JsonObject, report: ProblemReport) -> JsonObject:
    name, length = searcher.get("name"), unit_and_count(searcher.get("max_length"))
    if searcher.get("stop_once") is not None:
        message = "has no effect: a trial that falls behind is stopped for good, as with stop_once: true"
        report.note((*_AT, "stop_once"), message)
    if length is None or not isinstance(name, str):
        return searcher
    unit, count = length
    if name not in _WITH_RUNGS:
        message = "ends no trial any more, the training script does: it is passed on for scripts that read it"
        report.note((*_AT, "max_length"), message)
        return searcher
    time_metric, max_time = searcher.get("time_metric"), searcher.get("max_time")
    if (time_metric, max_time) == length:
        return searcher
    if time_metric is not None and max_time is not None:
        report.note((*_AT, "max_length"), f"has no effect beside time_metric {time_metric!r} and max_time {max_time}")
        return searcher
    if time_metric is not None or max_time is not None:
        return searcher
    if count < 1:
        report.add((*_AT, "max_length"), f"{count} is too small: at least 1, or set time_metric and max_time")
        return searcher
    message = f"is the spelling of before 0.38, and was taken as time_metric: {unit}, max_time: {count}"
    report.note((*_AT, "max_length"), f"{message}; each validation report must hold {unit!r} as a number")
    if not isinstance(searcher.get("max_length"), dict):
        report.note((*_AT, "max_length"), f"has no unit; {unit} are assumed")
    return {**searcher, "time_metric": unit, "max_time": count}
