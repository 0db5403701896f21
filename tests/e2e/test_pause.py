"""Pause and activate: every trial saves and leaves, every slot is free, each goes on at its saved step.

One test for every runtime; the script runs unchanged in each.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tenax.client.experiments import Experiment
from tenax.jsonvalue import JsonObject
from tests.e2e import noop
from tests.e2e.trials import config, script
from tests.kits.machine import ROOT, Machine, machine, outlast, wait_for

TRIALS, EPOCHS = 4, 16
#: Of a run, after which it stands until it is asked to leave or may go on.
HELD_AFTER = 3
#: What ``examples/noop`` does, but for that.
HELD = f"""
    import os

    import noop
    from tenax import core, get_cluster_info

    may_go_on = os.path.join(get_cluster_info().trial.hparams["log_dir"], "go on")
    stopped, reports = noop.stopped, 0


    def held(context, seconds):
        global reports
        reports += 1
        while reports >= {HELD_AFTER} and not os.path.exists(may_go_on):
            if stopped(context, 0.02):
                return True
        return stopped(context, seconds)


    noop.stopped = held
    with core.init() as context:
        noop.main(context)
"""


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster, and what a configuration needs there."""

    machine: Machine
    #: Laid over the configuration.
    also: JsonObject


@pytest.fixture(
    scope="module",
    params=["process", pytest.param("docker", marks=pytest.mark.docker)],
)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A cluster whose tasks run in plain processes, or in containers."""
    if request.param == "process":
        yield Place(request.getfixturevalue("shared"), {})
    else:
        host, image = request.getfixturevalue("docker_host"), request.getfixturevalue("docker_image")
        with machine(runtime="docker", environment={"DOCKER_HOST": host}) as up:
            yield Place(up, {"environment": {"image": image}})


def search(place: Place, directory: Path) -> JsonObject:
    """Two of four trials at a time, which stand in the middle."""
    return config(
        name="paused",
        hyperparameters={
            "reports": EPOCHS,
            "seconds": 0.0,
            "checkpoint_every": 0,
            "log_dir": str(directory),
            "quality": {"type": "double", "minval": 0.0, "maxval": 1.0},
        },
        searcher={
            "name": "adaptive_asha",
            "metric": "loss",
            "time_metric": "epochs",
            "max_time": EPOCHS,
            "max_trials": TRIALS,
            "max_concurrent_trials": 2,
        },
        bind_mounts=[{"host_path": str(directory), "container_path": str(directory)}],
        max_restarts=0,
        **place.also,
    )


def test_pause_saves_and_frees_and_activate_goes_on_from_there(place: Place, tmp_path: Path) -> None:
    """And the search ends as if it had never been paused."""
    # As root in a container, as another user here: both write there.
    tmp_path.chmod(0o777)
    with place.machine.client() as client:
        code = script(tmp_path / "code", HELD)
        shutil.copyfile(ROOT / "examples" / "noop" / "train.py", code / "noop.py")
        experiment = client.create_experiment(search(place, tmp_path), code)
        wait_for(lambda: noop.reports(tmp_path) == 2 * HELD_AFTER, "reports of two trials")
        experiment.pause()
        wait_for(lambda: _slots_are_free(place.machine), "free slots")
        paused = experiment.reload()
        assert paused.state == "PAUSED"
        assert not paused.has_ended
        assert "paused" in paused.reason
        saved = _saved_steps(paused)
        left = {trial: book[-1] for trial, book in noop.books(tmp_path).items() if book[-1].get("event") == "preempted"}
        assert len(left) == 2, "a trial was not caught in the middle"
        assert {trial: line["step"] for trial, line in left.items()} == {trial: saved[trial] for trial in left}
        # A test before this one may have left a task that deletes.
        wait_for(lambda: not place.machine.task_processes(experiment.id), "no process of it")
        (tmp_path / "go on").touch()
        experiment.activate()
    ended = outlast(place.machine, experiment.id)
    assert ended.state == "COMPLETED"
    _hold_to_the_end(place.machine, tmp_path, ended, saved, set(left))


def _hold_to_the_end(place: Machine, directory: Path, ended: Experiment, saved: dict[int, int], left: set[int]) -> None:
    with place.client() as client:
        trials = client.experiment(ended.id).trials()
    assert len(trials) == TRIALS
    assert {trial.state for trial in trials} == {"COMPLETED"}
    assert {trial.restarts for trial in trials} == {0}, "a pause is no failure"
    for trial in trials:
        book = noop.read(directory, trial.id)
        starts = [line["step"] for line in book if line.get("event") == "start"]
        assert starts == ([0, saved[trial.id]] if trial.id in left else [0])
        steps = [line["step"] for line in book if "group" in line]
        assert steps == list(range(1, len(steps) + 1)), "a step was done twice or left out"


def _slots_are_free(place: Machine) -> bool:
    slots = place.json("slot", "list")
    assert isinstance(slots, list)
    assert len(slots) == 2
    return not any(isinstance(slot, dict) and slot["containerId"] for slot in slots)


def _saved_steps(experiment: Experiment) -> dict[int, int]:
    """The step of the latest checkpoint of each trial."""
    steps: dict[int, int] = {}
    for checkpoint in experiment.checkpoints():
        if checkpoint.state == "COMPLETED":
            steps[checkpoint.trial_id] = max(steps.get(checkpoint.trial_id, 0), checkpoint.steps)
    return steps
