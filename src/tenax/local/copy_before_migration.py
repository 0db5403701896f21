"""``python -m tenax.local.copy_before_migration DIRECTORY``: run by the master of a local cluster before it migrates.

The copy is one of `tenax.local.backup`, below ``backups`` in the directory of the cluster. The newest of each migration
is kept, and of migrations the newest two. Its one line on standard output or error is for the master's log.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import os
import re
import shutil
import signal
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from tenax.errors import UserError
from tenax.host.disk import is_there, size_text
from tenax.local.accounts import account_for
from tenax.local.backup import NotBackedUp, back_up, size_so_far
from tenax.local.pgdata import client_environment, password_of, socket_directory
from tenax.local.state_dir import StateDir
from tenax.wire.backup_names import FIRST_MIGRATION

_KEPT = 2
_HALVES = ".before-*.half"
_LOCK = ".lock"
#: ``before-0043_pre_masters-20261128T024500``: what was to be applied, and when, in UTC.
_NAME = re.compile(r"before-(?P<migration>\w+)-(?P<at>\d{8}T\d{6})")


def copy_before(state: StateDir, migration: str) -> Path:
    """Copy the database that is up; the directory of the copy. Raises NotBackedUp."""
    _make_private(state.backups)
    server = client_environment(
        password_of(state.postgres), socket_directory(state.postgres, account_for(state.postgres / "data"))
    )
    now = datetime.datetime.now(datetime.timezone.utc)
    target = state.backups / f"before-{migration}-{now:%Y%m%dT%H%M%S}"
    with _alone(state.backups):
        for half in state.backups.glob(_HALVES):
            # Of one that was killed.
            shutil.rmtree(half, ignore_errors=True)
        _refuse_without_room(state)
        if not is_there(target):
            back_up(state, server, target)
        for old in superseded([entry.name for entry in state.backups.iterdir()], target.name):
            shutil.rmtree(state.backups / old, ignore_errors=True)
    return target


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """One at a time: the kernel lets go of what a process held that was killed."""
    lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _make_private(directory: Path) -> None:
    """Raises NotBackedUp where it is there and others can write into it."""
    directory.mkdir(mode=0o700, exist_ok=True)
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise NotBackedUp(f"{directory} is not a directory of yours alone: remove it, or make it so (chmod 700)")


def superseded(names: list[str], made: str = "") -> list[str]:
    """Of these copies, those that are not kept; ``made`` is the newest, whatever the clock said before.

    What bears another name is nobody's business here.
    """
    newest: dict[str, tuple[str, str]] = {}
    copies = [
        ("~" if name == made else match["at"], match["migration"], name)
        for name in names
        if (match := _NAME.fullmatch(name))
    ]
    for at, migration, name in sorted(copies):
        newest[migration] = (at, name)
    kept = {name for _, name in sorted(newest.values())[-_KEPT:]}
    return [name for _, _, name in sorted(copies) if name not in kept]


def copied_so_far(state: StateDir) -> int | None:
    """Bytes of the copy that is being made; None while none is."""
    with contextlib.suppress(OSError):
        lock = os.open(state.backups / _LOCK, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            # Nobody is at it: what lies there was left by one that was killed.
            return None
        except BlockingIOError:
            pass
        finally:
            os.close(lock)
        for half in state.backups.glob(_HALVES):
            return size_so_far(half)
    return None


def _refuse_without_room(state: StateDir) -> None:
    """A copy takes at most what the tables take: they hold what is packed already."""
    needed = 0
    for directory, _, names in os.walk(state.postgres / "data" / "base"):
        for name in names:
            # The server removes files at any moment.
            with contextlib.suppress(FileNotFoundError):
                needed += os.stat(os.path.join(directory, name)).st_size
    free = shutil.disk_usage(state.root).free
    if free < needed:
        raise NotBackedUp(
            f"a copy of the database may take {size_text(needed)}, and the disk of {state.root} has {size_text(free)} "
            "left"
        )


def main() -> int:
    """The exit status."""
    # So that nothing half is left.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))
    try:
        made = copy_before(StateDir(Path(sys.argv[1])), os.environ[FIRST_MIGRATION])
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"{error.filename or 'a file'}: {error.strerror}\n")
        return 1
    sys.stdout.write(f"{made}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
