"""The ``tenax`` of tasks and of the forkserver: a copy of this package without its servers, in a folder of its own.

A copy, so that an upgrade of the agent does not change the code beneath a running task, and so that no other package
of the agent's environment comes along on PYTHONPATH or into an image. One folder per content; an old one stays for as
long as there is a container that runs from it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import structlog

import tenax
from tenax.host.disk import is_there
from tenax.host.runtimes import RUNTIMES
from tenax.runtime.directory import Home

log = structlog.get_logger("tenax.runtime")

#: Folders of the package that nothing imports which runs from there (``runtime``: the forkserver does).
SERVERS = frozenset({"master", "agent", "local", "scheduler", "lifecycle"})
#: Of those folders what the SDK imports all the same, which tasks have.
_OF_SERVERS = tuple(Path("local", name) for name in ("__init__.py", "state_dir.py", "user_data.py"))


def install(root: Path) -> Path:
    """The folder for PYTHONPATH below ``root``, made if it is not there yet. Raises OSError."""
    source = Path(tenax.__file__).resolve().parent
    files = sorted(_files(source))
    digest = hashlib.sha256(
        repr([(name, path.stat().st_size, path.stat().st_mtime_ns) for name, path in files]).encode()
    )
    target = root / digest.hexdigest()[:16]
    if target.is_dir():
        return target
    staged = root / f".new-{os.getpid()}-{target.name}"
    for name, path in files:
        place = staged / "tenax" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    try:
        staged.rename(target)
    except OSError:
        # Another agent of this machine made it meanwhile.
        shutil.rmtree(staged, ignore_errors=True)
        if not target.is_dir():
            raise
    return target


def prune(agent_directory: Path, current: Path) -> None:
    """Delete the folders beside ``current`` that no container of this agent runs from; none where that is not known."""
    used = {current.name}
    try:
        for kind in RUNTIMES.values():
            folder = agent_directory / kind.folder
            for home in map(Home, folder.iterdir() if is_there(folder) else ()):
                if not is_there(home.path / "container.json"):
                    continue
                card = home.card()
                if card is None or not card.library:
                    return  # of an older agent, which did not say
                used.add(card.library)
    except OSError as error:
        log.warning("old copies of the library stay: cannot see what runs from them", reason=str(error))
        return
    for folder in current.parent.iterdir():
        if folder.name not in used:
            shutil.rmtree(folder, ignore_errors=True)


def _files(source: Path) -> list[tuple[str, Path]]:
    files = [(str(name), source / name) for name in _OF_SERVERS]
    for folder, folders, names in os.walk(source):
        place = Path(folder)
        if place == source:
            folders[:] = [name for name in folders if name not in SERVERS]
        folders[:] = [name for name in folders if name != "__pycache__"]
        files += [
            (str((place / name).relative_to(source)), place / name) for name in names if not name.endswith(".pyc")
        ]
    return files
