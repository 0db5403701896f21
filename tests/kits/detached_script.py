"""A script in detached mode, as users of Determined have them: under the name of either package."""

from __future__ import annotations

import textwrap

_SCRIPT = """
import sys
from determined.experimental import core_v2
import determined as det

name, storage, steps, fail = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "fail"
core_v2.init(
    config=core_v2.Config(
        name="elsewhere", hparams={"lr": 0.5}, data={"a": 1}, labels=["far"],
        searcher={"name": "single", "metric": "score", "smaller_is_better": False, "max_length": {"batches": 9}},
        external_experiment_id=name or None, external_trial_id=f"{name}-1" if name else None,
        checkpoint_storage=storage,
    ),
    tensorboard_mode=det.core.TensorboardMode.MANUAL,
)
info = core_v2.info
start = 0
if info.latest_checkpoint is not None:
    with core_v2.checkpoint.restore_path(info.latest_checkpoint) as path:
        start = int((path / "state").read_text())
print("run", info.trial._trial_run_id, "from", start, flush=True)
for step in range(start + 1, start + steps + 1):
    core_v2.train.report_training_metrics(steps_completed=step, metrics={"loss": 1 / step})
    core_v2.train.report_progress(step / 9)
core_v2.train.report_validation_metrics(steps_completed=start + steps, metrics={"score": float(start + steps)})
with core_v2.checkpoint.store_path({"steps_completed": start + steps}) as (path, _):
    (path / "state").write_text(str(start + steps))
print("ids", info.trial.experiment_id, info.trial.trial_id, flush=True)
if fail:
    raise ValueError("on purpose")
core_v2.close()
"""


def detached_script(package: str) -> str:
    """Its arguments: the external id of the experiment or nothing, a directory, a number of steps, ``fail``."""
    return textwrap.dedent(_SCRIPT).replace("determined", package)
