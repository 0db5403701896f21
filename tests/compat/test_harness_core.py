"""Scripts on Determined's own Core API, unchanged, in tasks that are plain processes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import cast

import pytest

from tests.compat.client import PYTHON
from tests.compat.harness import finished, submit, told
from tests.e2e.machine import Machine, outlast, wait_for

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


def test_a_script_runs_unchanged(cluster: Machine, tmp_path: Path) -> None:
    """It finds its info files and its storage where that library looks, and only there; all that it tells by the Core
    API is the master's, its checkpoints and TensorBoard files the storage's; nothing is left on the machine."""
    experiment = submit(
        cluster,
        tmp_path / "code",
        {"train.py": REPORTS, "startup-hook.sh": HOOK, "left.out": "x", ".detignore": "*.out\n"},
        hyperparameters={"lr": 0.5},
        searcher={"name": "single", "metric": "score", "smaller_is_better": False, "max_length": {"batches": 3}},
    )
    trial, said = finished(cluster, experiment)
    assert told(said, "LACKS") == []
    assert told(said, "PLACE") == [True, True, PLACED, "yes"]
    assert told(said, "IN") == ["0.38.1", {"lr": 0.5}, None, 1, INFO]
    assert told(said, "BACK") == "three"
    assert told(said, "TOLD") == [[trial.id], {"a": {"b": 1}}, {"steps_completed": 3}]
    with cluster.client() as client:
        trial = client.trial(trial.id)
        kept, gone = sorted(trial.checkpoints(), key=lambda one: one.state)
        groups = {group: list(trial.metrics(group)) for group in ("training", "mine", "cpu", "network")}
    assert [one.steps for one in groups["training"]] == [1, 2, 3]
    assert [one.metrics for one in groups["mine"]] == [{"a": 1}]
    assert [bool(groups[group]) for group in ("cpu", "network")] == [True, True]
    assert trial.raw["runnerState"] == "dancing"
    assert (kept.state, gone.state) == ("COMPLETED", "DELETED")
    assert (cluster.directory / "checkpoints" / kept.uuid / "state").read_text() == "three"
    (board,) = (cluster.directory / "checkpoints").glob(f"*/tensorboard/experiment/{experiment.id}/trial/{trial.id}")
    found = scalars(board)
    # Of a step with batch metrics that library writes these, each at the step before it.
    assert [step for step, _ in found["Determined/loss"]] == [0, 1, 2]
    assert found["Determined/val_score"] == [[3, 0.75]]
    wait_for(lambda: not list(Path("/tmp").glob(f"tensorboard-{trial.task_id}.*")), "the end of its temporary files")
    assert not os.path.exists("/determined_shared_fs")
    assert not os.path.exists("/run/determined")


def test_it_is_paused_survives_its_agent_and_goes_on(cluster: Machine, tmp_path: Path) -> None:
    """Pausing it makes it save and leave, whoever its agent is by then; activated, it goes on from there; killed,
    nothing of it runs on."""
    experiment = submit(cluster, tmp_path / "code", {"train.py": STEPS})
    with cluster.client() as client:
        trial = wait_for(lambda: next(iter(client.experiment(experiment.id).trials()), None), "its trial")

        def furthest() -> int:
            return max((one.steps for one in client.trial(trial.id).metrics("training")), default=0)

        wait_for(lambda: furthest() > 1, "its first reports")
        before = set(cluster.task_processes())
        cluster.kill("agent")
        client.experiment(experiment.id).pause()
        wait_for(lambda: client.trial(trial.id).state == "PAUSED", "its pause")
        assert not before & set(cluster.task_processes())
        (checkpoint,) = client.trial(trial.id).checkpoints()
        client.experiment(experiment.id).activate()
        wait_for(lambda: furthest() > checkpoint.steps, "more reports")
        client.experiment(experiment.id).kill()
    assert outlast(cluster, experiment.id).state == "CANCELED"
    with cluster.client() as client:
        assert f"FROM {checkpoint.steps}\n" in "".join(f"{line.message}\n" for line in client.trial(trial.id).logs())
    wait_for(lambda: not cluster.task_processes(), "the end of all that it started")


def test_hyperparameters_that_cannot_be_trained(cluster: Machine, tmp_path: Path) -> None:
    """A script that raises InvalidHP ends well, and the search tries another sample in its place."""
    experiment = submit(cluster, tmp_path / "code", {"train.py": INVALID})
    assert outlast(cluster, experiment.id).state == "COMPLETED"
    with cluster.client() as client:
        first, second = sorted(client.experiment(experiment.id).trials(), key=lambda trial: trial.id)
    assert (first.latest_validation is None, second.latest_validation is None) == (True, False)


def test_the_same_script_without_the_package(cluster: Machine, tmp_path: Path) -> None:
    """Tenax serves what it imports; TensorBoard itself reads the files that come of its reports; and in the task the
    SDK is logged in as the owner."""
    code = """
    import determined as det
    from determined import core
    from determined.experimental import client

    with core.init() as context:
        for step in (1, 2, 3):
            context.train.report_training_metrics(steps_completed=step, metrics={"loss": 1 / step})
        context.train.report_validation_metrics(steps_completed=3, metrics={"score": 0.75})
    print("served by", core.__name__, "to", client.whoami().username)
    """
    experiment = submit(cluster, tmp_path / "code", {"train.py": code}, wheel=False)
    trial, said = finished(cluster, experiment)
    assert "served by tenax.core to admin" in said
    (board,) = (cluster.directory / "checkpoints").glob(f"*/tensorboard/experiment/{experiment.id}/trial/{trial.id}")
    found = scalars(board)
    assert found["Determined/loss"] == [[1, 1.0], [2, 0.5], [3, pytest.approx(1 / 3)]]
    assert found["Determined/val_score"] == [[3, 0.75]]
