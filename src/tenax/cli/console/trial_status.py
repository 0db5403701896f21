"""How far the only trial of an experiment is, shown while its output is followed.

- On a terminal that can be written over it is the last row, below the output; elsewhere, a dated line now and then.
- A thread of its own asks the master, with a session of its own; who writes holds the lock.
- It is an ornament: where the master does not answer, the row is empty, and nothing is said of it.
"""

from __future__ import annotations

import contextlib
import datetime
import shutil
import sys
import threading
import time
from typing import Iterator, Optional, TextIO

import click

from tenax.cli.console import output
from tenax.cli.console.layout import cut
from tenax.cli.experiment.view import latest_of, progress, progress_hint
from tenax.client.connection.session import Session
from tenax.client.experiments import Experiment, get_experiment
from tenax.client.trials import Trial, get_trial
from tenax.display.terminal import VisibleStream, moves_cursor, visible_line
from tenax.errors import TenaxError

_EVERY_S = 1.0
#: Off a terminal the output is what counts.
_LINE_EVERY = datetime.timedelta(seconds=30)
#: A script that says how far it is does so by then; the hint stands between its lines for good.
_HINT_AFTER_S = 10.0
_ERASE = "\r\x1b[2K"


class TrialStatus:
    """The status of one trial. Thread-safe; owned by who follows its output."""

    def __init__(self, experiment: Experiment, trial: Trial) -> None:
        self._experiment = experiment
        self._trial = trial
        stream = sys.stderr
        self._row: Optional[TextIO] = None
        if moves_cursor(stream):
            # It is written over with what is taken from texts: what it holds is made visible below.
            self._row = stream.below if isinstance(stream, VisibleStream) else stream
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._text = ""
        self._said_at = datetime.datetime.now()
        self._silent_since: Optional[float] = None
        self._hinted = False

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Keep it up to date meanwhile."""
        session = self._experiment.session.another()
        # A daemon: an answer that is under way holds nobody up.
        threading.Thread(target=self._keep, args=(session,), daemon=True).start()
        try:
            yield
        finally:
            self._over.set()
            self._forget()

    @contextlib.contextmanager
    def above(self) -> Iterator[None]:
        """Print something meanwhile: it stands above the status."""
        with self._lock:
            self._erase()
            yield
            if self._row is not None:
                sys.stdout.flush()
            self._draw()

    def _keep(self, session: Session) -> None:
        # A stream that was closed ends the command, which says so.
        with session, contextlib.suppress(OSError, ValueError):
            while not self._over.wait(_EVERY_S):
                try:
                    self._show(get_experiment(session, self._experiment.id), get_trial(session, self._trial.id))
                except TenaxError:
                    self._forget()

    def _forget(self) -> None:
        with self._lock:
            self._erase()
            if self._row is not None:
                self._text = ""

    def _show(self, experiment: Experiment, trial: Trial) -> None:
        text = status_of(experiment, trial)
        with self._lock:
            if self._over.is_set():
                return
            self._hint(progress_hint(experiment, [trial]))
            if self._row is not None:
                self._text = text
                self._draw()
                return
            now = datetime.datetime.now()
            if text != self._text and now - self._said_at >= _LINE_EVERY:
                self._text, self._said_at = text, now
                output.say(f"{now:%H:%M:%S}  {visible_line(text)}")

    def _hint(self, hint: str) -> None:
        """What to call, once, of a script that has not said for a while how far it is."""
        if not hint or self._hinted:
            self._silent_since = None
            return
        self._silent_since = self._silent_since or time.monotonic()
        if time.monotonic() - self._silent_since >= _HINT_AFTER_S:
            self._hinted = True
            self._erase()
            output.say(hint)

    def _draw(self) -> None:
        if self._text:
            # The last column stays free: a full row would move the next one down.
            text = cut(visible_line(self._text), shutil.get_terminal_size().columns - 1)
            self._write(_ERASE + click.style(text, dim=True))

    def _erase(self) -> None:
        self._write(_ERASE if self._text else "")

    def _write(self, text: str) -> None:
        if self._row is not None and text:
            self._row.write(text)
            self._row.flush()


def status_of(experiment: Experiment, trial: Trial) -> str:
    """``34 %, about 20s left  step 120  loss 0.21``."""
    value = latest_of(trial, experiment.metric)
    parts = [
        "" if experiment.state == "RUNNING" else output.worded(experiment.state),
        progress(experiment),
        f"step {trial.steps}" if trial.steps else "",
        f"{experiment.metric} {output.number(value)}" if value is not None else "",
    ]
    return "  ".join(part for part in parts if part)
