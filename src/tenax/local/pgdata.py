"""The files of an embedded PostgreSQL: data directory, password, socket directory. Standard library only.

A data directory is made under another name and renamed when it is complete. One that takes the place of another is
``data.upgraded`` from the moment on when it is complete: whoever starts next puts it in place, and keeps the other as
``data.16`` (its major version). No existing directory's mode is changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from tenax.errors import UserError
from tenax.host.disk import is_there
from tenax.local.accounts import Account, account_for, unreachable
from tenax.local.binaries import CURRENT_MAJOR, Installation, choose
from tenax.local.holders import holders
from tenax.runtime.processes import send

#: Name of the database and of its only role.
NAME = "tenax"
#: What the kernel allows for the path of a socket (108 with the final NUL on Linux, 104 on macOS).
_SOCKET_PATH_BYTES = 107 if sys.platform == "linux" else 103
#: The first major version that has them.
_BUILTIN_LOCALES = 17
_SOCKET_NAME = ".s.PGSQL.5432"


class AlreadyRunning(UserError):
    """Another process already runs the database of this directory."""


class DatabaseFailed(UserError):
    """The database cannot be started."""


def create(directory: Path, installation: Installation, account: Account | None, password: str, lock: int) -> None:
    """Make ``directory/data`` with the database and its role NAME. Raises DatabaseFailed with what they printed.

    The programs inherit ``lock``, so that one that outlives us keeps the next launcher out.
    """
    half = directory / "data.half"
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(mode=0o700)
    _give(half, account)
    password_file = directory / "data.half.password"
    try:
        write_secret(password_file, password)
        _give(password_file, account)
        call(
            [str(installation.program("initdb")), *_initdb_options(half, password_file, installation.major)],
            account,
            lock,
        )
    finally:
        password_file.unlink(missing_ok=True)
    single = [str(installation.program("postgres")), "--single", "-D", str(half), "postgres"]
    call(single, account, lock, stdin=f"create database {NAME}\n")
    half.rename(directory / "data")


def _initdb_options(data: Path, password_file: Path, major: int) -> list[str]:
    # The same order of text on every machine and after every upgrade of its C library.
    provider = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] if major >= _BUILTIN_LOCALES else []
    return [
        f"--pgdata={data}",
        f"--username={NAME}",
        f"--pwfile={password_file}",
        "--auth-local=scram-sha-256",
        "--auth-host=scram-sha-256",
        "--encoding=UTF8",
        "--locale=C",
        *provider,
        "--no-instructions",
    ]


def major_of(data: Path) -> int:
    """The major version of the PostgreSQL that made ``data``. Raises DatabaseFailed."""
    text = (data / "PG_VERSION").read_text().strip()
    if not text.isdigit():
        raise DatabaseFailed(f"{data / 'PG_VERSION'} says {text!r}, which is no version: is {data} a database?")
    return int(text)


def is_made(directory: Path) -> bool:
    """Whether there is a database in ``directory``."""
    return any(is_there(directory / name / "PG_VERSION") for name in ("data", "data.upgraded"))


def refuse_unreadable(directory: Path) -> None:
    """Raises NoPostgres where the database in ``directory`` was made by a PostgreSQL that is not installed."""
    if (major := _major_in_place(directory)) is not None:
        choose(major)


def older_major(directory: Path) -> int | None:
    """Of the data in ``directory``, where new data has a later one. Raises DatabaseFailed."""
    major = _major_in_place(directory)
    return major if major is not None and major < CURRENT_MAJOR else None


def _major_in_place(directory: Path) -> int | None:
    data = directory / "data"
    if is_there(directory / "data.upgraded") or not is_there(data / "PG_VERSION"):
        return None
    return major_of(data)


def put_in_place(directory: Path) -> Path | None:
    """Go on with a swap that was begun, if one was; the data directory that was replaced. Only for a lock's holder."""
    new, data, kept = directory / "data.upgraded", directory / "data", None
    if not is_there(new):
        return None
    if is_there(data):
        name = f"data.{major_of(data)}"
        kept = next(place for number in range(1000) if not is_there(place := directory / _numbered(name, number)))
        data.rename(kept)
    new.rename(data)
    sync_names(directory)
    return kept


def sync_names(directory: Path) -> None:
    """Have what was renamed in it on disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def address(password: str, sockets: Path) -> str:
    """``postgresql://...``; holds the password."""
    return f"postgresql://{NAME}:{quote(password)}@/{NAME}?host={quote(str(sockets), safe='')}&port=5432"


def address_of(directory: Path) -> str:
    """Of the server that somebody else runs in ``directory``."""
    return address(password_of(directory), socket_directory(directory, account_for(directory / "data")))


def _numbered(name: str, number: int) -> str:
    return f"{name}.{number}" if number else name


def password_of(directory: Path) -> str:
    """The password in ``directory/password``, made when it is not there."""
    path = directory / "password"
    with contextlib.suppress(FileNotFoundError):
        return path.read_text().strip()
    password = secrets.token_urlsafe(24)
    new = directory / "password.new"
    write_secret(new, password)
    new.rename(path)
    return password


