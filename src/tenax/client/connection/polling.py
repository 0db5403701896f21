"""Polling a master until something has happened there, through times when the master is away."""

from __future__ import annotations

import time
from typing import Callable, TypeVar

from tenax.client.connection.address import Unreachable
from tenax.errors import TryAgain

Value = TypeVar("Value")
#: Seconds for which a master that is away is tried again, while something of it is followed.
RETRY_S = 600.0


def wait_until(value: Value, reload: Callable[[], Value], enough: Callable[[Value], bool], interval: float) -> Value:
    """The first result of ``reload`` that is ``enough``; ``reload`` is called every ``interval`` seconds.

    ``value`` is what is known so far. A master that is away is tried again. Raises Unreachable or TryAgain when it
    stays away for ten minutes.
    """
    until = time.monotonic() + RETRY_S
    while True:
        try:
            value = reload()
            until = time.monotonic() + RETRY_S
        except (Unreachable, TryAgain):
            if time.monotonic() > until:
                raise
        if enough(value):
            return value
        time.sleep(interval)
