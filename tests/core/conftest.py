"""A task as training code finds it: info files, environment, a master."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenax.core import info
from tenax.exec import prepare
from tests.kits import task_master
from tests.kits.task_master import TaskMaster, environment


@pytest.fixture
def master() -> Iterator[TaskMaster]:
    with task_master.running() as master:
        yield master


@pytest.fixture
def off_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """No cluster; the directory of the user's data."""
    monkeypatch.setenv("TENAX_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("DET_RUN_DIR", str(tmp_path / "no-run"))
    monkeypatch.setattr(info, "_read", False)
    yield tmp_path / "data"
    monkeypatch.setattr(info, "_read", False)


@pytest.fixture
def trial(master: TaskMaster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """This process is the one of a trial with one slot; the run directory."""
    run_dir = tmp_path / "run"
    env = environment(master, str(run_dir))
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    described = prepare.TrialEnvironment(env)
    prepare.write_info(described)
    prepare.meet(described)
    monkeypatch.setattr(info, "_read", False)
    yield run_dir
    monkeypatch.setattr(info, "_read", False)
