"""Files of a checkpoint on a file system: listing, copying, making durable. Standard library only."""

from __future__ import annotations

import os
import stat

from tenax.storage.globs import parents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenax.storage.port import Files, Selector

_PIECE = 8 * 1024 * 1024


def walk_files(root: str) -> Files:
    """Everything under ``root``: files with their bytes, directories as ``name/`` with 0. Links are followed."""
    files: Files = {}
    _walk(root, "", files, ())
    return files


def _walk(root: str, prefix: str, files: Files, above: tuple[tuple[int, int], ...]) -> None:
    here = os.stat(os.path.join(root, prefix))
    key = (here.st_dev, here.st_ino)
    if key in above:
        raise OSError(f"{os.path.join(root, prefix)} is a link to a directory above it")
    with os.scandir(os.path.join(root, prefix)) as entries:
        ordered = sorted(entries, key=lambda entry: entry.name)
    for entry in ordered:
        path = prefix + entry.name
        try:
            status = entry.stat()
        except FileNotFoundError:  # a temporary file of somebody else that is gone meanwhile
            continue
        if stat.S_ISDIR(status.st_mode):
            files[path + "/"] = 0
            _walk(root, path + "/", files, (*above, key))
        elif stat.S_ISREG(status.st_mode):
            files[path] = status.st_size


def select(files: Files, selector: Selector) -> Files:
    """What the selector takes, with the directories above each file that it takes."""
    chosen: Files = {}
    for path, size in files.items():
        if selector(path):
            for parent in parents(path):
                chosen.setdefault(parent, 0)
            chosen[path] = size
    return chosen


def copy_file(source: str, target: str, *, flush: bool = True) -> None:
    """Copy content and mode, and ``flush`` it to the disk. Shares blocks where the file system can."""
    with open(source, "rb", buffering=0) as reader, open(target, "wb", buffering=0) as writer:
        os.fchmod(writer.fileno(), stat.S_IMODE(os.fstat(reader.fileno()).st_mode) & 0o777)
        if not _copy_in_kernel(reader.fileno(), writer.fileno()):
            while True:
                piece = reader.read(_PIECE)
                if not piece:
                    break
                write_all(writer.fileno(), piece)
        if flush:
            os.fsync(writer.fileno())


def _copy_in_kernel(source: int, target: int) -> bool:
    copy = getattr(os, "copy_file_range", None)
    if copy is None:
        return False
    copied = 0
    while True:
        try:
            count = copy(source, target, 1 << 30)
        except OSError:
            if copied:
                raise
            return False  # two file systems, or one that cannot
        if count == 0:
            # Some file systems answer 0 at once for files whose size they do not know: read those.
            return copied > 0
        copied += count


def write_file(path: str, data: bytes) -> None:
    """Write and flush to the disk."""
    with open(path, "wb", buffering=0) as writer:
        write_all(writer.fileno(), data)
        os.fsync(writer.fileno())


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync_tree(root: str) -> Files:
    """Flush all files and directories under ``root`` to the disk; returns what is there."""
    files = walk_files(root)
    for path in files:
        try:
            sync_path(os.path.join(root, path))
        except FileNotFoundError:
            continue
    sync_path(root)
    return files


def sync_path(path: str) -> None:
    """Flush one file or directory to the disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def md5_of(path: str) -> str:
    """The MD5 of a file, to tell equal files from different ones (nothing secret hangs on it)."""
    import hashlib

    digest = hashlib.md5(usedforsecurity=False)
    with open(path, "rb", buffering=0) as reader:
        while True:
            piece = reader.read(_PIECE)
            if not piece:
                return digest.hexdigest()
            digest.update(piece)
