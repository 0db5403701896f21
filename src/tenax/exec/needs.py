"""What a task will look for on its machine, seen from its command line. Standard library only, Python 3.9.

Nothing is run to find out: command line, startup hook and the scripts that the command line names are read, and
environments of Python are told by their folders. What is missed can be asked for (`tenax.exec.private_view`).
"""

from __future__ import annotations

import os
import sys

from tenax.client.connection import fast_json
from tenax.storage.port import SHARED_FS_MOUNT
from tenax.wire.task_names import HOST_PATHS, OWN_HOOK, READ_ONLY_PATHS, RUN_DIRECTORY, SHM_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tenax.jsonvalue import Json

_PACKAGE = os.path.join("determined", "__init__.py")
#: A script that is longer was not written by hand.
_MAX_SCRIPT = 256 * 1024
_QUOTES = "'\"();&"


def host_paths(env: Mapping[str, str]) -> dict[str, str]:
    """Path as the experiment has it -> path on this machine, for everything that it mounts."""
    paths = fast_json.loads(env.get(HOST_PATHS) or "{}")
    return {path: str(source) for path, source in paths.items()} if isinstance(paths, dict) else {}


def read_only_paths(env: Mapping[str, str]) -> list[str]:
    """Those of them that are not to be written."""
    guarded = fast_json.loads(env.get(READ_ONLY_PATHS) or "[]")
    return [str(path) for path in guarded] if isinstance(guarded, list) else []


def shm_bytes(env: Mapping[str, str]) -> int:
    """How much shared memory of its own it is to have; 0: it takes the machine's.

    Nothing where what the task has of files lies in the machine's shared memory: it would not see them any more.
    """
    size = env.get(SHM_BYTES, "")
    inside = any(f"{path}/".startswith("/dev/shm/") for path in (os.getcwd(), env.get("DET_RUN_DIR") or "/"))
    return int(size) if size.isdecimal() and not inside and os.path.isdir("/dev/shm") else 0


def misplaced(env: Mapping[str, str]) -> list[str]:
    """Bind mounts that this machine has elsewhere, or open for writing where they should not be.

    Checkpoint storage does not count: our own library finds it where it is.
    """
    guarded = set(read_only_paths(env))
    return sorted(
        path
        for path, source in host_paths(env).items()
        if path != SHARED_FS_MOUNT
        and os.path.exists(source)
        and (path in guarded or os.path.realpath(path) != os.path.realpath(source))
    )


def fixed_paths(entrypoint: Json) -> list[str]:
    """Those of the fixed paths that command line, startup hook or a script that it names speak of."""
    texts = list(_texts(entrypoint))
    return [path for path in (RUN_DIRECTORY, SHARED_FS_MOUNT) if any(path in text for text in texts)]


def has_package(env: Mapping[str, str], entrypoint: Json) -> bool:
    """Whether a Python that this task may run holds the ``determined`` package itself."""
    return any(map(_holds_package, _places(env, entrypoint)))


def imports() -> str:
    """The directory of what tasks can import besides: see `tenax.exec.imports.determined`."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "imports")


def _command_line(entrypoint: Json) -> str:
    """A word may be a line for the shell."""
    return " ".join(map(str, entrypoint)) if isinstance(entrypoint, list) else str(entrypoint or "")


def _texts(entrypoint: Json) -> Iterable[str]:
    """The command line, the startup hook, and each script of the task's own code that the command line names."""
    line = _command_line(entrypoint)
    yield line
    names = [OWN_HOOK]
    for word in line.split():
        name = word.strip(_QUOTES)
        names += [name, name.replace(".", os.sep) + ".py"]
    for name in dict.fromkeys(names):
        if name and not os.path.isabs(name) and os.path.isfile(name) and os.path.getsize(name) <= _MAX_SCRIPT:
            try:
                with open(name, encoding="utf-8", errors="replace") as file:
                    yield file.read()
            except OSError:
                continue


def _places(env: Mapping[str, str], entrypoint: Json) -> Iterable[str]:
    """Directories in which the programs of this task may find packages."""
    yield from filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
    prefixes = [_prefix(sys.executable), env.get("VIRTUAL_ENV"), env.get("CONDA_PREFIX"), env.get("PYTHONUSERBASE")]
    prefixes.append(os.path.join(env.get("HOME", "/nonexistent"), ".local"))
    texts = list(_texts(entrypoint))
    prefixes += [_prefix(word) for text in texts for word in text.split() if "/bin/" in word]
    if any("conda" in text or "mamba" in text for text in texts):
        prefixes += _conda_environments(env)
    for prefix in dict.fromkeys(filter(None, prefixes)):
        yield from _site_packages(str(prefix))


def _prefix(program: str) -> str:
    """Where the environment of a program in its ``bin`` is; a link is not followed: it is what makes an environment."""
    return os.path.dirname(os.path.dirname(os.path.abspath(program.strip(_QUOTES))))


def _conda_environments(env: Mapping[str, str]) -> Iterable[str]:
    """Every environment of conda and its kin on this machine that this task can name."""
    home = env.get("HOME", "/nonexistent")
    try:
        with open(os.path.join(home, ".conda", "environments.txt"), encoding="utf-8", errors="replace") as file:
            yield from file.read().split()
    except OSError:
        pass
    roots = [env.get("MAMBA_ROOT_PREFIX"), os.path.join(home, ".conda")]
    if env.get("CONDA_EXE"):
        roots.append(_prefix(env["CONDA_EXE"]))
    for directory in env.get("PATH", "").split(os.pathsep):
        program = os.path.join(directory, "conda")
        if os.path.exists(program):
            # A link to it may lie in a folder of the system's.
            roots += [_prefix(program), _prefix(os.path.realpath(program))]
    folders = [os.path.join(root, "envs") for root in roots if root]
    folders += env.get("CONDA_ENVS_PATH", env.get("CONDA_ENVS_DIRS", "")).split(os.pathsep)
    yield from filter(None, roots)
    for folder in dict.fromkeys(filter(None, folders)):
        try:
            yield from (os.path.join(folder, name) for name in sorted(os.listdir(folder)))
        except OSError:
            continue


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
