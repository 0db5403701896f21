"""What attacks on an agent that is root stand on."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.kits.process_bench import ProcessBench


@pytest.fixture
def ground() -> Iterator[Path]:
    """A folder to which everybody can come down."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest.fixture
async def bench(ground: Path) -> AsyncIterator[ProcessBench]:
    machine = ProcessBench(ground / "agent")
    yield machine
    await machine.clean()
