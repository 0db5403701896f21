"""Every verb of `det user` and every method of the SDK's `User`, with what it does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from tenax.jsonvalue import JsonObject
from tests.compat.client import RealClient
from tests.compat.terminal import typed

PASSWORD = "Passw0rd-1"
_ROW = """
found = client.get_user_by_name(name)
result = [found.active, found.admin, found.display_name, found.agent_uid, found.agent_group]
"""


def row(admin: RealClient, name: str) -> list[object]:
    """What the master says of a user: active, admin, display name, uid and group on agents."""
    return cast("list[object]", admin.sdk(_ROW, name=name))


def may_log_in(client: RealClient) -> bool:
    return client.det("user", "whoami", check=False).code == 0


def test_a_user_from_the_making_to_the_end(admin: RealClient, tmp_path: Path) -> None:
    """Made, listed, edited, renamed, linked, kept out and let in again: the master knows each, and acts on it."""
    admin.det("user", "create", "compat-ann", "--password", PASSWORD)
    ann = admin.as_user("compat-ann", PASSWORD, XDG_CONFIG_HOME=str(tmp_path))
    assert "compat-ann" in ann.det("user", "whoami").out
    assert "compat-ann" in admin.det("user", "list").out
    admin.det("user", "edit", "compat-ann", "--display-name", "Ann", "--admin", "true")
    assert row(admin, "compat-ann")[:3] == [True, True, "Ann"]
    admin.det("user", "edit", "compat-ann", "--admin", "false", "--remote", "false")
    linked = ("--agent-uid", 1234, "--agent-user", "ann", "--agent-gid", 99, "--agent-group", "lab")
    admin.det("user", "link-with-agent-user", "compat-ann", *linked)
    assert row(admin, "compat-ann")[3:] == [1234, "lab"]
    admin.det("user", "rename", "compat-ann", "compat-anna")
    anna = ann.as_user("compat-anna", PASSWORD)
    assert "compat-anna" in anna.det("user", "whoami").out
    admin.det("user", "deactivate", "compat-anna")
    assert not may_log_in(anna)
    assert "compat-anna" not in admin.det("user", "list").out
    assert "compat-anna" in admin.det("user", "list", "--all").out
    admin.det("user", "activate", "compat-anna")
    assert may_log_in(anna)


def test_only_administrators_manage_others(real: RealClient) -> None:
    """The refusal is the master's, in words."""
    done = real.det("user", "create", "compat-nobody", "--password", PASSWORD, check=False)
    assert done.code != 0
    assert "only administrators" in done.err
    assert real.det("user", "edit", "admin", "--display-name", "x", check=False).code != 0


def test_log_in_change_the_password_and_log_out(admin: RealClient, tmp_path: Path) -> None:
    """The login is remembered; a new password ends the others; after the logout its token is nobody's."""
    admin.det("user", "create", "compat-bob", "--password", PASSWORD)
    bob = admin.as_user("compat-bob", "not the password", XDG_CONFIG_HOME=str(tmp_path / "here"))
    typed(bob, ["user", "login", "compat-bob"], [PASSWORD])
    assert "compat-bob" in bob.det("user", "whoami").out
    elsewhere = admin.as_user("compat-bob", PASSWORD, XDG_CONFIG_HOME=str(tmp_path / "elsewhere"))
    code = "client.login(master, user, password)\nresult = client._determined._session.token"
    other = elsewhere.sdk(code, master=admin.url, user="compat-bob", password=PASSWORD)
    typed(bob, ["user", "change-password"], ["An0ther-word", "An0ther-word"])
    assert not answers(admin, other)
    assert "compat-bob" in bob.det("user", "whoami").out
    kept = json.loads((tmp_path / "here" / "determined" / "auth.json").read_text())
    token = kept["masters"][admin.url]["tokens"]["compat-bob"]
    assert answers(admin, token)
    bob.det("user", "logout")
    assert not answers(admin, token)


def answers(client: RealClient, token: object) -> bool:
    """Whether a token is somebody's."""
    code = (
        "import requests\n"
        "result = requests.get(url + '/api/v1/me', headers={'Authorization': 'Bearer ' + token}).status_code == 200"
    )
    return client.sdk(code, url=client.url, token=str(token)) is True


def test_the_sdk(admin: RealClient, tmp_path: Path) -> None:
    """Users as objects: what is changed by one is seen by another."""
    code = """
client.login(master, user, password)
made = client.create_user("compat-eve", admin=False, password=secret)
made.change_display_name("Eve")
made.link_with_agent(agent_uid=7, agent_user="eve", agent_gid=8, agent_group="g")
made.rename("compat-eva")
made.deactivate()
seen = client.get_user_by_id(made.user_id)
off = [seen.username, seen.display_name, seen.active, seen.agent_uid, seen.agent_user]
in_list = [one.username for one in client.list_users(active=True)]
made.activate()
seen.reload()
made.change_password(other)
result = [off, seen.active, "compat-eva" in in_list, "admin" in in_list, client.whoami().username,
          client.get_session_username()]
"""
    values = {"master": admin.url, "user": "admin", "password": admin.password}
    found = admin.sdk(code, **values, secret=PASSWORD, other="An0ther-word")
    assert found == [["compat-eva", "Eve", False, 7, "eve"], True, False, True, "admin", "admin"]
    code = """
client.login(master, user, password)
session = client._determined._session
client.logout()
try:
    session.get("/api/v1/me")
    result = "still in"
except Exception as error:
    result = type(error).__name__
"""
    values = {"master": admin.url, "user": "compat-eva", "password": "An0ther-word"}
    assert admin.sdk(code, **values) == "UnauthenticatedException"


def test_the_rest_api_of_the_page(admin: RealClient) -> None:
    """Settings, activity and many users at once, through the client's own bindings."""
    code = """
from determined.common.api import bindings as b
session = client._determined._session if client._determined else None
client.login(master, user, password)
session = client._determined._session
b.post_PostUserSetting(session, body=b.v1PostUserSettingRequest(
    settings=[b.v1UserWebSetting(key="k", value="v", storagePath="p")]))
kept = [one.to_json() for one in b.get_GetUserSetting(session).settings]
b.post_ResetUserSetting(session)
b.post_PostUserActivity(session, body=b.v1PostUserActivityRequest(
    activityType=b.v1ActivityType.GET, entityType=b.v1EntityType.PROJECT, entityId=1))
user_id = client.create_user("compat-many", admin=False, password=secret).user_id
results = b.patch_PatchUsers(session, body=b.v1PatchUsersRequest(activate=False, userIds=[user_id, 4711])).results
b.post_SetUserPassword(session, body=secret, userId=user_id)
result = [kept, len(b.get_GetUserSetting(session).settings), [bool(one.error) for one in results],
          client.get_user_by_id(user_id).active]
"""
    values = {"master": admin.url, "user": "admin", "password": admin.password, "secret": PASSWORD}
    kept, left, refused, active = cast("tuple[list[JsonObject], int, list[bool], bool]", admin.sdk(code, **values))
    assert kept == [{"key": "k", "value": "v", "storagePath": "p"}]
    assert (left, sorted(refused), active) == (0, [False, True], False)


@pytest.mark.parametrize("verb", ["activate", "deactivate"])
def test_who_is_not_there(admin: RealClient, verb: str) -> None:
    """Is told so."""
    done = admin.det("user", verb, "compat-missing", check=False)
    assert done.code != 0
    assert "not found" in done.err
