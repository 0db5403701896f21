"""What a checkpoint holds, by size and SHA-256, so that what is read back can be held against what was stored.

The manifest is a file of the checkpoint, written after all others; it lists all but itself. A checkpoint without one is
of an older release or another program, or was trimmed by hand, and is not verified. What is known of a file while it
lies there says, too, whether a later checkpoint may share it. Standard library only, Python 3.9.
"""

from __future__ import annotations

import os
import stat
import threading

from tenax.wire.spool_names import MANIFEST_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Dict, Optional, Tuple, TypeVar

    from tenax.storage.port import Selector

    T = TypeVar("T")

    #: What is in a file: bytes, and their SHA-256 in hexadecimal digits.
    Content = Tuple[int, str]
    #: Path in the checkpoint -> what is in that file.
    Manifest = Dict[str, Content]
    #: Device, inode, size, time of the last change, mode, owner, group: a file that has these still is that file.
    Fingerprint = Tuple[int, int, int, int, int, int, int]

_VERSION = 1
_PIECE = 4 * 1024 * 1024
#: Files that together are smaller than that are read by one thread.
_SMALL = 64 * 1024 * 1024
_THREADS = 4
#: Places of a file that are compared before all of it is, and bytes of each.
_SAMPLES, _SAMPLE = 16, 4096


def fingerprint(status: os.stat_result) -> Fingerprint:
    """What tells this file from any other, and from itself after a change."""
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_mode,
        status.st_uid,
        status.st_gid,
    )


def contents_of(root: str, paths: Iterable[str]) -> Manifest:
    """What is in these files below ``root``; directories are left out. Raises OSError."""
    return {path: content for path, (content, _) in _read(root, paths).items()}


def _read(root: str, paths: Iterable[str]) -> dict[str, tuple[Content, Fingerprint]]:
    """What is in files, and what they were when they were read."""
    files = [path for path in paths if not path.endswith("/")]
    threads = min(_THREADS, len(files), os.cpu_count() or 1)
    if threads < 2 or sum(os.stat(os.path.join(root, path)).st_size for path in files) < _SMALL:
        return _read_part(root, files)
    waiting = [_started_part(root, files[first::threads]) for first in range(1, threads)]
    read = _read_part(root, files[::threads])
    for wait in waiting:
        read.update(wait())
    return read


def _started_part(root: str, files: Sequence[str]) -> Callable[[], dict[str, tuple[Content, Fingerprint]]]:
    return started(lambda: _read_part(root, files))


def _read_part(root: str, files: Sequence[str]) -> dict[str, tuple[Content, Fingerprint]]:
    return {path: _content(os.path.join(root, path)) for path in files}


def started(step: Callable[[], T]) -> Callable[[], T]:
    """Take a step in a thread; what comes back waits for its result, or raises what it raised.

    Works while the process ends, too, unlike the pools of the standard library.
    """
    outcome: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(step())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, name="tenax-checkpoint-reader", daemon=True)
    thread.start()

    def wait() -> T:
        thread.join()
        if failure:
            raise failure[0]
        return outcome[0]

    return wait


def _content(path: str) -> tuple[Content, Fingerprint]:
    import hashlib

    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        status = fingerprint(os.fstat(file.fileno()))
        size = 0
        buffer = memoryview(bytearray(min(_PIECE, status[2] + 1)))
        while True:
            count = file.readinto(buffer)
            if not count:
                return (size, digest.hexdigest()), status
            digest.update(buffer[:count])
            size += count


def content_of(data: bytes) -> Content:
    """What is in a file with these bytes."""
    import hashlib

    return len(data), hashlib.sha256(data).hexdigest()


def still(root: str, contents: Manifest, before: Mapping[str, Fingerprint]) -> Manifest:
    """Of ``contents`` what has not changed since ``before``: of a file that somebody writes nothing is known."""
    kept: Manifest = {}
    for path, content in contents.items():
        try:
            now = fingerprint(os.stat(os.path.join(root, path)))
        except OSError:
            continue
        if now == before.get(path) and content[0] == now[2]:
            kept[path] = content
    return kept


def names_in(directory: str | os.PathLike[str]) -> str:
    """What lies in a checkpoint, for a message; the manifest says nobody anything."""
    return ", ".join(sorted(name for name in os.listdir(directory) if name != MANIFEST_FILE)[:10]) or "nothing"


def encoded(manifest: Manifest) -> bytes:
    """The manifest as its file has it."""
    import json

    files = {path: list(manifest[path]) for path in sorted(manifest)}
    return json.dumps({"version": _VERSION, "digest": "sha256", "files": files}, indent=0).encode("ascii")


