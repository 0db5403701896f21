"""Starting the supervisor of a directory: what ``tenax up`` does."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType

from tenax.errors import TenaxError, UserError
from tenax.host.disk import is_full, is_there
from tenax.local.holders import call_this_process_supervisor
from tenax.local.pgdata import refuse_unreadable
from tenax.local.state_dir import DirectoryUnusable, StateDir, read_json, write_json
from tenax.local.supervise.cluster import LocalCluster, free_port, plan, refuse_taken_port, supervisor_of
from tenax.local.supervise.ending import end_leftovers, end_removed
from tenax.local.supervise.glance import Glance, already_up, glance
from tenax.local.supervise.logs import open_log, tail
from tenax.local.supervise.options import load_options, save_options

_POLL_S = 0.05
#: How long ``up`` waits for a supervising process that says nothing new; it says something every few seconds.
SILENCE_S = 60.0
#: How long it waits at all: a database that recovers for longer does so without a spectator.
MAX_START_S = 1800.0


class NotStarted(UserError):
    """The cluster did not start."""


class StillStarting(UserError):
    """The cluster has not come up yet."""


def prepare(state: StateDir, given: dict[str, object]) -> tuple[LocalCluster, int]:
    """The cluster to start, checked, and the descriptor of its lock; the caller closes it or hands it on.

    ``given``: options of this call (None: not given). Nothing has been started. Raises UserError.
    """
    is_new = not is_there(state.root)
    state.prepare()
    try:
        lock = state.take_lock()
    except OSError as error:
        raise _unwritable(state, error) from None
    if lock is None:
        raise already_up(state)
    try:
        end_removed(state)
        state.sweep()
        return _check(state, given), lock
    except BaseException as error:
        if is_new:
            # Nothing is left of what did not begin; what others put there stays.
            with contextlib.suppress(OSError):
                state.lock.unlink()
                state.root.rmdir()
        os.close(lock)
        if isinstance(error, OSError):
            raise _unwritable(state, error) from None
        raise


def _unwritable(state: StateDir, error: OSError) -> DirectoryUnusable:
    return DirectoryUnusable(f"{state.root} cannot be written: {error.strerror}. {_room(state)}Nothing was started.")


@contextlib.contextmanager
def occupied(state: StateDir, message: str) -> Iterator[None]:
    """Have the directory to ourselves, for its database; others are told ``message``. Raises AlreadyUp, Occupied."""
    lock = state.take_lock()
    if lock is None:
        raise already_up(state)
    before = read_json(state.supervisor)
    try:
        write_json(state.supervisor, {**before, "pid": os.getpid(), "state": "occupied", "message": message})
        yield
    finally:
        write_json(state.supervisor, before)
        os.close(lock)


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


def wait_until_up(
    state: StateDir, say: Callable[[str], None], *, silence_s: float = SILENCE_S, longest_s: float = MAX_START_S
) -> Glance:
    """Until the cluster is up; ``say`` hears what it is waiting for.

    Raises NotStarted with the reason, StillStarting when nothing is heard for ``silence_s`` seconds.
    """
    started = heard_at = time.monotonic()
    last = Glance(True, {})
    while True:
        seen = glance(state)
        if seen.phase == "up":
            return seen
        if not seen.alive or seen.removed:
            raise NotStarted(
                f"The cluster in {state.root} did not start, and nothing of it is left running.\n{_why(state, seen)}"
            )
        now = time.monotonic()
        if seen.document != last.document:
            heard_at = now
            if seen.message and seen.message != last.message:
                say(seen.message)
            last = seen
        if now - heard_at > silence_s or now - started > longest_s:
            raise StillStarting(
                f"The cluster in {state.root} is not up after {now - started:.0f} s. {_room(state)}Its process "
                f"({seen.process}) runs on: tenax status shows it, {state.log('supervisor')} says more, "
                "tenax down ends it."
            )
        time.sleep(_POLL_S)


def _why(state: StateDir, seen: Glance) -> str:
    """Why it is not up, from whoever could still say it."""
    if seen.removed or not is_there(state.lock):
        return "Its directory was removed while it started."
    if seen.phase == "down" and not seen.message and seen.document.get("changed_at"):
        return "It was stopped while it started."
    return (
        seen.message
        or _room(state)
        or tail(state.log("supervisor"))
        or "Its process was ended, by tenax down or by a signal, before it said anything."
    )


def _room(state: StateDir) -> str:
    """A sentence about a disk without any, and a space; empty where it has room."""
    place = next(place for place in (state.root, *state.root.parents) if is_there(place))
    return f"The disk of {place} is full: make room on it. " if is_full(str(place)) else ""


def supervise(state: StateDir, lock: int | None, *, to_terminal: bool = False) -> int:
    """Be the supervising process of this directory until it is stopped; its exit code."""
    call_this_process_supervisor()
    # Until its servers are watched nothing is lost by an end at once, but for the reason.
    signal.signal(signal.SIGTERM, _stopped_early)
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
        supervisor_of(plan(state, load_options(state)), held).run()
    except TenaxError as error:
        logging.error("%s", error)
        return 1
    finally:
        os.close(held)
    return 0


def _stopped_early(number: int, frame: FrameType | None) -> None:
    logging.info("stopped before it began")
    raise SystemExit(0)


def _check(state: StateDir, given: dict[str, object]) -> LocalCluster:
    if is_there(state.restoring):
        raise NotStarted(f"A restore into {state.root} was broken off: begin it again, with tenax restore.")
    end_leftovers(read_json(state.supervisor))
    options = load_options(state).given(**given)  # type: ignore[arg-type]
    cluster = plan(state, options)
    if cluster.settings.port == 0:
        options = options.given(port=free_port(cluster.settings.host))
        cluster = plan(state, options)
    refuse_taken_port(cluster.settings.host, cluster.settings.port)
    if given.get("own_database") is False and cluster.settings.db.url is not None:
        raise NotStarted(
            "The settings name a database of your own (db.url in the settings file, or TENAX_MASTER_DB__URL): take "
            "that out to go back to the one that Tenax brings along. Nothing was started."
        )
    if cluster.misses_its_database:
        raise NotStarted(
            f"The cluster in {state.root} works on a database of your own, whose address is neither in the settings "
            "file nor in TENAX_MASTER_DB__URL now: set it again. The one that Tenax brings along would know nothing of "
            "what was done since; to go back to it all the same: tenax up --embedded-database. Nothing was started."
        )
    if cluster.settings.db.url is None:
        refuse_unreadable(state.postgres)
    # Under root tasks may run as others, who come down to their own below the first and write into the second.
    for directory, roots_mode in ((state.agent, 0o711), (state.checkpoints, 0o1777)):
        directory.mkdir(mode=0o700, exist_ok=True)
        if os.geteuid() == 0:
            directory.chmod(roots_mode)
    save_options(state, options)
    write_json(
        state.supervisor, {"v": 1, **cluster.about(), "dir": str(state.root), "state": "starting", "message": ""}
    )
    return cluster
