"""A checkpoint as one archive, piece by piece: tar, tar compressed with gzip, or zip. Blocking: read it in a thread.

Nothing is opened through a link, and no file is sent that the checkpoint's owner may not read. A link that stays inside
the checkpoint is packed as a link, another one is left out.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import posixpath
import stat
import tarfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing
from enum import Enum
from itertools import chain
from typing import IO, TYPE_CHECKING, cast

from tenax.errors import InvalidInput
from tenax.master.checkpoints.files import CheckpointPlace, as_text, entries_of, opened_checkpoint
from tenax.storage.objects import ObjectStorage

if TYPE_CHECKING:
    from tenax.storage.port import Files

_PIECE = 1 << 20
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Form(str, Enum):
    """The format of an archive, by its media type."""

    TAR = "application/x-tar"
    TGZ = "application/gzip"
    ZIP = "application/zip"

    @property
    def suffix(self) -> str:
        return {Form.TAR: "tar", Form.TGZ: "tar.gz", Form.ZIP: "zip"}[self]


#: Other names of the same.
_NAMES = {"application/x-gtar": Form.TAR, "application/x-gzip": Form.TGZ, "application/x-zip-compressed": Form.ZIP}


class NotAcceptable(InvalidInput):
    """The checkpoint cannot be sent in that form: accept application/x-tar, application/gzip or application/zip."""


def form_of(accept: str) -> Form:
    """The form that an ``Accept`` header likes best; a tar archive where any will do. Raises NotAcceptable."""
    best: tuple[float, Form] | None = None
    for part in accept.split(",") if accept.strip() else ["*/*"]:
        name, *parameters = (each.strip().lower() for each in part.split(";"))
        form = _NAMES.get(name) or next((each for each in Form if each.value == name), None)
        if name in ("*/*", "application/*"):
            form = Form.TAR
        weight = _weight(parameters)
        if form is not None and weight > 0 and (best is None or weight > best[0]):
            best = weight, form
    if best is None:
        raise NotAcceptable
    return best[1]


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def packed(place: CheckpointPlace, checkpoint: str, form: Form) -> Iterator[bytes]:
    """The archive. Raises NotFound, NotNow before the first piece, OSError when a file cannot be read."""
    with opened_checkpoint(place, checkpoint) as folder:
        outbox = _Outbox()
        with closing(_packer(outbox, form)) as packer:
            yield from _fill(folder, packer, outbox, place)
        yield outbox.take()


def packed_objects(store: ObjectStorage, checkpoint: str, files: Files, form: Form) -> Iterator[bytes]:
    """The archive of ``files`` of a checkpoint in a store of objects; nothing lies here. Raises StorageFailed."""
    outbox = _Outbox()
    with closing(_packer(outbox, form)) as packer:
        for path, size in sorted(files.items()):
            if path.endswith("/"):
                packer.folder(path.rstrip("/"), _status(stat.S_IFDIR | 0o755, 0))
                steps: Iterator[None] = iter(())
            else:
                content = cast(IO[bytes], _Pieces(store.pieces(checkpoint, path, size)))
                steps = packer.file(path, _status(stat.S_IFREG | 0o644, size), content)
            # What is empty is a step as well: there may be very many.
            for _ in chain(steps, (None,)):
                if outbox.size >= _PIECE:
                    yield outbox.take()
    yield outbox.take()


def _status(mode: int, size: int) -> os.stat_result:
    """Of what is in a store, which keeps no more of it; its time is now."""
    return os.stat_result((mode, 0, 0, 1, 0, 0, size, 0, int(time.time()), 0))


class _Packer:
    """Takes entries one by one."""

    def folder(self, path: str, status: os.stat_result) -> None:
        raise NotImplementedError

    def link(self, path: str, status: os.stat_result, target: str) -> None:
        raise NotImplementedError

    def file(self, path: str, status: os.stat_result, content: IO[bytes]) -> Iterator[None]:
        """Stops now and then, so that what is packed can be sent."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class _Tar(_Packer):
    def __init__(self, outbox: _Outbox, *, compressed: bool) -> None:
        stream = cast(IO[bytes], outbox)
        # A low level: checkpoints hardly shrink, and whoever downloads waits.
        self._zipped = gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=1) if compressed else None
        self._tar = tarfile.open(  # noqa: SIM115 - closed by `close`
            fileobj=self._zipped or stream, mode="w|", format=tarfile.PAX_FORMAT
        )

    def folder(self, path: str, status: os.stat_result) -> None:
        self._tar.addfile(self._entry(path, status, tarfile.DIRTYPE))

    def link(self, path: str, status: os.stat_result, target: str) -> None:
        entry = self._entry(path, status, tarfile.SYMTYPE)
        entry.linkname = target
        self._tar.addfile(entry)

    def file(self, path: str, status: os.stat_result, content: IO[bytes]) -> Iterator[None]:
        entry = self._entry(path, status, tarfile.REGTYPE)
        entry.size = status.st_size
        feed = _Feed(content, status.st_size)
        self._tar.addfile(entry)
        # What follows the header, in pieces; `addfile` with a file would not stop in between.
        target = self._tar.fileobj
        assert target is not None
        for piece in feed:
            target.write(piece)
            yield
        padding = -status.st_size % tarfile.BLOCKSIZE
        target.write(b"\0" * padding)
        self._tar.offset += status.st_size + padding
        yield

    def close(self) -> None:
        self._tar.close()
        if self._zipped is not None:
            self._zipped.close()

    def _entry(self, path: str, status: os.stat_result, kind: bytes) -> tarfile.TarInfo:
        entry = tarfile.TarInfo(path)
        entry.type, entry.mode, entry.mtime = kind, stat.S_IMODE(status.st_mode) & 0o777, int(status.st_mtime)
        return entry


