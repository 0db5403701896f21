"""The operator's backup before a migration."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from tenax.display.secrets import HIDDEN
from tenax.master.store.database.backup_command import BackupFailed, postgres_variables, run_backup
from tests.kits.machine import wait_for

URL = "postgresql://tenax:%73ecret@example.org/tenax"


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


async def test_what_it_prints_is_told_without_the_password(capfd: pytest.CaptureFixture[str]) -> None:
    """A script may say its every command."""
    long = "import os, sys; sys.exit(os.environ['PGPASSWORD'] + '0' * 1996)"
    with pytest.raises(BackupFailed) as cut:
        await run_backup([sys.executable, "-c", long], URL, "0043_pre_x")
    assert "cret" not in cut.value.message
    script = "import os, sys; sys.exit(os.environ['TENAX_DATABASE_URL'][:-3] + ' ' + os.environ['PGPASSWORD'])"
    with pytest.raises(BackupFailed, match=re.escape(HIDDEN)) as failed:
        await run_backup([sys.executable, "-c", script], URL, "0043_pre_x")
    assert "secret" not in failed.value.message
    await run_backup([sys.executable, "-c", script.replace("sys.exit", "print")], URL, "0043_pre_x")
    captured = capfd.readouterr()
    assert "secret" not in captured.out + captured.err


@pytest.mark.parametrize(
    ("url", "variables"),
    [
        (
            "postgresql://a:b%2Fc@db.example.org:5433/tenax?sslmode=require&application_name=x",
            "PGHOST=db.example.org PGPORT=5433 PGUSER=a PGPASSWORD=b/c PGDATABASE=tenax PGSSLMODE=require",
        ),
        (
            "postgresql://a:b@/tenax?host=%2Frun%2Fpg&port=5432",
            "PGHOST=/run/pg PGPORT=5432 PGUSER=a PGPASSWORD=b PGDATABASE=tenax",
        ),
        ("postgresql://a@one:5432,two:5433/t", "PGHOST=one,two PGPORT=5432,5433 PGUSER=a PGDATABASE=t"),
        ("postgresql://[::1]/t", "PGHOST=::1 PGDATABASE=t"),
    ],
)
def test_programs_of_postgresql_need_no_arguments(url: str, variables: str) -> None:
    """Which everyone on the machine could read."""
    assert postgres_variables(url) == dict(pair.split("=", 1) for pair in variables.split())


async def test_what_it_leaves_behind_is_not_waited_for(tmp_path: Path) -> None:
    """A process in the background would hold its output for ever; it is ended with the command."""
    left = tmp_path / "left"
    await run_backup(["sh", "-c", f"sleep 600 & echo $! > {left}"], URL, "0043_pre_x")
    await asyncio.to_thread(wait_for, lambda: not is_there(int(left.read_text())), "the end of what was left")


async def test_it_ends_with_the_master_that_is_killed(tmp_path: Path) -> None:
    """With all that it has started: the next master's would work beside it."""
    began = tmp_path / "began"
    command = ["sh", "-c", f"sleep 600 & echo $! > {began}.new; mv {began}.new {began}; wait"]
    program = (
        "import asyncio, sys; from tenax.master.store.database.backup_command import run_backup;"
        "asyncio.run(run_backup(sys.argv[2:], sys.argv[1], '0043_pre_x'))"
    )
    master = await asyncio.create_subprocess_exec(sys.executable, "-c", program, URL, *command)
    await asyncio.to_thread(wait_for, began.exists, "a backup that has begun")
    master.kill()
    await master.wait()
    await asyncio.to_thread(wait_for, lambda: not is_there(int(began.read_text())), "its end")


def is_there(pid: int) -> bool:
    """Whether it runs."""
    try:
        os.kill(pid, 0)
        # It may go between the two looks.
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


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
    assert not is_there(int(began.read_text()))
