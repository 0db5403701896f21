"""Signals for a program that waits for another one. Standard library only, Python 3.9."""

from __future__ import annotations

import os
import signal
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


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
