"""The thread that sends a run by hand while it runs. Standard library only, Python 3.9.

Rules it keeps: whatever goes wrong with the sending is a line on standard error, and nothing to the script; a master
that is away is tried again, with growing pauses, as long as the run lives, and for :data:`LAST_WAIT_S` seconds after
its end; what is not sent then stays in its directory for ``tenax sync``.
"""

from __future__ import annotations

import os
import threading
from time import monotonic

from tenax.backoff import Backoff, Retry
from tenax.client.connection.address import Unreachable
from tenax.client.connection.session import MasterFailed, Session
from tenax.core.local_runs.files import LocalRun, sending
from tenax.core.local_runs.sending import RunSender
from tenax.core.spool import say
from tenax.errors import InvalidInput, NotNow, TenaxError, TryAgain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Optional

#: Between two looks at the files.
_LOOK_S = 0.3
#: Between two signs of life; a master gives a trial up after five minutes.
_ALIVE_S = 30.0
#: How long the end waits for a master that is away, and for one that never was there.
LAST_WAIT_S, _NEVER_THERE_S = 10.0, 2.0
#: A request that takes longer has failed.
READ_S = 30.0
_BACKOFF = Backoff(first=0.5, ceiling=15.0)
_AWAY = (Unreachable, TryAgain, MasterFailed)


class Tracker:
    """``open_session``: how to come to the cluster. `finish` once; no other method after it."""

    def __init__(self, run: LocalRun, open_session: Optional[Callable[[], Session]] = None) -> None:
        self._run = run
        self._open = open_session or own_session
        self._over = threading.Event()
        self._gives_up = threading.Event()
        self._tried = threading.Event()
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._work, name="tenax-tracker", daemon=True)
        self._complete = False
        self._alive_at = 0.0
        self._away_said = self._connected_once = False

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def tried(self, seconds: float) -> None:
        """Wait until it is known whether a cluster takes it, so that the line about it comes before the script's."""
        self._tried.wait(seconds)

    def finish(self) -> bool:
        """The run is over, and ``run.json`` says how: send what is left. Whether all of it is with the cluster."""
        if self._pid != os.getpid():  # a fork took the thread away
            return False
        self._over.set()
        self._thread.join(LAST_WAIT_S if self._connected_once else _NEVER_THERE_S)
        self._gives_up.set()
        if self._thread.is_alive() and not self._complete:
            self._say_kept("the master does not answer")
        return self._complete

    def _work(self) -> None:
        """The thread."""
        try:
            with sending(self._run) as alone:
                if alone:
                    self._send()
        except TenaxError as error:
            self._say_kept(str(error))
        except Exception as error:
            self._say_kept(f"{type(error).__name__}: {error}")
        finally:
            self._tried.set()

    def _send(self) -> None:
        retry = Retry(_BACKOFF)
        sender: Optional[RunSender] = None
        session: Optional[Session] = None
        while not self._gives_up.is_set():
            over = self._over.is_set()
            try:
                session = session or self._open()
                if sender is None:
                    sender = self._connected(session)
                moved = sender.send_new()
                self._show_life(sender)
                retry.reset()
                if over and not moved:
                    sender.finish()
                    self._complete = True
                    return
                if not over:
                    self._over.wait(_LOOK_S)
            except _AWAY as error:
                self._say_away(error, sender is None)
                self._gives_up.wait(min(retry.pause(), 1.0)) if over else self._over.wait(retry.pause())

    def _connected(self, session: Session) -> RunSender:
        sender = RunSender(self._run, session, say)
        sender.connect()
        say(f"tracked as trial {sender.trial} of experiment {sender.experiment} at {session.url}")
        self._alive_at = monotonic()
        self._connected_once = True
        self._tried.set()
        return sender

    def _show_life(self, sender: RunSender) -> None:
        if monotonic() - self._alive_at < _ALIVE_S:
            return
        self._alive_at = monotonic()
        try:
            sender.alive()
        except (InvalidInput, NotNow):
            say(f"trial {sender.trial} was ended at the cluster; the script goes on, and its reports are still sent")
            self._alive_at = float("inf")

    def _say_away(self, error: Exception, at_start: bool) -> None:
        if not self._away_said:
            self._away_said = True
            after = "The run goes on, and is sent when the master answers; until then it is kept in"
            say(f"{'not tracked yet' if at_start else 'the master is away'}: {error} {after} {self._run.path}")
        self._tried.set()

    def _say_kept(self, why: str) -> None:
        say(f"{why.rstrip('.')}. What is not sent is kept in {self._run.path}: tenax sync {self._run.name}")


def own_session() -> Session:
    """To the cluster that this user uses. Raises Unreachable, also where it is somebody else's."""
    return Session(retry_for_s=0.0, read_s=READ_S)
