"""Signals for a program that waits for another one. Standard library only, Python 3.9."""

from __future__ import annotations

import os
import signal
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Optional


_PR_SET_PDEATHSIG = 1


def dying_with(parent: int, number: int = signal.SIGKILL) -> Optional[Callable[[], None]]:
    """What a child of ``parent`` does first, so that it gets a signal once the thread that started it has ended."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    prctl = ctypes.CDLL(None).prctl

    def prepare() -> None:
        prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os._exit(127)

    return prepare


def on_signals(numbers: Iterable[signal.Signals], act: Callable[[int], None]) -> None:
    """Have a thread call ``act`` with the number of each signal that comes.

    A handler of Python's runs in the main thread, which may just have begun to wait for the other program: then it
    would run when that has ended.
    """
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda *_: None)

    def follow() -> None:
        while True:
            for number in os.read(read, 64):
                act(number)

    threading.Thread(target=follow, daemon=True).start()
