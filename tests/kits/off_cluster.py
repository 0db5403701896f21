"""A fixture: no cluster is near, and what is stored lies in a directory of the test's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tenax.core import info


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The directory of this user's data."""
    monkeypatch.setenv("TENAX_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("DET_RUN_DIR", str(tmp_path / "no-run"))
    monkeypatch.setattr(info, "_read", False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("TENAX_TRACK", "TENAX_RUN_DIR", "WORLD_SIZE", "RANK"):
        monkeypatch.delenv(name, raising=False)
    state = torch.get_rng_state()
    yield tmp_path / "data"
    monkeypatch.setattr(info, "_read", False)
    torch.set_rng_state(state)
