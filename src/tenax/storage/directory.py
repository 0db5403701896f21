"""Checkpoints as directories of a file system: ``shared_fs`` and ``directory``. Standard library only, Python 3.9.

``<base>/<id>/`` is a checkpoint. What is being staged lies in ``<base>/.<id>.partial/`` and becomes the checkpoint by
one rename, after all of it was flushed to the disk. A file that an earlier checkpoint has is a hard link to it: nothing
in a checkpoint is ever written in place.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress

from tenax.host.disk import says_full
from tenax.storage.files import copy_file, select, sync_path, sync_tree, walk_files, write_file
from tenax.storage.globs import matching
from tenax.storage.manifest import fingerprint
from tenax.storage.port import EVERYTHING, CheckpointMissing, Storage, StorageFailed, checked_id, inside
from tenax.wire.spool_names import MANIFEST_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Optional

    from tenax.jsonvalue import JsonObject
    from tenax.storage.manifest import Fingerprint, StoredFiles
    from tenax.storage.port import Files, Selector


def being_staged(storage_id: str) -> str:
    """The directory in which a checkpoint comes into being; one that broke off leaves it."""
    return f".{storage_id}.partial"


def half_deleted(storage_id: str) -> str:
    """What a checkpoint is called while it is deleted; a deletion that broke off leaves it."""
    return f".{storage_id}.deleted"


class DirectoryStorage(Storage):
    """Checkpoints under ``base``.

    ``root`` must exist (it is mounted, or made by an operator); below it, ``base`` is made when needed. ``identity`` is
    the configuration that names the place; ``label`` names it for people.
    """

    def __init__(self, base: str, *, root: Optional[str] = None, identity: JsonObject, label: str) -> None:
        self.base = base
        self._root = root
        self._identity = identity
        self.label = label

    def identity(self) -> JsonObject:
        return self._identity

    def validate(self) -> None:
        probe = os.path.join(self.base, f".check-{os.urandom(8).hex()}")
        content = b"Written to see whether checkpoints can be stored here; may be deleted.\n"
        with self._explained("be written"):
            self._make_base()
            try:
                with open(probe, "wb") as file:
                    file.write(content)
                with open(probe, "rb") as file:
                    if file.read() != content:
                        raise OSError(errno.EIO, "what was written is not what is read back")
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(probe)

    def stage(self, storage_id: str, source: str, paths: Iterable[str]) -> None:
        partial = self._partial(storage_id)
        touched = {partial}
        with self._explained("be written"):
            self._make_base()
            os.makedirs(partial, exist_ok=True)
            for path in paths:
                target = os.path.join(partial, inside(path))
                if path.endswith("/"):
                    os.makedirs(target, exist_ok=True)
                    continue
                os.makedirs(os.path.dirname(target), exist_ok=True)
                copy_file(os.path.join(source, path), target)
                touched.add(os.path.dirname(target))
            for directory in touched:
                sync_path(directory)

    def reuse(self, storage_id: str, source: str, earlier: StoredFiles, paths: Mapping[str, str]) -> set[str]:
        partial, place = self._partial(storage_id), self._final(earlier.storage_id)
        reused: set[str] = set()
        with self._explained("be written"):
            self._make_base()
            os.makedirs(partial, exist_ok=True)
            for path, theirs in paths.items():
                target = os.path.join(partial, inside(path))
                os.makedirs(os.path.dirname(target), exist_ok=True)
                mode = os.stat(os.path.join(source, path)).st_mode
                if _share(os.path.join(place, inside(theirs)), target, earlier.fingerprint(theirs), mode):
                    reused.add(path)
        return reused

    def stage_bytes(self, storage_id: str, path: str, data: bytes) -> None:
        target = os.path.join(self._partial(storage_id), inside(path))
        with self._explained("be written"):
            self._make_base()
            os.makedirs(os.path.dirname(target), exist_ok=True)
            write_file(target, data)

    def stage_directory(self, storage_id: str) -> Optional[str]:
        partial = self._partial(storage_id)
        with self._explained("be written"):
            self._make_base()
            os.makedirs(partial, exist_ok=True)
        return partial

    def staged(self, storage_id: str) -> Optional[Files]:
        with self._explained("be written"):
            return sync_tree(self._partial(storage_id))

    def commit(self, storage_id: str) -> None:
        partial, final = self._partial(storage_id), self._final(storage_id)
        with self._explained("be written"):
            if os.path.isdir(final) and not os.path.exists(partial):
                return
            sync_tree(partial)
            os.rename(partial, final)
            sync_path(self.base)

    def abandon(self, storage_id: str) -> None:
        _remove_tree(self._partial(storage_id))

    def direct_path(self, storage_id: str) -> Optional[str]:
        final = self._final(storage_id)
        if not os.path.isdir(final):
            raise CheckpointMissing(f"there is no checkpoint {storage_id} in {self.label} (looked for {final})")
        return final

    def list_files(self, storage_id: str) -> Files:
        path = self.direct_path(storage_id)
        assert path is not None
        with self._explained("be read"):
            return walk_files(path)

    def download(self, storage_id: str, target: str, selector: Optional[Selector] = None) -> None:
        files = self.list_files(storage_id)
        paths = select(files, selector) if selector is not None else files
        os.makedirs(target, exist_ok=True)
        for path in paths:
            place = os.path.join(target, path)
            if path.endswith("/"):
                os.makedirs(place, exist_ok=True)
            else:
                os.makedirs(os.path.dirname(place), exist_ok=True)
                copy_file(os.path.join(self._final(storage_id), path), place)

    def put(self, path: str, source: str, *, flush: bool = False) -> None:
        target = os.path.join(self.base, inside(path))
        folder, name = os.path.split(target)
        new = os.path.join(folder, f".{name}.new")
        with self._explained("be written"):
            self._make_base()
            os.makedirs(folder, exist_ok=True)
            try:
                copy_file(source, new, flush=flush)
                os.rename(new, target)
            except OSError:
                # On a full disk it would hold the room that is missing.
                with suppress(OSError):
                    os.unlink(new)
                raise
            if flush:
                sync_path(folder)

    def delete_beside(self, path: str) -> bool:
        folder = os.path.join(os.path.realpath(self.base), inside(path))
        if os.path.realpath(folder) != folder:
            raise StorageFailed(f"{path} in {self.label} leads elsewhere and is left alone")
        with self._explained("be changed"):
            there = os.path.isdir(folder)
            _remove_tree(folder)
        return there

    def delete(self, storage_id: str, globs: Sequence[str] = EVERYTHING) -> Files:
        final = self._final(storage_id)
        with self._explained("be changed"):
            # What a deletion that broke off has left.
            _remove_tree(os.path.join(self.base, half_deleted(storage_id)))
            if not os.path.isdir(final):
                return {}
            files = walk_files(final)
            removed = set(files) if tuple(globs) == EVERYTHING else trimmed(files, globs)
            left = {path: size for path, size in files.items() if path not in removed}
            if not any(not path.endswith("/") for path in left):
                _remove_tree(final)
                return {}
            for path in sorted(removed, reverse=True):  # what lies in a directory before the directory
                _remove(os.path.join(final, path))
            return left

    def _final(self, storage_id: str) -> str:
        return os.path.join(self.base, checked_id(storage_id))

    def _partial(self, storage_id: str) -> str:
        return os.path.join(self.base, being_staged(checked_id(storage_id)))

    def _make_base(self) -> None:
        if self._root is not None and os.path.exists(self._root) and not os.path.isdir(self._root):
            raise NotADirectoryError(errno.ENOTDIR, "it is no directory there")
        if self._root is not None and not os.path.isdir(self._root):
            raise FileNotFoundError(errno.ENOENT, "it does not exist there")
        os.makedirs(self.base, exist_ok=True)

    @contextmanager
    def _explained(self, verb: str) -> Iterator[None]:
        """Turn an error of the file system into words that say where, who and what to do."""
        try:
            yield
        except OSError as error:
            place = "" if self.base in self.label else f" (at {self.base})"
            raise StorageFailed(
                f"checkpoint storage {self.label}{place} cannot {verb} on {os.uname().nodename} as uid {os.getuid()}: "
                f"{error.strerror or error}. {_advice(error)}"
            ) from error


def trimmed(files: Iterable[str], globs: Sequence[str]) -> set[str]:
    """Which of a checkpoint's files are deleted with these: the manifest, too, which says what is to be there."""
    removed = matching(files, globs)
    return removed | {MANIFEST_FILE}.intersection(files) if removed else removed


