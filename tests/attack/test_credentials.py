"""What a stolen credential is good for: not for a longer one, and not for the place of somebody else."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tenax.config.master import MasterSettings
from tenax.errors import AlreadyExists, Forbidden
from tenax.master.access.bootstrap import join_token
from tenax.master.access.passwords import hashed_password
from tenax.wire.agents import JoinRequest
from tests.kits.api import Api, Client

DRAWN = "tnxg_" + "a" * 43
ANOTHER = "tnxg_" + "b" * 43


async def with_token(api: Api, client: Client, user_id: int, **more: object) -> tuple[int, Client]:
    """The number of a new access token, and a caller with it."""
    reply = await client.post("/api/v1/tokens", {"userId": user_id, **more})
    assert reply.status_code == 200, reply.text
    return reply.json()["tokenId"], api.client({"Authorization": f"Bearer {reply.json()['token']}"})


async def ends_of(api: Api) -> dict[int, str]:
    tokens = (await api.admin.get("/api/v1/tokens", showInactive="true")).json()["tokenInfo"]
    return {token["id"]: token["expiry"] for token in tokens}


async def test_a_token_makes_none_that_outlives_it(api: Api) -> None:
    """Neither by asking for longer, nor for the longest, nor for what is usual; for itself or for others."""
    first, caller = await with_token(api, api.admin, 1, lifespan="1h")
    refused = await caller.post("/api/v1/tokens", {"userId": 1, "lifespan": "2h"})
    assert refused.status_code == 403
    assert "ends in" in refused.text
    for more in ({}, {"lifespan": "-1"}, {"userId": 2}, {"lifespan": "5m"}):
        assert (await caller.post("/api/v1/tokens", {"userId": 1, **more})).status_code == 200
    ends = await ends_of(api)
    assert len(ends) == 5
    assert max(ends.values()) == ends[first]


async def test_a_login_of_hours_ago_makes_no_token_that_outlives_it(api: Api) -> None:
    """Whoever took it has it until its end; with the password, or soon after it was given, any token is made."""
    assert (await api.user.post("/api/v1/tokens", {"userId": 2, "lifespan": "700h"})).status_code == 200
    async with api.master.db.transaction() as conn:
        await conn.execute("update user_sessions set created_at = now() - interval '16 minutes'")
        end = await conn.fetchval("select expires_at from user_sessions where user_id = 2")
    refused = await api.user.post("/api/v1/tokens", {"userId": 2, "lifespan": "700h"})
    assert (refused.status_code, "give your present password" in refused.text) == (403, True)
    # As Determined's client asks without an option: what is usual, and not beyond the login's end.
    for more in ({}, {"lifespan": "48h"}):
        assert (await api.user.post("/api/v1/tokens", {"userId": 2, **more})).status_code == 200
    async with api.master.db.connection() as conn:
        ends = await conn.fetch("select expires_at from access_tokens order by id desc limit 2")
    assert max(row["expires_at"] for row in ends) <= end
    for password, status in (("wrong-guess", 403), (api.passwords["determined"], 200)):
        body = {"userId": 2, "lifespan": "700h", "currentPassword": password}
        assert (await api.user.post("/api/v1/tokens", body)).status_code == status


async def test_what_a_token_made_ends_with_it(api: Api) -> None:
    """Revoking a stolen one leaves nothing of it: not what was made with it, nor what was made with that."""
    first, caller = await with_token(api, api.admin, 1)
    _, second = await with_token(api, caller, 2)
    _, third = await with_token(api, second, 2)
    for client in (caller, second, third):
        assert (await client.get("/api/v1/me")).status_code == 200
    await api.admin.patch(f"/api/v1/tokens/{first}", {"setRevoked": True})
    for client in (caller, second, third):
        assert (await client.get("/api/v1/me")).status_code == 401


async def test_a_token_sets_no_password_without_the_old_one(api: Api) -> None:
    """By no route: whoever stole it could stay. With the old one it does, and guessing that one is slow, too."""
    _, caller = await with_token(api, api.user, 2)
    new = "An0ther-password"
    refused = [
        await caller.patch("/api/v1/users/2", {"password": new}),
        await caller.patch("/api/v1/users/2", {"password": new, "currentPassword": "wrong-guess"}),
        await caller.post("/api/v1/users/2/password", new),
        await caller.patch("/users/determined", {"password": new}),
    ]
    assert [reply.status_code for reply in refused] == [403] * len(refused)
    old = hashed_password(api.passwords["determined"])
    body = {"password": hashed_password(new), "currentPassword": old, "isHashed": True}
    assert (await caller.patch("/api/v1/users/2", body)).status_code == 200
    await api.login("determined", new)
    guesses = [
        await caller.patch("/api/v1/users/2", {"password": new, "currentPassword": f"guess-{number}"})
        for number in range(20)
    ]
    assert guesses[-1].status_code == 429


async def test_an_administrators_token_sets_nobodys_password(api: Api) -> None:
    """Only together with the administrator's own; nor by making a remote user a local one."""
    await api.admin.post("/api/v1/users", {"user": {"username": "far", "remote": True}})
    _, caller = await with_token(api, api.admin, 1)
    new = {"password": "An0ther-password"}
    assert (await caller.patch("/api/v1/users/2", new)).status_code == 403
    assert (await caller.patch("/api/v1/users/3", {**new, "remote": False})).status_code == 403
    mine = {**new, "currentPassword": api.password}
    assert (await caller.patch("/api/v1/users/2", mine)).status_code == 200


