"""The embedded PostgreSQL: one data directory, one server, our child. Standard library only; no event loop.

Rules:
- Two locks under the directory. ``lock`` is held by the launcher: a second launcher is refused at once. ``server.lock``
  is inherited by the server and all its processes, so whoever holds it may trust that no process of an earlier server
  is left, whatever a pid file says (pids recur, in containers at once).
- The server never outlives its launcher: the kernel sends it SIGINT (a clean, fast shutdown) when the thread that
  started it ends. Hence ``start`` is for the main thread only.
- Recovery is not given up after a number of seconds: it takes what it takes, and says so through ``progress``.
- A data directory appears complete or not at all; its PG_VERSION chooses the program, forever.
- Clients come through a socket in a directory of ours, with a password that stands in a file only its owner can read.
- No existing directory's mode is changed.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tenax.errors import Impossible
from tenax.host.disk import is_there
from tenax.local.accounts import Account, account_for, unreachable
from tenax.local.binaries import CURRENT_MAJOR, Installation, choose, within_reach
from tenax.local.pgdata import (
    NAME,
    AlreadyRunning,
    DatabaseFailed,
    address,
    client_environment,
    create,
    end_orphans,
    environment,
    forget_dead_server,
    forget_dead_socket,
    is_ready,
    major_of,
    password_of,
    put_in_place,
    socket_directory,
    tail,
)

_LOG_BYTES = 16 * 1024 * 1024
_POLL_S = 0.01
_PROGRESS_EVERY_S = 5.0
#: After this long an earlier server is not shutting down any more.
_STUBBORN_S = 60.0

#: On one machine, beside a master and training; a setting given to EmbeddedPostgres wins.
SETTINGS: Mapping[str, str] = {
    "listen_addresses": "",
    "max_connections": "100",
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    # Both need /dev/shm, which is 64 MB in many containers; our statements are small.
    "max_parallel_workers_per_gather": "0",
    "max_parallel_maintenance_workers": "0",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "log_line_prefix": "%m [%p] ",
    "cluster_name": NAME,
    "restart_after_crash": "on",
}


def quiet(message: str) -> None:
    """A ``progress`` that says nothing."""


class EmbeddedPostgres:
    """The server of one directory. Not thread-safe: one owner, which calls ``start`` from the main thread.

    ``account``: who runs it when we are root (None: the owner of the data, or the first of ``accounts.PREFERRED``).
    ``settings``: over SETTINGS. ``major``: of a database that is to be made; ``programs``: to choose from (None: those
    of the wheel). ``progress`` gets a sentence now and then while something takes long. ``within``: is never made anew:
    where it is not there, it was moved or removed.
    """

    def __init__(
        self,
        directory: Path,
        *,
        account: str | None = None,
        settings: Mapping[str, str] | None = None,
        major: int = CURRENT_MAJOR,
        programs: Sequence[Installation] | None = None,
        progress: Callable[[str], None] = quiet,
        within: Path | None = None,
    ) -> None:
        self._directory = directory.absolute()
        self._within = None if within is None else within.absolute()
        self._account_name = account
        self._settings = {**SETTINGS, **(settings or {})}
        self._major = major
        self._programs = programs
        self._progress = progress
        self._lock: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._dsn = ""
        #: Whether its data was there once; it is made only before.
        self._served = False
        self._sockets: Path | None = None

    @property
    def dsn(self) -> str:
        """``postgresql://...`` of the running server; holds the password."""
        if not self._dsn:
            raise Impossible("the database was not started")
        return self._dsn

    @property
    def environment(self) -> dict[str, str]:
        """Of programs that talk to the running server; holds the password."""
        if self._sockets is None:
            raise Impossible("the database was not started")
        return client_environment(password_of(self._directory), self._sockets)

    @property
    def data(self) -> Path:
        return self._directory / "data"

    @property
    def log(self) -> Path:
        """What the server says about itself."""
        return self._directory / "postgres.log"

    @property
    def pid(self) -> int | None:
        """Of the server while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> str:
        """Make the data directory if it is not there, start the server, wait until it answers; returns the dsn.

        Nothing when it runs; to be called again after it died.
        Raises AlreadyRunning, DatabaseFailed, NoPostgres, NoAccount.
        """
        if threading.current_thread() is not threading.main_thread():
            raise Impossible("the database server dies with the thread that starts it: start it from the main thread")
        if self.pid is not None:
            return self.dsn
        account = self._prepare_directory()
        self._take_lock()
        try:
            self._serve(account)
        except BaseException:
            self.stop()
            raise
        return self._dsn

    def poll(self) -> int | None:
        """The exit status of the server (negative: the signal), or None while it runs."""
        return self._process.poll() if self._process is not None else None

    def stop(self, timeout_s: float = 60.0) -> None:
        """End the server, let go of the directory. After ``timeout_s`` seconds it is cut off, and recovers later."""
        process = self._process
        if process is not None and process.poll() is None:
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
                process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout_s)
                    break
        self._process = None
        if self._sockets is not None and self._directory not in self._sockets.parents:
            # It stands in a place of everybody's, and is made again at the next start.
            with contextlib.suppress(OSError):
                self._sockets.rmdir()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def wait_until_gone(self) -> None:
        """Until no process is left of a server whose launcher has ended."""
        os.close(self._wait_for_the_dead())

    def __enter__(self) -> EmbeddedPostgres:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _prepare_directory(self) -> Account | None:
        account = account_for(self.data, self._account_name)
        missing = [place for place in (self._directory, *self._directory.parents) if not is_there(place)]
        if self._within in missing:
            raise DatabaseFailed(f"{self._within} is not there any more: it was removed or moved. Nothing was started.")
        present = missing[-1].parent if missing else self._directory
        blocked = unreachable(account, present) if account is not None else None
        if account is not None and blocked is not None:
            raise DatabaseFailed(
                f"PostgreSQL runs as {account.name!r} and may not enter {blocked}, so it cannot keep its data in "
                f"{self._directory}: choose a directory that everybody may enter (such as /var/lib/tenax), or start "
                "Tenax as an ordinary user. Nothing was changed."
            )
        for place in reversed(missing):
            place.mkdir()
            # Passed through by the server's account; what is secret inside has a mode of its own.
            place.chmod(0o700 if account is None else 0o711)
        return account

    def _take_lock(self) -> None:
        if self._lock is not None:
            return
        lock = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(lock, 32, 0).decode(errors="replace").strip()
            os.close(lock)
            raise AlreadyRunning(
                f"The database in {self._directory} is already run by process {owner or '(unknown)'}: stop that one "
                "first (tenax down), or use another directory."
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        self._lock = lock

    def _serve(self, account: Account | None) -> None:
        server_lock = self._wait_for_the_dead()
        try:
            put_in_place(self._directory)
            password = password_of(self._directory)
            is_new = not is_there(self.data / "PG_VERSION")
            if is_new and self._served:
                raise DatabaseFailed(f"{self.data} was removed while its server ran. Nothing was put in its place.")
            installation = choose(self._major if is_new else major_of(self.data), self._programs)
            installation = self._within_reach(installation, account)
            if is_new:
                create(self._directory, installation, account, password, server_lock)
            forget_dead_server(self.data)
            sockets = self._sockets = socket_directory(self._directory, account)
            forget_dead_socket(sockets)
            self._process = self._launch(installation, account, sockets, server_lock)
        finally:
            os.close(server_lock)
        self._wait_until_ready()
        self._served = True
        self._dsn = address(password, sockets)

    def _wait_for_the_dead(self) -> int:
        """The lock that every process of an earlier server holds until it is gone; waits for the last one."""
        lock = os.open(self._directory / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)
        waiting = _Waiting(self._progress)
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return lock
            except OSError:
                if waiting.tick("waiting for the last processes of the earlier database server to end"):
                    self._end_the_dead(waiting.seconds)

    def _end_the_dead(self, waited_s: float) -> None:
        """Harder the longer it takes; what even SIGKILL does not end, the kernel holds. Raises DatabaseFailed."""
        pids = end_orphans(self._directory, signal.SIGQUIT if waited_s < _STUBBORN_S else signal.SIGKILL)
        if waited_s > 2 * _STUBBORN_S:
            raise DatabaseFailed(
                f"Processes of the earlier database server ({', '.join(map(str, pids)) or 'not to be seen from here'}) "
                f"still hold {self._directory / 'server.lock'} after {waited_s:.0f} s: find out what they wait for."
            )

    def _within_reach(self, installation: Installation, account: Account | None) -> Installation:
        return within_reach(installation, account, self._directory)

    def _launch(
        self, installation: Installation, account: Account | None, sockets: Path, server_lock: int
    ) -> subprocess.Popen[bytes]:
        options = {**self._settings, "unix_socket_directories": str(sockets)}
        command: list[str | Path] = [installation.program("postgres"), "-D", self.data]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        if is_there(self.log) and self.log.stat().st_size > _LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        with open(os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=environment(),
                pass_fds=(server_lock,),
                # A terminal's Ctrl-C goes to the launcher alone, which then stops the server.
                start_new_session=True,
                preexec_fn=_die_with_parent(os.getpid()),
                user=account.uid if account else None,
                group=account.gid if account else None,
                extra_groups=[] if account else None,
            )

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        waiting = _Waiting(self._progress)
        while not is_ready(self.data, self._process.pid):
            if self._process.poll() is not None:
                raise DatabaseFailed(f"PostgreSQL did not start. The end of {self.log}:\n{tail(self.log)}")
            waiting.tick(
                "the database is recovering from an unclean end; nothing is lost, it takes as long as it takes"
            )


class _Waiting:
    """Waits a moment at a time, and says why now and then."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self._progress = progress
        self._started = self._reported_at = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def tick(self, why: str) -> bool:
        """Whether it has just reported progress."""
        time.sleep(_POLL_S)
        now = time.monotonic()
        if now - self._reported_at >= _PROGRESS_EVERY_S:
            self._reported_at = now
            self._progress(f"{why} ({now - self._started:.0f} s)")
            return True
        return False


def _die_with_parent(parent: int) -> Callable[[], None] | None:
    """What the child does before it becomes PostgreSQL: ask for SIGINT at the end of ``parent``.

    Runs after the change of account, which would clear the request. Linux only: elsewhere a launcher that is killed
    leaves the server running, and the next one waits for its lock (untested).
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    set_parent_death_signal = 1

    def ask() -> None:
        prctl(set_parent_death_signal, int(signal.SIGINT), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return ask
