"""The digits example without what only `pip install torch` brings, for tests that type what the pages say of it."""

from __future__ import annotations

from tests.docs.desk import Desk

#: In the place of the example's: as its configurations have it, without what only `pip install torch` brings.
TRAIN = """
import json, time
from tenax import core

with core.init() as context:
    info = context.info
    hparams, epoch = info.trial.hparams, 0
    if info.latest_checkpoint:
        with context.checkpoint.restore_path(info.latest_checkpoint) as path:
            epoch = json.loads((path / "epoch.json").read_text())
    while epoch < hparams["epochs"]:
        epoch += 1
        accuracy = 1 - 1 / (epoch + hparams["lr"])
        if hparams["epochs"] > 100:
            time.sleep(0.05)
        context.train.report_training_metrics(epoch, {"loss": 1 - accuracy, "epochs": epoch})
        leaves = context.preempt.should_preempt()
        if leaves or epoch % 4 == 0:
            with context.checkpoint.store_path({"steps_completed": epoch}) as (path, uuid):
                (path / "epoch.json").write_text(json.dumps(epoch))
        context.train.report_validation_metrics(epoch, {"accuracy": accuracy, "epochs": epoch})
        context.train.report_progress(epoch / hparams["epochs"])
        if leaves:
            break
"""
EVALUATE = "import pathlib, sys; print((pathlib.Path(sys.argv[1]) / 'epoch.json').read_text())\n"


def with_stand_ins(made: Desk) -> None:
    (made.home / "examples" / "digits" / "train.py").write_text(TRAIN)
    (made.home / "examples" / "digits" / "evaluate.py").write_text(EVALUATE)
