"""Files on their way into a checkpoint: where they are written, what is in them, which of them are stored already.

Standard library only, Python 3.9.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress

from tenax.core.sharding import refuse_unsayable
from tenax.host.disk import is_full, says_full
from tenax.storage.files import walk_files
from tenax.storage.manifest import StoredFiles, contents_of, fingerprints_at, started, still
from tenax.storage.port import CheckpointMissing, StorageFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Optional

    from tenax.storage.manifest import Manifest
    from tenax.storage.port import Files, Storage

#: So many bytes are read by a thread of their own, while they are flushed.
_LARGE = 16 * 1024 * 1024


@contextmanager
def workplace(storage: Storage, storage_id: str) -> Iterator[tuple[str, bool]]:
    """A directory to write into, and whether it is the storage's own. Raises StorageFailed where it took no more."""
    direct = storage.stage_directory(storage_id)
    if direct is None:
        import tempfile

        with tempfile.TemporaryDirectory(prefix="tenax-checkpoint-") as path, temporary_place(path):
            yield path, False
        return
    try:
        yield direct, True
    except Exception as error:
        machine = os.uname().nodename
        if _is_gone(error, direct):
            raise StorageFailed(
                f"the checkpoint that was being written at {direct} on {machine} is gone: was its storage removed, or "
                f"is it no longer mounted? Bring it back, or choose another checkpoint_storage ({error})"
            ) from error
        if not _took_no_more(error, direct):
            raise
        raise StorageFailed(
            f"the checkpoint storage is full, or takes no more, at {os.path.dirname(direct)} on {machine}: make room "
            f"there, or choose another checkpoint_storage ({error})"
        ) from error


@contextmanager
def temporary_place(path: str) -> Iterator[None]:
    """Files of a checkpoint in a bucket pass through here. Raises StorageFailed where there is no room for them."""
    try:
        yield
    except Exception as error:
        if not _took_no_more(error, path):
            raise
        raise StorageFailed(
            f"there is no room for the files of the checkpoint in the temporary directory {os.path.dirname(path)} on "
            f"{os.uname().nodename}: make room there, or set TMPDIR to a directory that has some ({error})"
        ) from error


def listed(path: str) -> Files:
    """What was written for a checkpoint. Raises StorageFailed, InvalidInput."""
    try:
        files = walk_files(path)
    except OSError as error:
        raise StorageFailed(f"what was written for the checkpoint at {path} cannot be read: {error}") from error
    refuse_unsayable(files)
    return files


def stage(
    storage: Storage, storage_id: str, directory: str, files: Files, direct: bool, earlier: Optional[StoredFiles]
) -> Manifest:
    """Put files of a directory, which is the storage's own with ``direct``, into the checkpoint to be, flushed; what
    ``earlier`` has, too, is not stored again, where the storage can share it. What is in them. Raises StorageFailed."""
    before = fingerprints_at(directory, files)
    known = _contents(directory, _alike(storage, directory, files, earlier))
    reused: set[str] = set()
    if known and earlier is not None:
        reused = set(storage.reuse(storage_id, directory, earlier, earlier.shared(known)))
    unread = [path for path in files if path not in known]
    # Reading takes a processor, flushing a disk: at once, where that is worth a thread.
    large = sum(files[path] for path in unread) >= _LARGE
    read = started(lambda: _contents(directory, unread)) if large else (lambda: _contents(directory, unread))
    try:
        if direct:
            storage.staged(storage_id)
        else:
            storage.stage(storage_id, directory, {path: files[path] for path in files if path not in reused})
    except BaseException:
        with suppress(StorageFailed):
            read()  # nobody reads on then
        raise
    contents = read()
    contents.update({path: known[path] for path in known if path not in reused})
    return {**still(directory, contents, before), **{path: known[path] for path in reused}}


def _contents(directory: str, paths: Sequence[str]) -> Manifest:
    try:
        return contents_of(directory, paths)
    except OSError as error:
        raise StorageFailed(f"a file that was to be stored cannot be read: {error}") from error


def stored_files(storage: Storage, storage_id: str, manifest: Manifest) -> Optional[StoredFiles]:
    """Those of a checkpoint, for the next one to share; None: it cannot."""
    with suppress(CheckpointMissing):
        place = storage.direct_path(storage_id)
        if place is not None:
            return StoredFiles(storage_id, manifest, fingerprints_at(place, manifest))
        if storage.shares:
            return StoredFiles(storage_id, manifest, None)
    return None


def part_of(directory: str, files: Files, rank: int, size: int) -> Files:
    """What of files that all ranks see is this rank's to read, by their order; not what has not come to it yet."""
    mine = [path for place, path in enumerate(files) if place % size == rank]
    return {path: files[path] for path in mine if os.path.exists(os.path.join(directory, path))}


def union(manifests: Sequence[Manifest]) -> Manifest:
    """What ranks have read, together."""
    return {path: content for manifest in manifests for path, content in manifest.items()}


def _alike(storage: Storage, directory: str, files: Files, earlier: Optional[StoredFiles]) -> list[str]:
    if earlier is not None:
        with suppress(CheckpointMissing):  # deleted meanwhile
            place = storage.direct_path(earlier.storage_id)
            if place is not None or storage.shares:
                return earlier.alike(directory, files, place)
    return []


def _is_gone(error: Exception, path: str) -> bool:
    """Whether a block that writes a checkpoint failed since that is no longer there."""
    speaks_of_it = isinstance(error, (OSError, StorageFailed)) or path in str(error)
    return speaks_of_it and not os.path.isdir(path)


def _took_no_more(error: Exception, path: str) -> bool:
    """Whether a block that writes a checkpoint failed since its storage is full; not every library says so."""
    import errno

    return says_full(error) or is_full(path) or (isinstance(error, OSError) and error.errno == errno.EROFS)
