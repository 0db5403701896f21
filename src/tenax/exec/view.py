"""A private view of the file system for tasks that read Determined's fixed paths. Standard library only, Python 3.9.

The ``determined`` package reads ``/run/determined/info/*.json`` and writes checkpoints below
``/determined_shared_fs``, whatever the environment says. In a container of an image these are mounts. Where a task is a
plain process it gets a mount namespace of its own in which they, and the bind mounts of its experiment, are where that
package looks; everything else is as before, at the same paths, and nothing is left on the machine.

Rules it keeps:

- Only a task that needs it has one: whose Python, or the Python that its entrypoint names, holds that package
  (``DET_PRIVATE_VIEW=1`` asks for one, ``0`` for none). Others pay for a look at a few directories.
- No process ids change and nothing stands between supervisor and program: the task itself moves, before it becomes the
  user's program, and so do all that it starts.
- Where the machine forbids it, importing that package is refused in words (`tenax.exec.imports.determined`): it would
  take itself to be off the cluster. A task that does not import it runs; one that asked for a view does not start.
"""

from __future__ import annotations

import os
import sys

from tenax.client import quickjson
from tenax.core.info import DEFAULT_RUN_DIR
from tenax.errors import TenaxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, MutableMapping

    from tenax.jsonvalue import Json

#: Asks for a view (``1``), or for none (``0``). ``here`` once there is one, ``refused: <why>`` where there can be none.
SWITCH = "DET_PRIVATE_VIEW"
_REFUSED = "refused: "
_HERE = "here"
_ASKED = ("1", "true")
_NONE = ("0", "false", _HERE)
_PACKAGE = os.path.join("determined", "__init__.py")


class NoPrivateView(TenaxError):
    """This machine does not let a task have a private view of its file system."""


def give_if_needed(env: MutableMapping[str, str], run_dir: str, entrypoint: Json) -> None:
    """Give this process what the ``determined`` package expects, if that is what it is about to run.

    Called before anything of the user's runs, and again where a hook may have changed what will run. Raises
    NoPrivateView to who asked for one that cannot be had.
    """
    if not is_needed(env, entrypoint):
        return
    _keep_code(run_dir)
    if run_dir == DEFAULT_RUN_DIR or not sys.platform.startswith("linux"):
        return
    from tenax.exec import namespaces

    try:
        root = os.path.join(run_dir, "view")
        os.makedirs(root, mode=0o700, exist_ok=True)
        guarded = quickjson.loads(env.get("DET_READ_ONLY_PATHS") or "[]")
        read_only = [str(path) for path in guarded] if isinstance(guarded, list) else []
        namespaces.enter(targets(env, run_dir), root, read_only)
    except OSError as error:
        why = (
            f"the installed package 'determined' reads {DEFAULT_RUN_DIR}, which takes a private view of the file "
            f"system; this machine forbids it ({error.strerror}: {error.filename}): start the agent as root, allow "
            "user namespaces, use the docker runtime, or uninstall it"
        )
        if env.get(SWITCH) in _ASKED:
            raise NoPrivateView(why) from error
        env[SWITCH] = _REFUSED + why
        return
    env[SWITCH] = _HERE


def is_needed(env: Mapping[str, str], entrypoint: Json) -> bool:
    """Whether it was asked for, or a Python of this task holds that package; False once that is settled."""
    asked = env.get(SWITCH, "")
    if asked in _NONE or asked.startswith(_REFUSED):
        return False
    return asked in _ASKED or has_package(env, entrypoint)


def has_package(env: Mapping[str, str], entrypoint: Json) -> bool:
    """Whether a Python that this task may run holds the ``determined`` package itself."""
    return any(map(_holds_package, _places(env, entrypoint)))


def targets(env: Mapping[str, str], run_dir: str) -> dict[str, str]:
    """Path in the view -> path on this machine; what is not on this machine is left out."""
    told = quickjson.loads(env.get("DET_HOST_PATHS") or "{}")
    mounts = {path: str(source) for path, source in told.items()} if isinstance(told, dict) else {}
    mounts[DEFAULT_RUN_DIR] = run_dir
    return {path: source for path, source in mounts.items() if os.path.exists(source)}


def _keep_code(run_dir: str) -> None:
    """The code as it came, where that package takes it from to put it beside a checkpoint."""
    kept = os.path.join(run_dir, "train", "model")
    if not os.path.exists(kept):
        import shutil

        code = os.path.join(run_dir, "workdir")
        if os.path.isdir(code):
            shutil.copytree(code, kept, symlinks=True)


def _places(env: Mapping[str, str], entrypoint: Json) -> Iterable[str]:
    """Directories in which the programs of this task may find packages."""
    yield from filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
    prefixes = [_prefix(sys.executable), env.get("VIRTUAL_ENV"), env.get("CONDA_PREFIX"), env.get("PYTHONUSERBASE")]
    prefixes.append(os.path.join(env.get("HOME", "/nonexistent"), ".local"))
    # A word may be a line for the shell.
    words = " ".join(map(str, entrypoint)) if isinstance(entrypoint, list) else str(entrypoint or "")
    prefixes += [_prefix(word) for word in words.split() if "/bin/" in word]
    for prefix in dict.fromkeys(filter(None, prefixes)):
        yield from _site_packages(str(prefix))


def _prefix(program: str) -> str:
    """Where the environment of a program in its ``bin`` is; a link is not followed: it is what makes an environment."""
    return os.path.dirname(os.path.dirname(os.path.abspath(program.strip("'\"();&"))))


def _site_packages(prefix: str) -> Iterable[str]:
    for library in (os.path.join(prefix, "lib"), os.path.join(prefix, "local", "lib")):
        try:
            names = [name for name in os.listdir(library) if name.startswith("python")]
        except OSError:
            continue
        for name in names:
            yield os.path.join(library, name, "site-packages")
            yield os.path.join(library, name, "dist-packages")


def _holds_package(directory: str) -> bool:
    """Ours, which hands over to the real one, is not meant."""
    return directory != imports() and os.path.exists(os.path.join(directory, _PACKAGE))


def imports() -> str:
    """The directory of what tasks can import besides: see `tenax.exec.imports.determined`."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "imports")
