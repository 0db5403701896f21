"""A private view of the file system for tasks that read fixed paths. Standard library only, Python 3.9.

The ``determined`` package reads ``/run/determined/info/*.json`` and writes checkpoints below
``/determined_shared_fs``, whatever the environment says; and a bind mount is where an experiment says. In a container
of an image these are mounts. Where a task is a plain process it gets a mount namespace of its own in which they are
where it looks; everything else is as before, at the same paths, and nothing is left on the machine.

Rules it keeps:

- Only a task that needs it has one (`tenax.exec.needs`): whose Python, or the Python that its entrypoint names, holds
  that package; whose bind mounts are elsewhere on this machine, or must not be written; whose configuration has a
  ``shm_size``; whose script names a fixed path (``DET_PRIVATE_VIEW=1`` asks for one, ``0`` for none). Others pay for a
  look at a few files and directories.
- No process ids change and nothing stands between supervisor and program: the task itself moves, before it becomes the
  user's program, and so do all that it starts. A program that finds the package only later moves when it imports it.
- Where the machine forbids it, the task is told what is not where it looks, and runs; importing that package is refused
  with a message (`tenax.exec.imports.determined`): it would take itself to be off the cluster. A task that asked
  for a view does not start.
"""

from __future__ import annotations

import os
import sys

from tenax.errors import TenaxError
from tenax.exec import needs
from tenax.wire.task_names import RUN_DIRECTORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

    from tenax.jsonvalue import Json

#: Asks for a view (``1``), or for none (``0``). ``here`` once there is one, ``refused: <why>`` where there can be none.
SWITCH = "DET_PRIVATE_VIEW"
_REFUSED = "refused: "
HERE = "here"
_ON = ("1", "true")
_OFF = ("0", "false", HERE)


class NoPrivateView(TenaxError):
    """This machine does not let a task have a private view of its file system."""


def give_if_needed(env: MutableMapping[str, str], run_dir: str, entrypoint: Json) -> None:
    """Give this process what the ``determined`` package and its own bind mounts expect, if it will look for it.

    Called before anything of the user's runs, and again where a hook may have changed what will run. Raises
    NoPrivateView to who asked for one that cannot be had.
    """
    if not is_needed(env, entrypoint):
        return
    if env.get(SWITCH) in _ON or needs.has_package(env, entrypoint):
        _keep_code(run_dir)
    if run_dir == RUN_DIRECTORY or not sys.platform.startswith("linux"):
        return
    try:
        _enter(env, run_dir)
    except OSError as error:
        why = (
            f"the installed package 'determined' reads {RUN_DIRECTORY}, which takes a private view of the file "
            f"system; {_forbidden(error)}, or uninstall it"
        )
        if env.get(SWITCH) in _ON:
            raise NoPrivateView(why) from error
        env[SWITCH] = _REFUSED + why
        elsewhere = needs.misplaced(env) or needs.fixed_paths(entrypoint)
        if needs.shm_bytes(env):
            message = f"this task shares /dev/shm with this machine, whatever its shm_size; {_forbidden(error)}"
            print(f"tenax: {message}", file=sys.stderr, flush=True)
        if elsewhere:
            paths = ", ".join(elsewhere)
            message = (
                f"this task does not have {paths} as in a container; {_forbidden(error)}, or name paths that are here"
            )
            print(f"tenax: {message}", file=sys.stderr, flush=True)
        return
    env[SWITCH] = HERE


def give_late(env: MutableMapping[str, str]) -> None:
    """Give this process, which is the user's program already, what it was not seen to need. Raises NoPrivateView."""
    if env.get(SWITCH, "") in _OFF:
        raise NoPrivateView(f"{SWITCH} is {env[SWITCH]}: leave it out for a private view of the file system")
    run_dir = env.get("DET_RUN_DIR") or RUN_DIRECTORY
    if run_dir == RUN_DIRECTORY or not sys.platform.startswith("linux"):
        raise NoPrivateView("there is no private view of the file system here")
    if len(os.listdir("/proc/self/task")) > 1:
        # Only the thread that asks would move.
        raise NoPrivateView("this program has started threads by now, and cannot take a private view any more")
    _keep_code(run_dir)
    try:
        _enter(env, run_dir)
    except OSError as error:
        raise NoPrivateView(f"{_forbidden(error)}, or uninstall it") from error
    env[SWITCH] = HERE


def is_needed(env: Mapping[str, str], entrypoint: Json) -> bool:
    """Whether it was asked for, or this task will look for what only a view has; False once that is settled."""
    setting = env.get(SWITCH, "")
    if setting in _OFF or setting.startswith(_REFUSED):
        return False
    if setting in _ON or needs.has_package(env, entrypoint):
        return True
    if (env.get("DET_RUN_DIR") or RUN_DIRECTORY) == RUN_DIRECTORY:
        return False  # in a container of an image all is where it belongs
    return bool(needs.misplaced(env) or needs.shm_bytes(env) or needs.fixed_paths(entrypoint))


def targets(env: Mapping[str, str], run_dir: str) -> dict[str, str]:
    """Path in the view -> path on this machine; what is not on this machine is left out."""
    mounts = {**needs.host_paths(env), RUN_DIRECTORY: run_dir}
    return {path: source for path, source in mounts.items() if os.path.exists(source)}


def _enter(env: Mapping[str, str], run_dir: str) -> None:
    from tenax.exec import namespaces

    root = os.path.join(run_dir, "view")
    os.makedirs(root, mode=0o700, exist_ok=True)
    namespaces.enter(targets(env, run_dir), root, needs.read_only_paths(env), needs.shm_bytes(env))


def _forbidden(error: OSError) -> str:
    return (
        f"this machine forbids private views ({error.strerror}: {error.filename}): start the agent as root, allow user "
        "namespaces, use the docker runtime"
    )


def _keep_code(run_dir: str) -> None:
    """The code as it came, where that package takes it from to put it beside a checkpoint."""
    kept = os.path.join(run_dir, "train", "model")
    code = os.path.join(run_dir, "workdir")
    if not os.path.exists(kept) and os.path.isdir(code):
        import shutil

        # Several programs of one task may do so at once.
        made = f"{kept}.{os.getpid()}"
        shutil.copytree(code, made, symlinks=True)
        try:
            os.rename(made, kept)
        except OSError:
            shutil.rmtree(made)
