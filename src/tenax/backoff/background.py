"""Background tasks that live as long as their process: one that ends unasked is told, and begins again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from tenax.backoff import Backoff

log = structlog.get_logger("tenax.background")

#: Between an unasked end and the next beginning.
PAUSES = Backoff(first=0.2, ceiling=10.0)
#: What has run for so long begins again without delay.
_STEADY_S = 60.0


async def keep_running(name: str, work: Callable[[], Awaitable[None]]) -> None:
    """Run ``work`` until cancelled; it is not meant to end, and when it does, by an error or not, it begins again."""
    ends = 0
    while True:
        began = time.monotonic()
        try:
            await work()
            log.error("a background task ended unasked; it begins again", task=name)
        except Exception:
            log.exception("a background task broke; it begins again", task=name)
        ends = 1 if time.monotonic() - began > _STEADY_S else ends + 1
        await asyncio.sleep(PAUSES.after(ends))
