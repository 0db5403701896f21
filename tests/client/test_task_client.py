"""What a task's own HTTP client sends, reads, and makes of failures."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenax.client.connection import fast_json
from tenax.client.connection.http1 import Connection, ProtocolError
from tenax.client.task import BACKOFF, MasterAway, TaskClient, query_string, retry
from tenax.errors import AlreadyExists, Forbidden, InvalidInput, NotAuthenticated, NotFound
from tests.kits import task_master
from tests.kits.task_master import TOKEN, TaskMaster

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Script:
    """A server that reads one request per entry and answers with its bytes; None: it closes without an answer."""

    def __init__(self, connections: list[list[bytes | None]], wrap: ssl.SSLContext | None = None) -> None:
        self.requests: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, args=(connections, wrap), daemon=True)
        self._thread.start()

    def _serve(self, connections: list[list[bytes | None]], wrap: ssl.SSLContext | None) -> None:
        for answers in connections:
            sock, _ = self._listener.accept()
            with wrap.wrap_socket(sock, server_side=True) if wrap else sock as peer:
                for answer in answers:
                    self.requests.append(_read_request(peer))
                    if answer is None:
                        break
                    peer.sendall(answer)

    def close(self) -> None:
        self._listener.close()


def _read_request(peer: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += peer.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            while len(body) < int(line.split(b":")[1]):
                body += peer.recv(65536)
    return head + b"\r\n\r\n" + body


@contextmanager
def scripted(*connections: list[bytes | None]) -> Iterator[tuple[Script, Connection]]:
    script = Script(list(connections))
    connection = Connection(f"http://127.0.0.1:{script.port}/prefix/")
    try:
        yield script, connection
    finally:
        connection.close()
        script.close()


def test_request_on_the_wire() -> None:
    """A request carries host, length, given headers and the prefix of the address, and no content type."""
    with scripted([OK]) as (script, connection):
        assert connection.request("POST", "/x?a=1", b"{}", {"Name": "value"}).body == b"{}"
        assert script.requests == [
            b"POST /prefix/x?a=1 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 2\r\nName: value\r\n\r\n{}"
            % script.port
        ]


def test_connection_is_kept() -> None:
    """Requests share a connection as long as the server keeps it."""
    with scripted([OK, OK, OK]) as (_, connection):
        for _ in range(3):
            assert connection.request("GET", "/").status == 200


def test_connection_closed_meanwhile() -> None:
    """A kept connection that the server has closed is made anew, without an error."""
    with scripted([OK, None], [OK]) as (script, connection):
        connection.request("GET", "/1")
        assert connection.request("GET", "/2").body == b"{}"
        assert len(script.requests) == 3


def test_fresh_connection_closed_is_an_error() -> None:
    """A server that closes a new connection without a word is not asked again here."""
    with scripted([None]) as (_, connection):
        with pytest.raises(OSError, match="before it answered"):
            connection.request("GET", "/")


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (CHUNKED + b"3;x=1\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: 1\r\n\r\n", b"abc0123456789"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", b"abc"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", b"x"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
)  # fmt: skip
def test_forms_of_answers(answer: bytes, body: bytes) -> None:
    """Chunked, sized, unsized and empty bodies are read whole, and the next request works."""
    with scripted([answer], [OK]) as (_, connection):
        assert connection.request("GET", "/").body == body
        connection.close()
        assert connection.request("GET", "/").body == b"{}"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"SSH-2.0-OpenSSH_9\r\n", "is not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "ended inside"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "ended inside|inside an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n", "no usable length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "no usable length"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 300 + b"\r\n", "too many headers"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70000 + b"\r\n\r\n", "too long"),
    ],
)
def test_broken_answers(answer: bytes, message: str) -> None:
    """What is not HTTP, or ends too early, is an error and no hang."""
    with scripted([answer]) as (_, connection):
        with pytest.raises(ProtocolError, match=message):
            connection.request("GET", "/")


def test_silent_server() -> None:
    """A server that says nothing is given up after the time-out."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = Connection(f"http://127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(OSError, match="timed out"):
            connection.request("GET", "/", timeout=0.05)


