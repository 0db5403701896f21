"""The code that comes with an experiment: a list of files packed into one archive, named by its hash.

Rules it keeps:

- paths are relative and stay inside; files and directories only, no links, no devices;
- the archive is the same bytes for the same files (order, modes, times as given), so that it is stored once;
- sizes are checked before anything is unpacked; neither a file nor the archive is ever held in memory as a whole.

CPU-bound: call it in a thread.
"""

from __future__ import annotations

import hashlib
import mimetypes
import shutil
import tarfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath
from typing import IO, cast

from tenax.errors import InvalidInput, NotFound, TooLarge
from tenax.master.submission.messages import File
from tenax.master.submission.uploads import PIECE, Content, SpooledBody, temporary_file

_REGULAR = frozenset({0, 48})
_DIRECTORY = 53
_PERMISSIONS = 0o7777
_MAX_DEPTH = 100
#: Characters of all paths of a tree: each directory's name is in every path below it.
MAX_TREE = 16 << 20
#: The last second of the year 9999.
_LATEST = 253_402_300_799
#: Beyond it the archive grows smaller by a hundredth and slower by half.
_LEVEL = 5


@dataclass(frozen=True, slots=True)
class Code:
    """A packed directory."""

    #: sha256 of the archive, hexadecimal.
    hash: str
    #: gzip-compressed tar: a file of its own, from its beginning.
    archive: IO[bytes] = field(repr=False, compare=False)
    #: Sum of the file sizes, bytes.
    size: int


def pack(files: Iterable[File], limit: int, directory: Path, body: SpooledBody | None = None) -> Code | None:
    """The archive of ``files``; None for no files. Raises InvalidInput, naming the file that cannot be taken.

    ``directory``: where it is written; ``body``: where their content stands that `SpooledBody.condensed` has left out.
    """
    members = [(_header(file), Content(file.content, body, file.path)) for file in files]
    if not members:
        return None
    _check_size(members, limit)
    packed = _Gzip(temporary_file(directory))
    with tarfile.open(fileobj=cast(IO[bytes], packed), mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for info, content in members:
            info.size = 0 if info.isdir() else content.size
            tar.addfile(info, cast(IO[bytes], content))
    return Code(packed.finish(), packed.file, sum(info.size for info, _ in members))


def _check_size(members: list[tuple[tarfile.TarInfo, Content]], limit: int) -> None:
    sizes = {info.name: content.size for info, content in members}
    estimate = sum(content.size for _, content in members)
    if estimate <= limit:
        return
    largest = sorted(sizes, key=lambda path: sizes[path], reverse=True)[:3]
    named = ", ".join(f"{path} ({sizes[path] / 2**20:.1f} MiB)" for path in largest)
    raise InvalidInput(
        f"the code directory has {estimate / 2**20:.1f} MiB, and at most {limit / 2**20:.1f} MiB are taken. "
        f"The largest files are {named}: leave them out with a .detignore file, and keep data in shared storage"
    )


def _header(file: File) -> tarfile.TarInfo:
    info = tarfile.TarInfo(_safe(file.path))
    info.mtime = max(0, file.mtime)
    info.mode = file.mode & _PERMISSIONS
    info.uid, info.gid = max(0, file.uid), max(0, file.gid)
    if file.type == _DIRECTORY:
        info.type = tarfile.DIRTYPE
        return info
    if file.type not in _REGULAR:
        raise InvalidInput(f"{file.path!r} is neither a file nor a directory: leave it out of the code directory")
    return info


def _safe(path: str) -> str:
    parts = PurePosixPath(path).parts
    if len(parts) > _MAX_DEPTH:
        raise InvalidInput(f"{path[:100]!r}... lies {len(parts)} directories deep: {_MAX_DEPTH} are the most")
    if not parts or path.startswith("/") or ".." in parts or "\0" in path:
        raise InvalidInput(f"{path!r} does not lie inside the code directory: give paths relative to it, without ..")
    return str(PurePosixPath(*parts))


class _Gzip:
    """Compresses what is written to it into a file, and says the hash of that."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        # Without a time or a name in the header: the same code is the same bytes.
        self._packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, 31)
        self._hash = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self._put(self._packer.compress(data))
        return len(data)

    def finish(self) -> str:
        """The hash; the file is at its beginning again."""
        self._put(self._packer.flush())
        self.file.seek(0)
        return self._hash.hexdigest()

    def _put(self, data: bytes) -> None:
        self._hash.update(data)
        self.file.write(data)


@dataclass(frozen=True, slots=True)
class CodeEntry:
    """A file or a directory of an archive."""

    path: str
    is_directory: bool
    size: int
    modified: datetime
    #: Guessed from its name; empty for a directory.
    content_type: str
    entries: tuple[CodeEntry, ...] = ()


def tree_of(archive: IO[bytes]) -> tuple[CodeEntry, ...]:
    """What is in an archive; of each directory by name, directories first. Empty for an empty file. Raises TooLarge."""
    if _is_empty(archive):
        return ()
    inside: dict[str, dict[str, tarfile.TarInfo]] = {"": {}}
    size = 0
    with tarfile.open(fileobj=archive, mode="r:gz") as tar:
        for info in tar:
            # A client that sends files only leaves their directories to be found here.
            for parent in reversed([str(folder) for folder in PurePosixPath(info.name).parents if str(folder) != "."]):
                inside[_folder(parent)].setdefault(parent, _directory(parent, info.mtime))
                if parent not in inside:
                    inside[parent] = {}
                    size += len(parent)
            inside[_folder(info.name)][info.name] = info
            if info.isdir():
                inside.setdefault(info.name, {})
            size += len(info.name)
            if size > MAX_TREE:
                raise TooLarge(
                    f"the paths of this code have more than {MAX_TREE} characters together, and cannot be shown as a "
                    "tree: download it as a whole (tenax experiment download-model-def)"
                )
    return _entries(inside, "")


def extract_file(archive: IO[bytes], path: str, directory: Path) -> tuple[IO[bytes], int]:
    """A copy of one file of an archive in ``directory``, at its beginning, and its size. Raises NotFound."""
    if path and not _is_empty(archive):
        name = str(PurePosixPath(path))
        with tarfile.open(fileobj=archive, mode="r:gz") as tar:
            member = next((info for info in tar if info.name == name and info.isfile()), None)
            content = None if member is None else tar.extractfile(member)
            if member is not None and content is not None:
                copy = temporary_file(directory)
                shutil.copyfileobj(content, copy, PIECE)
                copy.seek(0)
                return copy, member.size
    raise NotFound(f"file {path!r} not found in the code of this experiment")


def _is_empty(archive: IO[bytes]) -> bool:
    empty = not archive.read(1)
    archive.seek(0)
    return empty


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _directory(path: str, mtime: float) -> tarfile.TarInfo:
    info = tarfile.TarInfo(path)
    info.type, info.mtime = tarfile.DIRTYPE, mtime
    return info


def _entries(inside: Mapping[str, Mapping[str, tarfile.TarInfo]], folder: str) -> tuple[CodeEntry, ...]:
    listed = sorted(inside[folder].values(), key=lambda info: (not info.isdir(), info.name))
    return tuple(
        CodeEntry(
            path=info.name,
            is_directory=info.isdir(),
            size=info.size,
            modified=datetime.fromtimestamp(min(info.mtime, _LATEST), timezone.utc),
            content_type="" if info.isdir() else mimetypes.guess_type(info.name)[0] or "application/octet-stream",
            entries=_entries(inside, info.name) if info.isdir() else (),
        )
        for info in listed
    )
