"""What a script in detached mode prints, kept beside its reports. Standard library only, Python 3.9.

It is copied where Python writes it: what a library writes to the file descriptors by itself is not there.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from tenax.core.local_runs.files import OUTPUTS, LocalRun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Optional, TextIO


class OutputCopy:
    """``sys.stdout`` and ``sys.stderr`` go on as they are, and into files of the run; for the chief alone."""

    def __init__(self, run: LocalRun) -> None:
        self._run = run
        self._copies: Dict[str, _Copied] = {}

    def start(self) -> None:
        for name in OUTPUTS:
            stream = getattr(sys, name)
            if stream is not None:
                self._copies[name] = _Copied(stream, self._run.output_path(name))
                setattr(sys, name, self._copies[name])

    def stop(self) -> None:
        """Both are again what they were, unless somebody has put something else there."""
        for name, copied in self._copies.items():
            if getattr(sys, name) is copied:
                setattr(sys, name, copied.stream)
            copied.end()
        self._copies = {}


class _Copied:
    """A text stream, and its copy."""

    def __init__(self, stream: TextIO, path: str) -> None:
        self.stream = stream
        self._copy: Optional[_File] = _File(path)

    def __getattr__(self, name: str) -> object:
        if name == "stream":  # of what `copy` and `pickle` make without __init__
            raise AttributeError(name)
        return getattr(self.stream, name)

    def __iter__(self) -> object:
        return iter(self.stream)

    def __enter__(self) -> object:
        self.stream.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.stream.__exit__(*error)  # type: ignore[arg-type]

    def write(self, text: str) -> int:
        written = self.stream.write(text)
        copy = self._copy
        # A full disk is no reason to stop the training.
        if copy is not None:
            with suppress(OSError, UnicodeError):
                os.write(copy.number, text.encode("utf-8", "replace"))
        return written

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def end(self) -> None:
        """Whoever has kept the stream writes to the original alone."""
        self._copy = None


class _File:
    """Closed when nobody has it any more: its number may not become another file's while a thread still writes."""

    def __init__(self, path: str) -> None:
        self.number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def __del__(self) -> None:
        os.close(self.number)
