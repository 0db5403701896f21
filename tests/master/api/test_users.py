"""Users, passwords and logins, asked of the real application."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import pytest

from tenax.backoff import Backoff
from tenax.config.master import MasterSettings, SecuritySettings
from tenax.master.access import login_throttle
from tenax.master.access.bootstrap import CREDENTIALS_FILE, bootstrap
from tenax.master.access.passwords import Passwords, hashed_password
from tenax.master.store.database.connection import Database
from tenax.master.store.users import settings as user_settings
from tests.kits.api import CHEAP, Api, settings_in
from tests.kits.master.refusals import refusal


async def test_the_first_users_have_random_passwords_that_only_the_owner_can_read(api: Api) -> None:
    """The file under the state directory is 0600, names the administrator, and has that of each."""
    path = api.master.settings.dir / CREDENTIALS_FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    credentials = json.loads(path.read_text())
    assert credentials["username"] == "admin"
    assert credentials["password"] == credentials["users"]["admin"]
    for name in ("admin", "determined"):
        assert len(credentials["users"][name]) >= 20
        client = await api.login(name, credentials["users"][name])
        assert (await client.get("/api/v1/me")).json()["user"]["username"] == name


async def test_a_second_start_changes_nothing(api: Api) -> None:
    """Users are made once; a restarted master keeps cluster id and passwords."""
    cluster = await bootstrap(api.master.db, api.master.settings, Passwords(CHEAP))
    assert cluster == api.master.cluster
    await api.login("admin", api.password)


async def test_without_its_directory_no_user_is_made(database: Database, tmp_path: Path) -> None:
    """It was moved away while the master started: users whose password is nowhere would be of no use to anybody."""
    settings = settings_in(tmp_path / "moved")
    with pytest.raises(FileNotFoundError):
        await bootstrap(database, settings, Passwords(CHEAP))
    assert not settings.dir.exists()
    settings.dir.mkdir(parents=True)
    await bootstrap(database, settings, Passwords(CHEAP))
    assert (settings.dir / CREDENTIALS_FILE).exists()


async def test_login_takes_the_hash_that_clients_send(api: Api) -> None:
    """A client that hashes and one that does not get in with the same password."""
    body = {"username": "admin", "password": hashed_password(api.password), "isHashed": True}
    reply = await api.nobody.post("/api/v1/auth/login", body)
    assert reply.status_code == 200
    assert reply.cookies["auth"] == reply.json()["token"]
    assert reply.json()["user"]["admin"] is True


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"username": "admin", "password": "wrong"}, 401),
        ({"username": "admin", "password": ""}, 401),
        ({"username": "nobody", "password": "x"}, 401),
        ({"username": "", "password": "x"}, 400),
        ({}, 400),
    ],
)
async def test_a_wrong_login_is_refused(api: Api, body: dict[str, str], status: int) -> None:
    """Unknown names and wrong passwords get the same answer."""
    reply = await api.nobody.post("/api/v1/auth/login", body)
    assert reply.status_code == status
    assert set(reply.json()) == {"error"}


async def test_logout_ends_the_session(api: Api) -> None:
    """The token is of no use afterwards; other sessions of the same user are."""
    other = await api.login("admin", api.password)
    assert (await api.admin.post("/api/v1/auth/logout")).status_code == 200
    assert (await api.admin.get("/api/v1/me")).status_code == 401
    assert (await other.get("/api/v1/me")).status_code == 200


async def test_an_expired_session_is_nobodys(api: Api) -> None:
    """A session past its end counts as none."""
    async with api.master.db.transaction() as conn:
        await conn.execute("update user_sessions set expires_at = now() - interval '1 second'")
    assert (await api.admin.get("/api/v1/me")).status_code == 401


async def test_failed_logins_make_the_next_one_wait(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some failures even the right password waits, and is told how long; another address does not."""
    # The first wait is a second otherwise, which a busy machine may need for a login.
    monkeypatch.setattr(login_throttle, "BACKOFF", Backoff(first=60.0, ceiling=60.0))
    for _ in range(5):
        assert (await api.nobody.post("/api/v1/auth/login", {"username": "admin", "password": "no"})).status_code == 401
    right = {"username": "admin", "password": api.password}
    reply = await api.nobody.post("/api/v1/auth/login", right)
    assert reply.status_code == 429
    assert 1 <= int(reply.headers["retry-after"]) <= 60
    assert (await api.client(host="10.0.0.9").post("/api/v1/auth/login", right)).status_code == 200


