"""Writes what a supervisor runs: arguments, environment, user and directories of one container of the process
runtime."""

from __future__ import annotations

import json
import os
import pwd
import secrets
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tenax.runtime.directory import Card, Home
from tenax.runtime.environment import in_run_directory, task_environment
from tenax.runtime.forking import warmth
from tenax.runtime.forking.warmth import Setting
from tenax.runtime.gpus import registry as gpus
from tenax.runtime.port import USUAL_SHM_BYTES, Placement, StartFailed
from tenax.runtime.processes import boot_id
from tenax.runtime.users import TaskUser, name_of
from tenax.wire.agents import ContainerSpec
from tenax.wire.task_names import HOST_PATHS, LEARN_IMPORTS, PYTHON, READ_ONLY_PATHS, RUN_DIRECTORY, SHM_BYTES

#: Unix sockets take 107 bytes of path; what Python's multiprocessing appends to TMPDIR is 32 long.
MAX_TMPDIR = 70


@dataclass(frozen=True, slots=True)
class Machine:
    """What of this machine the process runtime hands on to tasks."""

    #: The interpreter of tasks that name none.
    python: str = sys.executable
    #: The agent's own environment, of which tasks get a short list of names.
    environ: tuple[tuple[str, str], ...] = ()


def plan(
    spec: ContainerSpec,
    placement: Placement,
    *,
    machine: Machine,
    home: Home,
    card: Card,
    python: Path,
    library: Path | None,
    who: TaskUser | None,
    passwd: str | None = None,
    notes: Path | None = None,
    in_place: bool = False,
) -> bytes:
    """The content of the supervisor's ``plan``.

    ``notes``: where its script is to note what it imports; ``in_place``: its script may start where it is forked.
    ``home``: the directory's final place; ``python``: the task's interpreter; ``library``: what to put on its
    PYTHONPATH, None where it has tenax itself; ``passwd``: such a file as the task is to see it, None for the
    machine's own.
    """
    environment = task_environment(
        spec,
        placement,
        agents=dict(machine.environ),
        run=home.run,
        workdir=home.workdir,
        temporary=Path(card.temporary) if card.temporary else home.run / "tmp",
        python=python,
        library=library,
    )
    outside = {mount.container_path: mount.host_path for mount in spec.mounts if _is_elsewhere(mount.container_path)}
    if outside:
        environment.setdefault(HOST_PATHS, json.dumps(outside))
        guarded = [mount.container_path for mount in spec.mounts if mount.read_only and mount.container_path in outside]
        if guarded:
            # Kept where the task has a view of its own, in which these are mounts.
            environment.setdefault(READ_ONLY_PATHS, json.dumps(guarded))
    if spec.shm_bytes not in (0, USUAL_SHM_BYTES):
        # The machine's own is otherwise as good, and needs no view.
        environment.setdefault(SHM_BYTES, str(spec.shm_bytes))
    if notes is not None:
        environment[LEARN_IMPORTS] = str(notes)
    if who is not None:
        environment.update(_account(who.uid, home.workdir, passwd or ""))
    argv = [str(python) if word == PYTHON and not n else word for n, word in enumerate(spec.argv)]
    items = [("argv", in_run_directory(word, home.run)) for word in argv]
    items += [("env", f"{name}={value}") for name, value in environment.items()]
    items += [("cwd", str(_directory(spec, home))), ("cap", str(spec.output_cap_bytes)), ("boot", boot_id())]
    if card.cgroup:
        items.append(("cgroup", card.cgroup))
    if runs_our_library(python, library):
        items.append(("loaded", "1"))
    if in_place:
        items.append(("in_place", "1"))
    if who is not None:
        items += who.plan()
        if passwd is not None:
            items.append(("names", "1"))
    return encoded(items)


def runs_our_library(python: Path, library: Path | None) -> bool:
    """Whether the library that this interpreter imports is the one that the forkserver has loaded."""
    return library is not None or str(python) == sys.executable


def setting_of(
    spec: ContainerSpec,
    placement: Placement,
    *,
    machine: Machine,
    python: Path,
    python_changed_at: int,
    library: Path,
    has_tenax: bool,
) -> Setting | None:
    """What such containers have in common that may start in one interpreter; None for what has one of its own."""
    run = Path(RUN_DIRECTORY)
    environment = task_environment(
        spec,
        placement,
        agents=dict(machine.environ),
        run=run,
        workdir=run,
        temporary=run,
        python=python,
        library=None if has_tenax else library,
    )
    return warmth.setting_of(
        spec,
        environment,
        python=python,
        python_changed_at=python_changed_at,
        library=library,
        placed=[*placement.env, *gpus.variables(placement.device_kind, placement.device_uuids)],
    )


def encoded(items: Sequence[tuple[str, str]]) -> bytes:
    """The content of a ``plan``. Raises StartFailed."""
    if any("\0" in value for _, value in items):
        raise StartFailed("an argument or variable of the task holds a NUL byte, which no system takes", platform=False)
    return b"".join(f"{name}={value}\0".encode("utf-8", "surrogateescape") for name, value in items)


def links(spec: ContainerSpec) -> list[tuple[str, str]]:
    """Mounts at relative paths, which are links below the work directory; the others are listed in DET_HOST_PATHS."""
    return [(mount.container_path, mount.host_path) for mount in spec.mounts if not _is_elsewhere(mount.container_path)]


def temporary_link(home: Home) -> str:
    """A short name for the container's own temporary folder where its path is too long; "" where it is not."""
    target = home.run / "tmp"
    if len(str(target)) <= MAX_TMPDIR:
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
    return [Path("/tmp", name) for name in names]


def _is_elsewhere(container_path: str) -> bool:
    return Path(container_path).is_absolute()


def _directory(spec: ContainerSpec, home: Home) -> Path:
    """The work directory; one elsewhere on this machine only for a task that names it and brings no model code."""
    named = spec.env.get("DET_WORKDIR", "")
    own = not Path(named).is_absolute() or in_run_directory(named, home.run) != named
    return home.workdir if own or spec.context_hash else Path(named)


def _account(uid: int, workdir: Path, passwd: str) -> dict[str, str]:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        name = name_of(passwd, uid) or str(uid)
        return {"HOME": str(workdir), "USER": name, "LOGNAME": name}
    return {"HOME": entry.pw_dir, "USER": entry.pw_name, "LOGNAME": entry.pw_name}
