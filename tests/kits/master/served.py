"""A real master on a real port, without its loops: it goes away and comes back, its database is copied and put back.

async with ServedMaster(postgres.dsn, database_url, settings) as master:
    await master.copy()
    await master.restore()
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from types import TracebackType

import asyncpg
import uvicorn

from tenax.config.master import MasterSettings
from tenax.master.access.task_tokens import allocation_token, token_hash
from tenax.master.api.http.protocol import BoundedHttp, BoundedWebSocket
from tenax.master.api.http.server import Server, gate_for
from tenax.master.process import bind
from tenax.master.store.database.connection import Database
from tenax.master.store.users.sessions import TaskOf
from tests.kits.api import Api, answering
from tests.kits.ports import free_port
from tests.kits.telemetry import Book

#: Of the agent ``a1``, which `Book.run` puts containers on.
CREDENTIAL = "tnxg_served"


class ServedMaster:
    """``api`` and ``book`` are of the master that is there now."""

    def __init__(self, admin_dsn: str, database_url: str, settings: MasterSettings) -> None:
        self._admin_dsn = admin_dsn
        self._url = database_url
        self._name = database_url.partition("?")[0].rpartition("/")[2]
        self._settings = settings
        self._stack = AsyncExitStack()
        # Of the tests: while it is away nobody else may be given it.
        self._port = free_port()
        self._copied = False
        self.api: Api
        self.book: Book

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> ServedMaster:
        await self.back()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        await self.away()
        if self._copied:
            await self._administer(f"drop database {self._copy}")

    async def back(self) -> None:
        """Serve, at the same port as before."""
        database = await Database.open(self._url, max_connections=8)
        self._stack.push_async_callback(database.close)
        self.api = await self._stack.enter_async_context(answering(database, self._settings))
        self.book = Book(database, self.api.master.intake)
        listening = bind("127.0.0.1", self._port)
        config = uvicorn.Config(
            self.api.app, log_config=None, access_log=False, http=BoundedHttp, ws=BoundedWebSocket, lifespan="off"
        )
        server = Server(config, gate_for(self._settings.connections))
        serving = asyncio.create_task(server.serve(sockets=[listening]))

        async def end() -> None:
            server.should_exit = server.force_exit = True
            await serving
            listening.close()

        self._stack.push_async_callback(end)

    async def away(self) -> None:
        """Stop listening, let go of the database."""
        await self._stack.aclose()

    async def copy(self) -> None:
        """Keep the database as it is now; the master is away meanwhile."""
        await self.away()
        if self._copied:
            await self._administer(f"drop database {self._copy}")
        await self._administer(f"create database {self._copy} template {self._name} strategy file_copy")
        self._copied = True
        await self.back()

    async def restore(self) -> None:
        """Put the copy in the database's place."""
        await self.away()
        await self._administer(f"drop database {self._name} with (force)")
        await self._administer(f"create database {self._name} template {self._copy} strategy file_copy")
        await self.back()

    async def running_trial(self) -> tuple[int, TaskOf]:
        """A trial whose only container runs on agent ``a1``; both may speak."""
        trial = await self.book.trial()
        task = await self.book.run(trial, 1)
        token = allocation_token(self.api.master.cluster.secret, task.allocation_id)
        async with self.book.database.transaction() as conn:
            await conn.execute("update agents set credential_hash = $1", token_hash(CREDENTIAL))
            await conn.execute(
                "insert into allocation_tokens values ($1, $2, 1)", token_hash(token), task.allocation_id
            )
        return trial, task

    def allow_logs(self, log_bytes: int) -> None:
        """The budget for output from now on; 0: it is used up."""
        budget = self.api.master.intake.logs._budget
        # A copy: the settings may be everyone's defaults.
        budget._settings = budget._settings.model_copy(update={"log_bytes": log_bytes})

    @property
    def _copy(self) -> str:
        return f"{self._name}_copy"

    async def _administer(self, statement: str) -> None:
        admin = await asyncpg.connect(self._admin_dsn)
        try:
            await admin.execute(statement)
        finally:
            await admin.close()
