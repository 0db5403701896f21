"""Whose a credential is, as a master remembers it: not a moment longer than it is true."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tenax.errors import Forbidden, NotAuthenticated, UserError
from tenax.master.access.authorization import Allow, RequestCredential
from tenax.master.access.credential_cache import KEEP_S, MAX_KEPT, CredentialCache
from tenax.master.store.database.wakeups import Listener
from tests.kits.api import Api
from tests.kits.master.attempts import ended, running


def token_of(api: Api) -> RequestCredential:
    return RequestCredential(api.user._http.headers["authorization"].partition(" ")[2])


async def test_a_credential_is_looked_up_once(api: Api) -> None:
    """The next requests of the same caller ask the database nothing."""
    # The logins before are changes of their users, too.
    await api.heard()
    credentials = CredentialCache(api.master.db, api.master.listener, keep_s=3600.0)
    first = await credentials.caller(token_of(api), Allow.USER)
    assert await credentials.caller(token_of(api), Allow.USER) is first
    assert first.person.username == "determined"
    assert KEEP_S <= 5


async def test_an_agent_is_no_user(api: Api) -> None:
    """A credential is remembered for what it was shown as."""
    credentials = CredentialCache(api.master.db, api.master.listener)
    await credentials.caller(token_of(api), Allow.USER)
    with pytest.raises(NotAuthenticated):
        await credentials.caller(token_of(api), Allow.AGENT)


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ("delete from user_sessions where user_id = 2", NotAuthenticated),
        ("update users set active = false where id = 2", Forbidden),
        ("delete from user_sessions", NotAuthenticated),
    ],
)
async def test_another_masters_change_is_heard(api: Api, change: str, refusal: type[UserError]) -> None:
    """Whatever statement it was, and whoever said it: the credential is good no more as soon as the word is here."""
    other = CredentialCache(api.master.db, api.master.listener, keep_s=3600.0)
    await other.caller(token_of(api), Allow.USER)
    async with api.master.db.transaction() as conn:
        await conn.execute(change)
    await api.heard()
    with pytest.raises(refusal):
        await other.caller(token_of(api), Allow.USER)


async def test_a_right_that_was_taken_is_gone_at_once(api: Api) -> None:
    """An administrator who is one no more is refused with the next request, also beside others that are under way."""
    body = {"user": {"username": "eve", "admin": True}, "password": "Passw0rd"}
    number = (await api.admin.post("/api/v1/users", body)).json()["user"]["id"]
    eve = await api.login("eve", "Passw0rd")
    assert (await eve.post("/api/v1/groups", {"name": "g"})).status_code == 200
    flood = [asyncio.create_task(eve.get("/api/v1/me")) for _ in range(20)]
    assert (await api.admin.patch(f"/api/v1/users/{number}", {"admin": False})).status_code == 200
    assert (await eve.post("/api/v1/groups", {"name": "h"})).status_code == 403
    await asyncio.gather(*flood)
    assert (await eve.get("/api/v1/me")).json()["user"]["admin"] is False


async def test_what_was_read_before_a_change_is_not_remembered_after_it(api: Api) -> None:
    """A look-up that is under way while something is dropped may have read what is no longer so."""
    credentials = CredentialCache(api.master.db, Listener(api.master.db))
    waiting = asyncio.create_task(credentials.caller(token_of(api), Allow.USER))
    await asyncio.sleep(0)
    credentials.wake("user:4711")
    first = await waiting
    assert await credentials.caller(token_of(api), Allow.USER) is not first


async def test_an_attempts_token_ends_with_it(api: Api) -> None:
    """What it may still do is decided anew when the attempt ends."""
    run = await running(api)
    assert (await run.task.get("/api/v1/me")).status_code == 200
    await ended(run)
    assert (await run.task.get("/api/v1/me")).status_code == 401


async def test_a_connection_that_was_lost_forgets_everything(api: Api) -> None:
    """What was said meanwhile was not heard."""
    credentials = CredentialCache(api.master.db, Listener(api.master.db))
    first = await credentials.caller(token_of(api), Allow.USER)
    credentials.wake_all()
    assert await credentials.caller(token_of(api), Allow.USER) is not first


async def test_what_is_remembered_is_bounded(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest go first, and leave nothing behind."""
    monkeypatch.setattr("tenax.master.access.credential_cache.MAX_KEPT", 3)
    assert MAX_KEPT >= 1000
    credentials = CredentialCache(api.master.db, Listener(api.master.db))
    for _ in range(5):
        client = await api.login("determined", api.passwords["determined"])
        token = client._http.headers["authorization"].partition(" ")[2]
        await credentials.caller(RequestCredential(token), Allow.USER)
    assert len(credentials._kept) == 3
    assert len(credentials._by_tag) == 4
    credentials.forget_user(2)
    assert not credentials._kept
    assert not credentials._by_tag


async def test_a_task_is_never_known_by_a_cookie(api: Api) -> None:
    """Also when it was seen in a header just before."""
    run = await running(api)
    assert (await run.task.get("/api/v1/me")).status_code == 200
    token = run.task._http.headers["grpc-metadata-x-allocation-token"].partition(" ")[2]
    with pytest.raises(NotAuthenticated):
        await api.master.credentials.caller(replace(RequestCredential(token), by_cookie=True), Allow.USER)
