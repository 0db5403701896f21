"""Polling a master until something has happened there, through times when the master is away.

What waits is written once, as steps: a generator that yields for how many seconds to pause. A method ``wait`` is
`slept` through the steps of ``_wait``, which has the same parameters; its twin in `tenax.client.asynchronous` takes
the same steps, and pauses in its event loop.
"""

from __future__ import annotations

import time
from typing import Callable, Generator, TypeVar

from tenax.client.connection.address import Unreachable
from tenax.errors import NotFound, NotNow, TryAgain

Value = TypeVar("Value")
#: Seconds to pause, and a result in the end.
Steps = Generator[float, None, Value]
#: Seconds for which a master that is away is tried again, while something of it is followed.
RETRY_S = 600.0
#: Between two polls of what is being deleted.
_DELETION_S = 0.5


def slept(steps: Steps[Value]) -> Value:
    """The result of ``steps``, with a sleep in each pause."""
    while True:
        try:
            pause = next(steps)
        except StopIteration as end:
            result: Value = end.value
            return result
        time.sleep(pause)


def until(value: Value, reload: Callable[[], Value], enough: Callable[[Value], bool], interval: float) -> Steps[Value]:
    """The first result of ``reload`` that is ``enough``; ``reload`` is called every ``interval`` seconds.

    ``value`` is what is known so far. A master that is away is tried again. Raises Unreachable or TryAgain when it
    stays away for ten minutes.
    """
    give_up = time.monotonic() + RETRY_S
    while True:
        try:
            value = reload()
            give_up = time.monotonic() + RETRY_S
        except (Unreachable, TryAgain):
            if time.monotonic() > give_up:
                raise
        if enough(value):
            return value
        yield interval


def until_gone(reload: Callable[[], Value], failure: Callable[[Value], str]) -> Steps[None]:
    """Once ``reload`` raises NotFound. Raises NotNow with the ``failure`` of what is there still, if it has one."""
    while True:
        try:
            now = reload()
        except NotFound:
            return
        failed = failure(now)
        if failed:
            raise NotNow(failed)
        yield _DELETION_S
