"""Starting, looking at and stopping the supervisor of a directory: what ``tenax up``, ``status`` and ``down`` do."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from tenax.errors import AlreadyExists, TenaxError, UserError
from tenax.jsonvalue import JsonObject
from tenax.local.state_dir import StateDir, number_of, read_json, text_of, write_json
from tenax.local.supervise.cluster import LocalCluster, free_port, plan, refuse_taken_port, supervisor_of
from tenax.local.supervise.logs import open_log, tail
from tenax.local.supervise.options import load_options, save_options

#: What the servers import; named when they are not installed.
_NEEDED = ("uvicorn", "fastapi", "asyncpg", "aiohttp", "psutil")
_POLL_S = 0.05
_LEFTOVER_S = 20.0


class AlreadyUp(AlreadyExists):
    """A cluster is already up in this directory."""


class NotStarted(UserError):
    """The cluster did not start."""


class StillStopping(UserError):
    """The cluster has not ended yet."""


@dataclass(frozen=True, slots=True)
class Glance:
    """What can be seen of a cluster from outside."""

    #: Whether its supervising process lives.
    alive: bool
    #: ``supervisor.json``: of the last one when none lives; empty for a new directory.
    document: JsonObject

    @property
    def phase(self) -> str:
        """``starting``, ``up``, ``stopping``, ``failed`` or ``down``."""
        state = text_of(self.document, "state")
        if self.alive:
            return state if state in ("starting", "up", "stopping") else "starting"
        return "failed" if state == "failed" else "down"

    @property
    def url(self) -> str:
        return text_of(self.document, "url")

    @property
    def message(self) -> str:
        return text_of(self.document, "message")

    @property
    def pid(self) -> int:
        return number_of(self.document, "pid")

    def services(self) -> dict[str, JsonObject]:
        """What is known about each server."""
        services = self.document.get("services")
        pairs = services.items() if isinstance(services, dict) else ()
        return {name: value for name, value in pairs if isinstance(value, dict)}


def glance(state: StateDir) -> Glance:
    """How the cluster of this directory is."""
    alive = state.is_locked()
    document = read_json(state.supervisor)
    if alive and not _lives(number_of(document, "pid")):
        # Whoever has the lock is just starting; what stands there is of the one before, which was killed.
        document = {}
    return Glance(alive, document)


def _lives(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid > 0


def prepare(state: StateDir, given: dict[str, object]) -> tuple[LocalCluster, int]:
    """The cluster to start, checked, and the descriptor of its lock; the caller closes it or hands it on.

    ``given``: options of this call (None: not given). Nothing has been started. Raises UserError.
    """
    _refuse_without_servers()
    state.prepare()
    lock = state.take_lock()
    if lock is None:
        seen = glance(state)
        raise AlreadyUp(
            f"A cluster is already up in {state.root}: {seen.url or 'it is just starting'} (process {seen.pid}). "
            "Look at it with: tenax status. Stop it with: tenax down."
        )
    try:
        return _check(state, given), lock
    except BaseException:
        os.close(lock)
        raise


def launch(cluster: LocalCluster, lock: int) -> int:
    """Start the supervising process, detached; returns its process id. It inherits the lock, which is closed here."""
    state = cluster.state
    output = open_log(state.log("supervisor"))
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tenax.local", str(state.root), str(lock)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=state.root,
            start_new_session=True,
            pass_fds=(lock,),
        )
    finally:
        os.close(output)
        os.close(lock)
    return process.pid


def wait_until_up(state: StateDir, say: Callable[[str], None]) -> Glance:
    """Until the cluster is up; ``say`` hears what it is waiting for. Raises NotStarted with the reason."""
    last_message = ""
    while True:
        seen = glance(state)
        if seen.phase == "up":
            return seen
        if not seen.alive:
            reason = seen.message or tail(state.log("supervisor"))
            raise NotStarted(f"The cluster in {state.root} did not start, and nothing of it is left running.\n{reason}")
        if seen.message and seen.message != last_message:
            last_message = seen.message
            say(last_message)
        time.sleep(_POLL_S)


def stop(state: StateDir, say: Callable[[str], None], timeout_s: float = 120.0) -> bool:
    """End the servers; whether there were any. Tasks run on. Raises StillStopping after ``timeout_s`` seconds."""
    seen = glance(state)
    if not seen.alive:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(seen.pid, signal.SIGTERM)
    until = time.monotonic() + timeout_s
    while state.is_locked():
        if time.monotonic() > until:
            raise StillStopping(
                f"The cluster in {state.root} is still stopping after {timeout_s:.0f} s. Look into "
                f"{state.log('supervisor')}; `kill -9 {seen.pid}` ends it at once, and nothing stored is lost by that."
            )
        time.sleep(_POLL_S)
    say("stopped")
    return True


def supervise(state: StateDir, lock: int | None, *, to_terminal: bool = False) -> int:
    """Be the supervising process of this directory until it is stopped; its exit code."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(message)s" if to_terminal else "%(asctime)s %(levelname)s %(message)s",
    )
    held = lock if lock is not None else state.take_lock()
    if held is None:
        logging.error("A cluster is already up in %s.", state.root)
        return 1
    # Servers must not inherit it: they would look like a cluster that is up.
    os.set_inheritable(held, False)
    try:
        supervisor_of(plan(state, load_options(state))).run()
    except TenaxError as error:
        logging.error("%s", error)
        return 1
    finally:
        os.close(held)
    return 0


def _refuse_without_servers() -> None:
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(
            f"The servers are not installed ({', '.join(missing)} missing): pip install 'tenax[server]'. "
            "To use a cluster that runs elsewhere, set DET_MASTER to its address."
        )


def _check(state: StateDir, given: dict[str, object]) -> LocalCluster:
    end_leftovers(read_json(state.supervisor))
    options = load_options(state).given(**given)  # type: ignore[arg-type]
    cluster = plan(state, options)
    if cluster.settings.port == 0:
        options = options.given(port=free_port(cluster.settings.host))
        cluster = plan(state, options)
    refuse_taken_port(cluster.settings.host, cluster.settings.port)
    # Under root tasks may run as others, who come down to their own below the first and write into the second.
    for directory, roots_mode in ((state.agent, 0o711), (state.checkpoints, 0o1777)):
        directory.mkdir(mode=0o700, exist_ok=True)
        if os.geteuid() == 0:
            directory.chmod(roots_mode)
    save_options(state, options)
    write_json(state.supervisor, {"v": 1, **cluster.about(), "pid": os.getpid(), "state": "starting", "message": ""})
    return cluster


def end_leftovers(document: JsonObject) -> None:
    """Servers whose supervisor was killed: the kernel ends them in a moment; where it cannot, we do."""
    import psutil

    left: list[psutil.Process] = []
    for name, service in Glance(False, document).services().items():
        pid = number_of(service, "pid")
        # The database has a lock of its own that its next start waits for.
        if name == "postgres" or pid == 0:
            continue
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            if f"tenax.{name}" in process.cmdline():
                left.append(process)
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, timeout=_LEFTOVER_S)
