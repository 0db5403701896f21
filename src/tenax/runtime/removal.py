"""Deletes what containers leave: trees of any depth, made by anybody.

Rules it keeps:

- No link is followed, and nothing is reached by a path that a task could change: each folder is a descriptor.
- What lies in ``run`` is its owner's, and goes with the owner's rights: what they could not delete themselves (folders
  of others that were moved there) is not deleted for them.
- Two descriptors and one level are enough for any depth: a folder's folders are moved to the top before it goes.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from tenax.errors import TenaxError
from tenax.runtime.users import TaskUser, acting_as, owner_of

#: At a time: what somebody goes on filling is come back to, and holds up nothing else meanwhile.
TIMEOUT_S = 20.0
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Names a file without opening it; Linux only.
_PATH = getattr(os, "O_PATH", 0) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class TakesLong(TenaxError):
    """What a container left is not deleted yet: it is large, or still being filled."""


def delete_home(path: Path) -> bool:
    """Delete a container's directory; False where something in its ``run`` stays, which its user may not delete.

    Nothing where there is none. Raises OSError, and TakesLong: then the rest is for another call, at the latest
    that of the agent's next start. Blocking.
    """
    try:
        home = os.open(path, _FOLDER)
    except FileNotFoundError:
        return True
    try:
        if not _empty_run(home):
            return False
        empty(home)
    finally:
        os.close(home)
    path.rmdir()
    return True


def delete_tree(path: Path, who: TaskUser | None) -> None:
    """Delete a folder with the rights of ``who``, as far as these go; nothing where it is none."""

    def work() -> None:
        with contextlib.suppress(OSError, TakesLong):
            folder = os.open(path, _FOLDER)
            try:
                empty(folder)
            finally:
                os.close(folder)
            path.rmdir()

    acting_as(who, work)


def empty(folder: int) -> bool:
    """Delete all in an open folder; whether nothing is left of what was there. Raises TakesLong."""
    until = time.monotonic() + TIMEOUT_S
    while True:
        gone, moved = True, False
        with os.scandir(folder) as entries:
            for entry in _timely(entries, until):
                if entry.is_dir(follow_symlinks=False):
                    folder_gone, folders_moved = _flatten(folder, entry.name, until)
                    gone &= folder_gone
                    moved |= folders_moved
                else:
                    gone &= _unlinked(folder, entry.name)
        if not moved:
            return gone


def _empty_run(home: int) -> bool:
    try:
        run = os.open("run", _FOLDER, dir_fd=home)
    except FileNotFoundError:
        return True
    try:
        if not acting_as(owner_of(run), lambda: empty(run)):
            return False
    finally:
        os.close(run)
    os.rmdir("run", dir_fd=home)
    return True


def _timely(entries: Iterable[os.DirEntry[str]], until: float) -> Iterator[os.DirEntry[str]]:
    for entry in entries:
        if time.monotonic() > until:
            raise TakesLong
        yield entry


def _flatten(top: int, name: str, until: float) -> tuple[bool, bool]:
    """Delete the files of a folder in ``top``, move its folders into ``top``, delete it; (is it gone, did any move)."""
    moved = False
    try:
        folder = _opened(top, name)
    except OSError:
        return False, False
    try:
        with os.scandir(folder) as entries:
            for entry in _timely(entries, until):
                if entry.is_dir(follow_symlinks=False):
                    moved |= _moved(folder, entry.name, top)
                else:
                    _unlinked(folder, entry.name)
        os.rmdir(name, dir_fd=top)
    except OSError:
        return False, moved
    finally:
        os.close(folder)
    return True, moved


def _unlinked(folder: int, name: str) -> bool:
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        return False
    return True


def _moved(source: int, name: str, top: int) -> bool:
    # A folder that cannot be written cannot be given another parent.
    for attempt in (False, True):
        try:
            if attempt:
                _open_up(source, name)
            os.rename(name, f".{secrets.token_hex(8)}", src_dir_fd=source, dst_dir_fd=top)
        except OSError:
            continue
        return True
    return False


def _opened(top: int, name: str) -> int:
    """A folder that can be read and written, if it is ours to say so. Raises OSError."""
    try:
        folder = os.open(name, _FOLDER, dir_fd=top)
    except PermissionError:
        _open_up(top, name)
        folder = os.open(name, _FOLDER, dir_fd=top)
    with contextlib.suppress(OSError):
        os.fchmod(folder, 0o700)
    return folder


def _open_up(top: int, name: str) -> None:
    folder = os.open(name, _PATH, dir_fd=top)
    try:
        os.chmod(f"/proc/self/fd/{folder}", 0o700)
    finally:
        os.close(folder)
