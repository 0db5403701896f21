"""Requests, logins and errors, against a pretended master."""

from __future__ import annotations

import stat
from pathlib import Path

import httpx2
import pytest

from tenax.client.connection import plain_http, transport
from tenax.client.connection.address import Unreachable
from tenax.client.connection.login import hashed_password
from tenax.client.connection.saved_logins import TokenStore, default_path
from tenax.client.connection.session import BrokenStream, MasterFailed, Session, at
from tenax.errors import AlreadyExists, Forbidden, InvalidInput, NotAuthenticated, NotFound, TryAgain
from tenax.local.state_dir import StateDir, read_json, write_json
from tenax.master.access import passwords
from tests.kits.pretend_master import Asked, PretendMaster, Reply, refused

LOGIN = "/api/v1/auth/login"
ME = "/api/v1/me"


def session(master: PretendMaster, **options: object) -> Session:
    return Session(master.url, **{"retry_for_s": 0.0, **options})  # type: ignore[arg-type]


@pytest.fixture(autouse=True, params=[httpx2, plain_http], ids=["httpx2", "plain"])
def carrier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here holds for either of those that carry requests."""
    monkeypatch.setattr(transport, "httpx2", request.param)


def test_the_salt_is_the_wires() -> None:
    """A password is hashed as the master expects it, and a blank one stays blank."""
    assert hashed_password("secret") == passwords.hashed_password("secret")
    assert hashed_password("") == ""


def test_login_is_remembered(master: PretendMaster) -> None:
    """After a login later sessions use its token, from a file that only its owner can read."""
    master.on("POST", LOGIN, {"token": "t1"})
    master.on("GET", ME, {"user": {"username": "ann"}})
    session(master).log_in("ann", "secret")
    assert session(master).get(ME) == {"user": {"username": "ann"}}
    sent = master.sent("POST", LOGIN)[0].body
    assert sent == {"username": "ann", "password": hashed_password("secret"), "isHashed": True}
    assert master.sent("GET", ME)[0].headers["Authorization"] == "Bearer t1"
    assert stat.S_IMODE(default_path().stat().st_mode) == 0o600


def test_wrong_password(master: PretendMaster) -> None:
    """A wrong password is told with name and address, never with the password."""
    master.on("POST", LOGIN, refused(401, "no"))
    with pytest.raises(NotAuthenticated) as caught:
        session(master).log_in("ann", "secret")
    assert "'ann'" in str(caught.value)
    assert master.url in str(caught.value)
    assert "secret" not in str(caught.value)


def test_not_logged_in(master: PretendMaster) -> None:
    """Without any login the message says how to log in, or that nothing answers where that is so."""
    with pytest.raises(NotAuthenticated, match="tenax user login"):
        session(master).get(ME)
    assert not master.sent("GET", ME)
    with pytest.raises(Unreachable, match="tenax up"):
        Session("http://127.0.0.1:9", retry_for_s=0.0).get(ME)


@pytest.fixture
def state(master: PretendMaster, home: Path) -> StateDir:
    """The cluster of this machine, which is up; its master is the pretended one."""
    made = StateDir(home / "cluster")
    made.prepare()
    assert made.take_lock() is not None
    write_json(made.supervisor, {"url": master.url})
    write_json(made.credentials, {"username": "admin", "password": "random", "users": {"determined": "other"}})
    return made


def asked_by(master: PretendMaster, session: Session) -> tuple[str, str]:
    """The token that a request of the session carried, and how it came about."""
    session.get(ME)
    return master.sent("GET", ME)[-1].headers["Authorization"].split()[-1], session.logged_in_by()


def logged_in(master: PretendMaster) -> list[str]:
    """Who asked for a token."""
    return [str(request.body["username"]) for request in master.sent("POST", LOGIN)]


def test_who_one_is(master: PretendMaster, state: StateDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flags before the environment, that before the remembered login, that before the automatic one; and it is told."""
    master.on("POST", LOGIN, {"token": "automatic"}, {"token": "robots"}, {"token": "robots"})
    master.on("GET", ME, {})
    assert asked_by(master, Session()) == ("automatic", f"the automatic login of the cluster in {state.root}")
    TokenStore().put(master.url, "ann", "anns")
    TokenStore().put(master.url, "bob", "bobs")
    assert asked_by(master, Session()) == ("bobs", "the login that tenax user login remembered")
    monkeypatch.setenv("DET_USER", "ann")
    how = "the login that tenax user login remembered, as ann whom DET_USER names"
    assert asked_by(master, Session()) == ("anns", how)
    monkeypatch.setenv("DET_USER", "robot")
    with pytest.raises(NotAuthenticated, match="as robot whom DET_USER names: tenax user login robot"):
        Session().get(ME)
    monkeypatch.setenv("DET_PASS", "secret")
    assert asked_by(master, Session()) == ("robots", "DET_USER and DET_PASS")
    how = "the login that tenax user login remembered, as bob whom --user names"
    assert asked_by(master, Session(user="bob")) == ("bobs", how)
    monkeypatch.setenv("DET_USER_TOKEN", "tasks")
    assert asked_by(master, Session()) == ("tasks", "DET_USER and DET_USER_TOKEN")
    assert asked_by(master, Session(token="given")) == ("given", "a token that was given")
    assert logged_in(master) == ["admin", "robot"]


