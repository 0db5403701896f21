"""The bounded pools of threads for what would hold up the event loop: large bodies, packing, searching.

Threads share one interpreter: each that is at work slows the event loop. So there are few, and where people say how
much there is to do they take turns (`FairThreads`).
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from tenax.master.concurrency.turns import FairTurns

P = ParamSpec("P")
T = TypeVar("T")


#: Items that are soon gone through.
_FEW = 200


async def run_beside(size: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call what goes through ``size`` items: at once where these are few, else in a thread, which cannot be stopped."""
    if size <= _FEW:
        return function(*args, **kwargs)
    return await asyncio.to_thread(_uncollected, lambda: function(*args, **kwargs))


def _uncollected(function: Callable[[], T]) -> T:
    """Make a great many values and no cycles: whoever looks for these among them meanwhile holds up all threads."""
    gc.disable()
    try:
        return function()
    finally:
        # What is left is old at once, without having been looked through as if it were new. So is what was there when
        # this process began to serve: it is looked through again, now and then.
        gc.freeze()
        gc.unfreeze()
        gc.enable()


class Threads:
    """A few threads."""

    def __init__(self, count: int = 2) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="tenax-work")

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call it in a thread; waits for a free one."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: function(*args, **kwargs))

    def close(self) -> None:
        """Wait for what is under way, drop the rest."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class FairThreads(Threads):
    """A few threads, of which each owner (`tenax.master.concurrency.turns`) has one at a time."""

    def __init__(self, count: int = 2) -> None:
        super().__init__(count)
        self._turns = FairTurns(count)

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call it in a thread; waits for its owner's turn.

        A thread that is at work cannot be stopped: where the caller is cancelled the turn lasts until it is done.
        """
        begun = False

        async def in_turn() -> T:
            nonlocal begun
            async with self._turns.turn():
                begun = True
                return await Threads.run(self, function, *args, **kwargs)

        work = asyncio.create_task(in_turn())
        work.add_done_callback(_retrieve_error)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            if not begun:
                work.cancel()
            raise


def _retrieve_error(work: asyncio.Task[T]) -> None:
    """An error that nobody waits for any more is not reported as one of this process."""
    if not work.cancelled():
        work.exception()
