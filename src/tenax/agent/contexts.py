"""Model code on this machine: fetched once by its hash, checked, kept within a budget.

A file is named by the sha256 of its bytes and complete as soon as it has that name. The least lately used go first; one
that a start is about to unpack may go too: its reader has it open or fetches it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
from pathlib import Path

from tenax.agent.link import Link
from tenax.errors import TenaxError

_HASH = re.compile(r"[0-9a-f]{64}")


class Damaged(TenaxError):
    """What came is not what was asked for."""


class Contexts:
    """The cache below one directory, which no other agent uses at the same time."""

    def __init__(self, link: Link, directory: Path, budget_bytes: int) -> None:
        self._link = link
        self._directory = directory
        self._budget = budget_bytes
        self._locks: dict[str, asyncio.Lock] = {}
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in directory.glob("*.part"):
            left.unlink()

    async def get(self, digest: str) -> Path:
        """The archive (a gzipped tar) with this sha256. Raises MasterUnreachable, MasterRefused, Damaged, OSError."""
        if not _HASH.fullmatch(digest):
            raise Damaged(f"{digest!r} is not the hash of model code")
        path = self._directory / f"{digest}.tar.gz"
        async with self._locks.setdefault(digest, asyncio.Lock()):
            if path.exists():
                os.utime(path)
            else:
                await self._fetch(digest, path)
        return path

    async def _fetch(self, digest: str, path: Path) -> None:
        part = path.with_suffix(".part")
        hasher = hashlib.sha256()
        try:
            with part.open("wb") as file:
                async for chunk in self._link.download(f"/agents/contexts/{digest}"):
                    hasher.update(chunk)
                    file.write(chunk)
            if hasher.hexdigest() != digest:
                raise Damaged("the model code arrived damaged: its hash is another; it is fetched again")
            part.rename(path)
        finally:
            part.unlink(missing_ok=True)
        await asyncio.to_thread(self._make_room, path)

    def _make_room(self, newest: Path) -> None:
        files = [path for path in self._directory.glob("*.tar.gz") if path != newest]
        sized = [(path.stat().st_mtime, path.stat().st_size, path) for path in files]
        total = sum(size for _, size, _ in sized) + newest.stat().st_size
        for _, size, path in sorted(sized):
            if total <= self._budget:
                return
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
            total -= size
