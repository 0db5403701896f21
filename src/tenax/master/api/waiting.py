"""Long polls: wait for a row to become what one waits for, woken by the database, never longer than told.

Rules it keeps: the row is read again after every wake-up, and at least every half minute; a master that ends answers
503 at once, so that the client asks another or again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenax.errors import TryAgain
from tenax.master.context import Master
from tenax.master.store.wakeups import Subscription

T = TypeVar("T")


async def until(
    master: Master, kind: str, name: str, seconds: float, look: Callable[[], Awaitable[T | None]]
) -> T | None:
    """What ``look`` gives as soon as that is not None; None after ``seconds``. Raises TryAgain when the master ends."""
    deadline = time.monotonic() + seconds
    with master.listener.subscribe(kind, name) as subscription:
        # The first wait returns at once: what happened before we listened is seen by the first look.
        while True:
            found = await look()
            left = deadline - time.monotonic()
            if found is not None or left <= 0:
                return found
            await _wait(master, subscription, left)


async def _wait(master: Master, subscription: Subscription, seconds: float) -> None:
    woken = asyncio.ensure_future(subscription.wait(seconds))
    ending = asyncio.ensure_future(master.shutdown.wait())
    try:
        await asyncio.wait((woken, ending), return_when=asyncio.FIRST_COMPLETED)
    finally:
        woken.cancel()
        ending.cancel()
    if master.shutdown.is_set():
        raise TryAgain("the master is shutting down: ask again in a moment")
