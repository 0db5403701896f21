"""Two masters on one database: the one that has the loops fails in the middle of a search, and the other goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenax.master.store.database.connection import Database
from tests.kits.master.two_masters import two_masters


# Whoever is not dead keeps its leases until they run out, which takes longer than all the rest; that it writes nothing
# after that is in test_database_faults as well.
@pytest.mark.parametrize(
    "fault", ["killed", *(pytest.param(fault, marks=pytest.mark.long) for fault in ("stopped", "cut off"))]
)
async def test_the_other_master_goes_on(database: Database, database_url: str, tmp_path: Path, fault: str) -> None:
    """The journal has no gap, every trial was made once and run once, and who comes back writes nothing more."""
    async with two_masters(database, database_url, tmp_path) as masters:
        await masters.survive(fault)
