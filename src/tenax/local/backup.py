"""A copy of a local cluster in a directory, and a cluster made from one: the database, and what is secret beside it.

    database.dump    by pg_dump, in its own format: any PostgreSQL that is not older restores it
    credentials.json join-token options.json agent/credential    as in the directory of the cluster

Rules:
- A backup appears complete or not at all: it is written beside its place and renamed.
- A restored cluster takes a directory without a database, and is made in ``restoring/`` there; as long as that is there
  no cluster starts. Its database is moved to its place last: one that was broken off is begun anew.
- Checkpoints are files of their own, in whichever storage: they are not in it.
- Everything in a backup is for its owner alone. The caller keeps every other launcher out, and calls from the main
  thread. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from tenax.errors import UserError
from tenax.host.disk import is_there
from tenax.local.binaries import CURRENT_MAJOR, choose
from tenax.local.pgdata import NAME, is_made, major_of, sync_names
from tenax.local.postgres import EmbeddedPostgres, quiet
from tenax.local.state_dir import StateDir

_DUMP = "database.dump"
#: Beside the database, below the directory of the cluster; what is not there is not copied.
_FILES = ("options.json", "credentials.json", "join-token", "agent/credential")


class NotBackedUp(UserError):
    """There is no backup: nothing was written."""


class NotRestored(UserError):
    """The cluster was not restored."""


def back_up(state: StateDir, server: Mapping[str, str], target: Path) -> int:
    """Write a backup of the cluster, whose database answers under the variables ``server``; its size in bytes.

    Raises NotBackedUp.
    """
    if is_there(target):
        raise NotBackedUp(f"{target} is there already: name a directory that is not.")
    half = target.with_name(f".{target.name}.half")
    try:
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir(mode=0o700)
        for name in _FILES:
            _copy(state.root / name, half / name)
        program = choose(major_of(state.postgres / "data")).program("pg_dump")
        if not is_there(program):
            raise NotBackedUp(f"{program} is not there any more: install Tenax again. Nothing was written.")
        command = [str(program), "--format=custom", f"--file={half / _DUMP}", f"--dbname={NAME}"]
        done = subprocess.run(command, env=dict(server), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NotBackedUp(f"The database was not copied: {done.stderr.strip()[-2000:]}. Nothing was written.")
        (half / _DUMP).chmod(0o600)
        size = (half / _DUMP).stat().st_size
        half.rename(target)
        sync_names(target.parent)
        return size
    except OSError as error:
        raise NotBackedUp(f"{target} cannot be written: {error.strerror}. Nothing is there.") from None
    finally:
        shutil.rmtree(half, ignore_errors=True)


def size_so_far(half: Path) -> int:
    """Bytes of the database in a backup that is being written. Raises OSError before the first."""
    return (half / _DUMP).stat().st_size


def restore(state: StateDir, source: Path, say: Callable[[str], None] = quiet) -> None:
    """Make the cluster of a backup in a directory without a database. Raises NotRestored."""
    if not (source / _DUMP).is_file():
        raise NotRestored(f"{source} is no backup: it has no {_DUMP}. Nothing was changed.")
    half = state.restoring
    if is_made(state.postgres):
        if is_there(half):
            # The last step of one that was broken off.
            shutil.rmtree(half)
            return
        raise NotRestored(
            f"There is a database in {state.root} already, and a restored one does not replace it: move that directory "
            "away, or name another with --dir. Nothing was changed."
        )
    database = half / "postgres"
    if is_there(database):
        EmbeddedPostgres(database, progress=say).wait_until_gone()
    shutil.rmtree(half, ignore_errors=True)
    try:
        with EmbeddedPostgres(database, progress=say) as server:
            _fill(server.environment, source / _DUMP)
        for name in _FILES:
            _copy(source / name, half / name)
    except OSError as error:
        shutil.rmtree(half, ignore_errors=True)
        raise NotRestored(f"{state.root} cannot be written: {error.strerror}. Nothing was changed.") from None
    except BaseException:
        shutil.rmtree(half, ignore_errors=True)
        raise
    _put_in_place(state, half)


def _fill(server: Mapping[str, str], dump: Path) -> None:
    program = choose(CURRENT_MAJOR).program("pg_restore")
    command = [str(program), "--no-owner", "--exit-on-error", "--single-transaction", f"--dbname={NAME}", str(dump)]
    done = subprocess.run(command, env=dict(server), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotRestored(f"{dump} was not restored: {done.stderr.strip()[-2000:]}. Nothing was changed.")


def _put_in_place(state: StateDir, half: Path) -> None:
    for name in _FILES:
        if is_there(half / name):
            target = state.root / name
            target.parent.mkdir(mode=0o700, exist_ok=True)
            (half / name).replace(target)
    # What a start without a database has left.
    shutil.rmtree(state.postgres, ignore_errors=True)
    (half / "postgres").rename(state.postgres)
    sync_names(state.root)
    shutil.rmtree(half)


def _copy(source: Path, target: Path) -> None:
    """For the owner alone."""
    try:
        text = source.read_bytes()
    except FileNotFoundError:
        return
    target.parent.mkdir(mode=0o700, exist_ok=True)
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