class TestBlankPasswords:
    """Blank passwords, which only an explicit setting allows."""

    @pytest.fixture
    def master_settings(self, master_settings: MasterSettings) -> MasterSettings:
        return master_settings.model_copy(update={"security": SecuritySettings(allow_blank_passwords=True)})

    async def test_blank_works_on_the_masters_machine_only(self, api: Api) -> None:
        """From another machine, or through a proxy, the login is refused with what to do."""
        blank = {"username": "determined", "password": ""}
        assert (await api.nobody.post("/api/v1/auth/login", blank)).status_code == 200
        for client in (api.client(host="192.0.2.1"), api.client({"X-Forwarded-For": "192.0.2.1"})):
            reply = await client.post("/api/v1/auth/login", blank)
            assert reply.status_code == 403
            assert "set a password" in reply.json()["error"]["error"]


async def test_a_blank_password_is_refused_without_the_setting(api: Api) -> None:
    """Neither a new user nor a change of password can make one."""
    made = await api.admin.post("/api/v1/users", {"user": {"username": "eve", "admin": False, "active": True}})
    assert made.status_code == 400
    changed = await api.admin.patch("/api/v1/users/2", {"password": "", "isHashed": True})
    assert changed.status_code == 400


async def test_an_administrator_makes_users(api: Api) -> None:
    """The new user logs in; the same name in other capitals is taken."""
    body = {
        "user": {"username": "Eve", "admin": False, "active": True},
        "password": "s3cret-password",
        "isHashed": False,
    }
    made = await api.admin.post("/api/v1/users", body)
    assert made.status_code == 200
    assert made.json()["user"] | {"modifiedAt": ""} == {
        "id": 3,
        "username": "Eve",
        "admin": False,
        "active": True,
        "displayName": "",
        "agentUserGroup": None,
        "modifiedAt": "",
        "lastAuthAt": None,
        "remote": False,
    }
    await api.login("Eve", "s3cret-password")
    body["user"] = {"username": "eve"}
    assert (await api.admin.post("/api/v1/users", body)).status_code == 409
    assert (await api.user.post("/api/v1/users", body)).status_code == 403


async def test_a_user_changes_only_their_own_name_and_password(api: Api) -> None:
    """A changed password ends the other sessions of that user, not the one that changed it."""
    other = await api.login("determined", api.passwords["determined"])
    reply = await api.user.patch("/api/v1/users/2", {"displayName": "Dee", "password": "n3w-password"})
    assert reply.json()["user"]["displayName"] == "Dee"
    assert (await other.get("/api/v1/me")).status_code == 401
    assert (await api.user.get("/api/v1/me")).status_code == 200
    await api.login("determined", "n3w-password")
    assert (await api.user.patch("/api/v1/users/2", {"admin": True})).status_code == 403
    assert (await api.user.patch("/api/v1/users/1", {"displayName": "x"})).status_code == 403


async def test_a_user_who_is_not_active_is_out(api: Api) -> None:
    """Their open sessions and the next login are refused by that name, and an unknown token hears nothing of it.

    Active again, they log in anew."""
    assert (await api.admin.patch("/api/v1/users/2", {"active": False})).status_code == 200
    login = {"username": "determined", "password": api.passwords["determined"]}
    for reply in (
        await api.user.get("/api/v1/me"),
        await api.user.post("/api/v1/auth/logout"),
        await api.nobody.post("/api/v1/auth/login", login),
    ):
        assert (reply.status_code, refusal(reply).partition(":")[0]) == (403, "user is not active")
    wrong = await api.nobody.post("/api/v1/auth/login", {**login, "password": "another"})
    unknown = await api.client({"Authorization": "Bearer tnxs_unknown"}).get("/api/v1/me")
    for reply in (wrong, unknown):
        assert (reply.status_code, "active" in reply.text) == (401, False)
    assert (await api.admin.patch("/api/v1/users/2", {"active": True})).status_code == 200
    assert (await api.user.get("/api/v1/me")).status_code == 401
    again = await api.login("determined", api.passwords["determined"])
    assert (await again.get("/api/v1/me")).status_code == 200


async def test_the_last_administrator_stays_one(api: Api) -> None:
    """Taking the right from the only administrator is refused and changes nothing."""
    for change in ({"admin": False}, {"active": False}):
        assert (await api.admin.patch("/api/v1/users/1", change)).status_code == 400
    assert (await api.admin.get("/api/v1/me")).json()["user"]["admin"] is True


