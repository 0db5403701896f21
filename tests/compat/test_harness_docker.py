"""Determined's own library in containers of an image: nothing but what is mounted there anyway."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenax.client.experiments import Experiment
from tenax.jsonvalue import Json
from tests.compat.client import ENVIRONMENT
from tests.compat.core_scripts import HOOK, INFO, INVALID, PLACED, REPORTS, STEPS, scalars
from tests.compat.digits_trial import BATCHES, MODEL, TRAINING
from tests.compat.harness import finished, submit, told
from tests.kits.machine import Machine, machine, outlast, wait_for

pytestmark = [pytest.mark.docker, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def place(docker_host: str) -> Iterator[Machine]:
    """Two slots, tasks in containers."""
    with machine(runtime="docker", environment={"DOCKER_HOST": docker_host}) as up:
        yield up


def submitted(place: Machine, image: str, directory: Path, code: dict[str, str], **changes: Json) -> Experiment:
    """An experiment in the image. It is small: packages, and what they are linked with, come from where it was made."""
    (packages,) = ENVIRONMENT.glob("lib/python*/site-packages")
    libraries = f"/lib/{sysconfig.get_config_var('MULTIARCH')}"
    mounts: list[Json] = [
        {"host_path": str(packages), "container_path": "/opt/packages", "read_only": True},
        {"host_path": libraries, "container_path": "/opt/lib", "read_only": True},
    ]
    variables: list[Json] = ["PYTHONPATH=/opt/packages", "LD_LIBRARY_PATH=/opt/lib"]
    environment: Json = {"image": image, "environment_variables": variables}
    return submit(place, directory, code, bind_mounts=mounts, environment=environment, **changes)


def test_a_script_runs_unchanged_in_an_image(place: Machine, docker_image: str, tmp_path: Path) -> None:
    """The whole Core API: what it tells is the master's, its checkpoints and TensorBoard files are the storage's."""
    searcher: Json = {"name": "single", "metric": "score", "smaller_is_better": False, "max_length": {"batches": 3}}
    experiment = submitted(
        place,
        docker_image,
        tmp_path / "code",
        {"train.py": REPORTS, "startup-hook.sh": HOOK, "left.out": "x", ".detignore": "*.out\n"},
        hyperparameters={"lr": 0.5},
        searcher=searcher,
    )
    trial, said = finished(place, experiment)
    assert told(said, "LACKS") == []
    assert told(said, "PLACE") == [True, True, PLACED, "yes"]
    assert told(said, "IN") == ["0.38.1", {"lr": 0.5}, None, 1, INFO]
    assert told(said, "BACK") == "three"
    assert told(said, "TOLD") == [[trial.id], {"a": {"b": 1}}, {"steps_completed": 3}]
    with place.client() as client:
        trial = client.trial(trial.id)
        kept, gone = sorted(trial.checkpoints(), key=lambda one: one.state)
        assert [one.metrics for one in trial.metrics("mine")] == [{"a": 1}]
    assert (kept.state, gone.state) == ("COMPLETED", "DELETED")
    assert (place.directory / "checkpoints" / kept.uuid / "state").read_text() == "three"
    (board,) = (place.directory / "checkpoints").glob(f"*/tensorboard/experiment/{experiment.id}/trial/{trial.id}")
    assert scalars(board)["Determined/val_score"] == [[3, 0.75]]


def test_it_is_paused_in_an_image_and_goes_on(place: Machine, docker_image: str, tmp_path: Path) -> None:
    """Asked to leave it saves; activated, it goes on from there in another container."""
    experiment = submitted(place, docker_image, tmp_path / "code", {"train.py": STEPS})
    with place.client() as client:
        trial = wait_for(lambda: next(iter(client.experiment(experiment.id).trials()), None), "its trial")

        def furthest() -> int:
            return max((one.steps for one in client.trial(trial.id).metrics("training")), default=0)

        wait_for(lambda: furthest() > 1, "its first reports")
        client.experiment(experiment.id).pause()
        wait_for(lambda: client.trial(trial.id).state == "PAUSED", "its pause")
        (checkpoint,) = client.trial(trial.id).checkpoints()
        client.experiment(experiment.id).activate()
        wait_for(lambda: furthest() > checkpoint.steps, "more reports")
        client.experiment(experiment.id).kill()
    assert outlast(place, experiment.id).state == "CANCELED"


def test_hyperparameters_that_cannot_be_trained_in_an_image(place: Machine, docker_image: str, tmp_path: Path) -> None:
    """A script that raises InvalidHP ends well, and the search tries another sample in its place."""
    experiment = submitted(place, docker_image, tmp_path / "code", {"train.py": INVALID})
    assert outlast(place, experiment.id).state == "COMPLETED"
    with place.client() as client:
        first, second = sorted(client.experiment(experiment.id).trials(), key=lambda trial: trial.id)
    assert (first.latest_validation is None, second.latest_validation is None) == (True, False)


@pytest.mark.long
def test_a_class_learns_on_two_slots_in_an_image(place: Machine, docker_image: str, tmp_path: Path) -> None:
    """The torch launcher and a PyTorchTrial on real data, as for plain processes (test_harness_trial.py)."""
    experiment = submitted(place, docker_image, tmp_path / "code", {"model_def.py": MODEL}, **TRAINING)
    trial, _ = finished(place, experiment)
    assert trial.best_validation is not None
    assert trial.best_validation.steps == BATCHES
    assert (trial.searcher_metric or 0.0) > 0.7
    assert {line.rank for line in trial.logs()} >= {0, 1}
    (checkpoint,) = trial.checkpoints()
    kept = place.directory / "checkpoints" / checkpoint.uuid
    assert {"state_dict.pth", "load_data.json", "metadata.json"} <= {path.name for path in kept.iterdir()}


SERVED = """
import getpass, json, os, site
import determined as det
from determined import core
from determined.experimental import client

with core.init() as context:
    context.train.report_validation_metrics(steps_completed=1, metrics={"score": 1.0})
own = [os.access(path, os.W_OK) for path in (os.environ["HOME"], site.getuserbase(), ".")]
print("WHO", json.dumps([os.getuid(), getpass.getuser(), own, core.__name__, client.whoami().username]))
"""


def test_without_the_package_and_without_an_account(place: Machine, docker_image: str, tmp_path: Path) -> None:
    """In an image that has neither the package nor the user: what the script imports is served by Tenax, and a mapped
    user has a name, a home and a place for packages."""
    with place.client() as client:
        admin = client.whoami()
        admin.link_with_agent(4242, "nobody-here", 4242, "nobody-here")
        try:
            code = {"train.py": SERVED}
            storage: Json = {"type": "directory", "container_path": "/tmp/checkpoints"}
            environment: Json = {"image": docker_image}
            experiment = submit(
                place, tmp_path / "code", code, environment=environment, checkpoint_storage=storage, max_restarts=0
            )
            _, said = finished(place, experiment)
        finally:
            admin.link_with_agent(0, "root", 0, "root")
    assert told(said, "WHO") == [4242, "nobody-here", [True, True, True], "tenax.core", "admin"]
