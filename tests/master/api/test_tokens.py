"""Access tokens over the wire: made, shown once, used, revoked, expired."""

from __future__ import annotations

import asyncio
import datetime

import pytest

from tenax.config.master import MasterSettings, SecuritySettings, TokenSettings
from tests.kits.api import Api, Client
from tests.kits.master.attempts import running
from tests.kits.master.refusals import refusal


async def made(api: Api, client: Client | None = None, user_id: int = 2, **more: object) -> tuple[int, Client, str]:
    """Its number, a caller with it, and the token."""
    reply = await (client or api.user).post("/api/v1/tokens", {"userId": user_id, **more})
    assert reply.status_code == 200, reply.text
    token = reply.json()["token"]
    return reply.json()["tokenId"], api.client({"Authorization": f"Bearer {token}"}), token


async def listed(client: Client, **query: object) -> list[dict[str, object]]:
    tokens: list[dict[str, object]] = (await client.get("/api/v1/tokens", **query)).json()["tokenInfo"]
    return tokens


def lifetime(info: dict[str, object]) -> datetime.timedelta:
    moments = [datetime.datetime.fromisoformat(str(info[name])) for name in ("createdAt", "expiry")]
    return moments[1] - moments[0]


async def test_a_token_is_a_login_until_it_is_revoked(api: Api) -> None:
    """From the answer on it is of no use, and the record of it stays."""
    number, caller, _ = await made(api, description="nightly")
    assert (await caller.get("/api/v1/me")).json()["user"]["username"] == "determined"
    reply = await api.user.patch(f"/api/v1/tokens/{number}", {"tokenId": number, "setRevoked": True})
    assert reply.json()["tokenInfo"]["revoked"] is True
    assert (await caller.get("/api/v1/me")).status_code == 401
    assert await listed(api.user) == []
    [info] = await listed(api.user, showInactive="true")
    assert (info["id"], info["userId"], info["description"], info["tokenType"]) == (
        number,
        2,
        "nightly",
        "TOKEN_TYPE_ACCESS_TOKEN",
    )
    assert await listed(api.user, tokenIds=number) == [info]
    unrevoked = await api.user.patch(f"/api/v1/tokens/{number}", {"setRevoked": False})
    assert unrevoked.json()["tokenInfo"]["revoked"] is True


async def test_an_expired_token_is_nobodys(api: Api) -> None:
    """To the second, however lately it was used."""
    number, caller, _ = await made(api, lifespan="1s")
    async with asyncio.timeout(60):
        while (await caller.get("/api/v1/me")).status_code == 200:  # noqa: ASYNC110 - a moment, not an event
            await asyncio.sleep(0.02)
    [info] = await listed(api.user, tokenIds=number)
    assert lifetime(info) == datetime.timedelta(seconds=1)
    assert datetime.datetime.now(datetime.UTC) >= datetime.datetime.fromisoformat(str(info["expiry"]))
    assert await listed(api.user) == []


async def test_a_token_is_stored_as_a_hash_alone(api: Api) -> None:
    """What the database holds opens nothing, and no answer but the first shows it."""
    _, _, token = await made(api)
    async with api.master.db.connection() as conn:
        rows = await conn.fetch("select t::text as row from access_tokens t")
    assert len(rows) == 1
    assert token not in rows[0]["row"]
    assert token not in (await api.admin.get("/api/v1/tokens", showInactive="true")).text


async def test_people_have_their_own_and_administrators_everyones(api: Api) -> None:
    """Seen, described and revoked by nobody else."""
    mine, _, _ = await made(api)
    theirs, _, _ = await made(api, api.admin, user_id=1)
    for_me, _, _ = await made(api, api.admin, user_id=2)
    assert {token["id"] for token in await listed(api.user)} == {mine, for_me}
    assert {token["id"] for token in await listed(api.admin)} == {mine, theirs, for_me}
    assert [token["id"] for token in await listed(api.admin, username="ADMIN")] == [theirs]
    assert await listed(api.user, tokenIds=theirs) == []
    assert (await api.user.post("/api/v1/tokens", {"userId": 1})).status_code == 403
    assert (await api.user.patch(f"/api/v1/tokens/{theirs}", {"setRevoked": True})).status_code == 403
    assert (await api.admin.patch(f"/api/v1/tokens/{mine}", {"description": "seen"})).status_code == 200
    ordered = await listed(api.admin, sortBy="SORT_BY_DESCRIPTION", orderBy="ORDER_BY_DESC", limit=1)
    assert [token["description"] for token in ordered] == ["seen"]


async def test_a_task_makes_no_tokens(api: Api) -> None:
    """One would outlive it."""
    run = await running(api)
    reply = await run.task.post("/api/v1/tokens", {"userId": 2})
    assert reply.status_code == 403
    assert "task" in refusal(reply)


async def test_a_token_is_as_active_as_its_user(api: Api) -> None:
    """And none is made for somebody who is not active; a new password leaves tokens as they are."""
    _, caller, _ = await made(api)
    await api.user.patch("/api/v1/users/2", {"password": "An0ther-one"})
    assert (await caller.get("/api/v1/me")).status_code == 200
    await api.admin.patch("/api/v1/users/2", {"active": False})
    refused = await caller.get("/api/v1/me")
    assert (refused.status_code, "user is not active" in refused.text) == (403, True)
    assert (await api.admin.post("/api/v1/tokens", {"userId": 2})).status_code == 400
    await api.admin.patch("/api/v1/users/2", {"active": True})
    assert (await caller.get("/api/v1/me")).status_code == 200


async def test_logging_out_leaves_a_token_good(api: Api) -> None:
    """A client forgets it; it is ended by revoking it."""
    _, caller, _ = await made(api)
    assert (await caller.post("/api/v1/auth/logout")).status_code == 200
    assert (await caller.get("/api/v1/me")).status_code == 200


class TestLifespans:
    """Within what the settings allow."""

    @pytest.fixture
    def master_settings(self, master_settings: MasterSettings) -> MasterSettings:
        tokens = TokenSettings(default_lifespan_days=2, max_lifespan_days=10)
        return master_settings.model_copy(update={"security": SecuritySettings(token=tokens)})

    async def test_a_lifespan_is_kept(self, api: Api) -> None:
        """The usual one, the longest, or the one that was asked for; any other is refused."""
        for lifespan, hours in ((None, 48.0), ("-1", 240.0), ("240h", 240.0), ("1h30m", 1.5)):
            number, _, _ = await made(api, lifespan=lifespan)
            [info] = await listed(api.user, tokenIds=number)
            assert lifetime(info) == datetime.timedelta(hours=hours)
        for wrong in ("241h", "0h", "-2", "soon", "1", "h", "9" * 400 + "h", "1h -1"):
            reply = await api.user.post("/api/v1/tokens", {"userId": 2, "lifespan": wrong})
            assert reply.status_code == 400, wrong
            assert "lifespan" in refusal(reply)
