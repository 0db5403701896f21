"""What browsers are answered: compressed, and not sent twice; programs as they always were."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator

import pytest
from starlette.responses import JSONResponse, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from tenax.master.access.authorization import COOKIES, Allow
from tenax.master.api.http.packing import MIN_BYTES, Packing, takes_gzip
from tenax.master.api.http.routing import Routes
from tests.kits.api import Api

ROWS = [{"id": number, "name": "one of many rows"} for number in range(200)]
BROWSER = {"Cookie": "theme=dark", "Accept-Encoding": "gzip, deflate, br"}


async def test_a_browser_has_large_answers_compressed_and_none_twice(api: Api) -> None:
    """The tag is that of what is said; whoever brings no cookie is a program, and is answered plainly."""
    first = await api.nobody.ask("GET", "/api/v1/openapi.json", headers=BROWSER)
    assert (first.status_code, first.headers["content-encoding"]) == (200, "gzip")
    assert "Accept-Encoding" in first.headers["vary"]
    assert first.headers["cache-control"] == "private, no-cache"
    again = await api.nobody.ask(
        "GET", "/api/v1/openapi.json", headers={**BROWSER, "If-None-Match": f'"x", {first.headers["etag"]}'}
    )
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    program = await api.nobody.ask("GET", "/api/v1/openapi.json", headers={"Accept-Encoding": "gzip"})
    assert program.json() == first.json()
    assert "content-encoding" not in program.headers
    assert "etag" not in program.headers


async def test_the_body_is_the_same_however_large() -> None:
    """Compressed in the loop, or beside it; small ones and refusals are sent as they are."""
    for rows in (ROWS, ROWS * 100):
        started, body = await asked(JSONResponse(rows))
        assert json.loads(gzip.decompress(body)) == rows
        assert started["content-length"] == str(len(body))
    for small in (JSONResponse([1]), JSONResponse(ROWS, status_code=404)):
        started, body = await asked(small)
        assert "content-encoding" not in started
        assert body == small.body
    assert len(JSONResponse([1]).body) < MIN_BYTES


async def test_what_comes_in_parts_and_what_is_secret_stays_as_it_is() -> None:
    """A stream is one still; what is told once is in no cache, and its length says nothing."""
    parts = [json.dumps(ROWS).encode(), b"\n"]

    async def said() -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    started, body = await asked(StreamingResponse(said(), media_type="application/json"))
    assert body == b"".join(parts)
    assert "content-encoding" not in started
    routes = Routes("tests")

    @routes.post("/x", "X", allow=Allow.USER, creates=True, secret=True)
    async def told() -> None: ...

    started, body = await asked(JSONResponse(ROWS), endpoint=told)
    assert "content-encoding" not in started
    assert "etag" not in started


@pytest.mark.parametrize(
    ("accepted", "takes"),
    [("gzip", True), ("br, GZIP;q=0.5", True), ("*", True), ("gzip;q=0", False), ("br", False), ("", False)],
)
def test_it_is_known_who_takes_gzip(accepted: str, takes: bool) -> None:
    """By the header, its weights included."""
    assert takes_gzip(accepted) is takes


async def asked(answer: JSONResponse | StreamingResponse, endpoint: object = None) -> tuple[dict[str, str], bytes]:
    """Headers and body as a browser is sent them."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        sent.append(message)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await answer(scope, receive, send)

    headers = [(b"accept-encoding", b"gzip")]
    scope: Scope = {"type": "http", "asgi": {"spec_version": "2.4"}, "method": "GET", "headers": headers}
    scope |= {COOKIES: "a=b", "endpoint": endpoint}
    await Packing(app)(scope, receive, send)
    started = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return started, b"".join(message.get("body", b"") for message in sent[1:])