def socket_directory(directory: Path, account: Account | None) -> Path:
    """A directory for the server's socket that only the server's account (and root) can enter, with a short path.

    Below ``directory`` when that is short enough; else below XDG_RUNTIME_DIR or /tmp, named by a hash of ``directory``.
    """
    place = directory / "socket"
    if not _short_enough(place):
        name = f"tenax-{hashlib.sha256(os.fsencode(directory)).hexdigest()[:12]}"
        bases = [Path(base) for base in (os.environ.get("XDG_RUNTIME_DIR"), "/tmp") if base]
        place = next(base / name for base in bases if _fits(base, name, account))
    uid = account.uid if account is not None else os.geteuid()
    with contextlib.suppress(FileExistsError):
        place.mkdir(mode=0o700)
        _give(place, account)
    status = place.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != uid or stat.S_IMODE(status.st_mode) & 0o077:
        raise DatabaseFailed(
            f"{place} is there already and is not a private directory of user number {uid}, so PostgreSQL will not "
            "put its socket there: find out whose it is, and remove it."
        )
    return place


def is_ready(data: Path, pid: int) -> bool:
    """Whether the server ``pid`` takes connections, by the status that it keeps in its pid file."""
    try:
        lines = (data / "postmaster.pid").read_text(errors="replace").splitlines()
    except OSError:
        return False
    return len(lines) >= 8 and lines[0].strip() == str(pid) and lines[7].strip() == "ready"


def forget_dead_server(data: Path) -> None:
    """Remove the pid file that a server left behind. Only for the holder of the server's lock.

    The pid in it is no evidence: pids recur. Raises DatabaseFailed when a server that somebody started by hand, without
    our lock, is at work in ``data`` (found on Linux only).
    """
    if (pid := _pid_in(data)) is not None and pid in _processes_in(data):
        raise DatabaseFailed(
            f"Process {pid} is a PostgreSQL server on {data} that was not started by Tenax: stop it with 'pg_ctl stop'."
        )
    (data / "postmaster.pid").unlink(missing_ok=True)


def forget_dead_socket(sockets: Path) -> None:
    """Remove the socket of a server that was killed, and the lock beside it, whose pid is no evidence either.

    Only for the holder of the server's lock, and after `forget_dead_server`.
    """
    (sockets / f"{_SOCKET_NAME}.lock").unlink(missing_ok=True)
    (sockets / _SOCKET_NAME).unlink(missing_ok=True)


def end_orphans(directory: Path, number: signal.Signals = signal.SIGQUIT) -> list[int]:
    """Signal what holds the server's lock of ``directory`` and has no postmaster any more; who holds it.

    A query that only computes does not notice by itself that its postmaster is dead.
    """
    processes = holders(directory / "server.lock")
    pids = [identity.pid for identity in processes]
    if _pid_in(directory / "data") not in pids or number == signal.SIGKILL:
        for identity in processes:
            with contextlib.suppress(OSError):
                send(identity, number)
    return pids


def tail(log: Path, limit: int = 2000) -> str:
    """The end of a text file."""
    try:
        return log.read_bytes()[-limit:].decode(errors="replace").strip()
    except OSError as error:
        return f"(cannot be read: {error})"


def client_environment(password: str, sockets: Path) -> dict[str, str]:
    """Of programs that talk to a server; holds the password."""
    who = {"PGHOST": str(sockets), "PGPORT": "5432", "PGUSER": NAME, "PGPASSWORD": password}
    return {**environment(), **who}


def environment() -> dict[str, str]:
    """Of the programs: no PG* variable of ours may change what they do."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def call(command: Sequence[str], account: Account | None, lock: int | None, stdin: str = "") -> None:
    """Run a program as the server's account. Raises DatabaseFailed with what it printed."""
    result = subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env=environment(),
        pass_fds=() if lock is None else (lock,),
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )
    if result.returncode != 0:
        raise DatabaseFailed(
            f"{Path(command[0]).name} of the database ended with {result.returncode}:\n" + result.stderr.strip()
        )


def _pid_in(data: Path) -> int | None:
    try:
        first = (data / "postmaster.pid").read_text(errors="replace").split("\n", 1)[0].strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return int(first) if first.isdigit() else None


def _processes_in(data: Path) -> set[int]:
    """Processes that work in ``data``, as every process of a server does; empty where there is no /proc."""
    pids = set()
    for entry in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if os.readlink(entry) == str(data):
                pids.add(int(entry.parent.name))
    return pids


def _short_enough(place: Path) -> bool:
    return len(os.fsencode(place / _SOCKET_NAME)) <= _SOCKET_PATH_BYTES


def _fits(base: Path, name: str, account: Account | None) -> bool:
    if not base.is_dir() or not os.access(base, os.W_OK | os.X_OK) or not _short_enough(base / name):
        return False
    return account is None or unreachable(account, base) is None


def write_secret(path: Path, secret: str) -> None:
    """A file for its owner alone, on disk."""
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secret + "\n")
        file.flush()
        os.fsync(file.fileno())


def _give(path: Path, account: Account | None) -> None:
    if account is not None:
        os.chown(path, account.uid, account.gid)
