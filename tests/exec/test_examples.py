"""The examples as trials of a master double: what they report, save, resume, and load again."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.exec.place import Place
from tests.kits import task_master
from tests.kits.task_master import TaskMaster

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def master() -> Iterator[TaskMaster]:
    with task_master.running() as master:
        yield master


def place_of(example: str, root: Path, master: TaskMaster, **hparams: object) -> Place:
    place = Place(root, master)
    shutil.copytree(EXAMPLES / example, place.work, dirs_exist_ok=True)
    place.env["DET_HPARAMS"] = json.dumps(hparams)
    return place


def resumed(place: Place, master: TaskMaster, run_id: int) -> str:
    """Let the next run of this trial begin where the last one saved; the checkpoint."""
    checkpoint = str(master.bodies_of("checkpoint")[-1]["uuid"])
    place.env |= {"DET_LATEST_CHECKPOINT": checkpoint, "DET_TRIAL_RUN_ID": str(run_id)}
    shutil.rmtree(place.run_dir / "info")
    master.preempt.clear()
    master.streams.clear()
    return checkpoint


def steps(master: TaskMaster) -> list[object]:
    return [body["stepsCompleted"] for body in master.bodies_of("metrics") if body["group"] == "validation"]


def test_noop(tmp_path: Path, master: TaskMaster) -> None:
    """The no-op trial reports each step once, leaves when asked, resumes, and its own file tells the same."""
    place = place_of("noop", tmp_path, master, reports=30, seconds=0.02, checkpoint_every=4, log_dir=str(tmp_path))
    process = place.start()
    master.wait_for(lambda: len(master.records("metrics")) >= 5)
    master.preempt.set()
    assert process.wait(240) == 0
    process.communicate()
    first = steps(master)
    assert len(master.bodies_of("ack_preemption")) == 1
    resumed(place, master, 2)
    assert place.run()[0] == 0
    assert [*first, *steps(master)] == list(range(1, 31))
    rows = [json.loads(line) for line in (tmp_path / "trial-7.jsonl").open()]
    reports = [row for row in rows if "metrics" in row]
    assert [row["step"] for row in reports] == list(range(1, 31))
    assert [row["metrics"] for row in reports if row["run"] == 2] == [
        body["metrics"] for body in master.bodies_of("metrics")
    ]
    assert [row["event"] for row in rows if "event" in row] == ["start", "preempted", "start", "done"]


def test_noop_that_fails(tmp_path: Path, master: TaskMaster) -> None:
    """Asked to fail, it fails after its report has arrived."""
    place = place_of("noop", tmp_path, master, reports=5, fail_at=3)
    code, _, err = place.run()
    assert code == 1
    assert err.splitlines()[-1] == "RuntimeError: asked to fail at step 3"
    assert steps(master) == [1, 2, 3]


def test_digits_as_a_class(tmp_path: Path, master: TaskMaster) -> None:
    """It goes on from its checkpoint, and ends where it is told to."""
    hparams = {"lr": 0.003, "global_batch_size": 128, "hidden": 32, "dropout": 0.1}
    place = place_of("digits", tmp_path, master, **hparams, epochs=1)
    searcher = {"name": "single", "metric": "accuracy", "smaller_is_better": False}
    place.configure(entrypoint="python3 trial.py", searcher=searcher)
    code, _, err = place.run()
    assert (code, err) == (0, "")
    assert steps(master) == [12]
    resumed(place, master, 2)
    place.env["DET_HPARAMS"] = json.dumps({**hparams, "epochs": 2})
    assert place.run()[0] == 0
    assert steps(master) == [24]
    assert master.bodies_of("metrics")[-1]["metrics"]["accuracy"] > 0.5  # type: ignore[call-overload,index]


def test_digits(tmp_path: Path, master: TaskMaster) -> None:
    """The digits trial saves each epoch, goes on after the last one, and a checkpoint loaded again gives its figure."""
    hparams = {"lr": 0.003, "batch_size": 64, "hidden": 32, "dropout": 0.1, "weight_decay": 1e-5}
    place = place_of("digits", tmp_path, master, **hparams, epochs=2)
    code, out, err = place.run()
    assert (code, err) == (0, "")
    assert steps(master) == [23, 46]
    checkpoint = resumed(place, master, 2)
    place.env["DET_HPARAMS"] = json.dumps({**hparams, "epochs": 3})
    code, out, _ = place.run()
    assert code == 0
    assert out.startswith("going on after epoch 2\nepoch 3: ")
    assert steps(master) == [69]
    evaluated = subprocess.run(
        [sys.executable, "evaluate.py", str(place.run_dir / "checkpoints" / checkpoint)],
        cwd=place.work,
        capture_output=True,
        text=True,
        check=False,
    )
    assert evaluated.returncode == 0, evaluated.stderr
    assert "after 2 epochs" in evaluated.stdout
    launched = yaml.safe_load((place.work / "predict.yaml").read_text())["entrypoint"]
    entrypoint = launched.removeprefix("python3 -m tenax.launch.torch_distributed ")
    place.configure(entrypoint=entrypoint, searcher={"name": "single", "metric": "accuracy"})
    place.env["DET_HPARAMS"] = json.dumps({"checkpoint": checkpoint})
    resumed(place, master, 3)
    del place.env["DET_LATEST_CHECKPOINT"]
    master.answers["/api/v1/trial-source-info"] = (200, {"trialId": 7, "checkpointUuid": checkpoint}, {})
    code, _, err = place.run()
    assert code == 0, err
    accuracy = master.bodies_of("metrics")[-1]["metrics"]["accuracy"]  # type: ignore[call-overload,index]
    assert f"{accuracy:.4f}" in evaluated.stdout
    # Of a trial always the same place: what a killed run leaves there is replaced.
    named = uuid.uuid5(uuid.NAMESPACE_OID, f"{place.env['DET_CLUSTER_ID']}/{place.env['DET_TASK_ID']}")
    assert [path.name for path in (place.run_dir / "checkpoints" / "outputs").iterdir()] == [str(named)]
