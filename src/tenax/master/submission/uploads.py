"""Requests that bring code, without the code in memory: the body goes to a file, and what is decoded is the rest of it.

A client sends its files as base64 inside of one JSON document, up to 128 MiB of it. `condensed` copies the document and
leaves out what the files hold; for each of these stands its place in the body, ``@start:end``, which is no base64 and
which `Content` reads back piece by piece. A client that writes such a place itself gets a piece of its own body.

Blocking, but for `SpooledBody.write`: call it in a thread.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import tempfile
from pathlib import Path
from typing import IO

import anyio.to_thread

from tenax.errors import InvalidInput, TooLarge

#: Read, decoded and written at a time.
PIECE = 1 << 20
#: Of each body that arrives, until it is written out.
_GATHERED = 256 << 10
#: What a document may have besides the content of its files.
_REST_LIMIT = 32 << 20
#: Content below this stays where it is.
_LEAST = 1024
_KEY = b'"content"'
_END = re.compile(rb'["\\]')
#: A string up to its end, with its escapes in one go: so many of them that the stack of the pattern stays small.
_REST = re.compile(rb'[^"\\]*(?:\\.[^"\\]*){0,10000}', re.DOTALL)
_PLACE = re.compile(r"@(\d{1,12}):(\d{1,12})")


class SpooledBody:
    """The body of a request in a file without a name: once it is closed, or the process gone, nothing is left of it."""

    def __init__(self, directory: Path) -> None:
        self._file = temporary_file(directory)
        self._waiting = bytearray()
        self._hash = hashlib.sha256()

    async def write(self, chunk: bytes) -> None:
        """Append; what is written out is so in a thread."""
        self._waiting += chunk
        if len(self._waiting) >= _GATHERED:
            await self.flush()

    async def flush(self) -> None:
        """Write out all of it."""
        waiting, self._waiting = self._waiting, bytearray()
        await anyio.to_thread.run_sync(self._put, waiting)

    def _put(self, data: bytearray) -> None:
        self._hash.update(data)
        self._file.write(data)
        self._file.flush()

    @property
    def digest(self) -> bytes:
        """Of all that was written out."""
        return self._hash.digest()

    def read(self, start: int, end: int) -> bytes:
        """What stands there; fewer bytes at the end."""
        return os.pread(self._file.fileno(), end - start, start)

    def condensed(self) -> bytes:
        """The document without what its files hold. Raises TooLarge."""
        return _Condenser(self).run()

    def close(self) -> None:
        self._file.close()


class Content:
    """What one file of a request holds, decoded as it is read."""

    def __init__(self, text: str, body: SpooledBody | None, path: str) -> None:
        place = _PLACE.fullmatch(text) if body is not None else None
        self._text = b"" if place else text.encode()
        self._body = body
        self._at, self._end = (int(place[1]), int(place[2])) if place else (0, len(self._text))
        self._path = path
        self._decoded, self._read = b"", 0
        if self._end < self._at:
            raise self._wrong()
        #: Bytes of the file: known before it is decoded, and held to.
        self.size = self._sized()

    def read(self, length: int) -> bytes:
        """So many bytes, fewer at the end. Raises InvalidInput for what is not base64."""
        taken = bytearray()
        while len(taken) < length:
            if self._read == len(self._decoded):
                if self._at == self._end:
                    break
                self._decoded, self._read = self._next(), 0
            end = self._read + length - len(taken)
            taken += self._decoded[self._read : end]
            self._read = min(end, len(self._decoded))
        return bytes(taken)

    def _sized(self) -> int:
        length = self._end - self._at
        padding = self._take(max(self._at, self._end - 2), self._end).count(b"=")
        if length % 4:
            raise self._wrong()
        return length // 4 * 3 - padding

    def _next(self) -> bytes:
        end = min(self._end, self._at + PIECE // 4 * 4)
        encoded = self._take(self._at, end)
        if b"=" in encoded and end < self._end:
            raise self._wrong()
        self._at = end
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise self._wrong() from None

    def _take(self, start: int, end: int) -> bytes:
        return self._text[start:end] if self._body is None or self._text else self._body.read(start, end)

    def _wrong(self) -> InvalidInput:
        return InvalidInput(f"the content of {self._path!r} is not base64")


class _Condenser:
    """Copies a document, a piece of it at a time, without long strings under the key ``content``."""

    def __init__(self, body: SpooledBody) -> None:
        self._body = body
        self._kept = bytearray()
        #: Where the string began that is being read, and whether it may be left out.
        self._start: int | None = None
        self._left_out = False
        self._escaped = False
        #: The last string, if it could be the key, and what stood since.
        self._last = b""
        self._between = b""

    def run(self) -> bytes:
        at = 0
        while piece := self._body.read(at, at + PIECE):
            self._take(piece, at)
            at += len(piece)
            if len(self._kept) > _REST_LIMIT:
                raise TooLarge(
                    f"the request has over {_REST_LIMIT >> 20} MiB besides the content of its files: send fewer files"
                )
        return bytes(self._kept)

    def _take(self, piece: bytes, offset: int) -> None:
        at = 0
        while at < len(piece):
            at = self._outside(piece, at, offset) if self._start is None else self._inside(piece, at, offset)

    def _outside(self, piece: bytes, at: int, offset: int) -> int:
        quote = piece.find(b'"', at)
        end = len(piece) if quote < 0 else quote
        self._kept += piece[at:end]
        self._between = (self._between + piece[at:end])[-64:]
        if quote < 0:
            return end
        self._start = offset + quote
        self._left_out = self._last == _KEY and self._between.strip() == b":"
        self._kept += b'"'
        return quote + 1

    def _inside(self, piece: bytes, at: int, offset: int) -> int:
        if self._escaped:
            self._escaped = False
            self._kept += piece[at : at + 1]
            return at + 1
        if self._left_out:
            end_mark = _END.search(piece, at)
            end = end_mark.start() if end_mark else len(piece)
            if end_mark is not None and end_mark[0] == b"\\":
                self._put_back(offset + end)
                return end
        else:
            rest = _REST.match(piece, at)
            end = rest.end() if rest else at
            self._kept += piece[at:end]
        if end == len(piece):
            return end
        if piece[end : end + 1] == b"\\":
            # The last of the piece, or of so many: what it escapes comes next.
            self._kept += b"\\"
            self._escaped = True
        else:
            self._close(offset + end)
        return end + 1

    def _close(self, end: int) -> None:
        """A string has ended."""
        assert self._start is not None
        start = self._start + 1
        if self._left_out and end - start >= _LEAST:
            self._kept += b"@%d:%d" % (start, end)
        else:
            self._put_back(end)
        self._kept += b'"'
        self._last = bytes(self._kept[-len(_KEY) :]) if end - start == len(_KEY) - 2 else b""
        self._start, self._between, self._left_out = None, b"", False

    def _put_back(self, end: int) -> None:
        """What was left out so far is kept after all: it is short, or it is no plain base64."""
        if self._left_out and self._start is not None:
            self._left_out = False
            if end - self._start > _REST_LIMIT:
                raise InvalidInput("the content of a file is not base64")
            self._kept += self._body.read(self._start + 1, end)


def temporary_file(directory: Path) -> IO[bytes]:
    """A file without a name. On the disk of the master's directory: where others are may be memory."""
    try:
        directory.mkdir(exist_ok=True, mode=0o700)
        return tempfile.TemporaryFile(dir=directory)
    except OSError:
        return tempfile.TemporaryFile()
