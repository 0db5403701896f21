"""A new major version for an embedded PostgreSQL: its databases are written into a new data directory.

Rules:
- The old data directory is only read, by the server that made it, and is kept until somebody removes it.
- The new one lies beside it, in ``upgrade/``, until everything was copied, compared and is on disk. Then it is renamed
  to ``data.upgraded``, from where on it counts: a run that is killed before leaves the old database as it was, and the
  next one begins anew; one that is killed after is completed by whoever starts next (`put_in_place`).
- The caller keeps every other launcher out, and calls from the main thread. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import IO

from tenax.errors import UserError
from tenax.host.disk import is_there, size_text
from tenax.local.accounts import account_for
from tenax.local.binaries import CURRENT_MAJOR, Installation, below, choose, choose_old, installed, within_reach
from tenax.local.pgdata import NAME, call, older_major, password_of, put_in_place, sync_names, write_secret
from tenax.local.postgres import EmbeddedPostgres, quiet

#: Of the old server: nothing changes what is being copied.
_READING = {"default_transaction_read_only": "on"}
#: Of the new one, until it is complete. It is written to disk at the end, as a whole.
_FILLING = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "autovacuum": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "256MB",
    "maintenance_work_mem": "256MB",
}
#: Beside what the old directory takes: the new one's log, and some air.
_SPARE_BYTES = 512 * 1024 * 1024
_CHUNK = 1024 * 1024
_PROGRESS_EVERY_S = 5.0


class NotUpgraded(UserError):
    """The database was not upgraded, and is as it was."""


@dataclass(slots=True)
class MajorUpgrade:
    """One upgrade of the database in ``directory``. ``programs``: of the old version; those of the wheel are known."""

    directory: Path
    programs: Sequence[Installation] = ()
    say: Callable[[str], None] = quiet
    settings: Mapping[str, str] = field(default_factory=dict)

    def run(self) -> Path | None:
        """Where the old data directory is kept; None where there is nothing to upgrade.

        Raises NotUpgraded, NoPostgres, DatabaseFailed, NoAccount.
        """
        kept = put_in_place(self.directory)
        major = older_major(self.directory)
        if major is None:
            self._clear()
            return kept
        # Under root they may have been copied to where the server's account reaches them.
        copies = [each for place in self.directory.glob("postgresql-*") for each in below(place)]
        available = [*self.programs, *installed(), *copies]
        choose_old(major, available)
        new = choose(CURRENT_MAJOR, available)
        self._clear()
        self._refuse_without_room()
        self.say(f"copying the database from PostgreSQL {major} to {new.version}; the old one is kept")
        try:
            self._fill(available)
            self._complete(new)
        finally:
            self._clear()
        return put_in_place(self.directory)

    @property
    def _beside(self) -> Path:
        return self.directory / "upgrade"

    def _clear(self) -> None:
        """What a run that was broken off has left; its server ends with it, in a moment."""
        if is_there(self._beside):
            EmbeddedPostgres(self._beside, progress=self.say).wait_until_gone()
            shutil.rmtree(self._beside)

    def _refuse_without_room(self) -> None:
        needed = _used(self.directory / "data") + _SPARE_BYTES
        free = shutil.disk_usage(self.directory).free
        if free < needed:
            raise NotUpgraded(
                f"The copy may need {size_text(needed)}, and the disk of {self.directory} has {size_text(free)} left: "
                "make room on it. Nothing was changed."
            )

    def _fill(self, available: Sequence[Installation]) -> None:
        account = account_for(self.directory / "data")
        self._beside.mkdir(mode=0o700 if account is None else 0o711)
        if account is not None:
            self._beside.chmod(0o711)
        write_secret(self._beside / "password", password_of(self.directory))
        name = account.name if account is not None else None
        old = EmbeddedPostgres(
            self.directory, settings={**self.settings, **_READING}, programs=available, progress=self.say
        )
        new = EmbeddedPostgres(
            self._beside, account=name, settings={**self.settings, **_FILLING}, programs=available, progress=self.say
        )
        with old, new:
            _Copy(choose(CURRENT_MAJOR, available), old.environment, new.environment, self.say).run()

    def _complete(self, new: Installation) -> None:
        data = self._beside / "data"
        account = account_for(data)
        self.say("writing it to disk")
        program = within_reach(new, account, self._beside).program("initdb")
        call([str(program), "--sync-only", f"--pgdata={data}"], account, None)
        data.rename(self.directory / "data.upgraded")
        sync_names(self.directory)


@dataclass(slots=True)
class _Copy:
    """From one running server to another, by the newer one's programs."""

    programs: Installation
    old: Mapping[str, str]
    new: Mapping[str, str]
    say: Callable[[str], None]

    def run(self) -> None:
        """Raises NotUpgraded."""
        self._sql(self.new, "postgres", f"drop database {NAME}")
        self._restore("roles", ["pg_dumpall", "--globals-only"])
        databases = self._sql(
            self.old, "postgres", "select datname from pg_database where not datistemplate and datname <> 'postgres'"
        )
        for name in databases.splitlines():
            self._restore(f"database {name}", ["pg_dump", "--create", f"--dbname={_quoted(name)}"])
        for name in databases.splitlines():
            self.say(f"comparing the copy of database {name}, and gathering statistics of it")
            self._sql(self.new, name, "analyze")
            _compare(self._counts(self.old, name), self._counts(self.new, name))

    def _restore(self, what: str, command: list[str]) -> None:
        """What one program prints, done by another."""
        psql = [self._program("psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "postgres"]
        with tempfile.TemporaryFile() as errors:
            with (
                subprocess.Popen(
                    [self._program(command[0]), *command[1:]],
                    env=dict(self.old),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                ) as dumping,
                subprocess.Popen(
                    psql, env=dict(self.new), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors
                ) as restoring,
            ):
                assert dumping.stdout is not None
                assert restoring.stdin is not None
                try:
                    self._pump(what, dumping.stdout, restoring.stdin)
                except BrokenPipeError:
                    # It has said why.
                    dumping.kill()
                self._wait(what, restoring)
            if dumping.returncode != 0 or restoring.returncode != 0:
                errors.seek(0)
                reason = errors.read()[-2000:].decode(errors="replace").strip()
                raise NotUpgraded(f"The copy of the {what} failed, and the database is as it was:\n{reason}")

    def _pump(self, what: str, source: IO[bytes], sink: IO[bytes]) -> None:
        copied, reported = 0, time.monotonic()
        # The role is there already: initdb made it.
        made = f"CREATE ROLE {NAME};\n".encode()
        with sink:
            while chunk := source.read(_CHUNK):
                sink.write(chunk.replace(made, b"") if what == "roles" else chunk)
                copied += len(chunk)
                if time.monotonic() - reported > _PROGRESS_EVERY_S:
                    reported = time.monotonic()
                    self.say(f"{what}: {size_text(copied)} copied")

    def _wait(self, what: str, restoring: subprocess.Popen[bytes]) -> None:
        while True:
            try:
                restoring.wait(_PROGRESS_EVERY_S)
                return
            except subprocess.TimeoutExpired:
                self.say(f"{what}: building indexes")

    def _counts(self, server: Mapping[str, str], database: str) -> list[str]:
        script = resources.files("tenax.local").joinpath("row_counts.sql").read_text(encoding="utf-8")
        return self._sql(server, database, script).splitlines()

    def _sql(self, server: Mapping[str, str], database: str, script: str) -> str:
        command = [self._program("psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", _quoted(database)]
        done = subprocess.run(command, env=dict(server), input=script, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NotUpgraded(f"The copy failed, and the database is as it was:\n{done.stderr.strip()}")
        return done.stdout

    def _program(self, name: str) -> str:
        return str(self.programs.program(name))


def _compare(old: Sequence[str], new: Sequence[str]) -> None:
    if old != new:
        missing = [line for line in old if line not in new] + [
            f"(in the copy) {line}" for line in new if line not in old
        ]
        raise NotUpgraded(
            "The copy is not what was copied, and is thrown away; the database is as it was. They differ in: "
            + "; ".join(missing[:10])
        )


def _quoted(database: str) -> str:
    """A name as programs take it for nothing else."""
    escaped = database.replace("\\", "\\\\").replace("'", "\\'")
    return f"dbname='{escaped}'"


def _used(directory: Path) -> int:
    return sum((Path(place) / name).lstat().st_blocks * 512 for place, _, names in os.walk(directory) for name in names)
