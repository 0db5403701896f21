"""Training off the cluster, on one thread: sums do not depend on how many cores there are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.core.conftest import off_cluster as off_cluster


@pytest.fixture(autouse=True)
def here(off_cluster: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The directory of this user's data."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("TENAX_TRACK", "TENAX_RUN_DIR", "WORLD_SIZE", "RANK"):
        monkeypatch.delenv(name, raising=False)
    state = torch.get_rng_state()
    yield off_cluster
    torch.set_rng_state(state)
