"""Every verb of `det token`, with what it does."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import cast

from tenax.jsonvalue import JsonObject
from tests.compat.client import RealClient


def described(client: RealClient, number: object) -> JsonObject:
    [one] = cast("list[JsonObject]", client.det("token", "describe", number, "--json").json)
    return one


def test_a_token_from_the_making_to_the_end(real: RealClient, tmp_path: Path) -> None:
    """It is shown once, logs in without a password, is described and edited, and is nobody's once it is revoked."""
    made = cast(JsonObject, real.det("token", "create", "-e", 2, "-d", "compat", "--json").json)
    number, token = made["tokenId"], str(made["token"])
    one = described(real, number)
    assert (one["description"], one["revoked"], one["tokenType"]) == ("compat", False, "TOKEN_TYPE_ACCESS_TOKEN")
    moments = [datetime.datetime.fromisoformat(str(one[name])) for name in ("createdAt", "expiry")]
    assert moments[1] - moments[0] == datetime.timedelta(days=2)
    program = real.as_user("determined", "not the password", XDG_CONFIG_HOME=str(tmp_path))
    program.det("token", "login", token)
    assert "determined" in program.det("user", "whoami").out
    assert program.det("e", "list").code == 0
    real.det("token", "edit", number, "-d", "changed")
    assert described(real, number)["description"] == "changed"
    assert token not in real.det("token", "list", "--json").out
    assert str(number) in real.det("token", "list", "determined").out
    assert "Successfully revoked" in real.det("token", "revoke", number).out
    assert described(real, number)["revoked"] is True
    assert program.det("user", "whoami", check=False).code != 0
    listed = cast("list[JsonObject]", real.det("token", "list", "--json").json)
    assert number not in [one["id"] for one in listed]
    every = cast("list[JsonObject]", real.det("token", "list", "--show-inactive", "--json").json)
    assert number in [one["id"] for one in every]


def test_others_tokens_are_the_administrators(admin: RealClient, real: RealClient) -> None:
    """An administrator makes one for somebody and sees everyone's; others see and revoke their own alone."""
    for_real = cast(JsonObject, admin.det("token", "create", "determined", "--json").json)["tokenId"]
    own = cast(JsonObject, admin.det("token", "create", "--json").json)["tokenId"]
    seen = {one["id"] for one in cast("list[JsonObject]", real.det("token", "list", "--json").json)}
    assert for_real in seen
    assert own not in seen
    assert real.det("token", "revoke", own, check=False).code != 0
    assert described(admin, own)["revoked"] is False
    for number in (for_real, own):
        admin.det("token", "revoke", number)


def test_a_lifespan_that_is_too_long(real: RealClient) -> None:
    """Is refused with what is allowed; -1 is as long as is allowed."""
    done = real.det("token", "create", "-e", 4000, check=False)
    assert "at most 30" in done.out + done.err
    made = cast(JsonObject, real.det("token", "create", "-e", "-1", "--json").json)
    real.det("token", "revoke", made["tokenId"])
