"""A script that reports much and keeps its own book: one file per run, a line per thing that it did.

    start   {"pid", "run_id", "step"}     the process has begun, and goes on after this step
    report  {"group", "step", "value"}    a report has returned
    end     {"step", "preempted"}

Each line is written after what it tells of, so that a process killed in between has done one thing more than it wrote.
Per epoch: ``steps`` training reports and one validation, then a checkpoint.
"""

from __future__ import annotations

import json
import os
import pathlib
import time

import tenax
from tenax import core


def main() -> None:
    """Train; every number is a function of the step, so that two runs of one trial agree."""
    info = tenax.get_cluster_info()
    assert info is not None
    assert info.trial is not None
    hparams = info.trial.hparams
    run_id = int(os.environ["DET_TRIAL_RUN_ID"])
    book = pathlib.Path(str(hparams["book"])) / f"{info.trial.trial_id}-{run_id}.jsonl"
    with core.init() as context, book.open("a", buffering=1) as lines:
        step = _restore(context, info.latest_checkpoint)
        lines.write(json.dumps({"did": "start", "pid": os.getpid(), "run_id": run_id, "step": step}) + "\n")
        preempted = _train(context, hparams, lines, step)
        lines.write(json.dumps({"did": "end", "preempted": preempted}) + "\n")


def _train(context: core.Context, hparams: dict[str, object], lines: object, step: int) -> bool:
    steps, pause = int(str(hparams["steps"])), float(str(hparams["pause"]))
    while step < int(str(hparams["epochs"])) * steps:
        step += 1
        value = float(str(hparams["x"])) / step
        context.train.report_training_metrics(steps_completed=step, metrics={"loss": value})
        _note(lines, "training", step, value)
        if step % steps == 0:
            epoch = step // steps
            context.train.report_validation_metrics(steps_completed=step, metrics={"loss": value, "epochs": epoch})
            _note(lines, "validation", step, value)
            _save(context, step)
        if context.preempt.should_preempt():
            if step % steps:
                _save(context, step)
            return True
        time.sleep(pause)
    return False


def _note(lines: object, group: str, step: int, value: float) -> None:
    lines.write(json.dumps({"did": "report", "group": group, "step": step, "value": value}) + "\n")  # type: ignore[attr-defined]


def _save(context: core.Context, step: int) -> None:
    with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
        pathlib.Path(path, "step").write_text(str(step))


def _restore(context: core.Context, checkpoint: str | None) -> int:
    if checkpoint is None:
        return 0
    with context.checkpoint.restore_path(checkpoint) as path:
        return int(pathlib.Path(path, "step").read_text())


if __name__ == "__main__":
    main()
