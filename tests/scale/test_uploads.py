"""What a master needs while many send or fetch much at once: memory, and how long others wait meanwhile."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import aiohttp

from tests.scale.place import Empty, scaled, tell

_AT_ONCE = 16
_BUDGET_MIB = 300
_CONFIG = (
    "entrypoint: [x]\nsearcher: {name: single, metric: m}\ncheckpoint_storage: {type: shared_fs, host_path: /tmp}\n"
)
_CHUNK = 1 << 18


def test_sixteen_contexts_arrive_at_once(empty: Empty) -> None:
    """Each as Determined's client sends it, base64 in one document; all are stored, and the peak is reported."""
    content = base64.b64encode(os.urandom(scaled(90 << 20)))
    before = empty.peak_mib()
    began = time.perf_counter()
    answered = asyncio.run(_all(empty, content))
    seconds = time.perf_counter() - began
    tell(
        "an answer while sixteen contexts arrive",
        answered,
        budget_ms=100,
        context_mib=round(len(content) * 3 / 4 / 2**20, 1),
        seconds=round(seconds, 1),
        memory_before_mib=round(before),
        peak_memory_mib=round(empty.peak_mib()),
        memory_budget_mib=_BUDGET_MIB,
    )


def test_sixteen_contexts_leave_at_once(empty: Empty) -> None:
    """Whole, as a tree, and a large file of each: as JSON, which clients hold in memory and the master does not."""
    content = base64.b64encode(os.urandom(scaled(90 << 20)))
    asyncio.run(_together(empty, lambda http, number: _submit(http, number, content), 1))
    before = empty.peak_mib()
    for what, fetch in (("whole", _fetch_code), ("as trees", _fetch_tree), ("a file of each", _fetch_file)):
        answered = asyncio.run(_together(empty, fetch))
        tell(
            f"an answer while sixteen contexts are fetched, {what}",
            answered,
            budget_ms=100,
            memory_before_mib=round(before),
            peak_memory_mib=round(empty.peak_mib()),
            memory_budget_mib=_BUDGET_MIB,
        )


def test_sixteen_large_bodies_at_once(empty: Empty) -> None:
    """Reports of metrics as large as are taken, which are held in memory: the peak is reported."""
    body = b'{"metrics":{"avgMetrics":{"a":"%s"}}}' % (b"x" * scaled(31 << 20, 1 << 19))
    before = empty.peak_mib()
    answered = asyncio.run(_together(empty, lambda http, _: _report(http, body)))
    tell(
        "an answer while sixteen large bodies arrive",
        answered,
        budget_ms=100,
        body_mib=round(len(body) / 2**20, 1),
        memory_before_mib=round(before),
        peak_memory_mib=round(empty.peak_mib()),
        memory_budget_mib=_BUDGET_MIB,
    )


async def _all(master: Empty, content: bytes) -> list[float]:
    return await _together(master, lambda http, number: _submit(http, number, content))


async def _together(
    master: Empty, send: Callable[[aiohttp.ClientSession, int], Awaitable[None]], times: int = _AT_ONCE
) -> list[float]:
    """Send, and ask something small meanwhile; how long that took each time, in milliseconds."""
    headers = {"Authorization": f"Bearer {master.token}"}
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(master.url, headers=headers, timeout=timeout) as http:
        sending = asyncio.gather(*(send(http, number) for number in range(times)))
        answered = []
        while not sending.done():
            began = time.perf_counter()
            async with http.get("/api/v1/me") as reply:
                assert reply.status == 200
            answered.append((time.perf_counter() - began) * 1e3)
            await asyncio.wait([sending], timeout=0.02)
        await sending
        return answered


async def _fetch_code(http: aiohttp.ClientSession, _: int) -> None:
    await _drain(http.get("/api/v1/experiments/1/model_def"))


async def _fetch_tree(http: aiohttp.ClientSession, _: int) -> None:
    await _drain(http.get("/api/v1/experiments/1/file_tree"))


async def _fetch_file(http: aiohttp.ClientSession, _: int) -> None:
    await _drain(http.post("/api/v1/experiments/1/file", json={"path": "a.bin"}))


async def _drain(asking: AbstractAsyncContextManager[aiohttp.ClientResponse]) -> None:
    async with asking as reply:
        assert reply.status == 200
        async for _ in reply.content.iter_chunked(_CHUNK):
            pass


async def _report(http: aiohttp.ClientSession, body: bytes) -> None:
    async with http.post("/api/v1/trials/1/metrics", data=body) as reply:
        assert reply.status in (400, 404, 503), await reply.text()


async def _submit(http: aiohttp.ClientSession, number: int, content: bytes) -> None:
    """One experiment with code of its own."""
    small = {"path": "number.txt", "type": 48, "content": base64.b64encode(str(number).encode()).decode()}
    document = {"config": _CONFIG, "activate": False, "modelDefinition": [small, {"path": "a.bin", "content": "HERE"}]}
    before, after = json.dumps(document).encode().split(b"HERE")

    async def body() -> AsyncIterator[bytes]:
        yield before
        for at in range(0, len(content), _CHUNK):
            yield content[at : at + _CHUNK]
        yield after

    length = {"Content-Length": str(len(before) + len(content) + len(after))}
    async with http.post("/api/v1/experiments", data=body(), headers=length) as reply:
        assert reply.status == 200, await reply.text()