def test_all_sessions_of_an_automatic_login_make_it_anew(master: PretendMaster, state: StateDir) -> None:
    """When its token has ended, also those that come after the first."""
    good = {"old"}

    def me(asked: Asked) -> Reply:
        return Reply({}) if asked.headers["Authorization"].split()[-1] in good else refused(401, "no")

    master.answers["GET", ME] = me
    master.on("POST", LOGIN, {"token": "old"}, {"token": "new"})
    with Session() as first, Session() as second, first.another() as third:
        assert {asked_by(master, session)[0] for session in (first, second, third)} == {"old"}
        good.symmetric_difference_update({"old", "new"})
        assert {asked_by(master, session)[0] for session in (first, second, third)} == {"new"}
    assert logged_in(master) == ["admin", "admin"]


def test_a_wrong_password_of_the_environment_is_nobody_elses_login(
    master: PretendMaster, state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused, and not replaced by a login that would work."""
    master.on("POST", LOGIN, refused(401, "no"))
    monkeypatch.setenv("DET_USER", "robot")
    monkeypatch.setenv("DET_PASS", "wrong")
    with pytest.raises(NotAuthenticated, match="'robot'"):
        Session().get(ME)
    assert logged_in(master) == ["robot"]


@pytest.mark.parametrize("proof", ["DET_PASS", "DET_USER_TOKEN"])
def test_a_proof_of_nobody_is_refused(
    master: PretendMaster, state: StateDir, monkeypatch: pytest.MonkeyPatch, proof: str
) -> None:
    """Whoever set it would be taken for the administrator; a flag says whom they mean."""
    master.on("POST", LOGIN, {"token": "determineds"})
    master.on("GET", ME, {})
    monkeypatch.setenv(proof, "x")
    with pytest.raises(NotAuthenticated, match=f"{proof} is set and DET_USER is not"):
        Session().get(ME)
    assert logged_in(master) == []
    Session(user="determined").get(ME)


def test_a_token_of_the_environment_that_is_none_is_named(
    master: PretendMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    master.on("GET", ME, refused(401, "no"))
    monkeypatch.setenv("DET_USER", "robot")
    monkeypatch.setenv("DET_USER_TOKEN", "hush")
    with pytest.raises(NotAuthenticated, match="The token in DET_USER_TOKEN is none of") as caught:
        session(master).get(ME)
    assert "hush" not in str(caught.value)
    monkeypatch.delenv("DET_USER_TOKEN")
    with pytest.raises(NotAuthenticated, match="The token that was given is none of"):
        session(master, token="hush").get(ME)


@pytest.mark.parametrize("status", [404, 502])
def test_another_program_that_answers_there(master: PretendMaster, status: int) -> None:
    """Its page is not shown."""
    master.on("GET", ME, Reply(b"<!DOCTYPE HTML>\n<html><head><title>Error response</title>", status))
    with pytest.raises(Unreachable, match=rf"no master of Tenax, .*status {status}") as caught:
        session(master, token="t").get(ME)
    assert "html" not in str(caught.value).lower()


def test_one_user_for_a_command_is_not_the_next_ones(master: PretendMaster, state: StateDir) -> None:
    """After --user determined a command without it is the administrator's again."""
    master.on("POST", LOGIN, {"token": "determineds"}, {"token": "admins"})
    master.on("GET", ME, {})
    assert asked_by(master, Session(user="determined"))[0] == "determineds"
    assert asked_by(master, Session())[0] == "admins"
    assert logged_in(master) == ["determined", "admin"]


def test_a_login_that_ended_makes_nobody_the_administrator(master: PretendMaster, state: StateDir) -> None:
    """Where the automatic login would let us in as another, we are told to log in again, until we log out."""
    TokenStore().put(master.url, "ann", "old")
    master.on("GET", ME, refused(401, "ended"), {})
    master.on("POST", LOGIN, {"token": "admins"})
    for _ in range(2):
        with pytest.raises(NotAuthenticated, match=r"login as ann .* has ended: tenax user login ann.*logout"):
            Session().get(ME)
    assert logged_in(master) == []
    Session().forget("ann")
    assert asked_by(master, Session())[0] == "admins"


def test_the_local_cluster_lets_us_in(master: PretendMaster, state: StateDir) -> None:
    """A cluster of this machine is entered with the password in its directory, and the login is kept there."""
    master.on("POST", LOGIN, {"token": "t1"}, {"token": "t2"})
    master.on("GET", ME, {})
    Session().get(ME)
    Session().get(ME)
    assert len(master.sent("POST", LOGIN)) == 1
    assert read_json(state.session)["token"] == "t1"
    assert not default_path().exists()


def test_a_token_that_ended_is_renewed(master: PretendMaster, state: StateDir) -> None:
    """When the master no longer takes the local cluster's token, one login makes a new one."""
    write_json(state.session, {"user": "admin", "token": "old"})
    master.on("POST", LOGIN, {"token": "new"})
    master.on("GET", ME, refused(401, "ended"), {"user": {}})
    Session().get(ME)
    assert [request.headers["Authorization"] for request in master.sent("GET", ME)] == ["Bearer old", "Bearer new"]


def test_a_remembered_token_that_ended_is_forgotten(master: PretendMaster) -> None:
    """A login that has ended elsewhere is forgotten, and the person is told to log in."""
    TokenStore().put(master.url, "ann", "old")
    master.on("GET", ME, refused(401, "ended"))
    with pytest.raises(NotAuthenticated, match="tenax user login"):
        session(master).get(ME)
    assert TokenStore().get(master.url) is None


def test_login_from_the_environment(master: PretendMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs log in by DET_USER and DET_PASS; a task's own token goes before."""
    master.on("POST", LOGIN, {"token": "t1"})
    master.on("GET", ME, {})
    monkeypatch.setenv("DET_USER", "robot")
    monkeypatch.setenv("DET_PASS", "secret")
    session(master).get(ME)
    monkeypatch.setenv("DET_USER_TOKEN", "given")
    session(master).get(ME)
    assert [request.headers["Authorization"] for request in master.sent("GET", ME)] == ["Bearer t1", "Bearer given"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidInput),
        (403, Forbidden),
        (404, NotFound),
        (409, AlreadyExists),
        (413, InvalidInput),
        (500, MasterFailed),
        (503, TryAgain),
    ],
)
def test_errors(master: PretendMaster, status: int, kind: type[Exception]) -> None:
    """A refusal is an error of ours with the master's own words."""
    master.on("GET", ME, refused(status, "because of the rain"))
    with pytest.raises(kind, match="because of the rain"):
        session(master, token="t").get(ME)


