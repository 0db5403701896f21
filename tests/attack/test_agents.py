"""An agent whose operator is hostile: what its credential reaches beyond what is placed on it."""

from __future__ import annotations

import asyncio
import zlib

import msgspec
import pytest
from fastapi.routing import APIRoute

from tenax.master.access.authorization import Allow
from tenax.master.agents.bounds import MAX_REASON, proof_of
from tenax.master.api.http.routing import allowed
from tenax.wire.agents import (
    PROTOCOL,
    AgentReport,
    Allowed,
    ContainerReport,
    DesiredGone,
    DesiredRun,
    Exit,
    Hello,
    SessionRefused,
    SlotInfo,
)
from tests.kits.api import Api
from tests.kits.master.hub import Place, Talk, place
from tests.kits.rows import add_agent, add_experiment, add_trial, run_attempt

__all__ = ["place"]

HELLO = Hello(PROTOCOL, "test", "host", "process", [SlotInfo(0, "cpu", "core")], [])


async def refusal(talk: Talk) -> SessionRefused:
    """What the master says last."""
    return msgspec.json.decode(await talk.to_agent.get(), type=SessionRefused)


@pytest.mark.parametrize("proof", ["none", "another agent's", "of another revision", "not ASCII"])
async def test_what_was_never_sent(place: Place, proof: str) -> None:
    """Whoever has obeyed more than the database holds shows that it is an old copy, and every master ends for it: so
    nobody is believed to have obeyed what the master never sent to them."""
    others = place.connect("a1")
    others.hello(others.report(place.container, "running"))
    await others.wants()
    secret, claimed = place.cluster.secret, 1 << 40
    proofs = {
        "none": "",
        "another agent's": proof_of(secret, "a1", 1, claimed),
        "of another revision": proof_of(secret, "a2", 1, 1),
        "not ASCII": "ä" * 64,
    }
    talk = place.connect("a2")
    talk.say(msgspec.structs.replace(HELLO, generation=1, revision=claimed, proof=proofs[proof]))
    assert "what it was never sent" in (await refusal(talk)).message
    await place.tasks[-1]
    assert not place.db.replaced.is_set()
    async with place.db.connection() as conn:
        assert await conn.fetchval("select generation from cluster") == 1


async def test_containers_of_others(place: Place) -> None:
    """In a hello, a report, or as gone: nothing changes, and nothing is told of them, whichever generation is named."""
    talk = place.connect("a2")
    talk.hello(talk.report(place.container, "exited", code=0))
    wants = await talk.wants()
    assert wants == {place.container: DesiredGone(place.container)}
    forged = [
        talk.report(place.container, "exited", code=1),
        msgspec.structs.replace(talk.report(place.container, "exited", code=1), generation=0),
        msgspec.structs.replace(talk.report(place.container, "exited", code=1), cluster_id="another"),
    ]
    for report in forged:
        talk.say(AgentReport(containers=[report], gone=[place.container]))
    stray = "00000000-0000-4000-8000-000000000009"
    talk.say(AgentReport(containers=[talk.report(stray, "running")]))
    while stray not in (wants := await talk.wants()):
        pass
    assert all(isinstance(want, DesiredGone) for want in wants.values())
    assert await place.state() == "RUNNING"
    owner = place.connect("a1")
    owner.hello(owner.report(place.container, "running"))
    assert isinstance((await owner.wants())[place.container], DesiredRun)


@pytest.mark.parametrize(
    "hello",
    [
        {"slots": [SlotInfo(number, "cpu") for number in range(2000)]},
        {"slots": [SlotInfo(0, "cpu"), SlotInfo(0, "cuda")]},
        {"slots": [SlotInfo(1 << 40, "cpu")]},
        {"slots": [SlotInfo(-1, "cpu")]},
        {"slots": [SlotInfo(0, "cpu", "x" * 100_000)]},
        {"slots": [SlotInfo(0, "cpu", "a\0b")]},
        {"hostname": "x" * 100_000},
        {"agent_version": "1\0"},
        {"place": "x" * 100_000},
        {"allowed": Allowed(bind_mounts=["/a"] * 5000)},
        {"allowed": Allowed(devices=["x" * 10_000])},
        {"containers": [ContainerReport("x" * 1000, "another", 1, "running")]},
        {"containers": [ContainerReport(str(number), "another", 1, "running") for number in range(20_000)]},
    ],
)
async def test_a_hello_without_end(place: Place, hello: dict[str, object]) -> None:
    """What everybody's lists of agents would show, and the scheduler would go through, is refused."""
    talk = place.connect("a2")
    talk.say(msgspec.structs.replace(HELLO, **hello))
    assert not (await refusal(talk)).retry
    await place.tasks[-1]
    async with place.db.connection() as conn:
        assert await conn.fetchval("select hostname from agent_presence where agent_id = 'a2'") != "host"


async def test_an_exit_that_fills_lists(place: Place) -> None:
    """The reason of an exit, which everybody reads in lists, is cut; what no column holds stops no exit."""
    talk = place.connect("a1")
    talk.hello(talk.report(place.container, "running"))
    await talk.wants()
    ended = Exit(code=10**30, signal=-(10**30), reason="x\0" * 1_000_000, spool_lost="y" * 1_000_000)
    report = talk.report(place.container, "exited")
    talk.say(AgentReport(containers=[msgspec.structs.replace(report, exit=ended, address="1" * 100_000)]))
    while await place.state() != "TERMINATED":
        await talk.wants()
    async with place.db.connection() as conn:
        length = await conn.fetchval("select max(length(exit::text)) from containers")
    assert MAX_REASON < length < 3 * MAX_REASON


async def test_containers_without_end(place: Place) -> None:
    """A connection that goes on and on naming what there is not is ended."""
    talk = place.connect("a2")
    talk.hello()
    await talk.wants()
    for first in range(0, 100_000, 5000):
        names = [f"stray-{number}" for number in range(first, first + 5000)]
        talk.say(AgentReport(containers=[talk.report(name, "running") for name in names]))
    async with asyncio.timeout(240):
        await place.tasks[-1]


async def test_routes_of_others(api: Api) -> None:
    """An agent's credential opens the routes of agents alone, and of those what belongs to its own containers."""
    async with api.master.db.transaction() as conn:
        await add_agent(conn, "a1")
        credential = await add_agent(conn, "a2")
        attempt = await run_attempt(conn, await add_trial(conn, await add_experiment(conn)))
    hostile = api.client({"Authorization": f"Bearer {credential}"})
    about = {"container_id": attempt.containers[0], "stream": "stdout", "offset": "0"}
    query = "&".join(f"{name}={value}" for name, value in about.items())
    for method, path in (("POST", f"/agents/logs?{query}"), ("GET", f"/agents/logs/offsets?{query}")):
        reply = await hostile.ask(method, path, zlib.compress(b"forged\n"))
        assert (reply.status_code, "not found" in reply.text) == (404, True), reply.text
    reply = await hostile.get("/agents/contexts/" + "0" * 64)
    assert reply.status_code == 403, reply.text
    routes = [route for route in api.app.routes if isinstance(route, APIRoute)]
    others = [each for each in routes if allowed(each.endpoint) not in (Allow.AGENT, Allow.PUBLIC)]
    assert len(others) > 150
    for route in others:
        for method in route.methods:
            reply = await hostile.ask(method, route.path.replace("{", "").replace("}", "").replace(":path", ""))
            assert reply.status_code in (401, 403), f"{method} {route.path}: {reply.status_code} {reply.text[:200]}"
