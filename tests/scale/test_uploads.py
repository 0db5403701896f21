"""What a master needs while many submit large code at once: memory, and how long others wait meanwhile."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from collections.abc import AsyncIterator

import aiohttp

from tests.scale.place import Empty, empty_master, scaled, tell

_AT_ONCE = 16
_BUDGET_MIB = 300
_CONFIG = (
    "entrypoint: [x]\nsearcher: {name: single, metric: m}\ncheckpoint_storage: {type: shared_fs, host_path: /tmp}\n"
)
_CHUNK = 1 << 18


def test_sixteen_contexts_arrive_at_once() -> None:
    """Each as Determined's client sends it, base64 in one document; all are stored, and the peak is reported."""
    content = base64.b64encode(os.urandom(scaled(90 << 20)))
    with empty_master() as master:
        before = master.peak_mib()
        began = time.perf_counter()
        answered = asyncio.run(_all(master, content))
        seconds = time.perf_counter() - began
        tell(
            "an answer while sixteen contexts arrive",
            answered,
            budget_ms=100,
            context_mib=round(len(content) * 3 / 4 / 2**20, 1),
            seconds=round(seconds, 1),
            memory_before_mib=round(before),
            peak_memory_mib=round(master.peak_mib()),
            memory_budget_mib=_BUDGET_MIB,
        )


async def _all(master: Empty, content: bytes) -> list[float]:
    """Submit, and ask something small meanwhile; how long that took each time, in milliseconds."""
    headers = {"Authorization": f"Bearer {master.token}"}
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(master.url, headers=headers, timeout=timeout) as http:
        sending = asyncio.gather(*(_submit(http, number, content) for number in range(_AT_ONCE)))
        answered = []
        while not sending.done():
            began = time.perf_counter()
            async with http.get("/api/v1/me") as reply:
                assert reply.status == 200
            answered.append((time.perf_counter() - began) * 1e3)
            await asyncio.wait([sending], timeout=0.02)
        await sending
        return answered


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
