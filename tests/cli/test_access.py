"""Users, groups, access tokens and webhooks on the command line: what is asked of the master, and what is told."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from tenax.cli.console import exits
from tenax.cli.webhook import MACHINE_EVENTS
from tenax.client.connection.saved_logins import TokenStore
from tenax.lifecycle.machine import MachineNews
from tenax.master.access.passwords import hashed_password
from tests.kits.cli.command_line import Tenax
from tests.kits.pretend_master import PretendMaster, refused

ANN = {
    "id": 2,
    "username": "ann",
    "displayName": "Ann, B.",
    "admin": True,
    "active": True,
    "agentUserGroup": {"agentUid": 1000, "agentUser": "ann", "agentGid": 100, "agentGroup": "lab"},
    "lastAuthAt": "2026-01-02T03:04:05Z",
}
EVE = {"id": 3, "username": "eve", "admin": False, "active": False, "remote": True}
VISION = {"groupId": 4, "name": "vision", "users": [ANN]}
HOOK = {
    "id": 5,
    "name": "team",
    "url": "http://h.example/x",
    "webhookType": "WEBHOOK_TYPE_SLACK",
    "mode": "WEBHOOK_MODE_SPECIFIC",
    "triggers": [
        {"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": "ERROR"}},
        {"triggerType": "TRIGGER_TYPE_CUSTOM"},
    ],
}


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def last(master: PretendMaster, method: str) -> tuple[str, object]:
    """Path and body of the newest request of that kind."""
    request = next(candidate for candidate in reversed(master.asked) if candidate.method == method)
    return request.path, request.body


@pytest.fixture
def people(master: PretendMaster) -> PretendMaster:
    master.on("GET", "/api/v1/users", {"users": [ANN, EVE]})
    for user in (ANN, EVE):
        for path in (f"/api/v1/users/{user['id']}", f"/api/v1/users/{user['username']}/by-username"):
            master.on("GET", path, {"user": user})
        master.on("PATCH", f"/api/v1/users/{user['id']}", {"user": user})
    return master


def test_users_are_listed(tenax: Tenax, people: PretendMaster) -> None:
    """As a table, as CSV whose values keep their commas, and as JSON."""
    table = tenax("user", "list", "--all").out
    assert "inactive, remote" in table
    assert "ann:lab (1000:100)" in table
    assert people.asked[-1].query == {"sortBy": ["SORT_BY_USER_NAME"]}
    lines = tenax("user", "list", "--csv").out.splitlines()
    assert lines[0] == "id,name,display name,role,state,last login,runs as"
    assert lines[1].startswith('2,ann,"Ann, B.",admin,active,')
    assert people.asked[-1].query["active"] == ["true"]
    assert json.loads(tenax("user", "list", "--json").out) == [ANN, EVE]


def test_a_user_is_made_with_a_password_that_only_travels_hashed(
    tenax: Tenax, people: PretendMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is too easy is refused before anything is sent."""
    people.on("POST", "/api/v1/users", {"user": EVE})
    typed(monkeypatch, "easy\n")
    done = tenax("user", "create", "eve", "--password-stdin")
    assert done.code == exits.FAILED
    assert "a capital letter" in done.err
    typed(monkeypatch, "Passw0rd\n")
    assert tenax("user", "create", "eve", "--password-stdin", "--admin").code == exits.OK
    _, body = last(people, "POST")
    assert body["password"] == hashed_password("Passw0rd")
    assert (body["isHashed"], body["user"]["admin"], body["user"]["active"]) == (True, True, True)


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        (("edit", "eve", "--active", "true", "--display-name", "E"), {"displayName": "E", "active": True}),
        (("edit", "eve", "--admin", "false"), {"admin": False}),
        (("rename", "eve", "eva"), {"username": "eva"}),
        (("activate", "eve"), {"active": True}),
        (("deactivate", "3"), {"active": False}),
        (
            ("link-with-agent-user", "eve", "--agent-uid", "7", "--agent-user", "e", "--agent-gid", "8",
             "--agent-group", "g"),
            {"agentUserGroup": {"agentUid": 7, "agentUser": "e", "agentGid": 8, "agentGroup": "g"}},
        ),
    ],
)  # fmt: skip
def test_a_user_is_changed(tenax: Tenax, people: PretendMaster, arguments: tuple[str, ...], body: object) -> None:
    """Only what was named is sent."""
    done = tenax("user", *arguments)
    assert done.code == exits.OK, done.err
    assert last(people, "PATCH") == ("/api/v1/users/3", body)


