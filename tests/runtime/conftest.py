"""A runtime on the bench of a test, and an environment of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tenax.runtime.forking import zygotes
from tenax.runtime.process import ProcessRuntime
from tests.kits.process_bench import ProcessBench
from tests.kits.warm_start import Installed


@pytest.fixture(autouse=True)
def _busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter has all the time to load that it takes: a trial that waits no longer starts by itself."""
    monkeypatch.setattr(zygotes, "_LOADED_WITHIN_S", 240.0)


@pytest.fixture
async def runtime(bench: ProcessBench) -> AsyncIterator[ProcessRuntime]:
    opened = ProcessRuntime(bench.directory)
    yield opened
    await opened.close()


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path / "environment")
