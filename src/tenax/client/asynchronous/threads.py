"""Threads that carry what blocks: made as needed up to a bound, reused, and gone when there is nothing to do.

Unlike those of `concurrent.futures` they keep no interpreter from ending, and belong to no event loop.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import threading
from collections import deque
from typing import Callable, Deque, Optional, TypeVar

from tenax.client.connection.session import SessionAborted

Result = TypeVar("Result")
Job = Callable[[], None]
#: Seconds after which a thread without a job ends.
IDLE_S = 10.0
#: Between two checks of whether the event loop is still there that is to answer.
_LOOP_CHECK_S = 1.0


class CallThreads:
    """At most ``bound`` threads; what comes when all are busy waits for its turn."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._count = self._idle = 0
        self._jobs: Deque[Job] = deque()
        self._closed = False
        self._changed = threading.Condition()

    async def result(self, function: Callable[[], Result]) -> Result:
        """What ``function`` returns, called in a thread, in the context of whoever waits.

        Cancelled, it returns at once; what has begun goes on in its thread, and its outcome is dropped.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        context = contextvars.copy_context()

        def settle(result: Optional[Result], error: Optional[BaseException]) -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)  # type: ignore[arg-type]

        def job() -> None:
            if future.cancelled():
                return
            result, failure = None, None
            try:
                result = context.run(function)
            except BaseException as error:
                failure = error
            try:
                loop.call_soon_threadsafe(settle, result, failure)
            except RuntimeError:
                # The loop is closed, and nobody waits any more.
                return

        self._submit(job)
        return await future

    def close(self) -> None:
        """Idle threads end; what comes later has threads for itself alone."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _submit(self, job: Job) -> None:
        with self._changed:
            self._jobs.append(job)
            if self._idle >= len(self._jobs):
                self._changed.notify()
            elif self._count < self._bound:
                self._count += 1
                try:
                    threading.Thread(target=self._work, name="tenax-client", daemon=True).start()
                except RuntimeError:
                    # The machine has no more: those that there are do it, if there are any.
                    self._count -= 1
                    if not self._count:
                        self._jobs.remove(job)
                        raise

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                self._changed.wait_for(lambda: self._jobs or self._closed, IDLE_S)
                self._idle -= 1
                if not self._jobs:
                    self._count -= 1
                    return
                job = self._jobs.popleft()
            job()
            # Whatever it holds is not kept until the next.
            del job


def in_loop(
    callback: Callable[..., Result], loop: asyncio.AbstractEventLoop, ended: threading.Event
) -> Callable[..., Result]:
    """To be called in another thread: ``callback``, called in that of ``loop``; its result, or what it raises.

    Once ``ended`` is set it is not called: raises SessionAborted.
    """

    def call(*arguments: object) -> Result:
        answer: concurrent.futures.Future[Result] = concurrent.futures.Future()

        def answering() -> None:
            try:
                if ended.is_set():
                    raise SessionAborted()
                answer.set_result(callback(*arguments))
            except BaseException as error:
                answer.set_exception(error)

        loop.call_soon_threadsafe(answering)
        while True:
            try:
                return answer.result(_LOOP_CHECK_S)
            except concurrent.futures.TimeoutError:
                if answer.done():  # now; or the callback has raised one, which is the same class by now
                    return answer.result()
                if loop.is_closed() or ended.is_set():
                    raise SessionAborted() from None

    return call
