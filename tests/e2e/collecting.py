"""Checkpoints of an experiment that saves them: what is recorded, and what is on the disk."""

from __future__ import annotations

from pathlib import Path

from tenax.client.checkpoints import Checkpoint
from tenax.client.experiments import Experiment
from tests.e2e.trials import output
from tests.kits.machine import Machine, outlast, wait_for

#: Saves at each step; the value goes up and down, and is different in each trial.
SAVING = """
    from tenax import core

    with core.init() as context:
        hparams = context.info.trial.hparams
        for step in range(1, hparams["saves"] + 1):
            value = (step * 7 % 5 + 1) * hparams["x"]
            context.train.report_validation_metrics(steps_completed=step, metrics={"loss": value})
            with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
                for number in range(hparams["files"]):
                    (path / f"{number}.bin").write_bytes(b"x" * 100)
"""


def all_of(place: Machine, number: int) -> tuple[Experiment, list[Checkpoint]]:
    """Its checkpoints, also those whose files are gone."""
    with place.client() as client:
        experiment = client.experiment(number)
        return experiment, experiment.checkpoints()


def on_disk(storage: Path) -> set[str]:
    """Whatever lies there, but what TensorBoard reads."""
    return {entry.name for entry in storage.iterdir() if not (entry / "tensorboard").is_dir()}


def collected_and_deleted(place: Machine, number: int, storage: Path) -> None:
    """Of three checkpoints the latest is left on disk; then the experiment is deleted, and nothing is."""
    ended = outlast(place, number)
    assert ended.state == "COMPLETED", output(place, ended.trials()[0])
    _, checkpoints = all_of(place, number)
    latest = {max(checkpoints, key=lambda one: one.steps).uuid}
    wait_for(lambda: on_disk(storage) == latest or None, "the end of two checkpoints")
    wait_for(
        lambda: sorted(one.state for one in all_of(place, number)[1]) == ["COMPLETED", "DELETED", "DELETED"] or None,
        "their records to say so",
    )
    with place.client() as client:
        client.experiment(number).delete()
    wait_for(lambda: not on_disk(storage) or None, "the end of everything")
