"""Waiting for something at a master that may be away meanwhile."""

from __future__ import annotations

import time
from typing import Callable, TypeVar

from tenax.client.connection.session import Unreachable
from tenax.errors import TryAgain

Thing = TypeVar("Thing")
#: Seconds that a master may be away while something of it is followed.
FOLLOW_S = 600.0


def wait_until(one: Thing, reload: Callable[[], Thing], enough: Callable[[Thing], bool], interval: float) -> Thing:
    """What ``reload`` gives once that is ``enough``, asked every ``interval`` seconds; ``one`` is what is known so far.

    A master that is away is waited for. Raises Unreachable or TryAgain when it stays away for ten minutes.
    """
    until = time.monotonic() + FOLLOW_S
    while True:
        try:
            one = reload()
            until = time.monotonic() + FOLLOW_S
        except (Unreachable, TryAgain):
            if time.monotonic() > until:
                raise
        if enough(one):
            return one
        time.sleep(interval)
