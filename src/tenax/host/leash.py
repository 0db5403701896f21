"""``python -m tenax.host.leash PROGRAM [ARGUMENT...]``: a command that ends with whoever started it.

Its standard input is the leash: when that ends, because its owner lets go or was killed, the command and all that it
has started are ended, by SIGTERM and after a few seconds by SIGKILL; so is what is left of them when it has ended.
The exit status is the command's. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence

#: From SIGTERM to SIGKILL.
GRACE_S = 5.0
_NOT_RUN = 127


class Leash:
    """A command in a session of its own."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start it. Raises OSError."""
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        self._ended = threading.Event()
        self._exclusive = threading.Lock()
        self._is_collected = False

    def wait(self) -> int:
        """To its end, and that of all that it has left; its exit status, as a shell has it."""
        # Until it is collected, the number of its group is nobody else's.
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        self._ended.set()
        self._signal(signal.SIGKILL)
        with self._exclusive:
            self._is_collected = True
            status = self._process.wait()
        return status if status >= 0 else 128 - status

    def end_with_owner(self) -> None:
        """Once standard input ends, end it, harder if need be."""
        while os.read(0, 4096):
            pass
        self._signal(signal.SIGTERM)
        if not self._ended.wait(GRACE_S):
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with self._exclusive, contextlib.suppress(ProcessLookupError, PermissionError):
            if not self._is_collected:
                os.killpg(self._process.pid, number)


def main() -> int:
    """The exit status."""
    try:
        leash = Leash(sys.argv[1:])
    except OSError as error:
        sys.stderr.write(f"{sys.argv[1]} cannot be run: {error.strerror}\n")
        return _NOT_RUN
    # A terminal's Ctrl-C and a service manager's SIGTERM come to the owner as well, who lets go.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=leash.end_with_owner, daemon=True).start()
    return leash.wait()


if __name__ == "__main__":
    sys.exit(main())
