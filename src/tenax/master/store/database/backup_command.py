"""The operator's own backup, taken before a release changes a database that is in use.

Rules it keeps:

- the command is run without a shell, by whoever migrates, while it keeps every other migrator out; it ends with that
  process, whatever ends that;
- it finds what it needs in its environment (``TENAX_...`` below, and the variables of PostgreSQL's own programs):
  arguments are for everyone's eyes;
- where it fails, nothing is changed: the reason is the last that it printed, without the password.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
import time
from collections.abc import Sequence
from urllib.parse import parse_qs, unquote, urlsplit

import structlog

from tenax.display.secrets import HIDDEN
from tenax.errors import UserError
from tenax.host.leash import GRACE_S
from tenax.wire.backup_names import DATABASE_URL, FIRST_MIGRATION

#: Of what it prints, this much of the end is kept, and less than that is shown: what stands at its front may be half of
#: a password.
_KEPT_BYTES = 64 * 1024
_SHOWN = 2000
_TELL_EVERY_S = 10.0
#: How long what it has printed may take to arrive after its end: what it has left behind may hold the pipe for ever.
_DRAIN_S = 1.0
#: What PostgreSQL's programs call what stands in an address.
_VARIABLES = {
    "host": "PGHOST",
    "port": "PGPORT",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "dbname": "PGDATABASE",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
}

_PLACE = re.compile(r"(?P<host>\[[^]]*\]|[^:]*)(?::(?P<port>\d*))?")

log = structlog.get_logger("tenax.master")


class BackupFailed(UserError):
    """There is no backup, so the database was not migrated."""


async def run_backup(command: Sequence[str], url: str, first: str) -> None:
    """Run ``command`` to its end; when this is cancelled, it is ended, too. Raises BackupFailed."""
    log.info("making a backup before the database is migrated", command=command[0], migration=first)
    began = time.monotonic()
    postgres = postgres_variables(url)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "tenax.host.leash", *command),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **postgres, DATABASE_URL: url, FIRST_MIGRATION: first},
        # Whoever ends the group of this process kills the command by that: its owner is gone.
        start_new_session=True,
    )
    kept = bytearray()
    reading = asyncio.create_task(_read(process, kept))
    progress = asyncio.create_task(_tell_now_and_then(began))
    try:
        await process.wait()
        await asyncio.wait([reading], timeout=_DRAIN_S)
    finally:
        progress.cancel()
        reading.cancel()
        await _end(process)
    secrets = (url, postgres.get("PGPASSWORD", ""), urlsplit(url).password or "")
    printed = _without(kept.decode(errors="replace").strip(), *secrets)[-_SHOWN:]
    if process.returncode != 0:
        reason = printed or f"{command[0]} ended with {process.returncode}"
        raise BackupFailed(
            f"The backup before the migration failed, so nothing was changed: {reason.rstrip('.')}. Mend that, or "
            "start without a backup: TENAX_MASTER_DB__BACKUP_COMMAND='[]'"
        )
    log.info("the backup is made", seconds=round(time.monotonic() - began, 1), output=printed)


def postgres_variables(url: str) -> dict[str, str]:
    """What ``pg_dump`` and the others need to find the database of an address without being given it."""
    parts = urlsplit(url)
    values = {name: given[0] for name, given in parse_qs(parts.query).items()}
    who, _, where = parts.netloc.rpartition("@")
    user, _, password = who.partition(":")
    # There may be several, each with a port of its own.
    places = [_PLACE.fullmatch(place) for place in where.split(",")]
    of_address = {
        "host": ",".join(place["host"].strip("[]") for place in places if place is not None),
        "port": ",".join(place["port"] or "" for place in places if place is not None).strip(","),
        "user": user,
        "password": password,
        "dbname": parts.path.lstrip("/"),
    }
    values |= {name: unquote(value) for name, value in of_address.items() if value}
    return {_VARIABLES[name]: value for name, value in values.items() if name in _VARIABLES}


def _without(text: str, *secrets: str) -> str:
    for secret in filter(None, secrets):
        text = text.replace(secret, HIDDEN)
    return text


async def _read(process: asyncio.subprocess.Process, kept: bytearray) -> None:
    assert process.stdout is not None
    while part := await process.stdout.read(65536):
        kept += part
        del kept[:-_KEPT_BYTES]


async def _tell_now_and_then(began: float) -> None:
    """Whoever waits for the master sees that it has not hung."""
    while True:
        await asyncio.sleep(_TELL_EVERY_S)
        log.info("the backup goes on", seconds=round(time.monotonic() - began))


async def _end(process: asyncio.subprocess.Process) -> None:
    """Of one that still runs: let go of it."""
    if process.returncode is not None:
        return
    assert process.stdin is not None
    process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), 2 * GRACE_S)
    except asyncio.TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
