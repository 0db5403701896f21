"""Data directories of databases that are made once in a run of the tests, and copied where a cluster needs one.

What a first start does (initdb, every migration) takes 0.85 s of a processor, and a copy a tenth of it. They are made
by the product's own code, when the first test asks, and removed at the end of the run. In a copy nobody was at work
yet: the first master makes users, secrets and tokens there as in any new database. What copies share are the password
of the database's owner and PostgreSQL's identifier of the system. Tests of first starts make theirs anew.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tenax.local.pgdata import is_made
from tenax.local.postgres import EmbeddedPostgres
from tests.kits.database import FAST, migrated
from tests.kits.temporary import PREFIX

#: Where they are in this run, for its workers, too.
_VARIABLE = "TENAX_TESTS_PREPARED"


def pytest_configure(config: pytest.Config) -> None:
    """A place for this run, which holds it: what nobody holds is removed by a later one (`remove_abandoned`)."""
    if _VARIABLE in os.environ:
        # A worker, or a run within a test.
        return
    place = Path(tempfile.mkdtemp(prefix=PREFIX))
    # As root the database runs as another account.
    place.chmod(0o711)
    lock = (place / "lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.environ[_VARIABLE] = str(place)

    def remove() -> None:
        del os.environ[_VARIABLE]
        shutil.rmtree(place, ignore_errors=True)
        lock.close()

    config.add_cleanup(remove)


def put_database(
    directory: Path, name: str = "embedded", make: Callable[[EmbeddedPostgres], None] | None = None
) -> None:
    """Let ``directory``, of an EmbeddedPostgres that was never started, hold a copy of the database ``name``.

    It is what ``make`` leaves in the running server; without, the server's own database with every migration. From the
    main thread, without a loop that runs.
    """
    place = Path(os.environ[_VARIABLE])
    made = place / name
    with (place / f"{name}.making").open("w") as making:
        fcntl.flock(making, fcntl.LOCK_EX)
        if not made.is_dir():
            _make(place / f"{name}.half", make or _migrate)
            (place / f"{name}.half").rename(made)
    assert not is_made(directory)
    directory.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, exist_ok=True)
    subprocess.run(["cp", "-a", "--reflink=auto", made / "data", made / "password", directory], check=True)


def _make(directory: Path, make: Callable[[EmbeddedPostgres], None]) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    with EmbeddedPostgres(directory, settings=FAST) as server:
        make(server)


def _migrate(server: EmbeddedPostgres) -> None:
    asyncio.run(migrated(server.dsn))
