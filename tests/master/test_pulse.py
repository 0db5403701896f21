"""The pulse of a process: what holds its event loop for good ends it; what only takes its time does not."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

from tenax.master.concurrency.pulse import _MAX_MISSED, Pulse

_HELD = """
import asyncio, threading
from tenax.master.concurrency import pulse

async def main():
    with pulse.Pulse(look_s=0.01):
        threading.Event().wait()

asyncio.run(main())
"""


async def test_an_event_loop_that_is_held_is_told_of() -> None:
    """Once it has stood still for all looks in a row."""
    told = threading.Event()
    with Pulse(lambda reason: told.set(), look_s=0.01):
        told.wait()


async def test_an_event_loop_that_goes_on_is_not() -> None:
    """However often it is looked at."""
    reasons: list[str] = []
    # On a busy machine it may stand still for a moment.
    with Pulse(reasons.append, look_s=0.5) as pulse:
        while pulse._beats < _MAX_MISSED + 2:  # noqa: ASYNC110 - nothing else tells
            await asyncio.sleep(0.01)
    assert not reasons


def test_the_process_ends_with_the_stacks_of_its_threads() -> None:
    """So that the log says what it was at."""
    done = subprocess.run([sys.executable, "-c", _HELD], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 1
    assert "in main" in done.stderr
    assert "the event loop is held" in done.stdout + done.stderr
