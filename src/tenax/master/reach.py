"""Checkpoint files as the master itself can reach them: shared_fs and directory, where they are mounted here, too.

Users say where their checkpoints are, and the master may read more than they may. So it touches only directories that
are named by a UUID and hold no links to others. Blocking: call it in a thread.
"""

from __future__ import annotations

import io
import os
import tarfile
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tenax.errors import InvalidInput, NotFound, NotNow
from tenax.jsonvalue import JsonObject
from tenax.storage.config import from_config
from tenax.storage.port import EVERYTHING, CheckpointMissing, Storage

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


def delete_checkpoint(place: JsonObject, checkpoint: str, globs: Sequence[str] = EVERYTHING) -> Files:
    """Delete files of a checkpoint; what is left. Files that are gone already are no error.

    Raises NotNow, StorageFailed.
    """
    return _holding(place, checkpoint).delete(checkpoint, globs)


def directory_of(place: JsonObject, checkpoint: str) -> str:
    """Where the files of a checkpoint lie on this machine. Raises NotFound, NotNow."""
    path = _holding(place, checkpoint).direct_path(checkpoint)
    if path is None or not os.path.isdir(path):
        raise NotFound(f"the files of checkpoint {checkpoint} are not there any more")
    return path


def _holding(place: JsonObject, checkpoint: str) -> Storage:
    """The storage of a checkpoint that the master may touch. Raises NotNow."""
    storage = storage_here(place)
    try:
        regular = str(uuid.UUID(checkpoint)) == checkpoint.lower() and not _has_links(storage.direct_path(checkpoint))
    except CheckpointMissing:
        regular = True
    except ValueError:
        regular = False
    if not regular:
        raise NotNow(f"{checkpoint!r} is not the directory of a checkpoint, or leads elsewhere: it is left alone")
    return storage


def _has_links(path: str | None) -> bool:
    """Whether a directory is, or holds, a link to another one."""
    if path is None:
        return False
    return os.path.islink(path) or any(
        os.path.islink(os.path.join(base, name)) for base, folders, _ in os.walk(path) for name in folders
    )


def archive_of(directory: str, *, compressed: bool) -> Iterator[bytes]:
    """A tar archive of a directory's files, piece by piece."""
    buffer = _Outbox()
    with tarfile.open(fileobj=buffer, mode="w|gz" if compressed else "w|") as tar:
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
