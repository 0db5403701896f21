"""Determined's own client against a whole cluster, both shared by all tests here.

A test leaves the slots free and removes what others would stumble on; names that it makes are its own. Its client is
the administrator (``admin``) or the ordinary user ``determined`` (``real``).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tenax.jsonvalue import Json
from tests.compat.client import Called, Done, RealClient, client_process
from tests.compat.stories import story as story
from tests.e2e.machine import Machine, machine

Det = Callable[..., Done]
Sdk = Callable[..., Json]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """That everything of the client was used can be told only where all tests of it run: then it is told last."""
    folder = Path(__file__).parent
    here = {item.path for item in items if item.path.parent == folder}
    whole = set(folder.glob("test_*.py")) <= here
    last = [item for item in items if item.path == folder / "test_everything.py"]
    items[:] = [item for item in items if item not in last] + (last if whole else [])


@pytest.fixture(scope="session")
def cluster() -> Iterator[Machine]:
    """Two slots, plain processes, a pool beside the default one, webhooks to this machine; all else as it comes."""
    settings = {
        "TENAX_MASTER_POOLS": json.dumps([{"name": "default"}, {"name": "spare"}]),
        "TENAX_MASTER_WEBHOOKS__ALLOWED_NETWORKS": "[127.0.0.0/8]",
    }
    with machine(environment=settings) as up:
        yield up


@pytest.fixture(scope="session")
def loaded() -> Iterator[subprocess.Popen[str]]:
    """The process that has the client loaded."""
    with client_process() as process:
        yield process


@pytest.fixture(scope="session")
def admin(cluster: Machine, loaded: subprocess.Popen[str], tmp_path_factory: pytest.TempPathFactory) -> RealClient:
    """The real client of the administrator."""
    told = json.loads((cluster.directory / "credentials.json").read_text())
    url = f"http://127.0.0.1:{cluster.port}"
    return RealClient(url, "admin", told["password"], tmp_path_factory.mktemp("admin"), loaded, Called())


@pytest.fixture(scope="session")
def real(admin: RealClient, tmp_path_factory: pytest.TempPathFactory) -> RealClient:
    """The real client of the user who is there from the beginning and administers nothing."""
    directory = tmp_path_factory.mktemp("determined")
    return RealClient(admin.url, "determined", admin.password, directory, admin.server, admin.called)


@pytest.fixture
def det(real: RealClient) -> Det:
    """``det("e", "list")`` as that user."""
    return real.det


@pytest.fixture
def sdk(real: RealClient) -> Sdk:
    """``sdk("result = client.get_experiment(number).id", number=1)`` as that user."""
    return real.sdk


NOOP = """\
import sys
from tenax import core

with core.init() as context:
    steps = int(sys.argv[1])
    for step in range(1, steps + 1):
        context.train.report_training_metrics(steps_completed=step, metrics={"loss": 1.0 / step})
        if context.preempt.should_preempt():
            break
    context.train.report_validation_metrics(steps_completed=steps, metrics={"score": float(steps)})
    with context.checkpoint.store_path({"steps_completed": steps}) as (path, _):
        (path / "weights").write_text("w" * 10)
    print("done after", steps)
"""

CONFIG: dict[str, Json] = {
    "name": "compat",
    "entrypoint": "python3 train.py 3",
    "searcher": {"name": "single", "metric": "score", "smaller_is_better": False, "max_length": {"batches": 3}},
    "resources": {"slots_per_trial": 1},
    "max_restarts": 0,
}


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A directory with a script that reports, keeps a checkpoint and ends: context of `CONFIG`."""
    directory = tmp_path / "code"
    directory.mkdir()
    (directory / "train.py").write_text(NOOP)
    return directory


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """`CONFIG` in a file (JSON is YAML)."""
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps(CONFIG))
    return path


@pytest.fixture(scope="session")
def finished(admin: RealClient, real: RealClient, tmp_path_factory: pytest.TempPathFactory) -> int:
    """An experiment of one trial that has ended, with metrics, a checkpoint and output; for looking at only."""
    directory = tmp_path_factory.mktemp("finished")
    (directory / "train.py").write_text(NOOP)
    number = real.sdk(
        "experiment = client.create_experiment(config, directory)\n"
        "state = experiment.wait(interval=0.2)\n"
        "assert state == client.ExperimentState.COMPLETED, state\n"
        "result = experiment.id",
        config={**CONFIG, "name": "finished"},
        directory=str(directory),
    )
    assert isinstance(number, int)
    return number
