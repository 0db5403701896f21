"""The command line on a terminal of its own."""

from __future__ import annotations

import codecs
import contextlib
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

TENAX = str(Path(sys.executable).with_name("tenax"))


@dataclass
class Terminal:
    """A command on a terminal of 120 columns, and all that it has shown."""

    process: subprocess.Popen[bytes]
    screen: int
    shown: str = ""
    #: A read may end within a character.
    decoder: codecs.IncrementalDecoder = field(default_factory=codecs.getincrementaldecoder("utf-8"))

    def read(self) -> bool:
        """More of what it shows; False at its end."""
        with contextlib.suppress(OSError):
            data = os.read(self.screen, 65536)
            self.shown += self.decoder.decode(data)
            return bool(data)
        return False

    def until(self, text: str) -> None:
        """Until it has shown this."""
        until = time.monotonic() + 60
        while text not in self.shown:
            assert time.monotonic() < until, self.shown
            assert self.read(), self.shown

    def end(self) -> int:
        """Its exit code, once it has ended."""
        while self.read():
            pass
        return self.process.wait(60)


def plain(text: str) -> str:
    """What a terminal shows, without what only tells it how."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


@contextlib.contextmanager
def on_terminal(*arguments: str, **variables: str) -> Iterator[Terminal]:
    screen, inner = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "30", **variables}
    environment.pop("NO_COLOR", None) if "NO_COLOR" not in variables else None
    process = subprocess.Popen(
        [TENAX, *arguments], stdin=inner, stdout=inner, stderr=inner, env=environment, start_new_session=True
    )
    os.close(inner)
    try:
        yield Terminal(process, screen)
    finally:
        process.kill()
        process.wait()
        os.close(screen)
