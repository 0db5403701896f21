"""Which validation metrics a script reports, as far as its text says: names that stand in its calls. Pure.

Nothing is run. A report whose names are computed, or that a framework makes, says nothing here; nor does a script that
this Python cannot read, for the one that runs it may.
"""

from __future__ import annotations

import ast
from typing import Iterator, List, Optional

#: What validations call how far they are; the first that is reported is taken.
TIMES = ("epochs", "epoch", "batches", "steps")
_CALLS = {"report_validation_metrics": 1, "report_metrics": 2}
_VALIDATION = "validation"


def validation_metrics(source: str) -> List[str]:
    """Their names, each once, in their order."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    return list(dict.fromkeys(name for node in ast.walk(tree) if isinstance(node, ast.Call) for name in _names(node)))


def time_of(names: List[str]) -> Optional[str]:
    """The one that says how far a trial is."""
    return next((time for time in TIMES if time in names), None)


def without_times(names: List[str]) -> List[str]:
    """Those that may say how good a trial is."""
    return [name for name in names if name not in TIMES]


def _names(call: ast.Call) -> Iterator[str]:
    called = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if called not in _CALLS:
        return
    at = _CALLS[called]
    given = {word.arg: word.value for word in call.keywords}
    group = call.args[0] if call.args else given.get("group")
    if called == "report_metrics" and not (isinstance(group, ast.Constant) and group.value == _VALIDATION):
        return
    metrics = call.args[at] if len(call.args) > at else given.get("metrics")
    for key in metrics.keys if isinstance(metrics, ast.Dict) else ():
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield key.value