def test_ones_own_password(tenax: Tenax, people: PretendMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name it is one's own."""
    typed(monkeypatch, "Passw0rd\n")
    assert tenax("user", "change-password", "--password-stdin").code == exits.OK
    path, body = last(people, "PATCH")
    assert (path, body["password"]) == ("/api/v1/users/2", hashed_password("Passw0rd"))


def test_nothing_to_edit(tenax: Tenax, people: PretendMaster) -> None:
    """What may be changed is told."""
    done = tenax("user", "edit", "eve")
    assert done.code == exits.USAGE
    assert "--display-name" in done.err


def test_every_login_of_this_machine_is_ended(tenax: Tenax, people: PretendMaster) -> None:
    """Each is ended with its own token, and forgotten."""
    TokenStore().put(people.url, "eve", "t2")
    people.on("POST", "/api/v1/auth/logout", {})
    assert tenax("user", "logout", "--all").code == exits.OK
    tokens = {request.headers["Authorization"] for request in people.asked if request.path == "/api/v1/auth/logout"}
    assert tokens == {"Bearer t", "Bearer t2"}
    assert TokenStore().all(people.url) == {}


@pytest.mark.parametrize("options", [(), ("--all",)])
def test_who_was_deactivated_logs_out(tenax: Tenax, people: PretendMaster, options: tuple[str, ...]) -> None:
    """The master refuses them, and their login on this machine is forgotten."""
    inactive = refused(403, "user is not active: t was deactivated; ask an administrator")
    people.on("GET", "/api/v1/me", inactive)
    people.on("POST", "/api/v1/auth/logout", inactive)
    assert tenax("user", "logout", *options).code == exits.OK
    assert TokenStore().all(people.url) == {}


def test_groups(tenax: Tenax, people: PretendMaster) -> None:
    """By name as well as by number; users separated by blanks or commas."""
    groups = {"groups": [{"group": {"groupId": 4, "name": "vision"}, "numMembers": 1}]}
    people.on("POST", "/api/v1/groups/search", groups)
    people.on("POST", "/api/v1/groups", {"group": VISION})
    for method in ("GET", "PUT", "DELETE"):
        people.on(method, "/api/v1/groups/4", {"group": VISION})
    assert tenax("group", "list", "--csv").out == "id,name,users\n4,vision,1\n"
    assert "ann" in tenax("group", "describe", "vision").out
    assert tenax("group", "create", "vision", "--add-user", "ann").code == exits.OK
    assert last(people, "POST")[1] == {"name": "vision", "addUsers": [2]}
    for arguments, body in (
        (("add-user", "vision", "ann,eve"), {"addUsers": [2, 3]}),
        (("remove-user", "4", "ann", "eve"), {"removeUsers": [2, 3]}),
        (("change-name", "vision", "sight"), {"name": "sight"}),
    ):
        assert tenax("user-group", *arguments).code == exits.OK
        assert last(people, "PUT") == ("/api/v1/groups/4", {"groupId": 4, **body})
    assert tenax("group", "delete", "vision", "--yes").code == exits.OK
    assert last(people, "DELETE")[0] == "/api/v1/groups/4"
    people.on("POST", "/api/v1/groups/search", {"groups": []})
    assert tenax("group", "describe", "none").code == exits.NOT_FOUND


def test_tokens(tenax: Tenax, people: PretendMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new one alone is on standard output; days travel as hours."""
    info = {
        "id": 6,
        "userId": 2,
        "description": "nightly",
        "createdAt": "2026-01-02T03:04:05Z",
        "expiry": "2026-01-03T03:04:05Z",
        "revoked": False,
    }
    people.on("POST", "/api/v1/tokens", {"tokenId": 6, "token": "tnxp_x"})
    people.on("GET", "/api/v1/tokens", {"tokenInfo": [info]})
    people.on("PATCH", "/api/v1/tokens/6", {"tokenInfo": info})
    assert tenax("token", "create", "-e", "2", "-d", "nightly").out == "tnxp_x\n"
    assert last(people, "POST")[1] == {"userId": 2, "lifespan": "48h", "description": "nightly"}
    tenax("token", "create", "eve", "-e", "-1")
    assert last(people, "POST")[1] == {"userId": 3, "lifespan": "-1", "description": ""}
    people.on("GET", "/api/v1/users", {"users": [{"id": info["userId"], "username": "eve"}]})
    shown = tenax("token", "list", "--show-inactive").out
    assert "expired" in shown
    assert "eve" in shown
    assert json.loads(tenax("token", "describe", "6", "--json").out) == [info]
    assert tenax("token", "edit", "6", "-d", "weekly").code == exits.OK
    assert last(people, "PATCH")[1] == {"tokenId": 6, "description": "weekly"}
    assert tenax("tkn", "revoke", "6").code == exits.OK
    assert last(people, "PATCH")[1] == {"tokenId": 6, "setRevoked": True}
    typed(monkeypatch, "tnxp_y\n")
    assert tenax("token", "login", "--token-stdin").code == exits.OK
    assert TokenStore().get(people.url) == ("ann", "tnxp_y")


def test_webhooks(tenax: Tenax, people: PretendMaster) -> None:
    """Made from words, tried, and looked at; one that does not take a message is a failure."""
    people.on("GET", "/api/v1/webhooks", {"webhooks": [HOOK]})
    people.on("POST", "/api/v1/webhooks", {"webhook": HOOK})
    for method in ("GET", "PATCH", "DELETE"):
        people.on(method, "/api/v1/webhooks/5", {"webhook": HOOK})
    assert "EXPERIMENT_STATE_CHANGE ERROR; CUSTOM" in tenax("webhook", "list", "--csv").out
    arguments = ("--on-state", "error", "--on-log", "out of memory", "--on-alert", "--slack", "--workspace", "7")
    assert tenax("webhook", "create", "team", "http://h.example/x", *arguments).code == exits.OK
    body = last(people, "POST")[1]
    assert body["workspaceId"] == 7
    assert [(t["triggerType"], t["condition"]) for t in body["triggers"]] == [
        ("TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", {"state": "ERROR"}),
        ("TRIGGER_TYPE_TASK_LOG", {"regex": "out of memory"}),
        ("TRIGGER_TYPE_CUSTOM", {}),
    ]
    assert tenax("webhook", "create", "team", "http://h.example/x").code == exits.USAGE
    of_machines = ("webhook", "create", "team", "http://h.example/x", "--on-machine", "failed")
    assert tenax(*of_machines).code == exits.OK
    assert last(people, "POST")[1]["triggers"] == [
        {"triggerType": "TRIGGER_TYPE_MACHINE", "condition": {"event": "FAILED"}}
    ]
    assert "leave out --workspace" in tenax(*of_machines, "--workspace", "7").err
    assert tuple(each.value for each in MachineNews) == MACHINE_EVENTS
    assert tenax("webhook", "set-url", "team", "http://i.example/").code == exits.OK
    assert last(people, "PATCH") == ("/api/v1/webhooks/5", {"url": "http://i.example/"})
    people.on(
        "POST",
        "/api/v1/webhooks/5/test",
        {"completed": True, "outcome": "the receiver answered 200"},
        {"completed": False, "outcome": "the receiver answered 500"},
    )
    assert tenax("webhook", "test", "5").code == exits.OK
    done = tenax("webhook", "test", "team")
    assert (done.code, "500" in done.err) == (exits.FAILED, True)
    sent = {"id": 1, "eventType": "CUSTOM", "state": "FAILED", "attempts": 3, "outcome": "the receiver answered 404"}
    people.on("GET", "/api/v1/webhooks/5/deliveries", {"deliveries": [sent]})
    assert "the receiver answered 404" in tenax("webhook", "deliveries", "team").out
    assert tenax("webhook", "delete", "team", "--yes").code == exits.OK
    people.on("GET", "/api/v1/webhooks/signing-key", refused(403, "only administrators may do this"))
    assert tenax("webhook", "signing-key").code == exits.NOT_ALLOWED


def test_a_group_is_found_by_its_whole_name(tenax: Tenax, people: PretendMaster) -> None:
    """What the master answers with another name is not it: nothing else is deleted."""
    people.on("POST", "/api/v1/groups/search", {"groups": [{"group": {"groupId": 4, "name": "vision"}}]})
    assert tenax("group", "delete", "vis", "--yes").code == exits.NOT_FOUND
    assert not [request for request in people.asked if request.method == "DELETE"]


def test_a_token_sets_a_password_with_the_present_one(
    tenax: Tenax, people: PretendMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both travel hashed."""
    typed(monkeypatch, "the-old-One1\nthe-new-One1\n")
    done = tenax("user", "change-password", "eve", "--with-current", "--password-stdin")
    assert done.code == 0, done.err
    assert last(people, "PATCH")[1] == {
        "password": hashed_password("the-new-One1"),
        "isHashed": True,
        "currentPassword": hashed_password("the-old-One1"),
    }


def test_a_script_makes_an_agent_of_a_machine(
    tenax: Tenax, master: PretendMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It alone is on standard output, for a shell; that it holds a secret, and until when, is said beside it."""
    answer = {"script": "#!/bin/sh\nexit 0\n", "joinToken": {"id": 4, "usesLeft": 1, "expiry": "2026-01-02T03:04:05Z"}}
    master.on("POST", "/api/v1/agents/bootstrap", answer)
    done = tenax("agent", "bootstrap", "-p", "gpus", "--same-machine", "--wheelhouse", "/opt/wheels")
    assert (done.code, done.out) == (0, "#!/bin/sh\nexit 0\n")
    assert "holds a secret: until 2026-01-02" in done.err
    assert "tenax agent join-token revoke 4" in done.err
    usual = {"ownAddress": True, "certificate": "", "lifespan": "1h", "pool": "gpus", "wheelhouse": "/opt/wheels"}
    assert last(master, "POST")[1] == {**usual, "masterUrl": master.url}
    # A key that stands in the same file stays here.
    file = Path(__file__).parents[1] / "kits" / "self_signed.pem"
    assert "PRIVATE KEY" in file.read_text()
    monkeypatch.setenv("DET_MASTER_CERT_FILE", str(file))
    done = tenax("agent", "bootstrap", "--agent", "box", "--master-url", "https://m")
    assert done.code == 0, done.err
    sent = last(master, "POST")[1]
    assert (sent["agentId"], sent["masterUrl"]) == ("box", "https://m")
    assert sent["certificate"].startswith("-----BEGIN CERTIFICATE-----\n")
    assert sent["certificate"].endswith("\n-----END CERTIFICATE-----\n")
    assert "KEY" not in sent["certificate"]


def test_join_tokens_are_made_listed_and_revoked(tenax: Tenax, master: PretendMaster) -> None:
    """The token alone is on standard output, for a file."""
    token = {"id": 4, "usesLeft": 1, "expiry": "2026-01-02T03:04:05Z", "agentId": "box", "good": True}
    master.on("POST", "/api/v1/join-tokens", {"token": "tnxj_x", "joinToken": token})
    done = tenax("agent", "join-token", "create", "--agent", "box", "--expires-in", "2h", "-d", "rack 3")
    assert done.out == "tnxj_x\n"
    assert last(master, "POST")[1] == {"uses": 1, "lifespan": "2h", "description": "rack 3", "agentId": "box"}
    spent = {**token, "id": 5, "usesLeft": 0, "good": False}
    master.on("GET", "/api/v1/join-tokens", {"joinTokens": [token, spent], "joinByFile": True})
    table = tenax("agent", "join-token", "list", "-a").out
    assert "used up" in table
    assert master.asked[-1].query == {"showInactive": ["true"]}
    master.on("DELETE", "/api/v1/join-tokens/4", {"joinToken": {**token, "revoked": True, "good": False}})
    assert tenax("agent", "join-token", "revoke", "4").out == "Revoked join token 4\n"
