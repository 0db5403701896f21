"""Disks: one without room, what is on one, sizes as text. Standard library only, for Python 3.9: tasks import it."""

from __future__ import annotations

import errno
import os

#: With less room than that a disk takes nothing worth writing any more.
FULL_BYTES = 256 * 1024


def is_full(path: str) -> bool:
    """Whether nothing more can be written below ``path``; not where the file system cannot say it now."""
    try:
        disk = os.statvfs(path)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < FULL_BYTES


def says_full(error: BaseException) -> bool:
    """Whether an error of the operating system is that of a full disk, or of a full quota."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def is_there(path: str | os.PathLike[str]) -> bool:
    """Whether something has this name, following links. Raises OSError where the system cannot say it now.

    `Path.exists` says no for that on newer Pythons, and what is there would be made again, replaced or given up.
    """
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def size_text(count: int) -> str:
    """So many bytes, for people: ``1.5 GiB``, ``12 MiB``."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def stamp(path: str) -> tuple[int, int]:
    """When a file or directory was last changed (ns), and its size; zeros where there is none, or none can be seen."""
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
