"""The supervising process: it starts the servers of a local cluster in order, and keeps them up.

Rules:
- One thread. Servers are started from it, since the kernel ends them with it.
- A vital server must come up the first time: a wrong setting or a taken port is shown to the person who waits, and
  nothing is left running. After that every end is met with a restart, later and later (`next_start`).
- What is known about the servers stands in ``supervisor.json``, replaced at once at every change.
- It ends, too, when its directory is removed or moved away: what it would write then is nobody's.
- SIGTERM and SIGINT end the servers in the opposite order. Tasks are not ours: they run on and are found again.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from tenax.backoff import Backoff
from tenax.errors import UserError
from tenax.jsonvalue import Json, JsonObject
from tenax.local.state_dir import StateDir, write_json
from tenax.local.supervise.logs import rotate
from tenax.local.supervise.services import Service
from tenax.runtime.processes import start_ticks

log = logging.getLogger("tenax.local")

#: How long a server may take to end when asked.
STOP_TIMEOUT_S = 20.0
_POLL_S = 0.05
#: How often it is looked at what keeps a server from being ready.
_SAY_EVERY_S = 2.0
_ROTATE_EVERY_S = 5.0
#: How often it looks whether its directory is still there.
_LOOK_EVERY_S = 1.0
#: When to start again what keeps ending: at once the first time, then later and later.
BACKOFF = Backoff(first=0.2, ceiling=30.0)
#: A life of this many seconds forgets the ends before it.
HEALTHY_S = 60.0


class ServiceFailed(UserError):
    """The cluster did not start."""


class DirectoryGone(UserError):
    """The directory of the cluster was removed or moved while it was up."""


class StopAsked(BaseException):
    """Somebody wants the cluster to end while a server is being started."""


@dataclass(slots=True)
class _Watched:
    """A service and what its supervisor remembers."""

    service: Service
    #: ``starting``, ``up``, ``waiting`` (for its next start) or ``down``.
    state: str = "down"
    started: float = 0.0
    due: float = 0.0
    restarts: int = 0
    #: Ends in a row, each after a short life.
    ends: int = 0
    ended_with: int | None = None

    def document(self) -> JsonObject:
        pid = self.service.pid
        document: JsonObject = {"state": self.state, "pid": pid, "restarts": self.restarts}
        if pid is not None:
            document["start"] = start_ticks(pid)
        if self.ended_with is not None:
            document["ended_with"] = self.ended_with
        return document


class ClusterSupervisor:
    """Keeps ``services`` up until it is asked to stop. Owned by the main thread.

    ``about`` goes into ``supervisor.json`` as it is: where the cluster answers, and so on. ``lock``: the descriptor
    that holds the directory. ``once_up`` is called when every vital server has come up.
    """

    def __init__(
        self,
        state: StateDir,
        services: Sequence[Service],
        about: JsonObject,
        lock: int,
        logs: Sequence[Path] = (),
        once_up: Callable[[], None] = lambda: None,
    ) -> None:
        self._state = state
        self._once_up = once_up
        self._lock = lock
        self._watched = [_Watched(service) for service in services]
        self._about = about
        self._logs = logs
        self._phase = "starting"
        self._message = ""
        self._rotated = time.monotonic()
        self._bell = _Bell()

    def run(self) -> None:
        """Until SIGTERM or SIGINT. Raises UserError, all ended, when a vital service does not come up."""
        with self._bell:
            try:
                self._start_all()
                self._once_up()
                self._enter("up", "")
                while not self._bell.stop_requested:
                    self._check_all()
                    self._bell.wait(self._until_next())
                self._enter("stopping", "")
            except StopAsked:
                self._enter("stopping", "")
            except UserError as error:
                self._stop_all()
                self._enter("failed", error.message)
                raise
            self._stop_all()
            self._enter("down", "")

    def say(self, message: str) -> None:
        """What is being waited for, for ``tenax up`` to show."""
        log.info("%s", message)
        self._message = message
        self._write()

    def _start_all(self) -> None:
        for watched in self._watched:
            self.say(f"starting {watched.service.name}")
            self._start(watched)
            if watched.service.vital:
                self._wait_until_ready(watched)

    def _start(self, watched: _Watched) -> None:
        watched.state = "starting"
        watched.started = time.monotonic()
        with self._bell.interrupting():
            try:
                watched.service.start()
            except OSError as error:
                raise ServiceFailed(f"{watched.service.name} could not be started: {error}") from None
        self._write()

    def _refuse_without_directory(self) -> None:
        try:
            held = self._state.is_held_by(self._lock)
        except OSError as error:
            # A disk that does not answer now has not lost the directory.
            log.error("%s cannot be looked at: %s", self._state.root, error)
            return
        if not held:
            raise DirectoryGone(
                f"{self._state.root} was removed or moved while the cluster was up, so it ends. Stop a cluster "
                "before its directory is moved: tenax down."
            )

    def _wait_until_ready(self, watched: _Watched) -> None:
        service = watched.service
        said_at = time.monotonic()
        while not service.ready():
            if time.monotonic() - said_at > _SAY_EVERY_S:
                said_at = time.monotonic()
                if (doing := service.doing()) and doing != self._message:
                    self.say(doing)
            self._refuse_without_directory()
            status = service.poll()
            if status is not None:
                raise ServiceFailed(f"{_ending(service.name, status)}\n{service.log_tail()}".rstrip())
            with self._bell.interrupting():
                self._bell.wait(_POLL_S)
        watched.state = "up"
        self._write()

    def _check_all(self) -> None:
        """One pass over the services, and over the logs now and then."""
        self._refuse_without_directory()
        now = time.monotonic()
        for watched in self._watched:
            self._check(watched, now)
        if now - self._rotated > _ROTATE_EVERY_S:
            self._rotated = now
            for path in self._logs:
                try:
                    rotate(path)
                except OSError as error:
                    # A full disk must not end the servers.
                    log.error("%s cannot be rotated: %s", path, error)

    def _check(self, watched: _Watched, now: float) -> None:
        service = watched.service
        if watched.state == "waiting":
            if now >= watched.due:
                self._start_again(watched)
            return
        status = service.poll()
        if status is not None:
            self._schedule(watched, status, now)
        elif watched.state == "starting" and service.ready():
            watched.state = "up"
            log.info("%s is up", service.name)
            self._write()

    def _start_again(self, watched: _Watched) -> None:
        watched.restarts += 1
        log.info("starting %s again", watched.service.name)
        try:
            self._start(watched)
        except UserError as error:
            log.error("%s did not start: %s", watched.service.name, error)
            self._schedule(watched, None, time.monotonic())

    def _schedule(self, watched: _Watched, status: int | None, now: float) -> None:
        watched.ended_with = status
        watched.ends, wait = next_start(watched.ends, now - watched.started)
        watched.state = "waiting"
        watched.due = now + wait
        log.warning("%s; next start in %.1f s", _ending(watched.service.name, status), wait)
        self._write()

    def _until_next(self) -> float:
        """Seconds until something is due, unless a child ends before."""
        now = time.monotonic()
        wait = _LOOK_EVERY_S
        for watched in self._watched:
            if watched.state == "waiting":
                wait = min(wait, max(0.0, watched.due - now))
            elif watched.state == "starting":
                wait = min(wait, _POLL_S)
        return wait

    def _stop_all(self) -> None:
        for watched in reversed(self._watched):
            watched.service.ask_to_stop()
            watched.service.end(STOP_TIMEOUT_S)
            watched.state = "down"
            self._write()

    def _enter(self, phase: str, message: str) -> None:
        self._phase = phase
        self._message = message
        log.info("%s", phase if not message else f"{phase}: {message}")
        self._write()

    def _write(self) -> None:
        try:
            if not self._state.is_held_by(self._lock):
                # Another cluster may have its record there by now.
                return
            write_json(self._state.supervisor, self._document())
        except OSError as error:
            # A full disk must not end the servers; the next change tries again.
            log.error("%s cannot be written: %s", self._state.supervisor, error)

    def _document(self) -> JsonObject:
        services: dict[str, Json] = {watched.service.name: watched.document() for watched in self._watched}
        return {
            "v": 1,
            **self._about,
            "dir": str(self._state.root),
            "pid": os.getpid(),
            "start": start_ticks(os.getpid()),
            "state": self._phase,
            "message": self._message,
            "services": services,
            "changed_at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        }


class _Bell:
    """Wakes the supervisor: a child has ended, or somebody wants it to stop."""

    def __init__(self) -> None:
        self.stop_requested = False
        self._interrupting = False
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        os.set_blocking(self._reader, False)
        self._before: dict[signal.Signals, Callable[[int, FrameType | None], object] | int | None] = {}

    def __enter__(self) -> _Bell:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            self._before[number] = signal.signal(number, self._ring)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        return self

    def __exit__(self, *error: object) -> None:
        signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        os.close(self._reader)
        os.close(self._writer)

    def wait(self, seconds: float) -> None:
        """Until a signal, or for so long."""
        select.select([self._reader], [], [], seconds)
        with contextlib.suppress(BlockingIOError):
            while os.read(self._reader, 512):
                pass

    @contextlib.contextmanager
    def interrupting(self) -> Iterator[None]:
        """Within, a request to stop raises StopAsked: a start may take as long as a recovery takes."""
        self._interrupting = True
        try:
            # In this order: a request between the two would be heard after the start alone.
            if self.stop_requested:
                raise StopAsked
            yield
        finally:
            self._interrupting = False

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGCHLD:
            return
        self.stop_requested = True
        if self._interrupting:
            self._interrupting = False
            raise StopAsked


def next_start(ends: int, lived_s: float) -> tuple[int, float]:
    """After another end, of a life of ``lived_s``: how many there were in a row, and seconds until the next start."""
    ends = 1 if lived_s >= HEALTHY_S else ends + 1
    return ends, BACKOFF.after(ends - 1)


def _ending(name: str, status: int | None) -> str:
    if status is None:
        return f"{name} could not be started"
    if status < 0:
        return f"{name} was ended by {signal.Signals(-status).name}"
    return f"{name} ended with exit code {status}"
