"""The master's wheel, and the scripts that install it: for whoever could join, and for administrators."""

from __future__ import annotations

import hashlib
from pathlib import Path

import httpx2
import pytest

from tenax.config.master import MasterSettings, PoolSettings
from tenax.master.access.bootstrap import join_token
from tenax.master.access.task_tokens import machine_token, token_hash
from tenax.master.api.http import edge
from tenax.master.provision.wheel import own_wheel
from tenax.master.store.machines import rows as machines
from tenax.master.store.machines.rows import NewMachine
from tests.kits.api import Api, bearer

CERTIFICATE = (Path(__file__).parents[1] / "kits" / "self_signed.pem").read_text()
CERTIFICATE = CERTIFICATE[CERTIFICATE.index("-----BEGIN CERTIFICATE-----") :].partition("-----END CERTIFICATE-----")[0]
CERTIFICATE += "-----END CERTIFICATE-----\n"


async def ask(api: Api, *lines: str) -> httpx2.Response:
    """For the wheel, as a script does."""
    return await api.nobody.ask("POST", "/agents/wheel", "\n".join(lines).encode())


async def made(api: Api, **body: object) -> tuple[int, str]:
    """The number of a new join token, and the token."""
    reply = (await api.admin.post("/api/v1/join-tokens", body)).json()
    return reply["joinToken"]["id"], reply["token"]


async def bootstrap(api: Api, **body: object) -> httpx2.Response:
    """A script, as an administrator asks for it."""
    return await api.admin.post("/api/v1/agents/bootstrap", {"masterUrl": "https://master.example", **body})


async def uses_left(api: Api) -> list[int]:
    """Of all join tokens that are good."""
    return [each["usesLeft"] for each in (await api.admin.get("/api/v1/join-tokens")).json()["joinTokens"]]


async def test_the_wheel_is_for_whoever_could_join(api: Api) -> None:
    """Again and again, and joining is still possible afterwards; a token that is over opens nothing."""
    number, token = await made(api)
    for lines in ((token,), (token, "", own_wheel().sha256), (join_token(api.master.settings),)):
        reply = await ask(api, *lines)
        assert (reply.status_code, reply.content) == (200, own_wheel().content)
        assert reply.headers["x-sha256"] == hashlib.sha256(reply.content).hexdigest()
        assert own_wheel().name in reply.headers["content-disposition"]
    assert await uses_left(api) == [1]
    await api.admin.delete(f"/api/v1/join-tokens/{number}")
    assert (await ask(api, token)).status_code == 403
    _, late = await made(api)
    async with api.master.db.transaction() as conn:
        await conn.execute("update join_tokens set created_at = now() - interval '2 h', expires_at = now()")
    assert (await ask(api, late)).status_code == 403
    _, spent = await made(api)
    async with api.master.db.transaction() as conn:
        await conn.execute("update join_tokens set uses_left = 0 where uses_left = 1 and expires_at > now()")
    assert (await ask(api, spent)).status_code == 403


async def test_nothing_else_opens_the_wheel(api: Api) -> None:
    """Neither no token, nor a login, also an administrator's, nor what only looks like a token."""
    logins = [bearer(api.user), bearer(api.admin)]
    for token in ("", " ", "\0", "tnxj_" + "x" * 43, "tnxm_", "../../etc/passwd", "%", "é\ud7ff", *logins):
        reply = await ask(api, token, "\0", "")
        assert (reply.status_code, b"PK" in reply.content) == (403, False), token
    for client in (api.nobody, api.user, api.admin):
        assert (await client.ask("POST", "/agents/wheel", b"")).status_code == 403
        assert (await client.ask("GET", "/agents/wheel")).status_code == 405
        assert (await client.ask("POST", "/agents/wheel/../../../etc/passwd", b"")).status_code in (404, 405)
    huge = await api.nobody.ask("POST", "/agents/wheel", b"x" * (edge.UNKNOWN_BODY_BYTES + 1))
    assert huge.status_code == 413


async def test_another_wheel_than_the_scripts_is_not_sent(api: Api) -> None:
    """Behind one address there may be masters of two versions: the script asks again."""
    _, token = await made(api)
    reply = await ask(api, token, "", "0" * 64)
    assert (reply.status_code, b"PK" in reply.content) == (503, False)


async def test_the_token_of_a_machine_opens_it_while_it_starts(api: Api) -> None:
    """And that of one which the database does not know yet is to ask again."""
    secret = api.master.cluster.secret
    token = machine_token(secret, "m-1")
    assert (await ask(api, token, "m-1")).status_code == 503
    assert (await ask(api, token, "m-2")).status_code == 403
    place = ("default", "aws", "r", "", "m5.large", 2, ())
    async with api.master.db.transaction() as conn:
        await machines.plan(conn, [NewMachine("m-1", *place, token_hash(token), "")])
    assert (await ask(api, token, "m-1")).status_code == 200
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "update machines set state = 'JOINED', provider_id = 'i', joined_at = now(), token_hash = null"
        )
    assert (await ask(api, token, "m-1")).status_code == 403