async def test_remote_users_log_in_elsewhere(api: Api) -> None:
    """A remote user has no password here; made local again with a password, it works."""
    made = await api.admin.post("/api/v1/users", {"user": {"username": "rem", "remote": True}})
    user_id = made.json()["user"]["id"]
    blank = {"username": "rem", "password": ""}
    assert (await api.nobody.post("/api/v1/auth/login", blank)).status_code == 401
    refused = await api.admin.patch(f"/api/v1/users/{user_id}", {"password": "pass-word"})
    assert "Cannot set password" in refused.json()["error"]["error"]
    local = await api.admin.patch(f"/api/v1/users/{user_id}", {"remote": False, "password": "pass-word"})
    assert local.json()["user"]["remote"] is False
    await api.login("rem", "pass-word")


async def test_the_list_of_users_is_filtered_sorted_and_paged(api: Api) -> None:
    """Filters and order as asked; the pagination leads through the list."""
    for name in ("ann", "bob", "cid"):
        body = {"user": {"username": name, "active": name != "bob"}, "password": "s3cret-!!"}
        assert (await api.admin.post("/api/v1/users", body)).status_code == 200
    query = {"orderBy": "ORDER_BY_DESC", "sortBy": "SORT_BY_USER_NAME", "active": "true"}
    reply = (await api.user.get("/api/v1/users", **query, limit=2)).json()
    assert [user["username"] for user in reply["users"]] == ["determined", "cid"]
    assert reply["pagination"] == {"offset": 0, "limit": 2, "startIndex": 0, "endIndex": 2, "total": 4}
    rest = (await api.user.get("/api/v1/users", **query, offset=2)).json()
    assert [user["username"] for user in rest["users"]] == ["ann", "admin"]
    named = (await api.user.get("/api/v1/users", name="B")).json()
    assert [user["username"] for user in named["users"]] == ["bob"]
    assert (await api.user.get("/api/v1/users", offset=99)).status_code == 400


async def test_many_users_are_deactivated_at_once(api: Api) -> None:
    """Each for itself: the last administrator stays, and why is told; filters name those who are meant."""
    for name in ("ann", "bob"):
        await api.admin.post("/api/v1/users", {"user": {"username": name}, "password": "Passw0rd"})
    ann = await api.login("ann", "Passw0rd")
    assert (await ann.get("/api/v1/me")).status_code == 200
    reply = await api.admin.patch("/api/v1/users", {"userIds": [3, 1, 4711], "activate": False})
    results = {result["id"]: result["error"] for result in reply.json()["results"]}
    assert results[3] == ""
    assert "last active administrator" in results[1]
    assert "user 4711 not found" in results[4711]
    assert (await ann.get("/api/v1/me")).status_code == 403
    body = {"userIds": [], "activate": False, "filters": {"name": "bo", "admin": False}}
    assert [result["id"] for result in (await api.admin.patch("/api/v1/users", body)).json()["results"]] == [4]
    active = (await api.user.get("/api/v1/users", active="true")).json()["users"]
    assert [user["username"] for user in active] == ["admin", "determined"]


async def test_two_administrators_cannot_both_take_the_right_from_the_other(api: Api) -> None:
    """At the same time, one of them is the last and stays."""
    await api.admin.post("/api/v1/users", {"user": {"username": "eve", "admin": True}, "password": "Passw0rd"})
    eve = await api.login("eve", "Passw0rd")
    no_admin = {"admin": False}
    replies = await asyncio.gather(api.admin.patch("/api/v1/users/3", no_admin), eve.patch("/api/v1/users/1", no_admin))
    assert sorted(reply.status_code for reply in replies) in ([200, 400], [200, 403])
    async with api.master.db.connection() as conn:
        assert await conn.fetchval("select count(*) from users where admin and active") == 1


async def test_a_password_is_set_by_itself(api: Api) -> None:
    """The body is the password, as JSON; other logins of the user end."""
    other = await api.login("determined", api.passwords["determined"])
    assert (await api.user.post("/api/v1/users/2/password", "An0ther-one")).status_code == 200
    assert (await other.get("/api/v1/me")).status_code == 401
    await api.login("determined", "An0ther-one")
    assert (await api.user.post("/api/v1/users/1/password", "An0ther-one")).status_code == 403
    assert (await api.user.post("/api/v1/users/2/password", {"password": "x"})).status_code == 400


async def test_a_user_name_can_be_printed(api: Api) -> None:
    """Neither a new user nor a rename takes any other."""
    for name in ("", " ", "a ", "a\tb", "x" * 256):
        made = await api.admin.post("/api/v1/users", {"user": {"username": name}, "password": "Passw0rd"})
        assert made.status_code == 400
        assert (await api.admin.patch("/api/v1/users/2", {"username": name})).status_code == 400


