"""Nothing holds a master's event loop for long: the processor time of each of its callbacks is counted.

A test in which one took longer than `LIMIT_S` fails. Counted is the time that the loop's own thread was given by the
processor, less what the garbage collector took, whose work depends on everything else in the process. On a busy machine
the same work takes a thread more of that time, too (its core is shared, its caches are cold): the limit is that of the
machine as quiet as it was seen, told by the pace of a piece of work of ours. What belongs to a master is told by the
context in which it began: `watched`.
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
#: However slow the machine seems to be.
_MAX_SLOWER = 2.5
#: The pace is looked at before every so many tests.
_EVERY = 20

#: What a callback works on; None: it is no master's.
_work: ContextVar[str | None] = ContextVar("work", default=None)


@dataclass
class Longest:
    """The longest callback since the last look."""

    seconds: float = 0.0
    told: str = ""


LONGEST = Longest()
_best_pace_s = float("inf")
_tests = 0
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


def pace() -> float:
    """Seconds of this thread's processor time for a few milliseconds of work that is always the same."""
    began = time.thread_time()
    made = [str(number) for number in range(10_000)]
    {name: len(name) for name in sorted(made)}
    return time.thread_time() - began


def slower() -> float:
    """How much slower the machine is now than when it was seen at its best."""
    now = max(pace() for _ in range(5))
    return min(_MAX_SLOWER, max(1.0, now / _best_pace_s))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    install()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    global _best_pace_s, _tests
    if _tests % _EVERY == 0:
        _best_pace_s = min(_best_pace_s, pace())
    _tests += 1
    forget()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    result = yield
    if LONGEST.seconds > LIMIT_S and LONGEST.seconds > LIMIT_S * slower():
        pytest.fail(f"the event loop was held for {LONGEST.seconds * 1e3:.0f} ms by {LONGEST.told}", pytrace=False)
    return result
