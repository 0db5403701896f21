"""Tests of a machine that has an NVIDIA GPU: `make test-gpu`, nowhere else. Without one they fail, and say so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.kits.machine import Machine, machine
from tests.kits.off_cluster import here

__all__ = ["here"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of this folder."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(scope="session", autouse=True)
def gpu() -> str:
    """Its name."""
    assert torch.cuda.is_available(), "there is no GPU that PyTorch can use: `make test-gpu` is for machines with one"
    return torch.cuda.get_device_name(0)


@pytest.fixture(scope="session")
def place() -> Iterator[Machine]:
    """A cluster that found its GPU by itself."""
    with machine(slots=1) as up:
        yield up