def test_abort_from_another_thread() -> None:
    """``abort`` ends a request that waits for its answer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = Connection(f"http://127.0.0.1:{listener.getsockname()[1]}")

        def abort_when_asked() -> None:
            peer, _ = listener.accept()
            _read_request(peer)
            connection.abort()

        threading.Thread(target=abort_when_asked, daemon=True).start()
        with pytest.raises(OSError):  # noqa: PT011 - any error of the connection serves
            connection.request("GET", "/", timeout=20)


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("http://master:8080", (False, "master", 8080, "")),
        ("https://master", (True, "master", 443, "")),
        ("http://master", (False, "master", 80, "")),
        ("master", (False, "master", 8080, "")),
        ("https://[::1]:7000/a/b/", (True, "::1", 7000, "/a/b")),
    ],
)
def test_addresses(url: str, parts: tuple[bool, str, int, str]) -> None:
    """Scheme, port and prefix of an address are found, with Determined's defaults."""
    connection = Connection(url)
    assert connection._places == [parts]


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://x:port"])
def test_bad_addresses(url: str) -> None:
    """An address that is none is refused when it is given."""
    with pytest.raises(ValueError, match="address of the master"):
        Connection(url)


def test_tls() -> None:
    """With TLS the certificate is checked against the given file and name, or not at all when told so."""
    pem = str(Path(task_master.__file__).with_name("self_signed.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    script = Script([[OK], [OK]], context)
    url = f"https://127.0.0.1:{script.port}"
    assert Connection(url, cert_file=pem, cert_name="master.test").request("GET", "/").body == b"{}"
    assert Connection(url, cert_file="noverify").request("GET", "/").body == b"{}"
    script.close()


def test_tls_refuses_strangers() -> None:
    """A certificate that nobody vouches for ends the attempt."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(str(Path(task_master.__file__).with_name("self_signed.pem")))
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        peer, _ = listener.accept()
        with pytest.raises(OSError):  # noqa: PT011
            context.wrap_socket(peer, server_side=True)

    threading.Thread(target=serve, daemon=True).start()
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        Connection(f"https://127.0.0.1:{listener.getsockname()[1]}").request("GET", "/")
    listener.close()


@pytest.fixture
def master() -> Iterator[TaskMaster]:
    with task_master.running() as master:
        yield master


@pytest.mark.parametrize(
    ("status", "body", "error", "message"),
    [
        (400, {"error": {"code": 3, "reason": "X", "error": "no such group"}}, InvalidInput, "no such group"),
        (401, {"message": "who are you"}, NotAuthenticated, "who are you"),
        (403, {"error": {"message": "not yours"}}, Forbidden, "not yours"),
        (404, {"error": {"error": ""}}, NotFound, "error"),
        (409, {"message": "there already"}, AlreadyExists, "there already"),
        (500, {"message": "broken"}, MasterAway, r"not ready \(500\): broken"),
        (503, {"message": "starting"}, MasterAway, "starting"),
        (429, {"message": "slowly"}, MasterAway, "slowly"),
    ],
)  # fmt: skip
def test_errors_by_status(master: TaskMaster, status: int, body: object, error: type[Exception], message: str) -> None:
    """Each status is one kind of error, with the master's own words in any of its shapes."""
    master.answers["/x"] = (status, body, {})
    with pytest.raises(error, match=message):
        TaskClient(master.url, TOKEN).attempt("GET", "/x")


def test_retry_after_is_kept(master: TaskMaster) -> None:
    """How long the master asks us to wait is part of the error."""
    master.answers["/x"] = (503, {"message": "busy"}, {"Retry-After": "7"})
    with pytest.raises(MasterAway) as away:
        TaskClient(master.url, TOKEN).attempt("GET", "/x")
    assert away.value.retry_after == 7


def test_call_outlives_a_restart(master: TaskMaster) -> None:
    """``call`` goes on until the master is back."""
    master.answers["/x"] = (200, {"metric": 1}, {})
    client = TaskClient(master.url, TOKEN)
    assert client.call("GET", "/x") == {"metric": 1}
    master.down()
    threading.Timer(0.1, master.up).start()
    assert client.call("GET", "/x") == {"metric": 1}


def test_call_gives_up(master: TaskMaster) -> None:
    """``call`` ends with MasterAway when it has tried for as long as it may."""
    url = master.url
    master.down()
    with pytest.raises(MasterAway, match="cannot be reached"):
        TaskClient(url, TOKEN).call("GET", "/x", retry_for_s=0.1)
    master.up()


def test_call_does_not_repeat_a_refusal(master: TaskMaster) -> None:
    """What is wrong stays wrong: a 4xx is not tried again."""
    master.answers["/x"] = (400, {"message": "no"}, {})
    with pytest.raises(InvalidInput):
        TaskClient(master.url, TOKEN).call("GET", "/x")
    assert len(master.requests) == 1


def test_token_stays_out_of_errors() -> None:
    """No error shows the credential."""
    with pytest.raises(MasterAway) as away:
        TaskClient("http://127.0.0.1:1", "very-secret").attempt("GET", "/x")
    assert "very-secret" not in repr(away.value)
    assert "very-secret" not in str(away.value.__cause__)


def test_not_a_master() -> None:
    """Something else that answers 200 is not taken for a master."""
    script = Script([[b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>"]])
    with pytest.raises(MasterAway, match="is not a master"):
        TaskClient(f"http://127.0.0.1:{script.port}", TOKEN).attempt("GET", "/")
    script.close()


def test_query_is_quoted() -> None:
    """Values of a query may hold anything; None is left out."""
    assert query_string({"a": "x y&z/ü", "b": None, "c": 3}) == "?a=x%20y%26z%2F%C3%BC&c=3"
    assert query_string({"b": None}) == query_string(None) == ""


def test_tasks_do_not_come_back_in_step() -> None:
    """Pauses double up to a limit, each cut at random, never below what the master asked for."""
    attempts = retry()
    pauses = [attempts.pause() for _ in range(9)]
    for number, pause in enumerate(pauses, start=1):
        assert 0.5 * BACKOFF.after(number) <= pause <= BACKOFF.after(number) <= 3.0
    assert len({pause / BACKOFF.after(number) for number, pause in enumerate(pauses, start=1)}) > 1
    assert attempts.pause(at_least=100) == 100
    attempts.reset()
    assert attempts.pause() <= BACKOFF.first


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_fast_json_round_trip(value: object) -> None:
    """What is written is one line of ASCII, is read back as it was, and is what ``json`` reads."""
    import json

    text = fast_json.dumps(value)
    assert text.isascii()
    assert "\n" not in text
    assert fast_json.loads(text) == json.loads(text) == value


@given(st.text(alphabet='{}[]",:0123456789.eE+- \ntrufalsn'))
@example('"\n"')
def test_fast_json_reads_what_json_reads(text: str) -> None:
    """The same texts are JSON, with the same values; the others raise ValueError."""
    import json

    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011
            fast_json.loads(text)
    else:
        assert fast_json.loads(text) == expected


def test_fast_json_refuses_nan() -> None:
    """NaN is no JSON: it is refused in writing and understood in reading."""
    for value in (float("nan"), float("inf"), {"a": [float("-inf")]}):
        with pytest.raises(ValueError, match="Out of range"):
            fast_json.dumps(value)
    assert str(fast_json.loads("[NaN, -Infinity]")) == "[nan, -inf]"


def test_client_serves_two_threads(master: TaskMaster) -> None:
    """A client that is used by two threads at once serves both."""
    master.answers["/x"] = (200, {"ok": True}, {})
    client = TaskClient(master.url, TOKEN)
    answers: list[object] = []
    began = time.monotonic()
    threads = [threading.Thread(target=lambda: answers.append(client.attempt("GET", "/x"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20 - (time.monotonic() - began))
    assert answers == [{"ok": True}] * 8
