"""The operator's own backup, taken before a release changes a database that is in use.

Rules it keeps:

- the command is run without a shell, by whoever migrates, while it keeps every other migrator out;
- it finds what it needs in its environment (``DATABASE_URL``, ``FIRST_MIGRATION``): arguments are for everyone's eyes;
- where it fails, nothing is changed: the reason is the last that it printed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Sequence

import structlog

from tenax.errors import UserError

#: The database, for ``pg_dump --dbname="$TENAX_DATABASE_URL"``; holds the password.
DATABASE_URL = "TENAX_DATABASE_URL"
#: The name of the first of the migrations that are about to be applied.
FIRST_MIGRATION = "TENAX_FIRST_MIGRATION"
#: Of what it prints, this much of the end is kept.
_KEPT_BYTES = 4000
_END_S = 5.0

log = structlog.get_logger("tenax.master")


class BackupFailed(UserError):
    """There is no backup, so the database was not migrated."""


async def run_backup(command: Sequence[str], url: str, first: str) -> None:
    """Run ``command`` to its end; when this is cancelled, it is ended, too. Raises BackupFailed."""
    log.info("making a backup before the database is migrated", command=command[0], migration=first)
    began = time.monotonic()
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, DATABASE_URL: url, FIRST_MIGRATION: first},
        )
    except OSError as error:
        raise BackupFailed(_refusal(f"{command[0]} cannot be run: {error.strerror}")) from None
    try:
        printed = await _end_of_output(process)
    finally:
        await _end(process)
    if process.returncode != 0:
        raise BackupFailed(_refusal(printed or f"{command[0]} ended with {process.returncode}"))
    log.info("the backup is made", seconds=round(time.monotonic() - began, 1), output=printed)


def _refusal(reason: str) -> str:
    return (
        f"The backup before the migration failed, so nothing was changed: {reason.rstrip('.')}. Mend that, or start "
        "without a backup: TENAX_MASTER_DB__BACKUP_COMMAND='[]'"
    )


async def _end_of_output(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    kept = b""
    while part := await process.stdout.read(65536):
        kept = (kept + part)[-_KEPT_BYTES:]
    await process.wait()
    return kept.decode(errors="replace").strip()


async def _end(process: asyncio.subprocess.Process) -> None:
    """Of one that still runs: it was given up."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _END_S)
    except asyncio.TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
