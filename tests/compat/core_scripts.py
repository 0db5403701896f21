"""Scripts on Determined's own Core API, what is placed beside them, and what TensorBoard reads of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import cast

from tests.compat.client import PYTHON

REPORTS = """
import json, os, time
import determined as det
from determined import core
from determined.experimental import client, core_v2

info = det.get_cluster_info()
print("IN", json.dumps([det.__version__, info.trial.hparams, info.latest_checkpoint, len(info.slot_ids),
                        sorted(os.listdir("/run/determined/info"))]))
contract = '''
DET_AGENT_ID DET_ALLOCATION_ID DET_CLUSTER_ID DET_CONTAINER_ID DET_EXPERIMENT_CONFIG DET_EXPERIMENT_ID DET_HPARAMS
DET_MASTER DET_MASTER_ADDR DET_MASTER_HOST DET_MASTER_ID DET_MASTER_PORT DET_PYTHON_EXECUTABLE DET_RESOURCES_ID
DET_RESOURCES_TYPE DET_RUN_DIR DET_SEGMENT_ENABLED DET_SESSION_TOKEN DET_SLOT_IDS DET_STEPS_COMPLETED DET_TASK_ID
DET_TASK_LOGGING_METADATA DET_TASK_TYPE DET_TRIAL_ID DET_TRIAL_RUN_ID DET_TRIAL_SEED DET_USER DET_USER_TOKEN DET_USE_TLS
DET_WORKDIR DTRAIN_SSH_PORT INTER_TRAIN_PROCESS_COMM_PORT_1 INTER_TRAIN_PROCESS_COMM_PORT_2 C10D_PORT HOME PATH
'''
print("LACKS", json.dumps([name for name in contract.split() if not os.environ.get(name)]))
same = [os.path.samefile(*pair) for pair in ((".", "/run/determined/workdir"), ("/proc/self/fd/0", os.devnull))]
print("PLACE", json.dumps([*same, sorted(os.listdir("/run/determined/train/model")), os.environ["FROM_HOOK"]]))
with core.init() as context:
    context.profiler.on(sampling_interval=0.1, samples_per_report=1)
    for operation in context.searcher.operations():
        for step in range(1, operation.length + 1):
            losses = {"loss": 1 / step, "odd": float("nan")}
            context.train.report_training_metrics(steps_completed=step, metrics=losses, batch_metrics=[losses])
            operation.report_progress(step)
            time.sleep(0.15)  # an epoch that the profiler sees
        context.train.report_validation_metrics(steps_completed=operation.length, metrics={"score": 0.75})
        operation.report_completed(0.75)
    context.profiler.off()
    context.train.set_status("dancing")
    with context.checkpoint.store_path({"steps_completed": 3}) as (path, uuid):
        (path / "state").write_text("three")
    with context.checkpoint.restore_path(uuid) as path:
        print("BACK", json.dumps((path / "state").read_text()))
    context.experimental.report_task_using_checkpoint(client.get_checkpoint(uuid))
    used = sorted({report.trial_id for report in client.get_checkpoint(uuid).get_metrics("training")})
    with context.checkpoint.store_path({"steps_completed": 3}) as (path, other):
        (path / "state").write_text("gone")
    context.checkpoint.delete(other)
    context.alert(title="look", description="here", level="info")
    metadata = context.train.set_metadata({"a": {"b": 1}})
    print("TOLD", json.dumps([used, metadata, context.checkpoint.get_metadata(uuid)]))
core_v2.init()
core_v2.train.report_metrics("mine", steps_completed=3, metrics={"a": 1})
core_v2.close()
"""
HOOK = "export FROM_HOOK=yes\n"
INFO = ["cluster.json", "rendezvous.json", "resources.json", "trial.json"]
#: What of the code is sent, and where that library looks for it.
PLACED = [".detignore", "startup-hook.sh", "train.py"]
_EVENTS = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
board = EventAccumulator(sys.argv[1])
board.Reload()
print(json.dumps({tag: [[one.step, one.value] for one in board.Scalars(tag)] for tag in board.Tags()["scalars"]}))
"""
STEPS = """
import sys, time
import determined as det
from determined import core

info = det.get_cluster_info()
with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:
    start = 0
    if info.latest_checkpoint:
        with context.checkpoint.restore_path(info.latest_checkpoint) as path:
            start = int((path / "step").read_text())
    print("FROM", start)
    step = start
    while True:
        step += 1
        context.train.report_training_metrics(steps_completed=step, metrics={"loss": 1 / step})
        if context.preempt.should_preempt():
            with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
                (path / "step").write_text(str(step))
            sys.exit(0)
        time.sleep(0.05)
"""
INVALID = """
import os
import determined as det
from determined import core

info = det.get_cluster_info()
mark = f"/determined_shared_fs/tried-{info.trial.experiment_id}"
with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:
    if not os.path.exists(mark):
        open(mark, "w").close()
        raise det.InvalidHP("too big")
    os.unlink(mark)
    context.train.report_validation_metrics(steps_completed=1, metrics={"score": 1.0})
"""


def scalars(directory: Path) -> dict[str, list[list[float]]]:
    """What TensorBoard itself reads there."""
    done = subprocess.run(
        [str(PYTHON), "-c", _EVENTS, str(directory)], capture_output=True, text=True, check=True, timeout=120
    )
    return cast("dict[str, list[list[float]]]", json.loads(done.stdout.splitlines()[-1]))
