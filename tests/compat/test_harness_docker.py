"""Determined's own library in a container of an image: nothing but what is mounted there anyway."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenax.jsonvalue import Json
from tests.compat.client import ENVIRONMENT
from tests.compat.harness import finished, submit, told
from tests.e2e.machine import Machine, machine

pytestmark = pytest.mark.docker

SCRIPT = """
import json, os
import determined as det
from determined import core

info = det.get_cluster_info()
with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:
    context.train.report_training_metrics(steps_completed=1, metrics={"loss": 1.0})
    context.train.report_validation_metrics(steps_completed=1, metrics={"score": 0.5})
    with context.checkpoint.store_path({"steps_completed": 1}) as (path, _):
        (path / "state").write_text("one")
print("IN", json.dumps([det.__version__, os.getcwd(), sorted(os.listdir("/run/determined/train/model"))]))
"""


@pytest.fixture
def place(docker_host: str) -> Iterator[Machine]:
    with machine(runtime="docker", environment={"DOCKER_HOST": docker_host}) as up:
        yield up


def test_a_script_runs_unchanged_in_an_image(place: Machine, docker_image: str, tmp_path: Path) -> None:
    """It finds its info files, its code and its storage; its metrics and its checkpoint are where they belong."""
    (packages,) = ENVIRONMENT.glob("lib/python*/site-packages")
    # The image is small: what those packages are linked with comes from where it was made.
    mounts: list[Json] = [
        {"host_path": str(packages), "container_path": "/opt/packages", "read_only": True},
        {"host_path": f"/lib/{sysconfig.get_config_var('MULTIARCH')}", "container_path": "/opt/lib", "read_only": True},
    ]
    experiment = submit(
        place,
        tmp_path / "code",
        {"train.py": SCRIPT},
        bind_mounts=mounts,
        environment={
            "image": docker_image,
            "environment_variables": ["PYTHONPATH=/opt/packages", "LD_LIBRARY_PATH=/opt/lib"],
        },
    )
    trial, said = finished(place, experiment)
    assert told(said, "IN") == ["0.38.1", "/run/determined/workdir", ["train.py"]]
    assert trial.searcher_metric == 0.5
    (checkpoint,) = trial.checkpoints()
    assert (place.directory / "checkpoints" / checkpoint.uuid / "state").read_text() == "one"
