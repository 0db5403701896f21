"""A pretended master, and a home without logins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kits.cli.command_line import VARIABLES
from tests.kits.pretend_master import PretendMaster


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where logins and the local cluster would be: nowhere yet."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("TENAX_DIR", str(tmp_path / "cluster"))
    return tmp_path


@pytest.fixture
def master() -> Iterator[PretendMaster]:
    with PretendMaster().running() as running:
        yield running
