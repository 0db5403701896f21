"""Checkpoints in a place that only containers see: a task with the same image and mounts deletes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenax.jsonvalue import Json
from tests.e2e.collecting import SAVING, collected_and_deleted
from tests.e2e.trials import config, script
from tests.kits.machine import Machine, machine

pytestmark = [pytest.mark.docker, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def place(docker_host: str) -> Iterator[Machine]:
    """Two slots, tasks in containers."""
    with machine(runtime="docker", environment={"DOCKER_HOST": docker_host}) as up:
        yield up


@pytest.mark.parametrize("kind", ["directory", pytest.param("shared_fs", marks=pytest.mark.long)])
def test_a_place_that_the_master_does_not_see_is_cleared_by_a_task(
    place: Machine, docker_image: str, tmp_path: Path, kind: str
) -> None:
    """After the end what the policy keeps is left, and its records say so; after the deletion nothing is."""
    storage = tmp_path / "only-there"
    storage.mkdir()
    policy: dict[str, Json] = {"save_experiment_best": 0, "save_trial_best": 0, "save_trial_latest": 1}
    places: dict[str, dict[str, Json]] = {
        "directory": {"type": "directory", "container_path": "/checkpoints"},
        # Of this one the master knows nothing: its script alone has named it.
        "shared_fs": {"type": "shared_fs", "host_path": str(tmp_path)},
    }
    mounts: list[Json] = [{"host_path": str(storage), "container_path": "/checkpoints"}]
    code = (
        SAVING if kind == "directory" else SAVING.replace("core.init()", "core.init(checkpoint_storage='/checkpoints')")
    )
    document = config(
        name=kind,
        hyperparameters={"x": {"type": "categorical", "vals": [1.0]}, "saves": 3, "files": 1},
        searcher={"name": "grid", "metric": "loss"},
        checkpoint_storage={**places[kind], **policy},
        environment={"image": docker_image},
        bind_mounts=mounts,
    )
    with place.client() as client:
        number = client.create_experiment(document, script(tmp_path / "code", code)).id
    collected_and_deleted(place, number, storage)
