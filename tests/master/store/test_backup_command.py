"""The operator's backup before a migration."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tenax.master.store.database.backup_command import BackupFailed, run_backup
from tests.kits.machine import wait_for

URL = "postgresql://tenax:secret@example.org/tenax"


async def test_it_gets_the_database_and_what_is_coming(tmp_path: Path) -> None:
    """In its environment; its arguments are its own, without a shell."""
    script = (
        "import os, sys; open(sys.argv[1], 'w').write(os.environ[sys.argv[2]] + os.environ['TENAX_FIRST_MIGRATION'])"
    )
    target = tmp_path / "$(made)"
    await run_backup([sys.executable, "-c", script, str(target), "TENAX_DATABASE_URL"], URL, "0043_pre_x")
    assert target.read_text() == f"{URL}0043_pre_x"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ([sys.executable, "-c", "import sys; print('x' * 9000); sys.exit('no space left')"], "no space left"),
        ([sys.executable, "-c", "import sys; sys.exit(3)"], "ended with 3"),
        (["/nowhere/pg_dump"], "cannot be run: No such file"),
    ],
)
async def test_one_that_fails_says_why(command: list[str], reason: str) -> None:
    """The end of what it printed, how it ended, or that there is no such program; never the address of the database."""
    with pytest.raises(BackupFailed, match=reason) as failed:
        await run_backup(command, URL, "0043_pre_x")
    assert "TENAX_MASTER_DB__BACKUP_COMMAND" in failed.value.message
    assert "secret" not in failed.value.message


async def test_one_that_is_given_up_is_ended(tmp_path: Path) -> None:
    """A master that is to end while its database is copied leaves nobody behind, even one that ignores SIGTERM."""
    began = tmp_path / "began"
    script = (
        "import os, signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "open(sys.argv[1] + '.new', 'w').write(str(os.getpid())); os.rename(sys.argv[1] + '.new', sys.argv[1]);"
        "signal.pause()"
    )
    doing = asyncio.create_task(run_backup([sys.executable, "-c", script, str(began)], URL, "0043_pre_x"))
    await asyncio.to_thread(wait_for, began.exists, "a backup that has begun")
    doing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await doing
    with pytest.raises(ProcessLookupError):
        os.kill(int(began.read_text()), 0)
