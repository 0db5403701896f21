"""``python3 -m tenax.launch.wrap_rank RANK COMMAND...``: one rank; each line that it prints begins with ``[rank=N]``.

``RANK``: a number, or the variable that holds it. The log of a trial reads the rank of a line from there. Signals are
passed on, the exit code is the command's (128 and the number of a signal), and a launcher that left an address is told
of a failure at once. Should this program be killed, the command is killed with it. Standard library only, Python 3.9.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque

from tenax.core.hangs import beats
from tenax.core.spool import say
from tenax.launch.failures import Failure, post
from tenax.launch.signals import dying_with, on_signals
from tenax.wire.tracebacks import BEGINNING, exception_line, last_frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Optional

_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
#: So many of the last lines are looked through for what the command raised.
_LAST_LINES = 200
#: A line without an end is shown when it is this long.
_MAX_LINE = 64 * 1024
#: Seconds that what the command left in the background may go on writing.
_LINGER_S = 5.0
#: An exception that was printed longer ago is not what the command ended with.
_RECENT_S = 10.0
#: Seconds for which a command that ends without an exception may have been silent to its peers before.
_TEARDOWN_S = 0.5


class Prefixer:
    """Output cut into lines, each with a prefix; a carriage return ends one, too, for progress bars."""

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        self._rest = b""
        self.last_lines: deque[bytes] = deque(maxlen=_LAST_LINES)

    def feed(self, data: bytes) -> bytes:
        """The lines that end in ``data``."""
        lines = (self._rest + data).splitlines(keepends=True)
        unfinished = bool(lines) and not lines[-1].endswith(b"\n") and len(lines[-1]) <= _MAX_LINE
        self._rest = lines.pop() if unfinished else b""
        self.last_lines.extend(lines)
        return b"".join(self._prefix + line for line in lines)

    def rest(self) -> bytes:
        """What has no end."""
        rest, self._rest = self._rest, b""
        self.last_lines.append(rest)
        return self._prefix + rest + b"\n" if rest else b""


class RankOutput:
    """A thread that copies one stream of the command, with the prefix."""

    def __init__(self, source: Optional[IO[bytes]], target: int, prefix: bytes) -> None:
        assert source is not None
        self._source, self._target = source.fileno(), target
        self._prefixer = Prefixer(prefix)
        self.last_lines = self._prefixer.last_lines
        #: When the last traceback was printed.
        self.traceback_at: Optional[float] = None
        self._thread = threading.Thread(target=self._copy, daemon=True)
        self._thread.start()

    def finish(self, deadline: float) -> None:
        """Wait until all is copied."""
        self._thread.join(max(0.0, deadline - time.monotonic()))

    def _copy(self) -> None:
        try:
            while data := os.read(self._source, 64 * 1024):
                if BEGINNING.encode() in data:
                    self.traceback_at = time.monotonic()
                _write(self._target, self._prefixer.feed(data))
            _write(self._target, self._prefixer.rest())
        except OSError:
            # Nobody reads it any more: the command is to notice, as it would without us.
            os.close(self._source)


def main() -> int:
    words = sys.argv[1:]
    if words[1:2] == ["--"]:
        del words[1]
    rank = os.environ.get(words[0], words[0]) if words else ""
    if len(words) < 2 or not rank.isdigit():
        say("usage: python3 -m tenax.launch.wrap_rank RANK COMMAND..., RANK a number or the variable that holds it")
        return 2
    return run(int(rank), words[1:])


def run(rank: int, command: list[str]) -> int:
    """The exit code of the command, run as this rank."""
    prefix = b"[rank=%d] " % rank
    try:
        child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=dying_with(os.getpid())
        )
    except OSError as error:
        reason = f"{command[0]} cannot be started: {error.strerror or error}"
        _write(2, prefix + f"tenax: {reason}\n".encode(errors="replace"))
        code = 127 if isinstance(error, FileNotFoundError) else 126
        post(Failure(rank, code, time.monotonic()))
        return code
    _announce_beats(rank, child.pid)
    on_signals(_PASSED_ON, child.send_signal)
    streams = [RankOutput(child.stdout, 1, prefix), RankOutput(child.stderr, 2, prefix)]
    status = child.wait()
    ended = time.monotonic()
    code = status if status >= 0 else 128 - status
    for stream in streams:
        stream.finish(ended + _LINGER_S)
    if code:
        post(_failure(rank, code, ended, streams[1]))
    return code


def _announce_beats(rank: int, pid: int) -> None:
    """Say which process the rank is, to whoever watches for hangs: it may hang before it says so itself."""
    directory, size = os.environ.get(beats.DIRECTORY), os.environ.get("WORLD_SIZE", "")
    if directory and size.isdigit():
        beats.announce(directory, rank, int(size), pid)


def _failure(rank: int, code: int, ended: float, errors: RankOutput) -> Failure:
    """When it failed for its peers, who lose it while it ends, and why."""
    printed = errors.traceback_at
    if printed is not None and ended - printed < _RECENT_S:
        lines = [line.decode(errors="replace").rstrip() for line in errors.last_lines]
        raised, place = exception_line(lines), last_frame(lines)
        return Failure(rank, code, printed, f"{raised} (in {place})" if raised and place else raised or "")
    return Failure(rank, code, ended if code > 128 else ended - _TEARDOWN_S)


def _write(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]


if __name__ == "__main__":
    sys.exit(main())
