"""Guessing at the door: how fast, for which names, at whose cost, and on whose page.

Who may log in, and what a guess costs, never depends on whether the name is known.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tenax.backoff import Backoff
from tenax.config.master import MasterSettings, SecuritySettings
from tenax.errors import InvalidInput
from tenax.master.access import login_throttle
from tenax.master.access.bootstrap import first_passwords
from tenax.master.access.login_judge import LoginJudge
from tenax.master.access.login_throttle import FREE, SUSPECT_FACTOR
from tenax.master.access.passwords import HASH_OF_NOTHING, LEAST, Passwords
from tests.kits.api import CHEAP, Api, Client

LOGIN = "/api/v1/auth/login"
MANY = 60


@pytest.fixture(autouse=True)
def first_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute; it is a second otherwise, which a busy machine may need for a login."""
    monkeypatch.setattr(login_throttle, "BACKOFF", Backoff(first=60.0, ceiling=60.0))


async def guess(client: Client, name: str, password: str = "wrong-guess") -> int:
    return (await client.post(LOGIN, {"username": name, "password": password})).status_code


async def test_parallel_guesses_are_not_all_judged(api: Api) -> None:
    """However many come at once: of one name from one address only the free ones are looked at."""
    statuses = await asyncio.gather(*(guess(api.nobody, "admin") for _ in range(MANY)))
    assert sorted(set(statuses)) == [401, 429]
    assert statuses.count(401) == FREE


async def test_parallel_logins_that_are_right_all_get_in(api: Api) -> None:
    """Programs that start at once are no guessers: each waits for its turn."""
    assert set(await asyncio.gather(*(guess(api.nobody, "admin", api.password) for _ in range(MANY)))) == {200}


@pytest.mark.parametrize("password", ["", "wrong-guess"])
async def test_many_guesses_lock_nobody_else_out(api: Api, password: str) -> None:
    """From behind one proxy or router: other names still get in from there, known ones and those that never did."""
    proxied = api.client(host="192.0.2.5")
    spent = FREE * SUSPECT_FACTOR + 10
    guesses = [await guess(proxied, f"name-{number}", password) for number in range(spent)]
    assert set(guesses) == {401}
    assert await guess(proxied, "admin", api.password) == 200
    assert await guess(proxied, "determined", api.passwords["determined"]) == 200


async def test_a_name_tried_from_everywhere_is_not_locked(api: Api) -> None:
    """Whoever guesses at a name from many addresses does not keep its owner out."""
    for number in range(FREE * SUSPECT_FACTOR + 10):
        assert await guess(api.client(host=f"10.1.0.{number}"), "admin") == 401
    assert await guess(api.client(host="10.2.0.1"), "admin", api.password) == 200


async def test_every_guess_costs_the_same_work(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """One hash with the same parameters for known, unknown, remote and blank ones: the clock tells no names."""
    await api.admin.post("/api/v1/users", {"user": {"username": "far", "remote": True}})
    async with api.master.db.transaction() as conn:
        await conn.execute("insert into users (username, password_hash) values ('blank', null)")
    seen: list[str] = []
    verify = Passwords._verify

    def counted(self: Passwords, stored: str, sent: str) -> bool:
        seen.append(stored.rsplit("$", 2)[0])
        return verify(self, stored, sent)

    monkeypatch.setattr(Passwords, "_verify", counted)
    names = ("admin", "determined", "nobody", "far", "blank")
    for name in names:
        for password in ("wrong-guess", ""):
            assert await guess(api.nobody, name, password) in (401, 403, 200)
    assert len(seen) == 2 * len(names)
    assert len(set(seen)) == 1


class TestProxies:
    """Behind proxies that the operator named, people are told apart."""

    @pytest.fixture
    def master_settings(self, master_settings: MasterSettings) -> MasterSettings:
        security = SecuritySettings(trusted_proxies=("10.0.0.0/8", "fd00::/8"))
        return master_settings.model_copy(update={"security": security})

    async def test_a_guesser_behind_the_proxy_stops_only_themselves(self, api: Api) -> None:
        """Even with the name of somebody else."""

        def behind(proxy: str, forwarded: str) -> Client:
            return api.client({"X-Forwarded-For": forwarded}, host=proxy)

        for _ in range(FREE):
            assert await guess(behind("10.0.0.1", "192.0.2.1"), "admin") == 401
        assert await guess(behind("10.0.0.1", "192.0.2.1"), "admin", api.password) == 429
        assert await guess(behind("10.0.0.2", "192.0.2.1, 10.0.0.9"), "admin", api.password) == 429
        assert await guess(behind("10.0.0.1", "192.0.2.2"), "admin", api.password) == 200

    async def test_nobody_else_says_where_they_come_from(self, api: Api) -> None:
        """What a client itself puts there, or sends past the proxies, changes nothing."""
        for number in range(FREE):
            through = api.client({"X-Forwarded-For": f"198.51.100.{number}, 192.0.2.1"}, host="10.0.0.1")
            direct = api.client({"X-Forwarded-For": f"198.51.100.{number}"}, host="192.0.2.7")
            assert await guess(through, "admin") == 401
            assert await guess(direct, "determined") == 401
        assert await guess(api.client({"X-Forwarded-For": "198.51.100.9, 192.0.2.1"}, host="10.0.0.1"), "admin") == 429
        assert await guess(api.client({"X-Forwarded-For": "198.51.100.9"}, host="192.0.2.7"), "determined") == 429


async def test_one_machine_has_many_addresses_of_ipv6(api: Api) -> None:
    """Its network of 64 bits counts as one."""
    for number in range(FREE):
        assert await guess(api.client(host=f"2001:db8::{number + 1:x}"), "admin") == 401
    assert await guess(api.client(host="2001:db8::ffff:1"), "admin") == 429


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Type": "text/plain;charset=UTF-8"},
    ],
)
@pytest.mark.parametrize("path", [LOGIN, "/login"])
async def test_another_sites_form_logs_nobody_in(api: Api, path: str, headers: dict[str, str]) -> None:
    """Or a visitor would work, and leave secrets, in the attacker's account."""
    body = json.dumps({"username": "admin", "password": api.password}).encode()
    reply = await api.client(headers).ask("POST", path, body)
    assert reply.status_code == 403
    assert "set-cookie" not in reply.headers


