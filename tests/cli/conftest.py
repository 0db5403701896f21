"""The command line in this process, against a pretended master."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenax.cli.main import run
from tenax.client.connection.saved_logins import TokenStore
from tests.kits.cli.command_line import VARIABLES, Done, Tenax
from tests.kits.pretend_master import PretendMaster


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where logins and the local cluster would be: nowhere yet."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("TENAX_DIR", str(tmp_path / "cluster"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendMaster]:
    """Where we are logged in as ann."""
    with PretendMaster().running() as running:
        monkeypatch.setenv("DET_MASTER", running.url)
        TokenStore().put(running.url, "ann", "t")
        running.on("GET", "/api/v1/me", {"user": {"username": "ann", "id": 2}})
        yield running


@pytest.fixture
def tenax(capsys: pytest.CaptureFixture[str]) -> Tenax:
    """Run ``tenax`` with these arguments."""

    def run_it(*arguments: str) -> Done:
        code = run(list(arguments))
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run_it
