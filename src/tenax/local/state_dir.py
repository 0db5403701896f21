"""The directory that holds a local cluster, and who may use it. Standard library only, Python 3.9: the SDK reads it.

    credentials.json    {"username", "password", "users": {name: password}}: by the master at its first start, 0600
    join-token          what agents join with, 0600
    options.json        what ``tenax up`` was last given: a later ``up`` without options goes on with them
    supervisor.json     what the supervising process says about itself and its servers, 0600
    session.json        the local CLI's login, 0600
    master.log agent.log supervisor.log    capped, 0600
    postgres/ agent/ checkpoints/
    backups/            copies of the database, each from before a migration

The supervising process holds ``lock`` as long as it lives, so the kernel tells whether a cluster is up, not a pid file.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from tenax.errors import UserError
from tenax.host.disk import is_there
from tenax.jsonvalue import JsonObject

#: Names the directory for every command of a shell.
VARIABLE = "TENAX_DIR"
#: As root the database runs as another account, which has no way into root's home.
ROOTS_DEFAULT = Path("/var/lib/tenax")
#: What a start that was cut off, or whose directory was removed meanwhile, may have left.
_LOGS = tuple(f"{name}.log" for name in ("master", "agent", "supervisor"))
_OURS = frozenset(("lock", "supervisor.json", "postgres", "agent", "checkpoints", "restoring", "backups", *_LOGS))
#: Whoever only looks whether the lock is held holds it for less than this.
_GLANCE_S = 0.2


class DirectoryUnusable(UserError):
    """This directory cannot hold a cluster."""


def default_root() -> Path:
    """``$TENAX_DIR``, or ``~/.tenax`` (``/var/lib/tenax`` for root)."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    return ROOTS_DEFAULT if os.geteuid() == 0 else Path.home() / ".tenax"


@dataclass(frozen=True)
class StateDir:
    """Where things lie below ``root``; making one touches nothing."""

    root: Path

    @property
    def credentials(self) -> Path:
        return self.root / "credentials.json"

    @property
    def join_token(self) -> Path:
        return self.root / "join-token"

    @property
    def options(self) -> Path:
        return self.root / "options.json"

    @property
    def supervisor(self) -> Path:
        return self.root / "supervisor.json"

    @property
    def session(self) -> Path:
        return self.root / "session.json"

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @property
    def postgres(self) -> Path:
        return self.root / "postgres"

    @property
    def agent(self) -> Path:
        return self.root / "agent"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def backups(self) -> Path:
        """Copies that were made before the database was migrated."""
        return self.root / "backups"

    def copies(self) -> list[Path]:
        """Those that are complete."""
        return sorted(self.backups.glob("before-*"))

    @property
    def restoring(self) -> Path:
        """What ``tenax restore`` has made so far; there as long as it is at work, or was broken off."""
        return self.root / "restoring"

    def log(self, name: str) -> Path:
        """The log of ``master``, ``agent`` or ``supervisor``."""
        return self.root / f"{name}.log"

    def prepare(self) -> None:
        """Make the directory, for its owner alone; change no existing mode. Raises DirectoryUnusable with why."""
        # As root the database's account passes through; what is secret inside has a mode of its own.
        mode = 0o700 if os.geteuid() else 0o711
        try:
            self.root.mkdir(mode=mode, parents=True, exist_ok=True)
        except FileExistsError:
            raise DirectoryUnusable(f"{self.root} is a file: name a directory with --dir.") from None
        except OSError as error:
            raise DirectoryUnusable(
                f"{self.root} cannot be made: {error.strerror}. Name another place with --dir."
            ) from None
        self._refuse_what_cannot_serve()

    def _refuse_what_cannot_serve(self) -> None:
        status = self.root.stat()
        if status.st_uid != os.geteuid():
            raise DirectoryUnusable(
                f"{self.root} belongs to user number {status.st_uid}, not to you: secrets are kept there. "
                "Name a directory of yours with --dir."
            )
        if stat.S_IMODE(status.st_mode) & 0o022:
            raise DirectoryUnusable(
                f"Others may write to {self.root}, where secrets are kept: close it (chmod go-w {self.root}), "
                "or name another directory with --dir."
            )
        foreign = [] if is_there(self.options) else [path.name for path in self.root.iterdir() if not _is_ours(path)]
        if foreign:
            raise DirectoryUnusable(
                f"{self.root} holds {foreign[0]} and is not a directory of Tenax: "
                "name a new or an empty one with --dir."
            )
        try:
            with tempfile.TemporaryFile(dir=self.root) as probe:
                fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DirectoryUnusable(
                f"Files cannot be written and locked in {self.root}: {error.strerror}. "
                "Name another directory with --dir."
            ) from None

    def sweep(self) -> None:
        """Remove what a process of ours that was killed left half written. For the holder of the lock."""
        for path in self.root.iterdir():
            if _half_written(path):
                path.unlink(missing_ok=True)

    def take_lock(self) -> Optional[int]:
        """A descriptor that holds the cluster's lock until it is closed everywhere; None: a cluster is up here."""
        descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        until = time.monotonic() + _GLANCE_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self.is_held_by(descriptor):
                    return descriptor
                # The file was removed between the two: what is locked is nobody's.
                os.close(descriptor)
                descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except BlockingIOError:
                if time.monotonic() > until:
                    os.close(descriptor)
                    return None
                time.sleep(_GLANCE_S / 10)

    def is_held_by(self, descriptor: int) -> bool:
        """Whether this descriptor is of the lock file that stands in the directory now. Raises OSError."""
        try:
            return os.path.samestat(os.fstat(descriptor), self.lock.stat())
        except (FileNotFoundError, NotADirectoryError):
            return False

    def owner_elsewhere(self) -> Optional[int]:
        """The user whose directory it is, where this one may not look into it; else None."""
        try:
            if not self.root.is_dir() or os.access(self.root, os.R_OK | os.X_OK):
                return None
            return self.root.stat().st_uid
        except OSError:
            # Somewhere above it is closed.
            return None

    def is_locked(self) -> bool:
        """Whether a process holds the directory: its supervising one, or one that is about to start that.

        One that this user may not look into is nobody's to them. Raises OSError.
        """
        try:
            # Nothing more, since the disk may be read-only by now.
            descriptor = os.open(self.lock, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return False
        try:
            # Shared, so that two that look at once do not take each other for a cluster.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False


def _is_ours(path: Path) -> bool:
    return path.name in _OURS or _half_written(path)


def _half_written(path: Path) -> bool:
    """Whether it is what `write_json` leaves when it is killed."""
    return any(path.name.startswith(f".{name}.json.") for name in ("options", "supervisor", "session"))


def read_json(path: Path) -> JsonObject:
    """The object in a file of ours; empty when there is none, or none that can be read."""
    with contextlib.suppress(OSError, ValueError):
        value = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(value, dict):
            return value
    return {}


def write_json(path: Path, value: JsonObject) -> None:
    """Replace a file of ours at once, for its owner alone."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(value, file, indent=1)
            file.write("\n")
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def text_of(value: JsonObject, key: str) -> str:
    """A text from one of our files; empty when it is not there."""
    item = value.get(key)
    return item if isinstance(item, str) else ""


def number_of(value: JsonObject, key: str) -> int:
    """A number from one of our files; 0 when it is not there."""
    item = value.get(key)
    return item if isinstance(item, int) and not isinstance(item, bool) else 0