def read_manifest(root: str) -> Optional[Manifest]:
    """That of the checkpoint at ``root``; None: it has none that this release reads. Raises ValueError, OSError."""
    import json

    try:
        with open(os.path.join(root, MANIFEST_FILE), "rb") as file:
            document = json.loads(file.read())
    except FileNotFoundError:
        return None
    if not isinstance(document, dict) or document.get("version") != _VERSION:
        return None
    files = document.get("files")
    if not isinstance(files, dict):
        raise ValueError("it lists no files")
    return {str(path): (int(size), str(digest)) for path, (size, digest) in files.items()}


def problems_of(
    root: str, manifest: Manifest, selector: Optional[Selector] = None
) -> tuple[list[str], Dict[str, Fingerprint]]:
    """What of a checkpoint at ``root`` is not as it was stored, a line each, and what the files are by now."""
    problems: list[str] = []
    whole: list[str] = []
    for path, content in manifest.items():
        if selector is not None and not selector(path):
            continue
        try:
            status = os.stat(os.path.join(root, path))
        except (FileNotFoundError, NotADirectoryError):
            problems.append(f"{path} is missing")
            continue
        if not stat.S_ISREG(status.st_mode):
            problems.append(f"{path} is no file any more")
        elif status.st_size != content[0]:
            problems.append(f"{path} has {status.st_size} bytes and had {content[0]}")
        else:
            whole.append(path)
    read = _read(root, whole)
    problems += [f"what is in {path} has changed" for path in whole if read[path][0] != manifest[path]]
    return problems, {path: known for path, (_, known) in read.items()}


class StoredFiles:
    """Files of one checkpoint that a later one may share, if it has the same.

    ``fingerprints``: of those that lie there still; None: the storage itself knows which do."""

    def __init__(self, storage_id: str, contents: Manifest, fingerprints: Optional[Dict[str, Fingerprint]]) -> None:
        self.storage_id = storage_id
        self._contents = contents
        self._fingerprints = fingerprints or {}
        self._paths = contents.keys() if fingerprints is None else fingerprints.keys() & contents.keys()
        self._by_content = {contents[path]: path for path in self._paths}

    def in_store(self) -> StoredFiles:
        """The same of a store that was read from: those that were held against what was stored."""
        return StoredFiles(self.storage_id, {path: self._contents[path] for path in self._paths}, None)

    def fingerprint(self, path: str) -> Fingerprint:
        """Of one of them, as it was stored."""
        return self._fingerprints[path]

    def alike(self, root: str, files: Mapping[str, int], place: Optional[str]) -> list[str]:
        """Which of ``files`` (path -> bytes, below ``root``) may be in this checkpoint, too, which lies at ``place``.

        By their size and a look at a few places (None: it is not to be looked at), so that only these are read before
        the others are stored.
        """
        sizes = {self._contents[path][0] for path in self._paths}
        alike: list[str] = []
        for path, size in files.items():
            if not size or size not in sizes or path.endswith("/"):
                continue
            if (
                place is None
                or path not in self._paths
                or _samples(os.path.join(root, path), size) == _samples(os.path.join(place, path), size)
            ):
                alike.append(path)
        return alike

    def shared(self, contents: Manifest) -> dict[str, str]:
        """Of ``contents`` what is in this checkpoint: path -> its path here, the same one where it can be."""
        pairs: dict[str, str] = {}
        for path, content in contents.items():
            if path in self._paths and self._contents[path] == content:
                pairs[path] = path
            elif content in self._by_content:
                pairs[path] = self._by_content[content]
        return pairs


def _samples(path: str, size: int) -> bytes:
    """A few pieces of a file; empty where it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        step = max(1, (size - _SAMPLE) // max(1, _SAMPLES - 1))
        return b"".join(os.pread(descriptor, _SAMPLE, place * step) for place in range(_SAMPLES))
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def fingerprints_at(place: str, paths: Iterable[str]) -> Dict[str, Fingerprint]:
    """What these files below ``place`` are; what is no file, or gone, is left out."""
    known: Dict[str, Fingerprint] = {}
    for path in paths:
        try:
            status = os.stat(os.path.join(place, path))
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            known[path] = fingerprint(status)
    return known


def including_manifest(selector: Selector) -> Callable[[str], bool]:
    """The same choice of files, and the manifest, by which they are verified."""
    return lambda path: path == MANIFEST_FILE or selector(path)
