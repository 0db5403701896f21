"""A ``tenax up`` whose interpreter has started and that holds no directory yet: seen by its command line alone.

Linux only: elsewhere none is seen (untested).
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from tenax.local.state_dir import ROOTS_DEFAULT, VARIABLE, StateDir
from tenax.runtime.processes import LINUX, Identity, identity_of, wait_for_end

#: An interpreter has loaded ``tenax up`` after a tenth of this, on a machine with much else to do.
_LOADED_S = 10.0
_GLANCE_S = 0.05
_DIRECTORY = "--dir"


def wait_for_beginning(state: StateDir) -> list[Identity]:
    """Until each ``tenax up`` of this directory holds it or has ended; those that did not go on, after 10 s."""
    waiting = beginning(state.root)
    for _ in range(round(_LOADED_S / _GLANCE_S)):
        if not waiting or state.is_locked():
            return []
        waiting = wait_for_end(waiting, _GLANCE_S)
    return waiting


def beginning(root: Path) -> list[Identity]:
    """This user's processes that run ``tenax up`` for this directory, whether or not they hold it."""
    if not LINUX:
        return []
    processes = []
    for name in os.listdir("/proc"):
        # Named first, looked at afterwards: if it is another process by then, it is waited for in vain.
        with contextlib.suppress(OSError):
            identity = identity_of(int(name)) if name.isdigit() and int(name) != os.getpid() else None
            if identity is not None and _starts_cluster_in(identity.pid, os.path.realpath(root)):
                processes.append(identity)
    return processes


def _starts_cluster_in(pid: int, root: str) -> bool:
    process = Path(f"/proc/{pid}")
    if process.stat().st_uid != os.geteuid() or not os.path.basename(os.readlink(process / "exe")).startswith("python"):
        return False
    arguments = _texts(process / "cmdline")
    if "up" not in arguments or not any(os.path.basename(argument) == "tenax" for argument in arguments):
        return False
    variables = dict(line.partition("=")[::2] for line in _texts(process / "environ"))
    named = _directory_option(arguments) or variables.get(VARIABLE)
    if named is None:
        # Root's is not below its home.
        home = variables.get("HOME", str(Path.home()))
        named = str(ROOTS_DEFAULT) if os.geteuid() == 0 else os.path.join(home, ".tenax")
    elif named.startswith("~/"):
        named = os.path.join(variables.get("HOME", str(Path.home())), named[2:])
    return os.path.realpath(os.path.join(os.readlink(process / "cwd"), named)) == root


def _texts(path: Path) -> list[str]:
    return path.read_bytes().decode(errors="replace").rstrip("\0").split("\0")


def _directory_option(arguments: list[str]) -> str | None:
    for number, argument in enumerate(arguments):
        if argument == _DIRECTORY and number + 1 < len(arguments):
            return arguments[number + 1]
        if argument.startswith(f"{_DIRECTORY}="):
            return argument.removeprefix(f"{_DIRECTORY}=")
    return None
