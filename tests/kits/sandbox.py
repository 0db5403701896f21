"""A database whose changes are undone: every request of a test meets the same rows, at the price of a rollback.

    async with undone(api.master):
        await api.user.delete("/api/v1/experiments/1")

All that handlers do through ``master.db`` happens inside one transaction, which is rolled back; their own transactions
are savepoints in it. What they announce is not heard, and parts that keep a database of their own (the intake, the hub,
the look-up of credentials) are not in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from asyncpg import Connection

from tenax.master.context import Master
from tenax.master.store.database.connection import Database
from tenax.master.store.database.faults import translated
from tenax.master.store.database.lanes import Lane


class Sandbox:
    """One connection in the shape of a `Database`; whoever wants it while another task has it waits."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._free = asyncio.Lock()
        self._holder: asyncio.Task[object] | None = None

    def on(self, lane: Lane) -> Sandbox:
        """There is one connection for all."""
        return self

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        me = asyncio.current_task()
        if self._holder is me:
            async with self._conn.transaction():
                yield self._conn
            return
        async with self._free:
            self._holder = me
            try:
                with translated():
                    async with self._conn.transaction():
                        yield self._conn
            finally:
                self._holder = None

    snapshot = transaction
    # Also around a single statement: one that fails would spoil the transaction around all of them.
    connection = transaction


@asynccontextmanager
async def undone(master: Master) -> AsyncIterator[None]:
    """Undo, in the end, what handlers of ``master`` do to its database."""
    real = master.db
    async with real.connection() as conn:
        around = conn.transaction()
        await around.start()
        master.db = cast(Database, Sandbox(conn))
        try:
            yield
        finally:
            master.db = real
            await around.rollback()