class _Zip(_Packer):
    def __init__(self, outbox: _Outbox) -> None:
        self._zip = zipfile.ZipFile(cast(IO[bytes], outbox), "w", zipfile.ZIP_DEFLATED, compresslevel=1)

    def folder(self, path: str, status: os.stat_result) -> None:
        self._zip.writestr(self._entry(path + "/", status, stat.S_IFDIR), b"")

    def link(self, path: str, status: os.stat_result, target: str) -> None:
        self._zip.writestr(self._entry(path, status, stat.S_IFLNK), os.fsencode(target))

    def file(self, path: str, status: os.stat_result, content: IO[bytes]) -> Iterator[None]:
        with self._zip.open(self._entry(path, status, stat.S_IFREG), "w", force_zip64=True) as target:
            for piece in _Feed(content, status.st_size):
                target.write(piece)
                yield

    def close(self) -> None:
        self._zip.close()

    def _entry(self, path: str, status: os.stat_result, kind: int) -> zipfile.ZipInfo:
        # The format knows no year before 1980.
        moment = max(time.gmtime(status.st_mtime)[:6], (1980, 1, 1, 0, 0, 0))
        entry = zipfile.ZipInfo(as_text(path), moment)
        entry.external_attr = (kind | stat.S_IMODE(status.st_mode) & 0o777) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED if kind == stat.S_IFREG else zipfile.ZIP_STORED
        return entry


def _packer(outbox: _Outbox, form: Form) -> _Packer:
    return _Zip(outbox) if form is Form.ZIP else _Tar(outbox, compressed=form is Form.TGZ)


def _fill(folder: int, packer: _Packer, outbox: _Outbox, place: CheckpointPlace) -> Iterator[bytes]:
    for path, name, parent in entries_of(folder, place):
        for _ in _add(packer, path, name, parent, place):
            if outbox.size >= _PIECE:
                yield outbox.take()


def _add(packer: _Packer, path: str, name: str, parent: int, place: CheckpointPlace) -> Iterator[None]:
    status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        packer.folder(path, status)
    elif stat.S_ISLNK(status.st_mode):
        target = os.readlink(name, dir_fd=parent)
        if _stays_inside(path, target):
            packer.link(path, status, target)
    elif stat.S_ISREG(status.st_mode):
        with open(os.open(name, _READ, dir_fd=parent), "rb", buffering=0) as content:
            opened = os.fstat(content.fileno())
            place.check_readable(path, opened)
            yield from packer.file(path, opened, content)
    yield


def _stays_inside(path: str, target: str) -> bool:
    if target.startswith("/"):
        return False
    return not posixpath.normpath(posixpath.join(posixpath.dirname(path), target)).startswith("..")


class _Feed:
    """Exactly so many bytes of a file. Raises OSError if there are fewer: it was changed meanwhile."""

    def __init__(self, content: IO[bytes], size: int) -> None:
        self._content, self._left = content, size

    def __iter__(self) -> Iterator[bytes]:
        while self._left:
            piece = self._content.read(min(_PIECE, self._left))
            if not piece:
                raise OSError(errno.EIO, "a file of the checkpoint was cut off while it was read")
            self._left -= len(piece)
            yield piece


class _Pieces:
    """Pieces as a file that is read from the beginning to the end."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def read(self, size: int) -> memoryview:
        """Up to so many bytes; empty at the end."""
        if not self._rest:
            self._rest = memoryview(next(self._pieces, b""))
        content, self._rest = self._rest[:size], self._rest[size:]
        return content


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
