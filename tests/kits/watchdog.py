"""Nothing holds a master's event loop for long: the processor time of each of its callbacks is counted.

A test in which one took longer than `LIMIT_S` fails. Counted is the time that the loop's own thread was given by the
processor, so a busy machine changes nothing; less what the garbage collector took, whose work depends on everything
else in the process. What belongs to a master is told by the context in which it began: `watched`.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
from collections.abc import Generator, Iterator
from contextvars import ContextVar
from dataclasses import dataclass

import pytest

LIMIT_S = 0.1

#: What a callback works on; None: it is no master's.
_work: ContextVar[str | None] = ContextVar("work", default=None)


@dataclass
class Longest:
    """The longest callback since the last look."""

    seconds: float = 0.0
    told: str = ""


LONGEST = Longest()
_collected_s = 0.0
_collecting_since = 0.0


@contextlib.contextmanager
def watched(work: str) -> Iterator[None]:
    """What begins in here, and whatever that begins, is a master's."""
    token = _work.set(work)
    try:
        yield
    finally:
        _work.reset(token)


def forget() -> None:
    """Whatever was counted so far."""
    LONGEST.seconds, LONGEST.told = 0.0, ""


def install() -> None:
    """Count from now on, in this process and under the standard library's event loop."""
    run = asyncio.Handle._run

    def counted(handle: asyncio.Handle) -> None:
        work = handle._context.get(_work)  # type: ignore[attr-defined]
        if work is None:
            run(handle)
            return
        began, collected = time.thread_time(), _collected_s
        run(handle)
        seconds = time.thread_time() - began - (_collected_s - collected)
        if seconds > LONGEST.seconds:
            LONGEST.seconds, LONGEST.told = seconds, f"{work}: {handle!r}"

    asyncio.Handle._run = counted  # type: ignore[method-assign]
    gc.callbacks.append(_collecting)


def _collecting(phase: str, info: dict[str, int]) -> None:
    global _collected_s, _collecting_since
    if phase == "start":
        _collecting_since = time.thread_time()
    else:
        _collected_s += time.thread_time() - _collecting_since


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    install()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    forget()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    result = yield
    if LONGEST.seconds > LIMIT_S:
        pytest.fail(f"the event loop was held for {LONGEST.seconds * 1e3:.0f} ms by {LONGEST.told}", pytrace=False)
    return result
