"""How long nobody decides anything when the master that has the loops fails, and there is another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenax.master.store.database.connection import Database
from tests.kits.master.two_masters import two_masters
from tests.scale.place import tell

_BUDGET_MS = 1500.0


@pytest.mark.parametrize("fault", ["killed", "stopped", "cut off"])
async def test_taking_over(database: Database, database_url: str, tmp_path: Path, fault: str) -> None:
    """The search that was under way ends as it should; told is how soon it went on."""
    async with two_masters(database, database_url, tmp_path) as masters:
        seconds = await masters.survive(fault)
    tell("from the lease's end to the next decision", [seconds * 1e3], _BUDGET_MS, fault=fault)
