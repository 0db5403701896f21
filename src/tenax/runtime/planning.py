"""Writes what a supervisor runs: arguments, environment, user and directories of one container of the process
runtime."""

from __future__ import annotations

import json
import os
import pwd
import secrets
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tenax.runtime import contents
from tenax.runtime.directory import Card, Home
from tenax.runtime.environment import in_run_directory, task_environment
from tenax.runtime.interpreters import Interpreter
from tenax.runtime.port import Placement, StartFailed
from tenax.runtime.processes import boot_id
from tenax.wire.agents import ContainerSpec
from tenax.wire.task_names import HOST_PATHS, PYTHON, READ_ONLY_PATHS

#: Unix sockets take 107 bytes of path; what Python's multiprocessing appends to TMPDIR is 32 long.
LONGEST_TMPDIR = 70


@dataclass(frozen=True, slots=True)
class Machine:
    """What of this machine the process runtime hands on to tasks."""

    #: The interpreter of tasks that name none.
    python: str = sys.executable
    #: The agent's own environment, of which tasks get a short list of names.
    environ: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TaskUser:
    """Whom a task runs as, where that is not the agent's own user."""

    uid: int
    gid: int
    groups: tuple[int, ...]


def user(spec: ContainerSpec) -> TaskUser | None:
    """None for the agent's own; 0 too means that, where the agent is not root. Raises StartFailed."""
    if spec.uid is None or spec.uid == os.geteuid() or (spec.uid == 0 and os.geteuid() != 0):
        return None
    if os.geteuid() != 0:
        raise StartFailed(
            f"the task is to run as uid {spec.uid}, and the agent is not root: start the agent as root, "
            "or remove the link between the user and that uid",
            platform=False,
        )
    try:
        entry = pwd.getpwuid(spec.uid)
    except KeyError:
        gid = spec.gid if spec.gid is not None else spec.uid
        return TaskUser(spec.uid, gid, (gid,))
    gid = spec.gid if spec.gid is not None else entry.pw_gid
    # Its other groups too: devices are often open to ``video`` or ``render`` only.
    return TaskUser(spec.uid, gid, tuple(os.getgrouplist(entry.pw_name, gid)))


def plan(
    spec: ContainerSpec,
    placement: Placement,
    *,
    machine: Machine,
    home: Home,
    card: Card,
    interpreter: Interpreter,
    library: Path,
    who: TaskUser | None,
) -> bytes:
    """The content of the supervisor's ``plan``; ``home`` is the directory's final place."""
    environment = task_environment(
        spec,
        placement,
        agents=dict(machine.environ),
        run=home.run,
        workdir=home.workdir,
        temporary=Path(card.temporary) if card.temporary else home.run / "tmp",
        python=interpreter.path,
        library=None if interpreter.has_tenax else library,
    )
    outside = {mount.container_path: mount.host_path for mount in spec.mounts if _is_elsewhere(mount.container_path)}
    if outside:
        environment.setdefault(HOST_PATHS, json.dumps(outside))
        guarded = [mount.container_path for mount in spec.mounts if mount.read_only and mount.container_path in outside]
        if guarded:
            # Kept where the task has a view of its own, in which these are mounts.
            environment.setdefault(READ_ONLY_PATHS, json.dumps(guarded))
    if who is not None:
        environment.update(_account(who.uid, home.workdir))
    argv = [str(interpreter.path) if word == PYTHON and not n else word for n, word in enumerate(spec.argv)]
    items = [("argv", in_run_directory(word, home.run)) for word in argv]
    items += [("env", f"{name}={value}") for name, value in environment.items()]
    items += [("cwd", str(_directory(spec, home))), ("cap", str(spec.output_cap_bytes)), ("boot", boot_id())]
    if card.cgroup:
        items.append(("cgroup", card.cgroup))
    if not interpreter.has_tenax or str(interpreter.path) == sys.executable:
        # The library that it would import is the one that the forkserver has loaded.
        items.append(("loaded", "1"))
    if who is not None:
        items += [("uid", str(who.uid)), ("gid", str(who.gid)), *(("group", str(group)) for group in who.groups)]
    if any("\0" in value for _, value in items):
        raise StartFailed("an argument or variable of the task holds a NUL byte, which no system takes", platform=False)
    return b"".join(f"{name}={value}\0".encode("utf-8", "surrogateescape") for name, value in items)


def link_mounts(home: Home, spec: ContainerSpec) -> None:
    """Mounts at relative paths become links below the work directory; the others are listed in DET_HOST_PATHS."""
    for mount in spec.mounts:
        if not _is_elsewhere(mount.container_path):
            place = contents.inside(home.run, f"workdir/{mount.container_path}")
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.is_symlink() and not place.exists():
                place.symlink_to(mount.host_path)


def temporary_link(home: Home) -> str:
    """A short name for the container's own temporary folder where its path is too long; "" where it is not."""
    target = home.run / "tmp"
    if len(str(target)) <= LONGEST_TMPDIR:
        return ""
    while True:
        link = Path(tempfile.gettempdir()) / f"tenax-{secrets.token_hex(6)}"
        try:
            link.symlink_to(target)
        except FileExistsError:
            continue
        return str(link)


def remove_temporary_link(card: Card, home: Home) -> None:
    link = Path(card.temporary) if card.temporary else None
    if link is not None and link.is_symlink() and Path(os.readlink(link)) == home.run / "tmp":
        link.unlink(missing_ok=True)


def leftovers(spec: ContainerSpec | None) -> list[Path]:
    """What Determined's own library leaves in the machine's ``/tmp``, which goes with the container of an image."""
    if spec is None:
        return []
    names = [f"tensorboard-{spec.allocation_id}-{rank}" for rank in range(max(1, len(spec.slots)))]
    return [path for path in (Path("/tmp") / name for name in names) if path.is_dir() and not path.is_symlink()]


def _is_elsewhere(container_path: str) -> bool:
    return Path(container_path).is_absolute()


def _directory(spec: ContainerSpec, home: Home) -> Path:
    """The work directory; one elsewhere on this machine only for a task that names it and brings no model code."""
    named = spec.env.get("DET_WORKDIR", "")
    own = not Path(named).is_absolute() or in_run_directory(named, home.run) != named
    return home.workdir if own or spec.context_hash else Path(named)


def _account(uid: int, workdir: Path) -> dict[str, str]:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return {"HOME": str(workdir), "USER": str(uid), "LOGNAME": str(uid)}
    return {"HOME": entry.pw_dir, "USER": entry.pw_name, "LOGNAME": entry.pw_name}
