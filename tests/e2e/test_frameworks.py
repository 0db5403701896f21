"""A script around Determined's callback for Transformers, without that package, on a real cluster: paused, killed."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest

from tenax.client.experiments import Experiment
from tenax.jsonvalue import JsonObject
from tests.integrations.dialects import DATASETS, NAMES, TRANSFORMERS
from tests.kits.machine import Machine, outlast, wait_for

#: 13 to an epoch.
STEPS = 13


@pytest.fixture
def code(tmp_path: Path) -> Path:
    header = NAMES["determined"].format(part="transformers", names="DetCallback")
    (tmp_path / "train.py").write_text(header + TRANSFORMERS)
    (tmp_path / "datasets_of_ours.py").write_text(DATASETS)
    return tmp_path


def config(seconds: float = 0.0) -> JsonObject:
    return {
        "name": "transformers",
        "entrypoint": "python3 train.py",
        "hyperparameters": {
            "hidden": 16,
            "seconds": seconds,
            "training_arguments": {
                "do_train": True,
                "num_train_epochs": 3,
                "per_device_train_batch_size": 32,
                "learning_rate": 0.003,
                "eval_strategy": "epoch",
                "save_strategy": "epoch",
                "logging_steps": 1,
                "disable_tqdm": True,
            },
        },
        "searcher": {"name": "single", "metric": "eval_loss"},
        "resources": {"slots_per_trial": 1},
        "environment": {"environment_variables": ["HF_HUB_OFFLINE=1"]},
        "reproducibility": {"experiment_seed": 7},
        "max_restarts": 1,
    }


def reports(place: Machine, experiment: int, group: str) -> dict[int, dict[str, object]]:
    """Of its trial, by step; what a restart took back is not there."""
    with place.client() as client:
        trials = client.experiment(experiment).trials()
        rows = list(client.trial(trials[0].id).metrics(group)) if trials else []
    return {row.steps: dict(row.metrics) for row in rows}


def completed(place: Machine, experiment: Experiment) -> None:
    """It ends, and well; else with what it said."""
    ended = outlast(place, experiment.id)
    said = place.tenax("trial", "logs", str(ended.trials()[0].id)).stdout if ended.state != "COMPLETED" else ""
    assert ended.state == "COMPLETED", said


def reaches(place: Machine, experiment: int, step: int) -> None:
    wait_for(lambda: max(reports(place, experiment, "training"), default=0) >= step, f"step {step}")


def pause(place: Machine, experiment: Experiment) -> None:
    experiment.pause()
    with place.client() as client:
        wait_for(lambda: client.experiment(experiment.id).state == "PAUSED" and not place.task_processes(), "its pause")


def kill(place: Machine) -> None:
    """What a machine without memory does to a task."""
    for pid in place.task_processes():
        with contextlib.suppress(OSError):
            if b"train.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)


@pytest.mark.long
def test_a_paused_trial_goes_on_where_it_stood(place: Machine, code: Path) -> None:
    """In the middle of an epoch: no step is trained twice, none is left out, and each evaluation comes once."""
    with place.client() as client:
        paused = client.create_experiment(config(seconds=0.003), code)
        reaches(place, paused.id, 3)
        pause(place, paused)
        at = max(reports(place, paused.id, "training"))
        (checkpoint,) = client.trial(paused.trials()[0].id).checkpoints()
        paused.activate()
    completed(place, paused)
    assert 3 <= at < 3 * STEPS
    assert checkpoint.steps == at
    assert checkpoint.metadata["user_data"] == {"finetuned_from": None, "tasks": "digits"}
    assert sorted(reports(place, paused.id, "training")) == list(range(1, 3 * STEPS + 1))
    assert sorted(reports(place, paused.id, "validation")) == [STEPS, 2 * STEPS, 3 * STEPS]


@pytest.mark.long
def test_a_trial_that_was_paused_and_killed_is_the_one_that_was_not(place: Machine, code: Path) -> None:
    """Each loss and each evaluation is the same number."""
    with place.client() as client:
        whole = client.create_experiment(config(), code)
        completed(place, whole)
        broken = client.create_experiment(config(seconds=0.01), code)
        reaches(place, broken.id, 3)
        pause(place, broken)
        broken.activate()
        reaches(place, broken.id, STEPS + 2)
        kill(place)
    completed(place, broken)
    for group in ("training", "validation"):
        assert reports(place, broken.id, group) == reports(place, whole.id, group)
    assert sorted(reports(place, whole.id, "training")) == list(range(1, 3 * STEPS + 1))
