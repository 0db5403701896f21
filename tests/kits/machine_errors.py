"""Errors of the operating system, at the system call: a process without a descriptor left, and calls that fail."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def no_descriptors() -> Iterator[None]:
    """This process opens nothing meanwhile: EMFILE, from the kernel itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class FailingCall:
    """In a function's place: it fails so many times once it is told to, of what it is ``of``, and then works again."""

    def __init__(
        self, function: Callable[..., Any], number: int, of: Callable[..., bool] = lambda *_, **__: True
    ) -> None:
        self._function = function
        self._number = number
        self._of = of
        self.left = 0.0
        self.failed = 0

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self.left > 0 and self._of(*arguments, **named):
            self.left -= 1
            self.failed += 1
            raise OSError(self._number, os.strerror(self._number))
        return self._function(*arguments, **named)