@pytest.mark.parametrize(
    "headers", [{}, {"Origin": "http://master"}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}]
)
async def test_our_own_page_and_programs_log_in(api: Api, headers: dict[str, str]) -> None:
    """Determined's client names no content type at all."""
    body = json.dumps({"username": "admin", "password": api.password}).encode()
    assert (await api.client(headers).ask("POST", LOGIN, body)).status_code == 200


async def test_each_first_user_has_a_password_of_its_own(api: Api) -> None:
    """Whoever was given that of determined is no administrator by it."""
    assert api.passwords["admin"] != api.passwords["determined"]
    assert await guess(api.nobody, "admin", api.passwords["determined"]) == 401


async def test_a_short_password_is_refused_where_it_is_seen(api: Api) -> None:
    """Sent in clear by whatever route; of a hash only that of nothing can be known."""
    short = "x" * (LEAST - 1)
    user = {"username": "eve"}
    refused = [
        await api.admin.post("/api/v1/users", {"user": user, "password": short}),
        await api.admin.post("/users", {"username": "eve", "password": short}),
        await api.admin.patch("/api/v1/users/2", {"password": short}),
        await api.user.post("/api/v1/users/2/password", short),
        await api.admin.patch("/users/determined", {"password": short}),
        await api.admin.post("/api/v1/users", {"user": user, "password": HASH_OF_NOTHING, "isHashed": True}),
    ]
    assert [reply.status_code for reply in refused] == [400] * len(refused)
    assert f"{LEAST} characters" in refused[0].text


def test_the_operators_file_is_held_to_the_same_length(tmp_path: Path) -> None:
    """It is that of the first administrator."""
    file = tmp_path / "password"
    file.write_text("short\n")
    settings = MasterSettings(dir=tmp_path, security=SecuritySettings(initial_password_file=file))
    with pytest.raises(InvalidInput, match="8 characters"):
        first_passwords(settings)
    file.write_text("long enough\n")
    passwords = first_passwords(settings)
    assert passwords["admin"] == "long enough"
    assert len(passwords["determined"]) > LEAST


async def test_the_hash_of_another_time_takes_as_long(api: Api) -> None:
    """What is compared for nobody has the parameters of what is stored."""
    passwords = Passwords(CHEAP)
    stored = await passwords.hash("a password")
    assert stored is not None
    assert stored.rsplit("$", 2)[0] == passwords.decoy.rsplit("$", 2)[0]
    assert not await passwords.matches(passwords.decoy, "a password")


async def test_the_masters_log_is_for_administrators(api: Api) -> None:
    """It names addresses, people and paths. Others are told so in a line, and Determined's support bundle has that."""
    assert await guess(api.client(host="192.0.2.77"), "admin") == 401
    shown = await api.user.get("/api/v1/master/logs", follow="true")
    assert (shown.status_code, shown.text.count("\n"), "administrators" in shown.text) == (200, 1, True)
    assert "192.0.2.77" not in shown.text
    assert "192.0.2.77" in (await api.admin.get("/api/v1/master/logs")).text


async def test_two_masters_count_together(api: Api) -> None:
    """Who is refused by one guesses at no other; a login that was right is forgiven by both."""
    judges = [LoginJudge(api.master.passwords, api.master.db) for _ in range(3)]
    behind = api.client(host="192.0.2.9")
    tried = []
    for number in range(2 * FREE):
        api.master.logins = judges[number % 2]
        tried.append(await guess(behind, "admin"))
    assert tried == [401] * FREE + [429] * FREE
    async with api.master.db.transaction() as conn:
        assert await conn.fetchval("select max(count) from failed_logins") == FREE
        await conn.execute("update failed_logins set last_at = now() - interval '16 minutes'")
    api.master.logins = judges[2]
    assert await guess(behind, "admin") == 401
    assert await guess(behind, "admin", api.password) == 200
    async with api.master.db.connection() as conn:
        assert await conn.fetchval("select count(*) from failed_logins") == 0
