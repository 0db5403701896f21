"""Folders of the cluster's own storage in which several users of the machines write.

A storage that is open to all and sticky, as ``/tmp`` is, serves tasks of mapped users: what each makes there is theirs.
The folders above an experiment's TensorBoard files are nobody's own. Whoever came first would keep them, so the master
makes them, as open and as sticky.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping

from tenax.jsonvalue import Json
from tenax.storage.registry import kind_of

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN = stat.S_ISVTX | 0o777


def make(storage: Mapping[str, Json] | None, cluster_id: str) -> None:
    """Make them where the storage is such a folder of ours on this machine; elsewhere, nothing. Blocking."""
    kind = None if storage is None else kind_of(storage)
    place = None if kind is None or storage is None else kind.place(storage)
    if place is None:
        return
    root, below = place
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        folder = _opened(stack, os.path.join(root, *below), None)
        for name in (cluster_id, "tensorboard", "experiment"):
            status = os.fstat(folder)
            if status.st_uid != os.geteuid() or status.st_mode & _OPEN != _OPEN:
                return
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=folder)
            folder = _opened(stack, name, folder)
            if os.fstat(folder).st_uid == os.geteuid():
                os.fchmod(folder, _OPEN)


def _opened(stack: contextlib.ExitStack, path: str, parent: int | None) -> int:
    folder = os.open(path, _FOLDER, dir_fd=parent)
    stack.callback(os.close, folder)
    return folder