class TestWithoutTheFile:
    """An operator who wants no token that never ends."""

    @pytest.fixture
    def master_settings(self, master_settings: MasterSettings) -> MasterSettings:
        security = master_settings.security.model_copy(update={"agent_join_by_file": False})
        return master_settings.model_copy(update={"security": security})

    async def test_the_file_opens_nothing(self, api: Api) -> None:
        """Only tokens that are listed do."""
        assert (await ask(api, join_token(api.master.settings))).status_code == 403


async def test_a_script_is_for_administrators(api: Api) -> None:
    """It holds a token for one agent, which no list shows."""
    body = {"masterUrl": "https://master.example"}
    assert (await api.nobody.post("/api/v1/agents/bootstrap", body)).status_code == 401
    assert (await api.user.post("/api/v1/agents/bootstrap", body)).status_code == 403
    assert await uses_left(api) == []
    reply = (await bootstrap(api, agentId="box", lifespan="10m", certificate=CERTIFICATE)).json()
    [token] = [line for line in reply["script"].splitlines() if line.startswith("tnxj_")]
    assert (await ask(api, token)).status_code == 200
    listed = await api.admin.get("/api/v1/join-tokens")
    assert token not in listed.text
    [its] = listed.json()["joinTokens"]
    assert (its["usesLeft"], its["agentId"], its["id"]) == (1, "box", reply["joinToken"]["id"])
    assert CERTIFICATE in reply["script"]


KEY = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    "body",
    [
        *({"masterUrl": url} for url in ("", "master", "ftp://m", "http://u:p@m", "http://m/$(id)", "http://m';id")),
        *({"masterUrl": f"http://{own}:8080"} for own in ("127.0.0.1", "localhost", "LOCALHOST.", "[::1]", "0.0.0.0")),
        *({"masterUrl": f"http://{own}"} for own in ("127.1", "[::ffff:127.0.0.1]", "a.localhost", "m,http://localhost")),
        *({"masterUrl": f"http://{host}"} for host in ("m\nid", "m:99999", "[.]", "[fe80:]", "[:::::::::]")),
        {"masterUrl": "http://m" + "m" * 3000},
        *({"certificate": text} for text in (KEY, CERTIFICATE + KEY, CERTIFICATE + "TENAX_END\nid\n", "x")),
        {"certificate": CERTIFICATE * 100},
        *({"python": python} for python in ("-c", "python3; id", "$(id)", "python 3", "a" * 600)),
        *({"indexUrl": url} for url in ("https://u:p@index", "file:///etc", "--pre", "https://i'", "https://i\n", "https://[")),
        *({"wheelhouse": place} for place in ("wheels", "-e", "../wheels", "/opt/it's", "/a b", "ftp://x")),
        {"wheelhouse": "/opt/wheels", "indexUrl": "https://index"},
        *({"lifespan": time} for time in ("0s", "9999d", "soon")),
        *({"agentId": name} for name in ("a b", "a" * 129, "-x\n")),
        *({"pool": name} for name in ("nowhere", "default\n", "default'")),
    ],
)  # fmt: skip
async def test_what_would_become_something_else_in_a_script_is_refused(api: Api, body: dict[str, object]) -> None:
    """And no token was made for it."""
    reply = await bootstrap(api, **body)
    assert reply.status_code == 400, reply.text
    assert await uses_left(api) == []


class TestOddPools:
    """An operator may call a pool anything."""

    @pytest.fixture
    def master_settings(self, master_settings: MasterSettings) -> MasterSettings:
        pool = PoolSettings(name="a\nTENAX_END_OF_START\nid\n")
        return master_settings.model_copy(update={"pools": [*master_settings.pools, pool]})

    async def test_a_pool_of_several_lines_is_refused(self, api: Api) -> None:
        """One of them would be the end of a text in the script, and the next a command."""
        reply = await bootstrap(api, pool="a\nTENAX_END_OF_START\nid\n")
        assert reply.status_code == 400, reply.text
        assert "cannot stand in a script" in reply.text


async def test_a_large_request_for_a_script_is_refused(api: Api) -> None:
    """As what people write everywhere."""
    for name in ("certificate", "masterUrl", "pool", "wheelhouse"):
        assert (await bootstrap(api, **{name: "x" * (3 << 20)})).status_code in (400, 413)
    assert await uses_left(api) == []