def test_errors_of_plain_routes(master: PretendMaster) -> None:
    """Routes outside /api/v1 word their errors in another way."""
    master.on("GET", "/checkpoints/x", Reply({"message": "no such checkpoint"}, 404))
    with pytest.raises(NotFound, match="no such checkpoint"):
        session(master, token="t").get("/checkpoints/x")


def test_not_ready(master: PretendMaster) -> None:
    """A master that is not ready is asked again."""
    master.on("POST", "/x", refused(503, "starting"), {"done": True})
    assert session(master, token="t", retry_for_s=10.0).post("/x") == {"done": True}


def test_once(master: PretendMaster) -> None:
    """What must not be done twice is not asked again."""
    master.on("POST", "/x", refused(503, "starting"), {"done": True})
    with pytest.raises(TryAgain):
        session(master, token="t", retry_for_s=10.0).call("POST", "/x", once=True)
    assert len(master.asked) == 1


def test_a_creation_is_sent_again_under_its_key(master: PretendMaster) -> None:
    """Whether it was refused or nobody knows: the master knows a repeat by the key."""
    master.on("POST", "/x", Reply(broken=True), refused(503, "starting"), {"done": True})
    asking = session(master, token="t", retry_for_s=10.0)
    assert asking.create("/x", {"a": 1}) == {"done": True}
    assert asking.create("/x", {"a": 1}) == {"done": True}
    keys = [asked.headers["Idempotency-Key"] for asked in master.sent("POST", "/x")]
    assert len(keys) == 4
    assert len(set(keys[:3])) == 1
    assert keys[3] != keys[0]


