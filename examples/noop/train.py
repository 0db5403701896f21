"""A trial that computes nothing: it reports, waits, saves and resumes. For tests and benchmarks, in pure Python.

Hyperparameters (all but `reports` may be left out):

- `reports`: how many validations to report, one step each;
- `seconds`: time to pass between two reports, cut short when the trial is asked to stop;
- `checkpoint_every`: save after so many reports (0: only when asked to stop);
- `log_dir`: a directory for `trial-<id>.jsonl`, one line for each report, written before the report is made: what a
  test compares with what the master has. A trial killed between the two leaves a line without a report, never the
  reverse;
- `quality`: the loss that this trial approaches;
- `fail_at`: raise after so many reports, in each run.

Every line and every report holds `value`, a number that occurs once in (trial, run, step).
"""

from __future__ import annotations

import json
import os
import time

import tenax
from tenax import core

BY_HAND = {"reports": 10, "seconds": 0.1}


def main(context: core.Context) -> None:
    info = tenax.get_cluster_info()
    hparams = info.trial.hparams if info else BY_HAND
    total = int(hparams["reports"])
    every = int(hparams.get("checkpoint_every", 10))
    step = restore(context, context.latest_checkpoint) if context.latest_checkpoint else 0
    log = RowLog(hparams.get("log_dir"), info)
    log.write({"event": "start", "step": step})
    while step < total:
        step += 1
        metrics = {
            "loss": float(hparams.get("quality", 0.0)) + 1.0 / step,
            "value": log.run * 1_000_000 + step,
            "epochs": step,
        }
        log.write({"group": "validation", "step": step, "metrics": metrics})
        context.train.report_validation_metrics(step, metrics)
        if step == hparams.get("fail_at"):
            raise RuntimeError(f"asked to fail at step {step}")
        if step == total:
            break
        if stopped(context, float(hparams.get("seconds", 0.0))):
            save(context, step)
            log.write({"event": "preempted", "step": step})
            return
        if every and step % every == 0:
            save(context, step)
    save(context, step)
    log.write({"event": "done", "step": step})


def stopped(context: core.Context, seconds: float) -> bool:
    """Let the time pass; True as soon as the trial is asked to stop."""
    deadline = time.monotonic() + seconds
    while not context.preempt.should_preempt():
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(left, 0.02))
    return True


def save(context: core.Context, step: int) -> None:
    with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
        (path / "state.json").write_text(json.dumps({"step": step}))


def restore(context: core.Context, checkpoint: str) -> int:
    with context.checkpoint.restore_path(checkpoint) as path:
        return int(json.loads((path / "state.json").read_text())["step"])


class RowLog:
    """The file that a test compares with the master; nothing without a directory."""

    def __init__(self, directory: object, info: tenax.core.ClusterInfo | None) -> None:
        self.trial = info.trial.trial_id if info else 0
        self.run = info.trial._trial_run_id if info else 0
        self._fd = -1
        if directory:
            path = os.path.join(str(directory), f"trial-{self.trial}.jsonl")
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, row: dict) -> None:
        if self._fd >= 0:
            row = {"trial": self.trial, "run": self.run, "pid": os.getpid(), **row}
            os.write(self._fd, (json.dumps(row) + "\n").encode())


if __name__ == "__main__":
    with core.init() as context:
        main(context)
