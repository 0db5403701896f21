"""The servers that the supervising process keeps: each is started, watched and ended in the same way.

A server dies with the process that started it, killed by the kernel: nothing that it holds (port, database sessions)
stays taken, and what it must not forget is in the database. Start from the main thread only: the kernel watches the
thread, not the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tenax.errors import Impossible
from tenax.local.postgres import EmbeddedPostgres
from tenax.local.supervise.logs import open_log, tail

#: What a line of a log begins with, which people who wait need not see.
_MOMENT = re.compile(r"^\S+ \[\w+ *\] ")


class Service(Protocol):
    """One server. Not thread-safe: the supervisor's main thread owns it."""

    name: str
    #: Whether the cluster is of no use without it: its first start must succeed.
    vital: bool

    @property
    def pid(self) -> int | None:
        """Of the process while it runs."""

    def start(self) -> None:
        """Start it; may take its time. Raises UserError when it cannot be."""

    def poll(self) -> int | None:
        """Its exit status (negative: the signal), None while it runs."""

    def ready(self) -> bool:
        """Whether it answers."""

    def doing(self) -> str:
        """What it is at before it answers, for people who wait; empty: nothing that takes long."""

    def ask_to_stop(self) -> None:
        """Begin a graceful end."""

    def end(self, timeout_s: float) -> None:
        """Wait for the end; cut it off after ``timeout_s`` seconds."""

    def log_tail(self) -> str:
        """The end of its log, for a message."""


class DatabaseService:
    """The embedded PostgreSQL as a service."""

    name = "postgres"
    vital = True

    def __init__(self, server: EmbeddedPostgres) -> None:
        self._server = server

    @property
    def pid(self) -> int | None:
        return self._server.pid

    def start(self) -> None:
        self._server.start()

    def poll(self) -> int | None:
        return self._server.poll()

    def ready(self) -> bool:
        return self._server.pid is not None

    def doing(self) -> str:
        return ""

    def ask_to_stop(self) -> None:
        """Its end is short, and comes after that of its clients."""

    def end(self, timeout_s: float) -> None:
        self._server.stop(timeout_s)

    def log_tail(self) -> str:
        return tail(self._server.log)


class ServerProcess:
    """A server of ours in a process of its own.

    ``environment`` is asked at each start, since it may hold what is known only then (the database's address).
    ``answers`` tells whether it is ready, ``doing`` what keeps it from that; they are asked again and again, and must
    not take long.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        directory: Path,
        environment: Callable[[], Mapping[str, str]],
        answers: Callable[[], bool],
        vital: bool,
        doing: Callable[[], str] = str,
    ) -> None:
        self.name = name
        self.vital = vital
        self._command = list(command)
        self._log = log
        self._directory = directory
        self._environment = environment
        self._answers = answers
        self._doing = doing
        self._process: subprocess.Popen[bytes] | None = None
        #: Size of the log when the process was started.
        self._log_start = 0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise Impossible(f"{self.name} dies with the thread that starts it: start it from the main thread")
        log = open_log(self._log)
        self._log_start = os.fstat(log).st_size
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._directory,
                env={**self._environment(), "PYTHONUNBUFFERED": "1"},
                # A terminal's Ctrl-C goes to the supervisor alone, which then ends its servers in order.
                start_new_session=True,
                preexec_fn=die_with_parent(os.getpid(), signal.SIGKILL),
            )
        finally:
            os.close(log)

    def poll(self) -> int | None:
        return self._process.poll() if self._process is not None else None

    def ready(self) -> bool:
        return self.pid is not None and self._answers()

    def doing(self) -> str:
        if doing := self._doing():
            return doing
        lines = self.log_tail().splitlines()
        return f"{self.name}: {_MOMENT.sub('', lines[-1])}" if lines else ""

    def ask_to_stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)

    def end(self, timeout_s: float) -> None:
        process = self._process
        if process is None:
            return
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            # The group: a pool of workers goes with it. Tasks have sessions of their own.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._process = None

    def log_tail(self) -> str:
        return tail(self._log, since=self._log_start)


def die_with_parent(parent: int, number: signal.Signals) -> Callable[[], None] | None:
    """What a child does before it becomes its program: ask for ``number`` at the end of ``parent``.

    Linux only. Elsewhere a supervisor that is killed leaves its servers behind, and the next one ends them (untested).
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    set_parent_death_signal = 1

    def ask() -> None:
        prctl(set_parent_death_signal, int(number), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return ask