def test_what_has_no_key_is_not_sent_again_without_an_answer(master: PretendMaster) -> None:
    """It may have been done."""
    master.on("POST", "/x", Reply(broken=True), {"done": True})
    with pytest.raises(Unreachable):
        session(master, token="t", retry_for_s=10.0).post("/x")
    assert len(master.asked) == 1


def test_unreachable(home: Path) -> None:
    """When nothing answers, the message names the address and what to do."""
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:9 .*tenax up"):
        Session("http://127.0.0.1:9", token="t", retry_for_s=0.0).get(ME)


def test_a_name_with_a_slash(master: PretendMaster) -> None:
    """Which no address of the master can hold: the name is told, not that the address is unknown."""
    master.on("GET", "/x/a%2Fb", Reply({"message": "Not Found"}, 404))
    with pytest.raises(NotFound, match="There is no 'a/b'"):
        session(master, token="t").get(at("/x/{}", "a/b"))


def test_stream(master: PretendMaster) -> None:
    """A stream gives its results one by one."""
    master.on("GET", "/x", Reply(lines=[{"result": {"n": 1}}, {"result": {"n": 2}}]))
    assert list(session(master, token="t").lines("/x")) == [{"n": 1}, {"n": 2}]


def test_stream_that_breaks(master: PretendMaster) -> None:
    """A stream that ends before its time is an error, after what came."""
    master.on("GET", "/x", Reply(lines=[{"result": {"n": 1}}], broken=True))
    lines = session(master, token="t").lines("/x")
    assert next(lines) == {"n": 1}
    with pytest.raises(BrokenStream):
        next(lines)


def test_an_answer_that_breaks_off(master: PretendMaster) -> None:
    """A master that dies while it answers is away, as one that does not answer."""
    master.on("GET", "/api/v1/me", Reply(lines=[{"user": {}}], broken=True))
    with Session(master.url, token="t") as session, pytest.raises(Unreachable):
        session.get("/api/v1/me")


def test_stream_with_an_error(master: PretendMaster) -> None:
    """An error at the end of a stream is told in the master's words."""
    master.on("GET", "/x", Reply(lines=[{"error": {"message": "shutting down"}}]))
    with pytest.raises(BrokenStream, match="shutting down"):
        list(session(master, token="t").lines("/x"))


def test_query(master: PretendMaster) -> None:
    """Queries are written as the wire wants them: nothing for None, lists repeated, booleans in words."""
    master.on("GET", "/x", {})
    session(master, token="t").get("/x", {"a": None, "b": True, "c": [1, 2], "d": "x y"})
    assert master.asked[0].query == {"b": ["true"], "c": ["1", "2"], "d": ["x y"]}
