"""Directories that hold state of a server: marked, so that no checkpoint is ever looked for in them. Python 3.9.

An agent keeps a directory for each container under a UUID, as a storage keeps checkpoints, with the container's
tokens in it. Whoever serves checkpoints cannot know where all agents have theirs, so each server marks its own. Nor is
any of it sent as code, if it lies beside some.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

#: In every directory that a master or an agent keeps its state in.
MARK = ".tenax-private"
#: The one directory inside of such a one that holds checkpoints: that of ``tenax up``.
CHECKPOINTS = "checkpoints"
_TEXT = "State of a Tenax server: nothing in here is served as a checkpoint.\n"


def mark_private(directory: str) -> None:
    """Mark a directory of ours, if it is not marked yet. Raises OSError."""
    with suppress(FileExistsError):
        descriptor = os.open(os.path.join(directory, MARK), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(_TEXT)


def is_private(directory: int) -> bool:
    """Whether this open directory is marked, by its owner or us: what others put there does not close it."""
    try:
        mark = os.stat(MARK, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return False
    owners = (os.fstat(directory).st_uid, os.geteuid(), 0)
    return stat.S_ISREG(mark.st_mode) and mark.st_uid in owners


def is_inside_private(path: str) -> bool:
    """Whether a path that an operator has named leads into a marked directory, other than to its checkpoints."""
    below = ""
    here = os.path.realpath(path)
    while True:
        with suppress(OSError):
            descriptor = os.open(here, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                if below not in ("", CHECKPOINTS) and is_private(descriptor):
                    return True
            finally:
                os.close(descriptor)
        here, below = os.path.split(here)
        if not below:
            return False
