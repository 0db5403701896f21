"""Logs of the servers: files that a process writes by itself, kept below a size.

A server holds its log open for appending, and goes on if nobody looks after it; so an old part is copied away and the
file is cut to nothing, under the same inode. What is written in the instant between the two is lost.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

LIMIT_BYTES = 16 * 1024 * 1024
#: Older parts: ``master.log.1`` is the newest of them.
KEEP = 3
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC


def open_log(path: Path) -> int:
    """A descriptor that appends to ``path``, which only its owner can read."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def rotate(path: Path, limit: int = LIMIT_BYTES, keep: int = KEEP) -> bool:
    """Move what ``path`` holds to ``path.1`` if it is larger than ``limit`` bytes; whether it was.

    Raises OSError, as on a full disk: then nothing of the log or of its older parts is gone.
    """
    try:
        if path.stat().st_size <= limit:
            return False
    except FileNotFoundError:
        return False
    copy = path.with_name(f"{path.name}.new")
    try:
        with open(path, "rb") as source, open(os.open(copy, _NEW, 0o600), "wb") as part:
            shutil.copyfileobj(source, part)
        for number in range(keep, 1, -1):
            with contextlib.suppress(FileNotFoundError):
                os.replace(_part(path, number - 1), _part(path, number))
        os.replace(copy, _part(path, 1))
    except OSError:
        with contextlib.suppress(OSError):
            copy.unlink()
        raise
    os.truncate(path, 0)
    return True


def tail(path: Path, lines: int = 15, since: int = 0) -> str:
    """The last lines of a log (of what stands after byte ``since``), for a message; empty when there is none."""
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(min(since, file.tell()), file.tell() - 16 * 1024))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.rstrip().splitlines()[-lines:])


def _part(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")
