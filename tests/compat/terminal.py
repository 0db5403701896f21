"""Determined's command line on a terminal of its own: what it asks for passwords is typed there."""

from __future__ import annotations

import os
import pty
import select
import time
from collections.abc import Sequence

from tests.compat.client import ENVIRONMENT, ClientFailed, Done, RealClient

#: Of the client alone the imports take a minute where many others work.
_PATIENCE_S = 300.0


def typed(client: RealClient, words: Sequence[str], answers: Sequence[str]) -> Done:
    """Run it with ``words``; each time that it asks for a password, the next answer is typed. Raises ClientFailed."""
    command = [str(ENVIRONMENT / "bin" / "det"), *words]
    child, screen = pty.fork()
    if child == 0:
        os.execve(command[0], command, {**os.environ, **client.environment})
    shown, left = b"", list(answers)
    until = time.monotonic() + _PATIENCE_S
    asked = 0
    while time.monotonic() < until:
        ready, _, _ = select.select([screen], [], [], 1.0)
        try:
            piece = os.read(screen, 4096) if ready else b" "
        except OSError:
            break
        shown += piece if ready else b""
        if left and shown.lower().count(b"assword") > asked and shown.rstrip().endswith(b":"):
            asked = shown.lower().count(b"assword")
            os.write(screen, left.pop(0).encode() + b"\n")
    os.close(screen)
    _, status = os.waitpid(child, 0)
    done = Done(os.waitstatus_to_exitcode(status), shown.decode(errors="replace"), "")
    if done.code:
        raise ClientFailed(f"det {' '.join(words)}", done)
    client.called.words.add(tuple(words))
    return done
