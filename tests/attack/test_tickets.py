"""A ticket for the web page: good once, soon, for the page alone, and for no more than what it was made with."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.kits.api import Api, Client

USE = "/api/v1/auth/ticket"


async def ticket_of(client: Client) -> str:
    reply = await client.post("/api/v1/auth/tickets")
    assert reply.status_code == 200, reply.text
    text: str = reply.json()["ticket"]
    return text


async def opened(api: Api, ticket: str) -> Client:
    """A caller with the login that a ticket becomes, as a browser is: by its cookie."""
    reply = await api.client({}).post(USE, {"ticket": ticket})
    assert reply.status_code == 200, reply.text
    assert "HttpOnly" in reply.headers["set-cookie"]
    token = reply.headers["set-cookie"].partition(";")[0].partition("=")[2]
    # The page's own scripts never see it.
    assert token not in reply.text
    return api.client({"Authorization": f"Bearer {token}"})


async def test_a_ticket_is_used_once(api: Api) -> None:
    """Of many who bring it at the same time one is let in; and it is kept as a hash alone."""
    ticket = await ticket_of(api.user)
    async with api.master.db.connection() as conn:
        assert ticket not in str(await conn.fetch("select * from page_tickets"))
    replies = await asyncio.gather(*(api.client({}).post(USE, {"ticket": ticket}) for _ in range(8)))
    assert sorted(reply.status_code for reply in replies) == [200] + [403] * 7
    assert all("used already" in reply.text for reply in replies if reply.status_code == 403)


async def test_an_old_ticket_is_none(api: Api) -> None:
    """Whoever finds the address later has nothing."""
    ticket = await ticket_of(api.user)
    async with api.master.db.transaction() as conn:
        await conn.execute("update page_tickets set expires_at = now() - interval '1 second'")
    assert (await api.client({}).post(USE, {"ticket": ticket})).status_code == 403
    await ticket_of(api.user)
    async with api.master.db.connection() as conn:
        assert await conn.fetchval("select count(*) from page_tickets") == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Content-Type": "application/x-www-form-urlencoded"},
    ],
)
async def test_another_site_trades_no_ticket(api: Api, headers: dict[str, str]) -> None:
    """Its visitors are not logged in as its owner; and the ticket is still good."""
    ticket = await ticket_of(api.user)
    reply = await api.client(headers).ask("POST", USE, json.dumps({"ticket": ticket}).encode())
    assert (reply.status_code, "set-cookie" in reply.headers) == (403, False)
    await opened(api, ticket)


async def test_it_is_no_fresher_than_the_login_that_made_it(api: Api) -> None:
    """A login of hours ago makes no long token through a page that it opens, nor lives longer there."""
    async with api.master.db.transaction() as conn:
        await conn.execute("update user_sessions set created_at = now() - interval '16 minutes'")
        await conn.execute("update user_sessions set expires_at = now() + interval '1 hour'")
    page = await opened(api, await ticket_of(api.user))
    refused = await page.post("/api/v1/tokens", {"userId": 2, "lifespan": "700h"})
    assert (refused.status_code, "give your present password" in refused.text) == (403, True)
    async with api.master.db.connection() as conn:
        assert await conn.fetchval("select max(expires_at) < now() + interval '61 minutes' from user_sessions")


async def test_what_an_access_token_opened_ends_with_it(api: Api) -> None:
    """It makes no longer token, and revoking it ends the page as well, and tickets that nobody has used yet."""
    made = (await api.user.post("/api/v1/tokens", {"userId": 2, "lifespan": "1h"})).json()
    caller = api.client({"Authorization": f"Bearer {made['token']}"})
    page, unused = await opened(api, await ticket_of(caller)), await ticket_of(caller)
    assert (await page.get("/api/v1/me")).status_code == 200
    refused = await page.post("/api/v1/tokens", {"userId": 2, "lifespan": "2h"})
    assert refused.status_code == 403, refused.text
    assert (await api.user.patch(f"/api/v1/tokens/{made['tokenId']}", {"setRevoked": True})).status_code == 200
    assert (await page.get("/api/v1/me")).status_code == 401
    assert (await api.client({}).post(USE, {"ticket": unused})).status_code == 403


async def test_a_new_password_ends_tickets(api: Api) -> None:
    """After a theft nothing is left of what was stolen."""
    ticket = await ticket_of(api.user)
    assert (await api.admin.post("/api/v1/users/2/password", "An0ther-password")).status_code == 200
    assert (await api.client({}).post(USE, {"ticket": ticket})).status_code == 403
    ticket = await ticket_of(api.admin)
    async with api.master.db.transaction() as conn:
        await conn.execute("update users set active = false where username = 'admin'")
    assert (await api.client({}).post(USE, {"ticket": ticket})).status_code == 403
