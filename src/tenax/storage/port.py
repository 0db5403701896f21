"""The port that every checkpoint storage implements. Standard library only, Python 3.9.

A checkpoint is a set of files under an id. It comes into being in two steps, so that a crash at any instant leaves
either all of it or something that nobody takes for a checkpoint:

1. files are staged, by several processes at once if need be (``stage``, ``stage_bytes``, or written straight into
   ``stage_directory``);
2. one process calls ``commit``. After it has returned the checkpoint is there, whole, and outlives a power cut.

Paths inside a checkpoint use ``/``; a directory's ends in ``/`` and has 0 bytes. Every method may be called again after
a crash. No method is bound to a thread. Failures raise StorageFailed with the place and what to do; an id that is not
there raises CheckpointMissing. One kit of tests (``tests/kits/storage_kit.py``) holds for all implementations.
"""

from __future__ import annotations

import os
import re

from tenax.errors import NotFound, UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Dict, Optional, Protocol, Set

    from tenax.jsonvalue import JsonObject
    from tenax.storage.manifest import StoredFiles

    #: Path in the checkpoint -> bytes.
    Files = Dict[str, int]
    #: Which paths to take; asked for files and, with a slash at the end, for directories.
    Selector = Callable[[str], bool]
else:
    Protocol = object

#: Where a ``shared_fs`` is mounted inside of a container. The path is Determined's: its users' code and images know it.
SHARED_FS_MOUNT = "/determined_shared_fs"
#: Matches everything in a checkpoint.
EVERYTHING = ("**/*",)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class StorageFailed(UserError):
    """The checkpoint storage does not work."""


class StorageUnusable(StorageFailed):
    """The checkpoint storage does not work, and will not before a setting is changed."""


class CheckpointMissing(NotFound):
    """There is no such checkpoint in the storage."""


class CheckpointDamaged(UserError):
    """A checkpoint is not what was stored."""


class Storage(Protocol):
    """One place where checkpoints live."""

    #: Its name for people.
    label: str
    #: Whether files that do not change are stored once without being files of one file system.
    shares: bool = False

    def identity(self) -> JsonObject:
        """The part of ``checkpoint_storage`` that says where this is: no credentials, no policies."""

    def tell_waiting(self, hear: Callable[[], None]) -> None:
        """Have ``hear`` called, in any thread, while a store that is away is waited for: it goes on. A file system is
        not waited for."""
        return

    def share_unchanged(self) -> None:
        """Store what does not change once from now on, where that is a choice; who reads the store past us finds no
        whole checkpoints then."""
        return

    def validate(self) -> None:
        """Write, read back and delete something small. Raises StorageFailed."""

    def stage(self, storage_id: str, source: str, paths: Iterable[str]) -> None:
        """Copy ``paths``, relative to the directory ``source``, into the checkpoint to be."""

    def reuse(self, storage_id: str, source: str, earlier: StoredFiles, paths: Mapping[str, str]) -> Set[str]:
        """Put files into the checkpoint to be that an ``earlier`` one has, without storing them again: path, below the
        directory ``source``, too -> its path in the earlier one. Which were: the others are staged by the caller.

        A storage that cannot, or where a file is not what it was, puts none. Deleting either checkpoint never harms the
        other.
        """
        return set()

    def stage_bytes(self, storage_id: str, path: str, data: bytes) -> None:
        """Put one small file into the checkpoint to be."""

    def stage_directory(self, storage_id: str) -> Optional[str]:
        """A directory in which files may be written instead of staged; None: this storage has none."""

    def staged(self, storage_id: str) -> Optional[Files]:
        """What lies in ``stage_directory``, flushed to the disk by this machine; None where there is none."""

    def commit(self, storage_id: str) -> None:
        """All is staged: make it the checkpoint. Done already: nothing."""

    def abandon(self, storage_id: str) -> None:
        """Throw away what was staged and not committed."""

    def direct_path(self, storage_id: str) -> Optional[str]:
        """The checkpoint as a directory to read in place; None: it must be downloaded. Raises CheckpointMissing."""

    def list_files(self, storage_id: str) -> Files:
        """All files and directories. Raises CheckpointMissing."""

    def download(self, storage_id: str, target: str, selector: Optional[Selector] = None) -> None:
        """Copy into the directory ``target``, made if need be. Raises CheckpointMissing."""

    def put(self, path: str, source: str, *, flush: bool = False) -> None:
        """Copy the file ``source`` to ``path`` beside the checkpoints, over what is there.

        Readers see all of it or none; without ``flush`` it may be lost with the machine's power.
        """

    def delete_beside(self, path: str) -> bool:
        """Delete the directory ``path`` beside the checkpoints; False: it was not there."""

    def delete(self, storage_id: str, globs: Sequence[str] = EVERYTHING) -> Files:
        """Delete what matches (``**`` crosses directories; a matched directory goes whole); returns what is left.

        What is gone already is no error. Without a file left the checkpoint is gone.
        """


def is_there(storage: Storage, storage_id: str) -> bool:
    """Whether a checkpoint is in its storage. Raises CheckpointMissing where that looks as if it were not mounted."""
    try:
        storage.direct_path(storage_id)
        return True
    except CheckpointMissing as error:
        base = getattr(storage, "base", "")
        if base and (not os.path.isdir(base) or not os.listdir(base)):
            machine = os.uname().nodename
            raise CheckpointMissing(f"{error}; {base} is empty on {machine}: is it mounted there?") from None
        return False


def claimed_id(claim: str) -> str:
    """A UUID (version 8) that only whoever knows ``claim`` can report: its name is seen by all who see the storage."""
    import hashlib

    text = hashlib.sha256(claim.encode()).hexdigest()
    variant = "89ab"[int(text[16], 16) & 3]
    return f"{text[:8]}-{text[8:12]}-8{text[13:16]}-{variant}{text[17:20]}-{text[20:32]}"


def is_claimed(storage_id: str) -> bool:
    """Whether an id is one of those; clients that know nothing of them make random ones (version 4)."""
    return len(storage_id) == 36 and storage_id[14] == "8"


def inside(path: str) -> str:
    """A path relative to a checkpoint, or StorageFailed if it leads out of it."""
    if path.startswith("/") or ".." in path.split("/") or "\0" in path:
        raise StorageFailed(f"{path!r} is not a path inside a checkpoint")
    return path


def checked_id(storage_id: str) -> str:
    """The id itself, or StorageFailed for what is no UUID: it could lead out of the storage or elsewhere in it."""
    if not _UUID.fullmatch(storage_id):
        raise StorageFailed(
            f"{storage_id!r} is not the id of a checkpoint (a UUID is expected, whole: of its beginning "
            "tenax checkpoint describe says the rest)"
        )
    return storage_id
