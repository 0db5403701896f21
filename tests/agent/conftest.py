"""A master double and a machine with an agent beside it; what they started is killed at the end, whatever happened."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.agent.host import Host
from tests.agent.master_double import MasterDouble


@pytest.fixture
async def master() -> AsyncIterator[MasterDouble]:
    async with MasterDouble() as double:
        yield double


@pytest.fixture
async def host(tmp_path: Path, master: MasterDouble) -> AsyncIterator[Host]:
    machine = Host(tmp_path / "agent", master.url)
    try:
        yield machine
    finally:
        await machine.clean()
