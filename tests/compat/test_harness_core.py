"""Scripts on Determined's own Core API, unchanged, in tasks that are plain processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.compat.core_scripts import HOOK, INFO, INVALID, PLACED, REPORTS, STEPS, scalars
from tests.compat.harness import finished, submit, told
from tests.kits.machine import Machine, outlast, wait_for


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
