"""Lines of the log belong to a request, and to whoever makes it; so does what is said of an unforeseen error."""

from __future__ import annotations

import asyncio
import re

import pytest
import structlog

from tenax.master.ingest import states
from tenax.master.loops.loop import each
from tenax.master.observability import log_context
from tenax.master.observability.log import OWN_LOG
from tests.kits.api import Api
from tests.kits.master.attempts import running

log = structlog.get_logger("tests")


async def test_an_error_of_ours_names_its_request(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer, its header, and the line of the log with the traceback name the same; an allocation's has its id."""
    run = await running(api)

    async def broken(*_: object, **__: object) -> object:
        raise RuntimeError("nobody foresaw this")

    monkeypatch.setattr(states, "preemption_acknowledged", broken)
    before = OWN_LOG.following
    reply = await run.task.post(f"{run.path}/signals/ack_preemption")
    assert reply.status_code == 500
    request_id = reply.headers["x-request-id"]
    assert re.fullmatch("[0-9a-f]{16}", request_id)
    assert f"(request {request_id})" in reply.json()["error"]["message"]
    (line,) = [entry.message for entry in OWN_LOG.since(before) if "nobody foresaw this" in entry.message]
    assert f"request={request_id}" in line
    assert f"allocation={run.attempt.allocation_id}" in line


@pytest.mark.parametrize(
    ("given", "is_taken"),
    [
        ("4f0c", True),
        ("A-b_c.d:1", True),
        ("x" * 64, True),
        ("x" * 65, False),
        ("", False),
        ("with space", False),
        ("\x1b[31m", False),
        ("a\nb", False),
    ],
)
def test_an_id_of_another_form_is_none(given: str, is_taken: bool) -> None:
    """A caller's own is kept where nothing can be hidden in it."""
    with log_context.request([(b"x-request-id", given.encode())]) as request_id:
        assert (request_id == given) is is_taken
        assert log_context.request_id() == request_id
        log_context.called_by(allocation="t.1", agent=None, user="somebody")
        assert log_context.known() == {"request": request_id, "allocation": "t.1"}
    assert log_context.known() == {}


async def test_requests_at_a_time_do_not_mix(api: Api) -> None:
    """Each answer has its own id."""
    replies = await asyncio.gather(
        *(api.user.ask("GET", "/api/v1/me", headers={"X-Request-ID": f"r{n}"}) for n in range(20))
    )
    assert [reply.headers["x-request-id"] for reply in replies] == [f"r{n}" for n in range(20)]


async def test_a_loop_names_what_it_is_about() -> None:
    """Whatever is said while an object is handled."""
    before = OWN_LOG.following

    async def handle(name: str) -> None:
        log.warning("said of it")
        if name == "7":
            raise ValueError("broken")

    await each(["7", "8"], handle, loop="test", noun="experiment")
    lines = [entry.message for entry in OWN_LOG.since(before)]
    assert [line for line in lines if line.startswith("said of it")] == [
        "said of it experiment=7 [tests]",
        "said of it experiment=8 [tests]",
    ]
    (failed,) = [line for line in lines if line.startswith("this object could not be handled")]
    assert "experiment=7" in failed
