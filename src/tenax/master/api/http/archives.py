"""Archives of code on their way out: in pieces, from the database to the socket, and never whole in memory.

What is looked for inside of one is looked for in a copy on the disk of the master's directory; few are made at a time.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable
from typing import IO, TypeVar

import anyio.to_thread
from fastapi.responses import StreamingResponse

from tenax.master.context import Master
from tenax.master.store.tasks import contexts
from tenax.master.submission.uploads import temporary_file

T = TypeVar("T")

#: Bytes that are read and sent at a time: a multiple of three, so that the pieces of base64 make one text.
_PIECE = 3 << 17


async def pieces(master: Master, hash: str, size: int) -> AsyncIterator[bytes]:
    """An archive of ``size`` bytes. It breaks off if it is deleted meanwhile."""
    for offset in range(0, size, _PIECE):
        async with master.db.connection() as conn:
            piece = await contexts.part(conn, hash, offset, _PIECE)
        yield piece


async def archive_size(master: Master, hash: str | None) -> int:
    """Bytes of an archive; 0 for none."""
    if hash is None:
        return 0
    async with master.db.connection() as conn:
        return await contexts.size(conn, hash)


async def archive_document(master: Master, hash: str | None, name: str) -> StreamingResponse:
    """``{name: base64}`` with the archive; empty for none."""
    size = await archive_size(master, hash)
    return document(name, pieces(master, hash or "", size), size)


async def inside(master: Master, hash: str | None, look: Callable[[IO[bytes]], T]) -> T:
    """What ``look`` makes, in a thread, of a copy of an archive; an empty file for none."""
    size = await archive_size(master, hash)
    async with master.packing.turn():
        with await anyio.to_thread.run_sync(temporary_file, master.settings.uploads) as copy:
            async for piece in pieces(master, hash or "", size):
                await anyio.to_thread.run_sync(copy.write, piece)
            await anyio.to_thread.run_sync(copy.seek, 0)
            return await anyio.to_thread.run_sync(look, copy)


async def read(file: IO[bytes]) -> AsyncIterator[bytes]:
    """A file from where it is; closed at its end."""
    with file:
        while piece := await anyio.to_thread.run_sync(file.read, _PIECE):
            yield piece


def document(name: str, parts: AsyncIterator[bytes], size: int) -> StreamingResponse:
    """``{name: base64}`` of ``size`` bytes that come in ``parts``, each a multiple of three long but the last."""
    before = b'{"%s":"' % name.encode()
    length = len(before) + (size + 2) // 3 * 4 + 2

    async def whole() -> AsyncIterator[bytes]:
        yield before
        async for part in parts:
            yield base64.b64encode(part)
        yield b'"}'

    return StreamingResponse(whole(), media_type="application/json", headers={"Content-Length": str(length)})
