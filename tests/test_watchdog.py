"""The watchdog of the tests sees what holds a master's event loop, and nothing else."""

from __future__ import annotations

import asyncio
import time

from tests.kits.watchdog import LIMIT_S, LONGEST, forget, watched


async def busy() -> None:
    until = time.thread_time() + LIMIT_S * 1.2
    while time.thread_time() < until:
        pass


async def test_a_callback_of_a_master_that_takes_long_is_seen() -> None:
    """Also in a task that one of its tasks begins; it is told by what it worked on."""

    async def begins_another() -> None:
        await asyncio.create_task(busy())

    with watched("a request"):
        task = asyncio.create_task(begins_another())
    await task
    assert LONGEST.seconds > LIMIT_S
    assert LONGEST.told.startswith("a request")
    forget()


async def test_what_a_test_does_itself_does_not_count() -> None:
    """Nor what waits, however long."""
    await asyncio.create_task(busy())
    with watched("a request"):
        task = asyncio.create_task(asyncio.sleep(LIMIT_S * 1.2))
    await task
    assert LONGEST.seconds < LIMIT_S
