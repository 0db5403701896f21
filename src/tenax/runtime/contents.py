"""Fills a container's run directory before the start: folders, model code, files, and whose they are. And measures it.

Blocking: call it in a thread. Archives come from users: an entry that would land outside the work directory is refused,
and all is unpacked and written with the rights of the task's user, so that what slips through opens nothing.

Rules, of our own so that they are the same under every Python (`tarfile` has such a filter since 3.11.4 alone):

- A name is below the directory: no ``..`` in it, a slash in front is dropped. Its parents are directories, never links.
- A symbolic link is relative and leads to a place below the directory; ``..`` stands in front of its target alone. With
  the rule before, what it leads through is known: no link of the archive makes another one lead out.
- A hard link is one to a regular file of the archive. Devices, sockets and pipes are refused.
- Nothing that stands there is followed or written through: it is replaced, and a directory stays one.
- Files are their owner's to write; nobody else's, and without set-user-id. Whose they are is whoever unpacks.
"""

from __future__ import annotations

import contextlib
import grp
import gzip
import os
import pwd
import shutil
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from tenax.runtime.directory import Home, write_private
from tenax.runtime.port import StartFailed
from tenax.runtime.users import TaskUser, acting_as, group_with, passwd_with
from tenax.wire.agents import ContainerSpec, TaskFile
from tenax.wire.task_names import RUN_DIRECTORY

#: Loaded here: as the task's user this Python may be out of reach.
_NEEDED = (gzip,)
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PIECE = 1 << 20
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


class _Refused(Exception):
    """An entry that breaks a rule."""


def unpack(archive: IO[bytes], target: Path) -> None:
    """A gzip-compressed tar into ``target``. Raises StartFailed for what is refused or damaged, OSError."""
    root = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with tarfile.open(fileobj=archive, mode="r:gz") as tar:
            for entry in tar:
                _put(tar, entry, root)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise StartFailed(f"the archive of the model code is damaged: {error}", platform=True) from None
    except _Refused as refused:
        raise StartFailed(
            f"the model code cannot be unpacked: {refused}; leave that entry out", platform=False
        ) from None
    finally:
        os.close(root)


def _put(tar: tarfile.TarFile, entry: tarfile.TarInfo, root: int) -> None:
    parts = _parts(entry.name, entry.name)
    if not parts:
        return
    with _parent(root, parts, entry.name, make=True) as directory:
        if entry.isdir():
            _make_directory(parts[-1], directory, entry.name)
            return
        _remove(parts[-1], directory, entry.name)
        if entry.isfile():
            _write(tar, entry, parts[-1], directory)
        elif entry.issym():
            os.symlink(_inside(entry, len(parts) - 1), parts[-1], dir_fd=directory)
        elif entry.islnk():
            _link(entry, root, parts[-1], directory)
        else:
            raise _Refused(f"{entry.name!r} is no file, directory or link")


def _parts(name: str, entry: str) -> list[str]:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in name:
        raise _Refused(f"{entry!r} would lie outside the work directory")
    return parts


@contextlib.contextmanager
def _parent(root: int, parts: list[str], entry: str, *, make: bool) -> Iterator[int]:
    """The directory that the last of the parts is in, where all before are directories."""
    directory = os.dup(root)
    try:
        for part in parts[:-1]:
            if make:
                _make_directory(part, directory, entry)
            try:
                below = os.open(part, _DIRECTORY, dir_fd=directory)
            except (NotADirectoryError, FileNotFoundError):
                raise _Refused(f"{entry!r} lies below {part!r}, which is no directory") from None
            os.close(directory)
            directory = below
        yield directory
    finally:
        os.close(directory)


def _make_directory(name: str, directory: int, entry: str) -> None:
    try:
        os.mkdir(name, dir_fd=directory)
    except FileExistsError:
        if not stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            raise _Refused(f"{entry!r} needs a directory where there is none") from None


def _remove(name: str, directory: int, entry: str) -> None:
    try:
        os.unlink(name, dir_fd=directory)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):
        raise _Refused(f"{entry!r} stands where a directory is") from None


def _write(tar: tarfile.TarFile, entry: tarfile.TarInfo, name: str, directory: int) -> None:
    content = tar.extractfile(entry)
    assert content is not None
    descriptor = os.open(name, _NEW_FILE, 0o600, dir_fd=directory)
    with open(descriptor, "wb") as file, content:
        shutil.copyfileobj(content, file, _PIECE)
        os.fchmod(descriptor, 0o600 | entry.mode & (0o755 if entry.mode & 0o100 else 0o644))
        file.flush()
        with contextlib.suppress(OverflowError, ValueError):
            os.utime(descriptor, (entry.mtime, entry.mtime))


def _inside(entry: tarfile.TarInfo, depth: int) -> str:
    """The target of a symbolic link ``depth`` directories below the root."""
    parts = [part for part in entry.linkname.split("/") if part not in ("", ".")]
    upwards = 0
    while upwards < len(parts) and parts[upwards] == "..":
        upwards += 1
    if entry.linkname.startswith("/") or "\0" in entry.linkname or upwards > depth or ".." in parts[upwards:]:
        raise _Refused(f"{entry.name!r} links to {entry.linkname!r}, outside the work directory")
    return entry.linkname


def _link(entry: tarfile.TarInfo, root: int, name: str, directory: int) -> None:
    parts = _parts(entry.linkname, entry.name)
    with _parent(root, parts, entry.name, make=False) as source:
        try:
            if not stat.S_ISREG(os.stat(parts[-1], dir_fd=source, follow_symlinks=False).st_mode):
                raise _Refused(f"{entry.name!r} is a hard link to {entry.linkname!r}, which is no file")
        except (FileNotFoundError, IndexError):
            raise _Refused(f"{entry.name!r} is a hard link to {entry.linkname!r}, which is not there") from None
        os.link(parts[-1], name, src_dir_fd=source, dst_dir_fd=directory, follow_symlinks=False)


def own_share(run: Path, who: TaskUser | None) -> float:
    """The share of its disk that lies below a container's own directory; 0 where that cannot be read."""
    try:
        disk = os.statvfs(run)
        used = acting_as(who, lambda: _bytes_below(run))
    except OSError:
        return 0.0
    return used / (disk.f_blocks * disk.f_frsize) if disk.f_blocks else 0.0


#: More files than these are not counted: by then it has filled the disk with them.
_MAX_MEASURED = 200_000


def _bytes_below(run: Path) -> float:
    used, count = 0, 0
    for _, folders, files, descriptor in os.fwalk(run, follow_symlinks=False):
        for name in (*folders, *files):
            count += 1
            if count > _MAX_MEASURED:
                return float("inf")
            try:
                used += os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_blocks * 512
            except FileNotFoundError:
                continue
    return used