def _share(file: str, target: str, known: Fingerprint, mode: int) -> bool:
    """Make ``target`` another name of ``file``, over what is there, if that is the file that is ``known`` and what lies
    beside ``target`` has the same owner. What a link, or somebody else, put in its place is not taken."""
    folder, name = os.path.split(target)
    new = os.path.join(folder, f".{name}.{os.urandom(4).hex()}.new")
    try:
        os.link(file, new, follow_symlinks=False)
    except (OSError, NotImplementedError):  # gone, too many names already, another device, a file system without
        return False
    try:
        status, here = os.lstat(new), os.stat(folder)
        owned = (status.st_uid, status.st_gid) == (here.st_uid, here.st_gid)
        if fingerprint(status) != known or not owned or (status.st_mode ^ mode) & 0o777:
            return False
        os.rename(new, target)
        return True
    finally:
        # A rename onto another name of the same file leaves both.
        with suppress(FileNotFoundError):
            os.unlink(new)


def _advice(error: OSError) -> str:
    if says_full(error):
        return "Make room there, or choose another checkpoint_storage."
    if error.errno == errno.ENOENT:
        return "Make or mount it on every machine, or choose another checkpoint_storage."
    if error.errno == errno.ENOTDIR:
        return "Name a directory that every machine has, or choose another checkpoint_storage."
    return "Let that user write there, or choose another checkpoint_storage."


def _remove_tree(path: str) -> None:
    import shutil

    with suppress(FileNotFoundError):
        shutil.rmtree(path)


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        if os.path.isdir(path) and not os.path.islink(path.rstrip("/")):
            os.rmdir(path)
        else:
            os.unlink(path.rstrip("/"))
