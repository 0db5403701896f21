"""Fills a container's run directory before the start: folders, model code, files, and whose they are.

Blocking: call it in a thread. Archives come from users: an entry that would land outside the work directory is refused.
"""

from __future__ import annotations

import contextlib
import os
import platform
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from tenax.runtime.directory import Home, write_private
from tenax.runtime.port import StartFailed
from tenax.wire.agents import TaskFile
from tenax.wire.task_names import RUN_DIRECTORY

_FOLDERS = ("spool", "workdir", "tmp", "info", "pythonuserbase")


def fill(home: Home, archive: str | None, files: list[TaskFile]) -> None:
    """Raises StartFailed for what the request got wrong, OSError for what the machine could not do."""
    home.run.mkdir(mode=0o700)
    for name in _FOLDERS:
        (home.run / name).mkdir(mode=0o700)
    if archive is not None:
        unpack(archive, home.workdir)
    for file in files:
        place = inside(home.run, file.path)
        place.parent.mkdir(parents=True, exist_ok=True)
        write_private(place, file.content.encode(), file.mode)


def unpack(archive: str, target: Path) -> None:
    """A gzip-compressed tar into ``target``; links and names that lead out of it are refused."""
    if not hasattr(tarfile, "data_filter"):
        # Python 3.11.3 and older have no such check, and what comes from users is not unpacked without it.
        raise StartFailed(
            f"the agent's Python {platform.python_version()} cannot unpack code safely: start it with 3.11.4 or newer",
            platform=True,
        )
    try:
        with tarfile.open(archive, "r:gz") as tar:
            tar.extractall(target, filter="data")
    except (tarfile.TarError, EOFError, zlib.error) as error:
        if isinstance(error, tarfile.FilterError):
            message = f"the model code cannot be unpacked: {error}; leave that entry out"
            raise StartFailed(message, platform=False) from None
        raise StartFailed(f"the archive of the model code is damaged: {error}", platform=True) from None


def inside(run: Path, path: str) -> Path:
    """Where a file of a specification goes below ``run``. Raises StartFailed if that is elsewhere."""
    relative = Path(path)
    if relative.is_absolute():
        try:
            relative = relative.relative_to(RUN_DIRECTORY)
        except ValueError:
            relative = Path("..")
    if ".." in relative.parts:
        raise StartFailed(
            f"the file {path!r} would lie outside the task's run directory: write it below {RUN_DIRECTORY}",
            platform=False,
        )
    return run / relative


def give(path: Path, uid: int, gid: int) -> None:
    """Make all below ``path`` the user's own, links themselves and not what they point to."""
    for place in _walk(path):
        os.chown(place, uid, gid, follow_symlinks=False)


def open_to(path: Path, uid: int, gid: int) -> None:
    """Let a user write all below ``path``, whose parent is closed to everybody else."""
    if os.geteuid() == 0:
        give(path, uid, gid)
        return
    for place in _walk(path):
        if not place.is_symlink():
            place.chmod(0o777 if place.is_dir() else place.stat().st_mode | 0o666)


def _walk(path: Path) -> Iterator[Path]:
    yield path
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            yield Path(folder, name)


def check_reachable(path: Path, uid: int) -> None:
    """Raises StartFailed, naming the folder, where another user could not come down to ``path``."""
    for parent in reversed(path.parents):
        with contextlib.suppress(FileNotFoundError):
            status = parent.stat()
            if not status.st_mode & 0o001 and status.st_uid != uid:
                raise StartFailed(
                    f"uid {uid} cannot reach the agent's directory: {parent} is closed to others; start the agent with "
                    "--dir in a place such as /var/lib/tenax",
                    platform=True,
                )
