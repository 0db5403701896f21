"""The experiment that most tests here make: its script, which needs no training, and its configuration."""

from __future__ import annotations

from tenax.jsonvalue import Json

NOOP = """\
import sys
from tenax import core

with core.init() as context:
    steps = int(sys.argv[1])
    for step in range(1, steps + 1):
        context.train.report_training_metrics(steps_completed=step, metrics={"loss": 1.0 / step})
        if context.preempt.should_preempt():
            break
    context.train.report_validation_metrics(steps_completed=steps, metrics={"score": float(steps)})
    with context.checkpoint.store_path({"steps_completed": steps}) as (path, _):
        (path / "weights").write_text("w" * 10)
    print("done after", steps)
"""
CONFIG: dict[str, Json] = {
    "name": "compat",
    "entrypoint": "python3 train.py 3",
    "searcher": {"name": "single", "metric": "score", "smaller_is_better": False, "max_length": {"batches": 3}},
    "resources": {"slots_per_trial": 1},
    "max_restarts": 0,
}