async def test_settings_are_ones_own(api: Api) -> None:
    """Kept under path and key, replaced one by one, and forgotten all at once."""
    path = "/api/v1/users/setting"
    first = [{"key": "theme", "value": "dark", "storagePath": "ui"}, {"key": "tab", "value": "1"}]
    assert (await api.user.post(path, {"settings": first})).status_code == 200
    await api.user.post(path, {"settings": [{"key": "theme", "value": "light", "storagePath": "ui"}]})
    kept = (await api.user.get(path)).json()["settings"]
    assert sorted((setting["storagePath"], setting["key"], setting["value"]) for setting in kept) == [
        ("", "tab", "1"),
        ("ui", "theme", "light"),
    ]
    assert (await api.admin.get(path)).json() == {"settings": []}
    assert (await api.user.post(path, {"settings": [{"value": "x"}]})).status_code == 400
    assert (await api.user.post(path, {"settings": [{"key": "k", "value": "x" * 2**20}]})).status_code == 413
    assert (await api.user.post(f"{path}/reset")).status_code == 200
    assert (await api.user.get(path)).json() == {"settings": []}


async def test_what_was_looked_at_is_remembered(api: Api) -> None:
    """Projects, by the time of the last look."""
    body = {"activityType": "ACTIVITY_TYPE_GET", "entityType": "ENTITY_TYPE_PROJECT", "entityId": 1}
    assert (await api.user.post("/api/v1/users/activity", body)).status_code == 200
    assert (await api.user.post("/api/v1/users/activity", {**body, "entityId": 4711})).status_code == 404
    assert (await api.user.post("/api/v1/users/activity", {"entityId": 1})).status_code == 400
    async with api.master.db.connection() as conn:
        assert await user_settings.recent_projects(conn, 2) == [1]
        assert await user_settings.recent_projects(conn, 1) == []


async def test_the_oldest_scripts_log_in_and_manage_users(api: Api) -> None:
    """Plain bodies and plain errors, under the same rules."""
    login = await api.nobody.post("/login", {"username": "admin", "password": api.password})
    assert login.json().keys() == {"token"}
    admin = api.client({"Cookie": f"auth={login.json()['token']}"})
    assert (await admin.get("/users/me")).json()["username"] == "admin"
    bearer = api.client({"Authorization": f"Bearer {login.json()['token']}"})
    made = await bearer.post("/users", {"username": "eve", "password": "Passw0rd", "admin": False})
    assert made.json()["id"] == 3
    assert [user["username"] for user in (await api.user.get("/users")).json()] == ["admin", "determined", "eve"]
    assert (await bearer.patch("/users/eve", {"active": False})).json()["active"] is False
    assert (await bearer.patch("/users/nobody", {"active": False})).json().keys() == {"message"}
    assert (await api.user.patch("/users/eve", {"active": True})).status_code == 403
    assert (await bearer.post("/logout")).status_code == 200
    assert (await bearer.get("/users/me")).status_code == 401


async def test_nobody_is_shown_as_one_of_the_first_users(api: Api) -> None:
    """In any case of letters, by whomever the name is given."""
    for name, status in (("Admin", 400), (" DETERMINED ", 400), ("Ann", 200)):
        body = {"user": {"username": f"u{status}{name.strip()}", "displayName": name}, "password": "Passw0rd"}
        assert (await api.admin.post("/api/v1/users", body)).status_code == status
    for alike in ("aDmin", "ad\u200bmin", "ａdmin", "admin\u0301"):
        assert (await api.user.patch("/api/v1/users/2", {"displayName": alike})).status_code == 400
    assert (await api.user.patch("/api/v1/users/2", {"displayName": "Determined"})).status_code == 200
    assert (await api.admin.patch("/api/v1/users/1", {"displayName": "ADMIN"})).status_code == 200
    made = {"user": {"username": "eve", "admin": True, "displayName": "admin"}, "password": "Passw0rd"}
    eve = (await api.admin.post("/api/v1/users", made)).json()["user"]["id"]
    # The right goes, and the name with it.
    assert (await api.admin.patch(f"/api/v1/users/{eve}", {"admin": False})).status_code == 400
    both = {"admin": False, "displayName": "Eve"}
    assert (await api.admin.patch(f"/api/v1/users/{eve}", both)).status_code == 200


async def test_a_user_is_linked_with_a_whole_account(api: Api) -> None:
    """Or with none: half of one would take the rest from somewhere else."""
    whole = {"agentUid": 7, "agentUser": "eve", "agentGid": 8, "agentGroup": "g"}
    for lacking in whole:
        half = {name: value for name, value in whole.items() if name != lacking}
        refused = await api.admin.patch("/api/v1/users/2", {"agentUserGroup": half})
        assert (refused.status_code, lacking in refusal(refused)) == (400, True)
    assert (await api.admin.patch("/api/v1/users/2", {"agentUserGroup": whole})).status_code == 200
