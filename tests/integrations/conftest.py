"""Frameworks train on one thread, so that sums do not depend on how many cores there are, and reach for no network."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch

from tenax.core import info

# Before any of them is imported.
os.environ.update(HF_HUB_OFFLINE="1", KERAS_BACKEND="torch", ACCELERATE_USE_CPU="1", DS_ACCELERATOR="cpu")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("TENAX_TRACK", "TENAX_RUN_DIR", "WORLD_SIZE", "RANK", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    torch.set_rng_state(state)
    monkeypatch.setattr(info, "_read", False)
