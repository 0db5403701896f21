"""A script that reports and prints much and keeps its own book: one file per container, a line per thing that it did.

    start    {"pid", "run_id", "step"}     the process has begun, and goes on after this step
    printed  {"lines"}                     so many lines of output, all in all
    report   {"group", "step", "value"}    a report has returned
    end      {"step", "preempted"}

Each line is written after what it tells of, so that a process killed in between has done one thing more than it wrote.
Per epoch: ``steps`` training reports and one validation, then a checkpoint. Per step: ``lines`` lines of output, each
of 64 bytes, with the first letters of the container's name and a number. It ends early once there is a file ``until``.
Once the last of ``trials`` has begun, none validates before there is a file ``befallen``: the search goes on.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
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
    container = os.environ["DET_CONTAINER_ID"][:8]
    book = pathlib.Path(str(hparams["book"])) / f"{info.trial.trial_id}-{run_id}-{container}.jsonl"
    with core.init() as context, book.open("a", buffering=1) as lines:
        step = _restore(context, info.latest_checkpoint)
        lines.write(json.dumps({"did": "start", "pid": os.getpid(), "run_id": run_id, "step": step}) + "\n")
        preempted = _train(context, hparams, lines, step)
        lines.write(json.dumps({"did": "end", "preempted": preempted}) + "\n")


def _train(context: core.Context, hparams: dict[str, object], lines: object, step: int) -> bool:
    steps, pause = int(str(hparams["steps"])), float(str(hparams["pause"]))
    printed, lines_each = 0, int(str(hparams.get("lines", 0)))
    while step < int(str(hparams["epochs"])) * steps and not _has_come(hparams):
        step += 1
        if lines_each:
            _print(printed, lines_each)
            printed += lines_each
            lines.write(json.dumps({"did": "printed", "lines": printed}) + "\n")  # type: ignore[attr-defined]
        value = float(str(hparams["x"])) / step
        context.train.report_training_metrics(steps_completed=step, metrics={"loss": value})
        _note(lines, "training", step, value)
        if step % steps == 0:
            epoch = step // steps
            _await_the_faults(hparams)
            context.train.report_validation_metrics(steps_completed=step, metrics={"loss": value, "epochs": epoch})
            _note(lines, "validation", step, value)
            _save(context, step)
        if context.preempt.should_preempt():
            if step % steps:
                _save(context, step)
            return True
        time.sleep(pause)
    return False


def _has_come(hparams: dict[str, object]) -> bool:
    return "until" in hparams and pathlib.Path(str(hparams["until"])).exists()


def _await_the_faults(hparams: dict[str, object]) -> None:
    if "befallen" in hparams:
        while len(_trials(hparams)) == hparams["trials"] and not pathlib.Path(str(hparams["befallen"])).exists():
            time.sleep(0.02)


def _trials(hparams: dict[str, object]) -> set[str]:
    """Those that have begun."""
    return {path.name.partition("-")[0] for path in pathlib.Path(str(hparams["book"])).glob("*.jsonl")}


def _print(before: int, count: int) -> None:
    name = os.environ["DET_CONTAINER_ID"][:8]
    text = "".join(f"{name} {number:07d} ".ljust(63, ".") + "\n" for number in range(before + 1, before + count + 1))
    sys.stdout.write(text)
    sys.stdout.flush()


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
