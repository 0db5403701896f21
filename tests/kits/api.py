"""A master to ask: the real application on a real database, without a socket.

    async def test_x(api: Api) -> None:
        reply = await api.admin.get("/api/v1/me")

``api.admin`` and ``api.user`` are logged in; ``api.nobody`` is not. Passwords are hashed cheaply.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest
from argon2 import PasswordHasher, profiles
from fastapi import FastAPI

from tenax.config.master import LogSettings, MasterSettings
from tenax.master.access.bootstrap import CREDENTIALS_FILE, bootstrap
from tenax.master.access.passwords import Passwords
from tenax.master.access.task_tokens import allocation_token, token_hash
from tenax.master.app import create_app
from tenax.master.context import Master, SettingsFile
from tenax.master.observability.log import set_up
from tenax.master.store.database.connection import Database
from tenax.master.store.database.wakeups import Listener, notify
from tests.kits.watchdog import watched

set_up(LogSettings(level="warning", color=False))

CHEAP = PasswordHasher.from_parameters(profiles.CHEAPEST)


class Client:
    """Speaks as the real clients do: JSON without Content-Type, no body for an empty message."""

    def __init__(self, app: FastAPI, headers: Mapping[str, str] | None = None, host: str = "127.0.0.1") -> None:
        transport = httpx2.ASGITransport(app, client=(host, 40000))
        self._http = httpx2.AsyncClient(transport=transport, base_url="http://master", headers=dict(headers or {}))

    async def ask(self, method: str, path: str, body: object = None, **options: object) -> httpx2.Response:
        """One request; ``body`` is sent as JSON, bytes as they are."""
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        # A command line keeps no cookies.
        self._http.cookies.clear()
        request = self._http.request(method, path, content=content, **options)  # type: ignore[arg-type]
        with watched(f"{method} {path}"):
            # In a task of its own: what the test itself does before and after is not the master's.
            answering = asyncio.create_task(request)
        return await answering

    async def get(self, path: str, **query: object) -> httpx2.Response:
        return await self.ask("GET", path, params=query)

    async def post(self, path: str, body: object = None) -> httpx2.Response:
        return await self.ask("POST", path, body)

    async def put(self, path: str, body: object = None) -> httpx2.Response:
        return await self.ask("PUT", path, body)

    async def patch(self, path: str, body: object = None) -> httpx2.Response:
        return await self.ask("PATCH", path, body)

    async def delete(self, path: str, body: object = None) -> httpx2.Response:
        return await self.ask("DELETE", path, body)

    async def close(self) -> None:
        await self._http.aclose()


@dataclass
class Api:
    """A master and those who talk to it."""

    master: Master
    app: FastAPI
    nobody: Client
    admin: Client
    user: Client
    #: Of the first users, by name.
    passwords: dict[str, str]
    opened: list[Client] = field(default_factory=list)

    @property
    def password(self) -> str:
        """The first administrator's."""
        return self.passwords["admin"]

    def client(self, headers: Mapping[str, str] | None = None, host: str = "127.0.0.1") -> Client:
        """Another caller; closed with the rest."""
        made = Client(self.app, headers, host)
        self.opened.append(made)
        return made

    async def login(self, username: str, password: str) -> Client:
        """A caller that is logged in."""
        reply = await self.nobody.post("/api/v1/auth/login", {"username": username, "password": password})
        assert reply.status_code == 200, reply.text
        return self.client({"Authorization": f"Bearer {reply.json()['token']}"})

    async def heard(self) -> None:
        """Until the master has heard of everything that was committed before, past its own handlers."""
        with self.master.listener.subscribe("probe") as subscription:
            await subscription.wait(0)
            async with self.master.db.transaction() as conn:
                await notify(conn, "probe", "x")
            assert await subscription.wait()

    async def task(self, allocation_id: str, user_id: int = 2) -> Client:
        """A caller with the token of an allocation that is there."""
        token = allocation_token(self.master.cluster.secret, allocation_id)
        async with self.master.db.transaction() as conn:
            await conn.execute(
                "insert into allocation_tokens values ($1, $2, $3)"
                " on conflict (token_hash) do update set user_id = excluded.user_id",
                token_hash(token),
                allocation_id,
                user_id,
            )
        return self.client({"Grpc-Metadata-x-allocation-token": f"Bearer {token}"})


def settings_in(directory: Path) -> MasterSettings:
    """Settings of a small cluster that keeps its checkpoints under ``directory``."""
    storage = {"type": "shared_fs", "host_path": str(directory / "checkpoints")}
    return MasterSettings(dir=directory / "master", checkpoint_storage=storage)


def _served(master: Master) -> FastAPI:
    """The application, made once: reading its eighty declarations takes longer than a test."""
    if not _made:
        _made.append(create_app(master))
    _made[0].state.master = master
    return _made[0]


_made: list[FastAPI] = []


@pytest.fixture
def master_settings(tmp_path: Path) -> MasterSettings:
    """Settings of the master under test; a test module may override this fixture."""
    return settings_in(tmp_path)


@asynccontextmanager
async def answering(database: Database, settings: MasterSettings) -> AsyncIterator[Api]:
    """The application on a database that is migrated and empty, and callers."""
    passwords = Passwords(CHEAP)
    settings.dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    cluster = await bootstrap(database, settings, passwords)
    listener = Listener(database)
    with watched("the listener"):
        listening = asyncio.create_task(listener.run())
    master = Master(settings, database, listener, cluster, "master-1", passwords=passwords)
    master.settings_file = SettingsFile(lambda: settings, settings)
    app = _served(master)
    nobody = Client(app)
    stored = json.loads((settings.dir / CREDENTIALS_FILE).read_text())
    # Before each had a password of their own, the file named the first of them alone.
    drawn = stored.get("users") or dict.fromkeys(("admin", "determined"), stored["password"])
    made = Api(master, app, nobody, nobody, nobody, drawn, [nobody])
    try:
        await listener.connected()
        async with master.running():
            made.admin = await made.login("admin", drawn["admin"])
            made.user = await made.login("determined", drawn["determined"])
            yield made
    finally:
        master.shutdown.set()
        for client in made.opened:
            await client.close()
        listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await listening


@pytest.fixture
async def api(database: Database, master_settings: MasterSettings) -> AsyncIterator[Api]:
    """The application on a fresh database, and callers."""
    async with answering(database, master_settings) as made:
        yield made


def bearer(client: Client) -> str:
    """The token that a caller shows."""
    headers = client._http.headers
    shown = headers.get("grpc-metadata-x-allocation-token") or headers["authorization"]
    return str(shown).partition(" ")[2]
