"""What happens around every request, whatever its route."""

from __future__ import annotations

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from tenax.master.api.http.edge import Edge


async def test_a_client_that_is_gone_is_no_error_of_ours() -> None:
    """A task that was killed in the middle of a report: nobody is answered, and no traceback is logged."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise ClientDisconnect

    async def receive() -> Message:
        raise AssertionError("nobody reads")

    async def send(message: Message) -> None:
        raise AssertionError(f"nobody is there to hear {message}")

    scope: Scope = {"type": "http", "method": "POST", "path": "/api/v1/x", "query_string": b"", "headers": []}
    with structlog.testing.capture_logs() as logged:
        await Edge(app, body_limit=100)(scope, receive, send)
    assert not [line for line in logged if line["log_level"] in ("warning", "error")]
