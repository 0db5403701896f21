"""Ending a cluster: what ``tenax down`` does, and ``tenax up`` with what a killed one left.

Rules:
- A signal goes to a process only that holds the directory's lock and calls itself its supervisor, or that this
  directory's record names with its start time. Never to 0, to a group, or to a number alone.
- Whoever is just starting is waited for and then ended: a request to stop is not lost, whenever it comes.
- Every wait has an end; a supervising process that does not end is killed, which loses nothing stored.
"""

from __future__ import annotations

import contextlib
import signal
import time

from tenax.errors import UserError
from tenax.jsonvalue import JsonObject
from tenax.local.holders import holders, supervisors
from tenax.local.state_dir import StateDir, number_of, read_json
from tenax.local.supervise.glance import Glance, already_up, glance, preparing, written_identity
from tenax.runtime.processes import LINUX, Identity, is_running, send, wait_for_end

_POLL_S = 0.05
#: A request that met a process on its way to hearing it is made again.
_AGAIN_S = 5.0
#: For each of the servers in turn, and a little more.
_GRACE_S = 120.0
#: From the lock of a directory to its supervising process.
_PREPARED_S = 20.0
_LEFTOVER_S = 20.0
#: A database that was cut off writes what it must and ends.
_DATABASE_S = 60.0


class StillStopping(UserError):
    """The cluster has not ended yet."""


def stop(state: StateDir, timeout_s: float = _GRACE_S, prepared_s: float = _PREPARED_S) -> bool:
    """End the servers; whether there were any. Tasks run on. Raises StillStopping, Occupied.

    ``prepared_s``: how long whoever holds the directory may take until it supervises.
    """
    if glance(state).phase == "occupied":
        raise already_up(state)
    before = read_json(state.supervisor)
    there_was = False
    supervised_at = time.monotonic()
    until = supervised_at + timeout_s
    requested_at: dict[Identity, float] = {}
    while time.monotonic() < until:
        running = _supervisors(state)
        if not running and not state.is_locked():
            break
        if running:
            supervised_at = time.monotonic()
        elif time.monotonic() - supervised_at > prepared_s:
            raise _held_by_others(state)
        there_was = True
        for identity in running:
            if time.monotonic() - requested_at.get(identity, -_AGAIN_S) >= _AGAIN_S:
                requested_at[identity] = time.monotonic()
                _ask(identity)
        time.sleep(_POLL_S)
    else:
        _kill_supervisors(state)
    # They let go of the directory a moment before they end; one that ended by itself was not asked.
    written = written_identity(before) if there_was else None
    wait_for_end([*requested_at, *([] if written is None else [written])], _LEFTOVER_S)
    for document in (before, read_json(state.supervisor)):
        end_leftovers(document)
    _wait_for_database(state)
    return there_was


def end_removed(state: StateDir) -> list[Identity]:
    """End clusters whose directory was removed from under them; which there were. For the holder of the new lock."""
    running = supervisors(state.lock)
    for identity in running:
        _ask(identity)
    for identity in wait_for_end(running, _GRACE_S):
        _send(identity, signal.SIGKILL)
    return running


def end_leftovers(document: JsonObject) -> None:
    """Servers whose supervisor was killed: the kernel ends them in a moment; where it cannot, we do."""
    supervisor = written_identity(document)
    if supervisor is None or is_running(supervisor):
        return
    left = []
    for name, service in Glance(False, document).services().items():
        identity = Identity(number_of(service, "pid"), number_of(service, "start"))
        # The database has a lock of its own that its next start waits for.
        if name != "postgres" and identity.start > 0 and is_running(identity):
            left.append(identity)
    for identity in left:
        _send(identity, signal.SIGKILL)
    wait_for_end(left, _LEFTOVER_S)


def _supervisors(state: StateDir) -> list[Identity]:
    if LINUX:
        return supervisors(state.lock)
    recorded = written_identity(read_json(state.supervisor))
    return [recorded] if recorded is not None and is_running(recorded) and state.is_locked() else []


def _kill_supervisors(state: StateDir) -> None:
    running = _supervisors(state)
    for identity in running:
        _send(identity, signal.SIGKILL)
    if not running:
        raise _held_by_others(state)
    if left := wait_for_end(running, _LEFTOVER_S):
        raise StillStopping(
            f"The cluster in {state.root} (process {left[0].pid}) does not end, not even by SIGKILL: the kernel waits "
            f"for something, such as a disk that does not answer. Look into {state.log('supervisor')}."
        )


def _held_by_others(state: StateDir) -> StillStopping:
    pids = ", ".join(str(identity.pid) for identity in preparing(state))
    if not pids:
        return StillStopping(
            f"A process that cannot be seen from here (of another user, or of another container) holds {state.lock}, "
            "and nothing was ended: run tenax down where it runs, or end it there."
        )
    return StillStopping(
        f"Process {pids} holds {state.root} to start a cluster there, and does not go on: end it, then tenax down."
    )


def _wait_for_database(state: StateDir) -> None:
    """A supervisor that was killed leaves it shutting down."""
    left = wait_for_end(holders(state.postgres / "server.lock"), _DATABASE_S)
    for identity in left:
        # What SIGINT and the end of their connections do not reach; recovery makes it whole.
        _send(identity, signal.SIGKILL)
    wait_for_end(left, _LEFTOVER_S)


def _ask(identity: Identity) -> None:
    _send(identity, signal.SIGTERM)
    # One that was stopped hears it only when it goes on.
    _send(identity, signal.SIGCONT)


def _send(identity: Identity, number: signal.Signals) -> None:
    with contextlib.suppress(PermissionError):
        send(identity, number)
