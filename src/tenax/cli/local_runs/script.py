"""A program that runs as if nobody looked, while its output is kept: the part of ``tenax track`` for one process.

Rules it keeps:

- What was a terminal is one for the program; what was a file or a pipe is a pipe. Standard input is its own.
- Ctrl-C reaches the program as ever; SIGTERM and SIGHUP are passed on. This process ends after the program.
- Its output is on the screen before anything else is done with it. Where the disk takes none, it is only shown.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from dataclasses import dataclass
from types import FrameType
from typing import Dict, Iterator, List, Mapping, Optional, Sequence

from tenax.core.local_runs.files import OUTPUTS, LocalRun
from tenax.errors import InvalidInput

#: How long output is read of processes that the program left behind.
_LINGER_S = 2.0
_PIECE = 65536
_PASSED_ON = (signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class ScriptEnding:
    """How a program ended."""

    #: COMPLETED, CANCELED or ERROR.
    state: str
    reason: str
    #: As a shell counts it.
    code: int


def run_script(argv: Sequence[str], run: LocalRun, environment: Mapping[str, str], cwd: Optional[str]) -> ScriptEnding:
    """Run a program to its end. Raises InvalidInput for one that cannot be started."""
    terminal = [os.isatty(number) for number in (1, 2)]
    plugs = _Plugs(terminal)
    settings = dict(environment)
    if not all(terminal):
        # Python keeps back what goes into a pipe.
        settings.setdefault("PYTHONUNBUFFERED", "1")
    received: List[int] = []
    with _signals(received) as passed_to:
        try:
            process = subprocess.Popen(argv, env=settings, cwd=cwd, stdout=plugs.inner[0], stderr=plugs.inner[1])
        except OSError as error:
            plugs.close()
            raise InvalidInput(f"{argv[0]} cannot be started: {error.strerror or error}.") from None
        passed_to.append(process)
        plugs.close_inner()
        pumps = [
            threading.Thread(target=_pump, args=(source, number + 1, run.output_path(name)), daemon=True)
            for number, (name, source) in enumerate(zip(OUTPUTS, plugs.outer))
            if source is not None
        ]
        for pump in pumps:
            pump.start()
        code = process.wait()
        for pump in pumps:
            pump.join(_LINGER_S)
    return ending_of(code, received, run)


def ending_of(code: int, received: Sequence[int], run: LocalRun) -> ScriptEnding:
    """What an exit status means; ``received``: the signals that this process was sent meanwhile."""
    shown = 128 - code if code < 0 else code
    if received and code:
        return ScriptEnding("CANCELED", f"ended by {signal.Signals(received[-1]).name}", shown)
    if received:
        return ScriptEnding("CANCELED", f"it was sent {signal.Signals(received[-1]).name}, and ended by itself", 0)
    if code < 0:
        name = signal.Signals(-code).name
        state = "CANCELED" if -code in (signal.SIGINT, signal.SIGTERM) else "ERROR"
        return ScriptEnding(state, f"ended by {name}", shown)
    if code:
        last = last_line(run.output_path("stderr"))
        return ScriptEnding("ERROR", f"exit code {code}{f': {last}' if last else ''}", shown)
    return ScriptEnding("COMPLETED", "", 0)


class _Plugs:
    """The ends of what carries the output: ``inner`` for the program, ``outer`` for us, for stdout and stderr."""

    def __init__(self, terminal: Sequence[bool]) -> None:
        self.inner: List[int] = []
        self.outer: List[Optional[int]] = []
        shared: Optional[int] = None
        for number, is_terminal in enumerate(terminal):
            if not is_terminal:
                outer, inner = os.pipe()
                self.inner.append(inner)
                self.outer.append(outer)
            elif shared is None:
                outer, shared = _pseudo_terminal(number + 1)
                self.inner.append(shared)
                self.outer.append(outer)
            else:
                self.inner.append(shared)
                self.outer.append(None)

    def close_inner(self) -> None:
        for number in set(self.inner):
            os.close(number)

    def close(self) -> None:
        self.close_inner()
        for number in self.outer:
            if number is not None:
                os.close(number)


def _pseudo_terminal(like: int) -> tuple[int, int]:
    """A terminal of the size of ours, which changes nothing in what is written to it."""
    import fcntl
    import pty
    import termios

    outer, inner = pty.openpty()
    attributes = termios.tcgetattr(inner)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(inner, termios.TCSANOW, attributes)
    with contextlib.suppress(OSError):
        size = fcntl.ioctl(like, termios.TIOCGWINSZ, b"\0" * 8)
        fcntl.ioctl(inner, termios.TIOCSWINSZ, size)
    return outer, inner


def _pump(source: int, target: int, path: str) -> None:
    """Carry output to the screen and into a file, until nobody writes any more."""
    kept = -1
    with contextlib.suppress(OSError):
        kept = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    while True:
        try:
            piece = os.read(source, _PIECE)
        except OSError:  # a terminal that everyone has closed
            piece = b""
        if not piece:
            break
        with contextlib.suppress(OSError):  # whoever read it has enough
            _write(target, piece)
        if kept >= 0:
            with contextlib.suppress(OSError):
                _write(kept, piece)
    os.close(source)
    if kept >= 0:
        os.close(kept)


def _write(target: int, piece: bytes) -> None:
    while piece:
        piece = piece[os.write(target, piece) :]


@contextlib.contextmanager
def _signals(received: List[int]) -> Iterator[List[subprocess.Popen[bytes]]]:
    """Note signals, and pass on to the processes of the list what the terminal does not send them anyway."""
    processes: List[subprocess.Popen[bytes]] = []
    has_terminal = os.isatty(0)

    def note(number: int, frame: Optional[FrameType]) -> None:
        received.append(number)
        if number != signal.SIGINT or not has_terminal:
            for process in processes:
                process.send_signal(number)

    before: Dict[int, object] = {}
    try:
        for caught in (signal.SIGINT, *_PASSED_ON):
            before[caught] = signal.signal(caught, note)
        yield processes
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]


def last_line(path: str) -> str:
    """The last line of an output that holds anything, up to 300 characters; empty where there is none."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - 4096))
            lines = file.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")[:300]
