"""Determined's own client against a whole cluster, both shared by all tests here.

A test leaves the slots free and removes what others would stumble on; names that it makes are its own. Its client is
the administrator (``admin``) or the ordinary user ``determined`` (``real``).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.client import Called, Det, RealClient, Sdk, client_process
from tests.compat.experiments import CONFIG, NOOP
from tests.compat.stories import story as story
from tests.kits.machine import Machine, machine


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
        "TENAX_MASTER_FEATURE_SWITCHES": '["streaming_updates"]',
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
def ours(real: RealClient) -> Iterator[RealClient]:
    """What a task gets under the name of Determined's library that has none, as the user of `real`."""
    with client_process(ours=True) as process:
        yield RealClient(real.url, real.username, real.password, real.directory, process, Called())


@pytest.fixture(scope="session")
def admin(cluster: Machine, loaded: subprocess.Popen[str], tmp_path_factory: pytest.TempPathFactory) -> RealClient:
    """The real client of the administrator."""
    told = json.loads((cluster.directory / "credentials.json").read_text())
    url = f"http://127.0.0.1:{cluster.port}"
    return RealClient(url, "admin", told["password"], tmp_path_factory.mktemp("admin"), loaded, Called())


@pytest.fixture(scope="session")
def real(cluster: Machine, admin: RealClient, tmp_path_factory: pytest.TempPathFactory) -> RealClient:
    """The real client of the user who is there from the beginning and administers nothing."""
    drawn = json.loads((cluster.directory / "credentials.json").read_text())["users"]["determined"]
    directory = tmp_path_factory.mktemp("determined")
    return RealClient(admin.url, "determined", drawn, directory, admin.server, admin.called)


@pytest.fixture
def det(real: RealClient) -> Det:
    """``det("e", "list")`` as that user."""
    return real.det


@pytest.fixture
def library() -> str:
    """Whose SDK `sdk` is: ``determined``, or ``tenax``, which is served under the same name (see `BOTH`)."""
    return "determined"


@pytest.fixture
def sdk(library: str, request: pytest.FixtureRequest) -> Sdk:
    """``sdk("result = client.get_experiment(number).id", number=1)`` as that user."""
    made: RealClient = request.getfixturevalue("real" if library == "determined" else "ours")
    return made.sdk


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
