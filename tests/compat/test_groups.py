"""Every verb of `det user-group`: the client offers them where the master says that there are roles.

A second master of the same cluster says so, by a setting of its own; it answers requests and runs no loops.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from tenax.jsonvalue import JsonObject
from tests.compat.client import RealClient
from tests.kits.machine import Machine, free_port, wait_for

GROUPS = "user-group"


@pytest.fixture(scope="module")
def groups(cluster: Machine, admin: RealClient) -> Iterator[RealClient]:
    """The administrator at a master that says that there are roles."""
    port = free_port()
    environment = {
        **_environment_of(cluster),
        "TENAX_MASTER_PORT": str(port),
        "TENAX_MASTER_ROLES": "[api]",
        "TENAX_MASTER_SECURITY__RBAC_UI_ENABLED": "true",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "tenax.master"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: _is_up(url), "the second master")
        yield replace(admin, url=url)
    finally:
        process.terminate()
        process.wait()


def _environment_of(cluster: Machine) -> dict[str, str]:
    """What its master was started with."""
    pid = wait_for(lambda: cluster.pid("master"), "the master")
    pairs = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return dict(pair.decode().split("=", 1) for pair in pairs if b"=" in pair) | {"PATH": os.environ["PATH"]}


def _is_up(url: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/health") as reply:
        return bool(reply.status == 200)
    return False


def members(groups: RealClient, name: str) -> list[str]:
    told = cast(JsonObject, groups.det(GROUPS, "describe", name, "--json").json)
    return [str(one["username"]) for one in cast("list[JsonObject]", told["users"])]


def test_a_group_from_the_making_to_the_end(groups: RealClient) -> None:
    """Made with a user, filled, emptied, renamed, listed and deleted."""
    assert "determined" in groups.det(GROUPS, "create", "compat-g", "--add-user", "determined").out
    assert members(groups, "compat-g") == ["determined"]
    groups.det(GROUPS, "add-user", "compat-g", "admin,determined")
    assert members(groups, "compat-g") == ["admin", "determined"]
    groups.det(GROUPS, "remove-user", "compat-g", "determined")
    groups.det(GROUPS, "change-name", "compat-g", "compat-h")
    assert members(groups, "compat-h") == ["admin"]
    listed = cast(JsonObject, groups.det(GROUPS, "list", "--groups-user-belongs-to", "admin", "--json").json)
    found = [(one["group"]["name"], one["numMembers"]) for one in cast("list[dict[str, JsonObject]]", listed["groups"])]
    assert ("compat-h", 1) in found
    groups.det(GROUPS, "delete", "compat-h", "--yes")
    assert "compat-h" not in groups.det(GROUPS, "list").out


def test_a_group_that_is_not_there(groups: RealClient) -> None:
    """Is told so."""
    assert groups.det(GROUPS, "describe", "compat-none", check=False).code != 0


def test_without_that_setting_the_client_offers_no_groups(admin: RealClient) -> None:
    """It says so by itself; roles are refused by the master in words."""
    done = admin.det(GROUPS, "list", check=False)
    assert done.code != 0
    assert "Enterprise" in done.err
    code = """
from determined.common.api import bindings as b
client.login(master, user, password)
try:
    b.post_ListRoles(client._determined._session, body=b.v1ListRolesRequest(limit=1))
except Exception as error:
    result = str(error)
"""
    told = admin.sdk(code, master=admin.url, user="admin", password=admin.password)
    assert "there are no roles here" in str(told)


def test_what_one_master_revokes_the_other_refuses(admin: RealClient, groups: RealClient) -> None:
    """A token that this master has just seen is revoked at the other one."""
    made = cast(JsonObject, admin.det("token", "create", "--json").json)
    code = """
import requests, time
def status():
    return requests.get(url + "/api/v1/me", headers={"Authorization": "Bearer " + token}).status_code
before = status()
from determined.common.api import bindings as b
client.login(master, user, password)
b.patch_PatchAccessToken(client._determined._session, tokenId=number,
                         body=b.v1PatchAccessTokenRequest(tokenId=number, setRevoked=True))
until = time.monotonic() + 60
while status() == 200 and time.monotonic() < until:
    time.sleep(0.01)
result = [before, status()]
"""
    values = {"master": admin.url, "user": "admin", "password": admin.password, "url": groups.url}
    assert admin.sdk(code, **values, token=made["token"], number=made["tokenId"]) == [200, 401]
