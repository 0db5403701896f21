"""Whatever the contract lets a client say, and much that it does not, is answered: never 500, never silence.

Schemathesis makes up the requests from our own OpenAPI; a master of its own process answers them, over a cluster with
something of everything in it. Each operation gets a hundred; a request that broke the rule is printed as curl.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import uuid
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import asyncpg
import httpx2
import pytest

from tenax.local.postgres import EmbeddedPostgres
from tenax.master.app import ROUTES
from tenax.master.store.database.connection import Database
from tests.kits.api import answering, bearer, settings_in
from tests.kits.database import database_in
from tests.kits.machine import free_port, wait_for
from tests.kits.master.refusals import STATUSES, says_why
from tests.kits.world import make_world
from tests.master.api.matrix import ROWS, USUAL, Who
from tests.master.api.requests import SKIPPED

if TYPE_CHECKING:
    import schemathesis

EXAMPLES = 100
#: To the first byte; what streams is not read to its end.
TIMEOUT_S = 30.0
ROUTED = [route for noun in ROUTES for route in noun.declared if route.method != "WEBSOCKET"]


@dataclass(frozen=True)
class Target:
    """A master, what there is, and what opens it."""

    url: str
    names: dict[str, object]
    tokens: dict[Who, str]
    contract: dict[str, object]


@pytest.fixture(scope="module")
def target(postgres: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """One for all operations: what one of them broke, the next one would meet."""
    directory, port = tmp_path_factory.mktemp("fuzzed"), free_port()
    dsn = database_in(postgres.dsn, f"f_{uuid.uuid4().hex}")
    names, tokens = asyncio.run(_make(postgres.dsn, dsn, template, directory))
    environment = {
        **os.environ,
        "TENAX_MASTER_DB__URL": dsn,
        "TENAX_MASTER_ROLES": "[api]",
        # Members that never come are not waited for as long as a client would.
        "TENAX_MASTER_RENDEZVOUS_TIMEOUT": "0.2",
        "TENAX_MASTER_CHECKPOINT_STORAGE": f"{{type: shared_fs, host_path: {directory / 'checkpoints'}}}",
    }
    command = [sys.executable, "-m", "tenax.master", "--port", str(port), "--dir", str(directory / "master")]
    with (directory / "master.log").open("wb") as log:
        process = subprocess.Popen([*command, "--log-level", "warning"], env=environment, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: _contract(url) or process.poll() is not None, "the master")
        assert process.poll() is None, (directory / "master.log").read_text()[-3000:]
        yield Target(url, names, tokens, _contract(url))
    finally:
        process.terminate()
        process.wait()


async def _make(server: str, dsn: str, template: str, directory: Path) -> tuple[dict[str, object], dict[Who, str]]:
    admin = await asyncpg.connect(server)
    await admin.execute(f"create database {dsn.rpartition('/')[2].partition('?')[0]} template {template}")
    await admin.close()
    database = await Database.open(dsn)
    try:
        async with answering(database, settings_in(directory)) as api:
            world = await make_world(api)
            tokens = {Who.TASK: bearer(world.own_task), Who.AGENT: bearer(world.agent), Who.ALL: bearer(world.admin)}
            return world.names, tokens
    finally:
        await database.close()


def _contract(url: str) -> dict[str, object]:
    with suppress(httpx2.TransportError):
        return cast("dict[str, object]", httpx2.get(f"{url}/api/v1/openapi.json", timeout=60).json())
    return {}


@pytest.mark.long
@pytest.mark.parametrize("operation", sorted(route.operation for route in ROUTED if route.operation not in SKIPPED))
def test_every_request_is_answered(target: Target, operation: str) -> None:
    """With success or with a reason, in the client's shape of an error."""
    import schemathesis
    from hypothesis import HealthCheck, given, settings

    schema = schemathesis.openapi.from_dict(target.contract)
    described = schema.find_operation_by_id(operation)
    row = ROWS[operation]
    token = target.tokens.get(row.who, target.tokens[Who.ALL])

    @given(case=described.as_strategy())
    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def explore(case: schemathesis.Case) -> None:
        prepare(case, target, row.at)
        status, body = answered(case, target.url, token)
        if status == row.status == 302:
            return
        if operation == "Health" and (case.query or {}).get("role") == "loops":
            # This process has none, and says so in the shape of a health.
            assert '"loops":"elsewhere"' in body
            return
        assert status in STATUSES, f"{status} {body[:500]!r}\n{case.as_curl_command()}"
        assert status == 200 or says_why(case.path, body), f"{status} {body[:500]!r}\n{case.as_curl_command()}"

    explore()


def prepare(case: schemathesis.Case, target: Target, at: dict[str, str]) -> None:
    """Half of the requests are about what there is; none asks to be kept waiting."""
    for name in list(case.path_parameters or {}):
        snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        known = target.names.get(at.get(snake, USUAL.get(snake, snake)))
        if known is not None and zlib.crc32(repr(case.body).encode()) % 2:
            case.path_parameters[name] = known
    for name in ("timeoutSeconds", "timeout_seconds", "follow"):
        (case.query or {}).pop(name, None)


def answered(case: schemathesis.Case, url: str, token: str) -> tuple[int, str]:
    """The status, and what came of the body in a moment. Raises httpx2.ReadTimeout for silence."""
    made = case.as_transport_kwargs(base_url=url)
    headers = {name: value for name, value in dict(made["headers"]).items() if name.lower() != "authorization"}
    with httpx2.Client(timeout=TIMEOUT_S) as http:
        request = http.build_request(
            made["method"],
            made["url"],
            params=made.get("params"),
            headers={**headers, "Authorization": f"Bearer {token}"},
            content=made.get("data"),
            json=made.get("json"),
        )
        response = http.send(request, stream=True)
        try:
            if response.status_code == 200:
                return 200, ""
            return response.status_code, response.read().decode(errors="replace")
        finally:
            response.close()
