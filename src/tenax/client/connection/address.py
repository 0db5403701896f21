"""Which master is meant, who said so, and how its address is written. Standard library only.

The first of these that there is:

1. what was named: ``--master``, or the SDK's argument
2. ``DET_MASTER``; in a task, all masters of the cluster
3. the cluster in ``TENAX_DIR``, where that is set
4. the cluster that this user was told last: the one of the last ``tenax up`` or ``tenax user login``
5. the cluster in this user's own directory
6. ``http://127.0.0.1:8080``, where a program of this user listens

Several masters of one cluster are named with commas between them; the first is what it is called.

Nothing is asked of, and no password or token sent to, an address of this machine that another user's program listens
on because our cluster is down, or on another machine: it is refused, saying whose it is.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Optional, Tuple
from urllib.parse import urlsplit, urlunsplit

from tenax.client.connection.listener import listening_uid, name_of
from tenax.client.connection.saved_logins import config_directory
from tenax.errors import InvalidInput, TenaxError
from tenax.jsonvalue import JsonObject
from tenax.local import state_dir
from tenax.local.state_dir import StateDir, default_root, read_json, text_of, write_json
from tenax.wire.task_names import masters_of

VARIABLE = "DET_MASTER"
FALLBACK = "http://127.0.0.1:8080"
_DEFAULT_PORT = 8080
_PORTS = {"http": 80, "https": 443}


class Unreachable(TenaxError):
    """Nothing answers at the master's address."""


@dataclass(frozen=True)
class MasterTarget:
    """A master, and how we came to it."""

    #: Canonical; of several masters the first.
    url: str
    #: The others.
    others: Tuple[str, ...] = ()
    #: Who named it, to be said where that was nobody's word of today; empty where it was.
    notice: str = ""
    #: The directory of the cluster that answers there, if it is one of this machine.
    local: Optional[StateDir] = None


def target(named: Optional[str] = None) -> MasterTarget:
    """The master that is meant. Raises InvalidInput for what is no address, Unreachable where no cluster is ours."""
    given = named or masters_of(os.environ)
    if given:
        url, *others = (canonical(each) for each in given.split(","))
        return MasterTarget(url, tuple(others), local=None if others else local_cluster_at(url))
    if os.environ.get(state_dir.VARIABLE):
        return _ours(StateDir(default_root()), f"{state_dir.VARIABLE} is {default_root()}")
    remembered = _remembered()
    if remembered is not None:
        return remembered
    own = StateDir(default_root())
    if local_url(own):
        return _ours(own, "This is the cluster of your user")
    return MasterTarget(_fallback())


def local_url(state: StateDir) -> str:
    """Where the cluster of that directory answers, or answered last; empty when there was none."""
    return text_of(read_json(state.supervisor), "url")


def local_cluster_at(url: str) -> Optional[StateDir]:
    """The state directory of the cluster that answers at this canonical address, if it is ours and up."""
    last = text_of(read_json(_told_path()), "dir")
    for state in [StateDir(default_root()), *([StateDir(Path(last))] if last else [])]:
        here = local_url(state)
        if here and canonical(here) == url and not _why_not(state, url):
            return state
    return None


def started_elsewhere(root: Path) -> Optional[Path]:
    """The directory of the cluster that this user started last, if that is up and is another one."""
    directory = text_of(read_json(_told_path()), "dir")
    return Path(directory) if directory and Path(directory) != root and StateDir(Path(directory)).is_locked() else None


def remember(url: str, directory: Optional[Path] = None) -> None:
    """This is the cluster that commands mean from now on, unless another one is named. Best effort."""
    path = _told_path()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_json(path, {"v": 1, "url": url, "dir": str(directory) if directory is not None else ""})
    except OSError:
        return


def canonical(address: str) -> str:
    """``host`` as ``http://host:8080``, ``https://host`` as ``https://host:443``; a path prefix is kept."""
    text = address.strip()
    has_scheme = "://" in text
    parts = urlsplit(text if has_scheme else f"http://{text}")
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in _PORTS or not parts.hostname or port == -1:
        raise InvalidInput(
            f"{address!r} is not the address of a master: write it like http://host:8080 (--master, or {VARIABLE})."
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    number = port or (_PORTS[parts.scheme] if has_scheme else _DEFAULT_PORT)
    return urlunsplit((parts.scheme, f"{host}:{number}", parts.path.rstrip("/"), "", ""))


def _remembered() -> Optional[MasterTarget]:
    document = read_json(_told_path())
    directory, url = text_of(document, "dir"), text_of(document, "url")
    if not directory:
        if not url:
            return None
        first, *others = (canonical(each) for each in url.split(","))
        notice = f"{first}, where you logged in last ({VARIABLE} names another)"
        return MasterTarget(first, tuple(others), notice=notice)
    state, own = StateDir(Path(directory)), StateDir(default_root())
    if not local_url(state) or (state.root != own.root and not state.is_locked() and own.is_locked()):
        # It was removed since, or stopped while that of the usual place is up.
        return None
    notice = f"the cluster in {directory}, which you started last ({state_dir.VARIABLE} or {VARIABLE} names another)"
    last = _ours(state, "This is the cluster that you started last")
    return last if state.root == default_root() else replace(last, notice=notice)


def _ours(state: StateDir, why: str) -> MasterTarget:
    """A cluster of ours. Raises Unreachable, saying why it is meant."""
    owner = state.owner_elsewhere()
    if owner is not None:
        raise Unreachable(
            f"The cluster in {state.root} is that of {name_of(owner)}. {why}. To use it, name its address: "
            f"--master, or {VARIABLE}; for one of your own: {state_dir.VARIABLE}."
        )
    url = local_url(state)
    if not url:
        raise Unreachable(
            f"No cluster was ever started in {state.root}. {why}. Start one with: tenax up. "
            f"Name another with --master, {VARIABLE} or {state_dir.VARIABLE}."
        )
    url = canonical(url)
    reason = _why_not(state, url)
    if reason:
        raise Unreachable(f"{reason} {why}; --master, {VARIABLE} or {state_dir.VARIABLE} names another.")
    return MasterTarget(url, local=state)


def _why_not(state: StateDir, url: str) -> str:
    """Why what listens at the address is not the cluster of that directory; empty where it may be."""
    document: JsonObject = read_json(state.supervisor)
    machine = text_of(document, "machine")
    if machine and machine != platform.node():
        return (
            f"The cluster in {state.root} was started on {machine}, and this is {platform.node()}: "
            f"name its address as seen from here ({VARIABLE})."
        )
    if not state.is_locked():
        place = "" if state.root == default_root() else f" --dir {state.root}"
        return f"The cluster in {state.root} is not up. Start it with: tenax up{place}."
    uid = listening_uid(urlsplit(url).port or 0)
    if uid is not None and uid != state.root.stat().st_uid:
        return f"What listens at {url} belongs to {name_of(uid)}, and is not the cluster in {state.root}."
    return ""


def _fallback() -> str:
    """Where a master usually is, if it is ours. Raises Unreachable."""
    uid = listening_uid(urlsplit(FALLBACK).port or 0)
    if uid == os.geteuid():
        return FALLBACK
    whose = f"What listens at {FALLBACK} belongs to {name_of(uid)}, so it was not asked. " if uid is not None else ""
    raise Unreachable(
        f"You have no cluster yet. {whose}Start one with: tenax up. "
        f"Name another with --master or {VARIABLE}{f' (--master {FALLBACK})' if whose else ''}."
    )


def _told_path() -> Path:
    return config_directory() / "cluster.json"
