"""Checkpoint files as the master itself can reach them: shared_fs and directory, where they are mounted here, too.

Blocking: call it in a thread.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tenax.errors import InvalidInput, NotFound, NotNow
from tenax.jsonvalue import JsonObject
from tenax.storage.config import from_config
from tenax.storage.port import EVERYTHING, Storage

if TYPE_CHECKING:
    from tenax.storage.port import Files

_PIECE = 1 << 20


def storage_here(place: JsonObject) -> Storage:
    """The storage at ``place`` (a ``checkpoint_storage``). Raises NotNow, saying why it is not in reach."""
    kind = place.get("type")
    # Where a container would see it is of no use here.
    seen = {key: value for key, value in place.items() if kind != "shared_fs" or key != "container_path"}
    root = place.get("host_path") if kind == "shared_fs" else place.get("container_path")
    if isinstance(root, str) and not os.path.isdir(root):
        raise NotNow(f"the master cannot reach {root}: mount it on the master's machine, or delete the files yourself")
    try:
        return from_config(seen, mount="")
    except InvalidInput as error:
        raise NotNow(f"the master cannot reach the checkpoints: {error}") from None


def delete_checkpoint(place: JsonObject, uuid: str, globs: Sequence[str] = EVERYTHING) -> Files:
    """Delete files of a checkpoint; what is left. Files that are gone already are no error.

    Raises NotNow, StorageFailed.
    """
    return storage_here(place).delete(uuid, globs)


def directory_of(place: JsonObject, uuid: str) -> str:
    """Where the files of a checkpoint lie on this machine. Raises NotFound, NotNow."""
    path = storage_here(place).direct_path(uuid)
    if path is None or not os.path.isdir(path):
        raise NotFound(f"the files of checkpoint {uuid} are not there any more")
    return path


def archive_of(directory: str, *, compressed: bool) -> Iterator[bytes]:
    """A tar archive of a directory's files, piece by piece."""
    buffer = _Outbox()
    with tarfile.open(fileobj=buffer, mode="w|gz" if compressed else "w|") as tar:  # type: ignore[call-overload]
        for base, folders, files in os.walk(directory):
            folders.sort()
            for name in sorted(files + folders):
                path = os.path.join(base, name)
                tar.add(path, arcname=os.path.relpath(path, directory), recursive=False)
                if buffer.size >= _PIECE:
                    yield buffer.take()
    yield buffer.take()


class _Outbox(io.RawIOBase):
    """What was written and not yet taken."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        piece = bytes(data)  # type: ignore[call-overload]
        self._pieces.append(piece)
        self.size += len(piece)
        return len(piece)

    def take(self) -> bytes:
        taken = b"".join(self._pieces)
        self._pieces.clear()
        self.size = 0
        return taken
