"""What can be seen of a cluster from outside: what it says of itself, as far as a living process stands behind it."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field

from tenax.errors import AlreadyExists, UserError
from tenax.jsonvalue import JsonObject
from tenax.local.holders import holders, supervisors
from tenax.local.state_dir import StateDir, number_of, read_json, text_of
from tenax.runtime.processes import Identity, is_running


class AlreadyUp(AlreadyExists):
    """A cluster is already up in this directory."""


class Occupied(AlreadyUp):
    """Another command has this directory to itself: it upgrades, copies or restores the database."""


@dataclass(frozen=True, slots=True)
class Glance:
    """A cluster at one moment."""

    #: Whether a process holds its directory: its supervising process, or one that is about to start that.
    alive: bool
    #: ``supervisor.json``: of the last one when none lives; empty for a new directory.
    document: JsonObject
    #: Its supervising processes: two where the directory was removed under the first.
    supervisors: list[Identity] = field(default_factory=list)
    #: Whether its directory was removed under it.
    removed: bool = False

    @property
    def phase(self) -> str:
        """``starting``, ``up``, ``stopping``, ``occupied``, ``failed`` or ``down``."""
        if self.removed:
            return "stopping"
        state = text_of(self.document, "state")
        if self.alive:
            return state if state in ("starting", "up", "stopping", "occupied") else "starting"
        return "failed" if state == "failed" else "down"

    @property
    def url(self) -> str:
        return text_of(self.document, "url")

    @property
    def message(self) -> str:
        if self.removed:
            return "its directory was removed or replaced while it was up: it ends by itself, or with tenax down"
        return text_of(self.document, "message")

    @property
    def process(self) -> str:
        """Its supervising process, for people."""
        if self.phase == "occupied":
            return str(number_of(self.document, "pid"))
        return ", ".join(str(identity.pid) for identity in self.supervisors) or "not there yet"

    def services(self) -> dict[str, JsonObject]:
        """What is known about each server."""
        services = self.document.get("services")
        pairs = services.items() if isinstance(services, dict) else ()
        return {name: value for name, value in pairs if isinstance(value, dict)}


def glance(state: StateDir) -> Glance:
    """How the cluster of this directory is."""
    locked = state.is_locked()
    document = read_json(state.supervisor)
    recorded = written_identity(document)
    if locked and recorded is not None and is_running(recorded):
        return Glance(True, document, [recorded])
    # It is starting, or was killed; or it writes no more, its directory being gone, full or not to be written.
    supervising = supervisors(state.lock)
    if locked and "pid" in document:
        holding = [os.getpid(), *(identity.pid for identity in holders(state.lock))]
        document = document if number_of(document, "pid") in holding else {}
    return Glance(locked or bool(supervising), document, supervising, removed=bool(supervising) and not locked)


def written_identity(document: JsonObject) -> Identity | None:
    """The process that a record of ours names; None where it names none for certain."""
    pid, start = number_of(document, "pid"), number_of(document, "start")
    return Identity(pid, start) if pid > 0 and start > 0 else None


def preparing(state: StateDir) -> list[Identity]:
    """Processes that hold the directory and supervise nothing: ``tenax up`` before its supervising process."""
    with contextlib.suppress(OSError):
        supervising = supervisors(state.lock)
        return [identity for identity in holders(state.lock) if identity not in supervising]
    return []


def already_up(state: StateDir) -> UserError:
    """What keeps this directory from being used for another start, in words."""
    seen = glance(state)
    if seen.phase == "occupied":
        return Occupied(
            f"The cluster in {state.root} is not free: {seen.message} (process {seen.process}). Wait until that has "
            "ended. Ctrl-C there breaks it off, and nothing stored is lost by that."
        )
    return AlreadyUp(
        f"A cluster is already up in {state.root}: {seen.url or 'it is just starting'} (process {seen.process}). "
        "Look at it with: tenax status. Stop it with: tenax down."
    )
