"""Fills a container's run directory before the start: folders, model code, files, and whose they are.

Blocking: call it in a thread. Archives come from users: an entry that would land outside the work directory is refused,
and all is unpacked and written with the rights of the task's user, so that what slips through opens nothing.
"""

from __future__ import annotations

import contextlib
import grp
import gzip
import os
import platform
import pwd
import tarfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from tenax.runtime.directory import Home, write_private
from tenax.runtime.port import StartFailed
from tenax.runtime.users import TaskUser, acting_as, group_with, passwd_with
from tenax.wire.agents import ContainerSpec, TaskFile
from tenax.wire.task_names import RUN_DIRECTORY

#: Loaded here: as the task's user this Python may be out of reach.
_NEEDED = (gzip,)
_FOLDERS = ("spool", "workdir", "tmp", "info", "pythonuserbase")


def fill(
    home: Home,
    archive: str | None,
    files: Sequence[TaskFile],
    *,
    who: TaskUser | None = None,
    links: Sequence[tuple[str, str]] = (),
) -> None:
    """Make ``run`` and all that is in it with the rights of ``who``, whose it is; None: of the agent's own user.

    ``links``: below the work directory, to what. Raises StartFailed for what the request got wrong, OSError for what
    the machine could not do.
    """
    home.run.mkdir(mode=0o700)
    if who is None:
        with contextlib.ExitStack() as stack:
            _fill(home.run, stack.enter_context(open(archive, "rb")) if archive else None, files, links)
        return
    with contextlib.ExitStack() as stack:
        run = os.open(home.run, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        stack.callback(os.close, run)
        os.chown(run, who.uid, who.gid)
        # The user need not be able to come down to either of them.
        source = stack.enter_context(open(archive, "rb")) if archive else None
        acting_as(who, lambda: _fill(Path(f"/proc/self/fd/{run}"), source, files, links))


def _fill(run: Path, archive: IO[bytes] | None, files: Sequence[TaskFile], links: Sequence[tuple[str, str]]) -> None:
    for name in _FOLDERS:
        (run / name).mkdir(mode=0o700)
    if archive is not None:
        unpack(archive, run / "workdir")
    for file in files:
        place = inside(run, file.path)
        place.parent.mkdir(parents=True, exist_ok=True)
        write_private(place, file.content.encode(), file.mode)
    for path, target in links:
        place = inside(run, f"workdir/{path}")
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.is_symlink() and not place.exists():
            place.symlink_to(target)


def write_names(home: Home, who: TaskUser, spec: ContainerSpec, workdir: Path) -> str | None:
    """``passwd`` and ``group`` as the task is to see them, beside ``run``; None where the machine has both names."""
    machine = {name: Path("/etc", name).read_text(errors="surrogateescape") for name in ("passwd", "group")}
    known = {"passwd": _known(pwd.getpwuid, who.uid), "group": _known(grp.getgrgid, who.gid)}
    if all(known.values()):
        return None
    made = {
        "passwd": passwd_with(machine["passwd"], who.uid, who.gid, spec.user, str(workdir)),
        "group": group_with(machine["group"], who.gid, spec.group),
    }
    for name, text in machine.items():
        if not known[name]:
            machine[name] = made[name] or text
        write_private(home.path / name, machine[name].encode(errors="surrogateescape"), 0o644)
    return machine["passwd"]


def _known(look_up: Callable[[int], object], number: int) -> bool:
    try:
        look_up(number)
    except KeyError:
        return False
    return True


def unpack(archive: IO[bytes], target: Path) -> None:
    """A gzip-compressed tar into ``target``; links and names that lead out of it are refused."""
    if not hasattr(tarfile, "data_filter"):
        # Python 3.11.3 and older have no such check, and what comes from users is not unpacked without it.
        raise StartFailed(
            f"the agent's Python {platform.python_version()} cannot unpack code safely: start it with 3.11.4 or newer",
            platform=True,
        )
    try:
        with tarfile.open(fileobj=archive, mode="r:gz") as tar:
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


def open_to(path: Path) -> None:
    """Let any user write all below ``path``, whose parent is closed to everybody else."""
    for folder, _folders, files in os.walk(path):
        for place in (Path(folder), *(Path(folder, name) for name in files)):
            if not place.is_symlink():
                place.chmod(0o777 if place.is_dir() else place.stat().st_mode | 0o666)


def check_reachable(path: Path, who: TaskUser) -> None:
    """Raises StartFailed, naming the folder, where that user could not come down to ``path``."""
    closed = acting_as(who, lambda: _closed(path))
    if closed is not None:
        # Another try on this machine will meet the same folder: it counts, so that it ends.
        raise StartFailed(
            f"uid {who.uid} cannot reach the agent's directory {path.parent}: {closed} is closed to others; open it "
            f"(chmod o+x {closed}), or start the agent with --dir below folders that everybody may enter",
            platform=False,
        )


def _closed(path: Path) -> Path | None:
    for parent in reversed(path.parents):
        try:
            os.stat(parent / ".")
        except PermissionError:
            return parent
        except FileNotFoundError:
            return None
    return None
