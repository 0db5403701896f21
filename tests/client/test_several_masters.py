"""Several masters of one cluster, named with commas between them: whoever does not answer is not waited for."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from tenax.client.connection import http1
from tenax.client.connection import session as session_module
from tenax.client.connection.address import Unreachable, remember, target
from tenax.client.connection.http1 import ALIVE, Connection
from tenax.client.connection.session import Session
from tenax.client.task import TaskClient
from tenax.errors import InvalidInput
from tests.kits.ports import free_port
from tests.kits.pretend_master import PretendMaster, Reply


class Pair:
    """Two that answer; ``end`` one of them. No connection is kept."""

    def __init__(self, stack: ExitStack) -> None:
        self._stacks = [stack.enter_context(ExitStack()) for _ in range(2)]
        self.masters = [each.enter_context(PretendMaster().running()) for each in self._stacks]

    def answer(self, number: int, body: object, status: int = 200) -> None:
        self.masters[number].on("GET", "/x", Reply(body, status=status, headers={"Connection": "close"}))

    def asked(self) -> tuple[int, int]:
        """How often each was."""
        first, second = (len(master.sent("GET", "/x")) for master in self.masters)
        return first, second

    def end(self, number: int) -> None:
        self._stacks[number].close()

    def url(self, number: int) -> str:
        return self.masters[number].url


@pytest.fixture
def pair() -> Iterator[Pair]:
    with ExitStack() as stack:
        yield Pair(stack)


def gone() -> str:
    """An address where nothing listens."""
    return f"http://127.0.0.1:{free_port()}"


def test_a_task_asks_the_next_one(pair: Pair) -> None:
    """And stays with it, also over other connections; until that one is gone."""
    pair.answer(0, {"ok": 1})
    pair.answer(1, {"ok": 2})
    client = TaskClient(f"{gone()},{pair.url(0)},{pair.url(1)}", "token")
    with closing(client), closing(client.twin()) as other:
        assert client.attempt("GET", "/x") == other.attempt("GET", "/x") == {"ok": 1}
        assert pair.asked() == (2, 0)
        pair.end(0)
        assert client.attempt("GET", "/x") == other.attempt("GET", "/x") == {"ok": 2}
        assert pair.asked() == (2, 2)


def test_a_master_that_is_not_ready_is_left(pair: Pair) -> None:
    """503 is an answer, and another master may have a better one."""
    pair.answer(0, {"message": "not now"}, status=503)
    pair.answer(1, {"ok": 2})
    with closing(TaskClient(f"{pair.url(0)},{pair.url(1)}", "token")) as client:
        assert client.call("GET", "/x") == client.call("GET", "/x") == {"ok": 2}
    assert pair.asked() == (1, 2)


def test_one_that_takes_connections_and_answers_none() -> None:
    """Costs one request its patience, and others nothing: they learn from it."""
    with PretendMaster().running() as answering, socket.create_server(("127.0.0.1", 0)) as silent:
        answering.on("GET", "/x", {"ok": 3})
        urls = f"http://127.0.0.1:{silent.getsockname()[1]},{answering.url}"
        kept = Connection(urls)
        taken = threading.Thread(target=_answer_once, args=(silent,))
        taken.start()
        assert kept.request("GET", "/").status == 200
        taken.join()
        with closing(Connection(urls)) as impatient, pytest.raises(OSError, match="timed out"):
            impatient.request("GET", "/x", timeout=0.1)
        # Its connection is to the one that hangs; it makes another, at once.
        assert kept.request("GET", "/x", timeout=30.0).body == b'{"ok": 3}'
        kept.close()


def _answer_once(silent: socket.socket) -> None:
    peer, _ = silent.accept()
    # Whether it is there, and the request.
    for _ in range(2):
        peer.recv(65536)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    _open.append(peer)


#: Not closed: that would be an answer.
_open: list[socket.socket] = []


def test_one_that_hangs_is_not_waited_for_as_long_as_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes to it first asks whether it is there; an answer of the other may take as long as it takes."""
    # The one that answers is a thread of this process, on a machine that may have much else to do.
    monkeypatch.setattr(http1, "ALIVE_S", 1.0)
    monkeypatch.setattr(session_module, "ALIVE_S", 1.0)
    with PretendMaster().running() as answering, socket.create_server(("127.0.0.1", 0)) as silent:
        answering.on("GET", "/x", {"ok": 3})
        urls = f"http://127.0.0.1:{silent.getsockname()[1]},{answering.url}"
        with closing(Connection(urls)) as connection:
            assert connection.request("GET", "/x", timeout=600.0).body == b'{"ok": 3}'
        with Session(urls, token="t", read_s=600.0) as session:
            assert session.get("/x") == session.get("/x") == {"ok": 3}
        # Once each: who has answered is not asked again.
        assert len(answering.sent("GET", ALIVE)) == 2


def test_nobody_answers() -> None:
    """Each was asked once."""
    with closing(Connection(f"{gone()},{gone()}")) as connection, pytest.raises(ConnectionRefusedError):
        connection.request("GET", "/")
    urls = gone(), gone()
    named = Session(",".join(urls), token="t", retry_for_s=0.0)
    with named as session, pytest.raises(Unreachable, match=" or ".join(urls)):
        session.get("/x")


def test_the_command_line_asks_the_next_one(pair: Pair) -> None:
    """It is called by the first, whichever answers: that is what a login is remembered by."""
    pair.answer(0, {"ok": 1})
    pair.answer(1, {"ok": 2})
    with Session(f"{gone()},{pair.url(1)},{pair.url(0)}", token="t", retry_for_s=5.0) as session:
        assert session.get("/x") == session.get("/x") == {"ok": 2}
        assert session.url == session.urls[0] != pair.url(1)
        assert pair.asked() == (0, 2)
        pair.end(1)
        assert session.get("/x") == {"ok": 1}
        # It begins with the one that answers.
        assert session.another().url == pair.url(0)
        assert set(session.another().urls) == set(session.urls)


def test_a_login_remembers_all_of_them(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands afterwards go on with another one, too."""
    for name in ("DET_MASTER", "TENAX_DIR"):
        monkeypatch.delenv(name, raising=False)
    remember(f"{pair.url(0)},{pair.url(1)}")
    meant = target()
    assert (meant.url, meant.others) == (pair.url(0), (pair.url(1),))
    assert pair.url(0) in meant.notice


def test_a_name_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it stands in the list; spaces around commas are nothing."""
    monkeypatch.setenv("DET_MASTER", "one, https://two")
    assert (target().url, target().others) == ("http://one:8080", ("https://two:443",))
    for wrong in ("one,", ",one", "one,ftp://two", "one,two:port"):
        with pytest.raises(InvalidInput):
            target(wrong)


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> Iterator[None]:
    for remembered in (http1._in_use, http1._answering):
        remembered.clear()
    yield
    for remembered in (http1._in_use, http1._answering):
        remembered.clear()
