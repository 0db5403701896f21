"""No password and no token is ever written down as it is: neither into a log, however much it tells, nor into a row."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import cast

import httpx2
import pytest

from tenax.jsonvalue import JsonObject
from tenax.master.access.passwords import hashed_password
from tests.kits.api import Api, Client, bearer
from tests.kits.machine import free_port
from tests.kits.world import PASSWORD, World
from tests.master.api.matrix import ROWS, Who
from tests.master.api.requests import DECLARED, SKIPPED, filled, master_settings, path_of, query_of, world

__all__ = ["master_settings", "world"]

#: Every operation is asked twice, of a master that logs all it can, on a machine that others use as well.
pytestmark = pytest.mark.timeout(900)

#: Sent where it belongs, where it does not, and wrongly.
NEW_PASSWORD = "Fresh-Passw0rd-4711"
KEY = "key-that-signs-webhooks-4711"
HOOK = "s3cr3t-hook-path"


async def test_nothing_secret_is_written_down(world: World, database_url: str) -> None:
    """A master that logs all it can is asked every operation, rightly and wrongly; its log and all rows are read."""
    with tempfile.TemporaryFile() as log:
        async with debugging_master(database_url, log.fileno()) as url:
            async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
                secrets = {*known_secrets(world), *await every_operation(world, http), *await logins(world, http)}
        log.seek(0)
        logged = log.read().decode()
    assert "request" in logged
    assert sorted(secret for secret in {*secrets, KEY, HOOK} if secret in logged) == []
    # The address of a webhook is what has to be kept as it is: it is used.
    assert await rows_with(world.api, secrets | {KEY}) == []
    assert len(secrets) > 15


def known_secrets(world: World) -> Iterator[str]:
    """Passwords, and what callers show."""
    for password in (world.api.password, PASSWORD, NEW_PASSWORD):
        yield password
        yield hashed_password(password)
    callers = (world.owner, world.other, world.admin, world.agent, world.own_task, world.foreign_task, world.admin_task)
    for caller in callers:
        yield bearer(caller)


@contextlib.asynccontextmanager
async def debugging_master(database_url: str, log: int) -> AsyncIterator[str]:
    """A master of its own process on the same database; what it says goes to the file ``log``."""
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TENAX_")},
            "TENAX_MASTER_DB__URL": database_url,
            "TENAX_MASTER_LOG__LEVEL": "debug",
            "TENAX_MASTER_ROLES": "[api]",
            "TENAX_MASTER_WEBHOOKS__SIGNING_KEY": KEY,
            "TENAX_MASTER_SECURITY__ALLOW_BLANK_PASSWORDS": "true",
        }
        command = [sys.executable, "-m", "tenax.master", "--port", str(port), "--dir", str(Path(directory) / "m")]
        process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=log, stderr=log)
        try:
            url = f"http://127.0.0.1:{port}"
            await until_up(url, process)
            yield url
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()


async def until_up(url: str, process: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(240), httpx2.AsyncClient() as http:
        while process.returncode is None:
            with contextlib.suppress(httpx2.TransportError):
                if (await http.get(f"{url}/health")).status_code == 200:
                    return
            await asyncio.sleep(0.05)
    raise AssertionError("the master has ended")


async def every_operation(world: World, http: httpx2.AsyncClient) -> set[str]:
    """Each by somebody who may, and again with a password where none belongs; the tokens that came."""
    tokens: set[str] = set()
    callers = {Who.TASK: world.own_task, Who.AGENT: world.agent, Who.OWNERS: world.owner, Who.PEOPLE: world.owner}
    for operation, row in ROWS.items():
        route = DECLARED[operation]
        if route.method == "WEBSOCKET" or operation in SKIPPED:
            continue
        body = with_secrets(filled(row.body, world))
        wrong = {
            "username": [NEW_PASSWORD],
            "password": {"is": NEW_PASSWORD},
            "config": NEW_PASSWORD,
            "user": NEW_PASSWORD,
        }
        caller = callers.get(row.who, world.admin)
        for sent in (body, wrong) if route.method != "GET" else (body,):
            content = b"" if sent is None else json.dumps(sent).encode()
            path = path_of(world, route, row) + query_of(world, row)
            answer = await ask(http, caller, route.method, path, content)
            tokens |= tokens_in(answer)
    return tokens


def with_secrets(body: object) -> object:
    """Passwords of a row are those that are looked for."""
    return json.loads(json.dumps(body).replace("Passw0rd", NEW_PASSWORD)) if body is not None else None


async def ask(http: httpx2.AsyncClient, client: Client, method: str, path: str, content: bytes) -> str:
    headers = {name: value for name, value in client._http.headers.items() if name.startswith(("auth", "grpc"))}
    http.cookies.clear()
    with contextlib.suppress(httpx2.ReadTimeout):
        return (await http.request(method, path, content=content, headers=headers)).text
    return ""


def tokens_in(answer: str) -> set[str]:
    """What an answer gave that is shown only once."""
    try:
        document = cast(JsonObject, json.loads(answer))
    except ValueError:
        return set()
    return {str(document["token"])} if isinstance(document, dict) and isinstance(document.get("token"), str) else set()


async def logins(world: World, http: httpx2.AsyncClient) -> set[str]:
    """Wrong ones, whose passwords are people's mistakes, and a right one."""
    typed = {"admin": "Mistyped-Passw0rd-1", "nobody": "Mistyped-Passw0rd-2"}
    for name, password in typed.items():
        for hashed in (True, False):
            sent = {"username": name, "password": hashed_password(password) if hashed else password, "isHashed": hashed}
            await ask(http, world.nobody, "POST", "/api/v1/auth/login", json.dumps(sent).encode())
    await ask(http, world.nobody, "GET", f"/api/v1/me?token={typed['admin']}", b"")
    return {*typed.values(), *(hashed_password(password) for password in typed.values())}


async def rows_with(api: Api, secrets: set[str]) -> list[tuple[str, str]]:
    """Tables in which a secret stands, as text or as bytes."""
    exposed = []
    async with api.master.db.snapshot() as conn:
        tables = await conn.fetch(
            "select table_name as name from information_schema.tables"
            " where table_schema = 'public' and table_type = 'BASE TABLE'"
        )
        for table in tables:
            whole: str = await conn.fetchval(f"select coalesce(string_agg(t::text, ''), '') from \"{table['name']}\" t")
            exposed += [
                (table["name"], secret) for secret in secrets if secret in whole or secret.encode().hex() in whole
            ]
    return exposed