async def joined(api: Api, agent_id: str, token: str, credential: str = "") -> str:
    """The agent's credential. Raises what the hub does."""
    body = msgspec.json.encode(JoinRequest(agent_id, token, "default", credential))
    reply = await api.nobody.ask("POST", "/agents/join", body)
    if reply.status_code != 200:
        raise {403: Forbidden, 409: AlreadyExists}[reply.status_code](reply.text)
    return str(reply.json()["credential"])


async def made(api: Api, **body: object) -> tuple[int, str]:
    """The number of a new join token, and the token."""
    reply = await api.admin.post("/api/v1/join-tokens", body)
    assert reply.status_code == 200, reply.text
    return reply.json()["joinToken"]["id"], reply.json()["token"]


async def is_good(api: Api, credential: str) -> bool:
    """Whether an agent gets anywhere with it."""
    agent = api.client({"Authorization": f"Bearer {credential}"})
    reply = await agent.get("/agents/logs/offsets", container_id="00000000-0000-4000-8000-000000000001")
    return reply.status_code != 401


async def test_an_agent_that_is_away_is_not_replaced(api: Api) -> None:
    """Whoever holds a join token that is for any agent becomes none that there is."""
    file_token = join_token(api.master.settings)
    credential = await joined(api, "box", file_token)
    _, token = await made(api, uses=-1)
    for stolen in (file_token, token):
        with pytest.raises(AlreadyExists, match="it has joined"):
            await joined(api, "box", stolen)
        with pytest.raises(AlreadyExists, match="it has joined"):
            await joined(api, "box", stolen, ANOTHER)
    assert await is_good(api, credential)
    both = await asyncio.gather(*(joined(api, "new", token) for _ in range(2)), return_exceptions=True)
    assert sorted(type(one).__name__ for one in both) == ["AlreadyExists", "str"]


async def test_only_a_token_for_that_agent_sets_it_up_anew(api: Api) -> None:
    """The old credential is of no use from then on; for any other agent that token is none."""
    credential = await joined(api, "box", join_token(api.master.settings))
    _, token = await made(api, agentId="box")
    with pytest.raises(Forbidden):
        await joined(api, "other", token)
    assert await is_good(api, await joined(api, "box", token))
    await api.heard()
    assert not await is_good(api, credential)
    with pytest.raises(Forbidden):
        await joined(api, "box", token)


async def test_a_join_whose_answer_was_lost_is_made_again(api: Api) -> None:
    """With the credential that the agent drew, also where the token was for one use; nobody else gets it."""
    _, token = await made(api)
    assert await joined(api, "box", token, DRAWN) == DRAWN
    assert await joined(api, "box", token, DRAWN) == DRAWN
    assert await is_good(api, DRAWN)
    with pytest.raises(Forbidden):
        await joined(api, "box2", token, DRAWN)
    with pytest.raises(Forbidden):
        await joined(api, "box2", token, ANOTHER)


async def test_a_join_token_ends(api: Api) -> None:
    """By its uses, its time, or because it was revoked; a join that fails for another reason uses nothing up."""
    number, token = await made(api, uses=2)
    wrong = msgspec.json.encode(JoinRequest("one", token, "no-such-pool"))
    assert (await api.nobody.ask("POST", "/agents/join", wrong)).status_code == 400
    parallel = await asyncio.gather(*(joined(api, f"box{n}", token) for n in range(5)), return_exceptions=True)
    assert sorted(type(one).__name__ for one in parallel) == ["Forbidden"] * 3 + ["str"] * 2
    revoked, token = await made(api)
    assert (await api.admin.delete(f"/api/v1/join-tokens/{revoked}")).json()["joinToken"]["good"] is False
    over, late = await made(api)
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "update join_tokens set created_at = now() - interval '2 h', expires_at = now() where id = $1", over
        )
    for of_no_use in (token, late, "", "tnxj_" + "x" * 43):
        with pytest.raises(Forbidden):
            await joined(api, "another", of_no_use)
    assert (await api.admin.get("/api/v1/join-tokens")).json()["joinTokens"] == []
    listed = (await api.admin.get("/api/v1/join-tokens", showInactive="true")).json()["joinTokens"]
    assert [one["id"] for one in listed] == [number, revoked, over]
    assert not any(one["good"] for one in listed)


async def test_a_join_token_is_shown_once_and_to_administrators(api: Api) -> None:
    """The database has a hash of it."""
    _, token = await made(api, description="rack 3")
    listed = await api.admin.get("/api/v1/join-tokens")
    assert "rack 3" in listed.text
    assert token not in listed.text
    async with api.master.db.connection() as conn:
        assert token not in str(await conn.fetch("select t::text from join_tokens t"))
    assert (await api.user.get("/api/v1/join-tokens")).status_code == 403
    assert (await api.user.post("/api/v1/join-tokens", {})).status_code == 403


@pytest.mark.parametrize(
    "body",
    [{"uses": 0}, {"uses": -2}, {"lifespan": "0s"}, {"lifespan": "9999d"}, {"lifespan": "soon"}, {"agentId": "a b"}],
)
async def test_a_join_token_without_bounds_is_refused(api: Api, body: dict[str, object]) -> None:
    """None is for ever."""
    assert (await api.admin.post("/api/v1/join-tokens", body)).status_code == 400


class TestWithoutTheFile:
    """An operator who wants no token that never ends."""

    @pytest.fixture
    def master_settings(self, master_settings: MasterSettings) -> MasterSettings:
        security = master_settings.security.model_copy(update={"agent_join_by_file": False})
        return master_settings.model_copy(update={"security": security})

    async def test_the_file_lets_nobody_in(self, api: Api) -> None:
        """Only tokens that are listed do."""
        with pytest.raises(Forbidden):
            await joined(api, "box", join_token(api.master.settings))
        _, token = await made(api)
        assert await is_good(api, await joined(api, "box", token))
