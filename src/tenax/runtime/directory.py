"""A container's directory: where everything stands, and the records in it. Both runtimes keep the same one.

``container.json``  whose it is and what it was placed with (:class:`Card`); a directory without it is not a container
``spec.json``       the specification it was started with; holds the task's credentials
``stopping.json``   when SIGTERM was first sent
``run/``            the task's own: ``DET_RUN_DIR``; ``run/spool``, ``run/workdir``, ``run/tmp``

The process runtime's supervisor has its own files beside these, see ``tenax.runtime.supervisor``.

It is made under another name and renamed when complete, and renamed before it is deleted, so that a killed agent
leaves no half of one. Mode 0700, or 0711 when the task runs as another user, who then owns ``run``.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
import structlog

from tenax.host.disk import is_there
from tenax.runtime.processes import Identity, boot_id
from tenax.runtime.removal import TakesLong, delete_home
from tenax.wire.agents import ContainerSpec

log = structlog.get_logger("tenax.runtime")

VERSION = 1
Record = TypeVar("Record")
_STAGED = ".new-"
_DELETED = ".gone-"
#: What a task left that is not its user's to delete: for the operator to look at.
_LEFT = ".left-"
_UNREADABLE_EXIT = "how it ended is recorded on the agent's machine in a form that this release cannot read"


class Card(msgspec.Struct, frozen=True):
    """Whose container it is."""

    v: int
    container_id: str
    cluster_id: str
    generation: int
    boot_id: str
    placed: dict[str, str] = {}
    cgroup: str = ""
    #: A short link to its temporary folder; "" for none.
    temporary: str = ""
    #: Name of the copy of our library that it runs from; "" where an older agent did not say.
    library: str = ""


class Supervision(msgspec.Struct, frozen=True):
    """``state.json`` of the supervisor."""

    v: int
    boot_id: str
    pid: int
    start: int
    main_pid: int
    main_start: int


class ExitRecord(msgspec.Struct, frozen=True):
    """``exit.json``: of the supervisor, or of the agent where the supervisor could not write one (``lost``)."""

    v: int
    code: int | None = None
    signal: int | None = None
    killed: bool = False
    terminated: bool = False
    oom_kills: int = 0
    start_errno: int | None = None
    #: The disk of its directory took no more: neither its output nor its reports.
    disk_full: bool = False
    #: In words: what happened to it, where no exit status is known.
    lost: str = ""
    #: Raw bytes of each stream, with those that the disk did not take.
    stdout_bytes: int = 0
    stderr_bytes: int = 0


class Stopping(msgspec.Struct, frozen=True):
    boot_id: str
    #: Monotonic seconds.
    since: float


@dataclass(frozen=True, slots=True)
class Home:
    """One container's directory, by its path."""

    path: Path

    @property
    def container_id(self) -> str:
        return self.path.name

    @property
    def run(self) -> Path:
        return self.path / "run"

    @property
    def workdir(self) -> Path:
        return self.run / "workdir"

    @property
    def spool(self) -> Path:
        return self.run / "spool"

    @property
    def output(self) -> Path:
        return self.path / "out"

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def started(self) -> bool:
        return is_there(self.path / "started")

    def card(self) -> Card | None:
        return _read(self.path / "container.json", Card)

    def spec(self) -> ContainerSpec | None:
        return _read(self.path / "spec.json", ContainerSpec)

    def supervision(self) -> Supervision | None:
        return _read(self.path / "state.json", Supervision)

    def exit(self) -> ExitRecord | None:
        return _read(self.path / "exit.json", ExitRecord)

    def stopping_since(self) -> float | None:
        """On this boot's monotonic clock; None if it was not asked to stop since the boot."""
        record = _read(self.path / "stopping.json", Stopping)
        return record.since if record is not None and record.boot_id == boot_id() else None

    def begun(self) -> Identity | None:
        """The supervisor, before it says what it watches; None of one that an earlier release started."""
        try:
            pid, start = (self.path / "started").read_text().split()
            return Identity(int(pid), int(start))
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None

    def write(self, name: str, record: msgspec.Struct) -> None:
        """Replace a record atomically, readable by the owner only."""
        write_private(self.path / f"{name}.new", msgspec.json.encode(record))
        (self.path / f"{name}.new").rename(self.path / name)

    def write_lost(self, record: ExitRecord) -> ExitRecord:
        """Record that no exit is known, unless one is recorded: that one is kept, and is the answer. Raises OSError.

        A full disk does not take the record, and its answer is the same without.
        """
        staged, place = self.path / "exit.lost", self.path / "exit.json"
        try:
            write_private(staged, msgspec.json.encode(record))
            try:
                os.link(staged, place)
            except FileExistsError:
                pass
            except OSError:
                # A file system without links.
                if not is_there(place):
                    staged.rename(place)
            staged.unlink(missing_ok=True)
        except OSError as error:
            log.warning("could not note that a container was lost", container=self.container_id, reason=str(error))
        if is_there(place):
            return self.exit() or ExitRecord(v=VERSION, lost=_UNREADABLE_EXIT)
        return record


class Homes:
    """The directories of all containers below one folder, on one file system."""

    def __init__(self, root: Path) -> None:
        self.root = root
        #: When ends were asked for that the disk had no room to note, by container.
        self._stopping: dict[str, float] = {}
        #: Retired, and not deleted since the disk failed.
        self._undeleted: set[Path] = set()
        root.mkdir(parents=True, exist_ok=True)
        root.chmod(0o711 if os.geteuid() == 0 else 0o700)
        self.clear()

    def clear(self) -> None:
        """Finish what a killed agent began: half-made and half-deleted directories."""
        for path in self.root.glob(".*-*"):
            if path.name.startswith((_STAGED, _DELETED)):
                self._delete(path)

    def home(self, container_id: str) -> Home:
        if not container_id or "/" in container_id or container_id.startswith("."):
            raise ValueError(f"not a container's id: {container_id!r}")
        return Home(self.root / container_id)

    def stop_begins(self, home: Home) -> None:
        """SIGTERM is about to be sent for the first time; a full disk keeps nobody from ending what fills it."""
        since = time.monotonic()
        try:
            home.write("stopping.json", Stopping(boot_id(), since))
        except OSError as error:
            log.warning("could not note when a stop began", container=home.container_id, reason=error.strerror)
            self._stopping[home.container_id] = since

    def stopping_since(self, home: Home) -> float | None:
        """On this boot's monotonic clock; None if it was not asked to stop since the boot."""
        return home.stopping_since() or self._stopping.get(home.container_id)

    def all(self) -> list[Home]:
        """Complete ones, as far as that can be seen; raises OSError where the folder cannot be read."""
        homes = [Home(path) for path in self.root.iterdir() if not path.name.startswith(".")]
        return [home for home in homes if _may_be_complete(home)]

    def stage(self, container_id: str, *, mode: int) -> Home:
        """An empty directory to prepare; `publish` makes it the container's."""
        staged = Home(self.root / f"{_STAGED}{self.home(container_id).container_id}")
        self._delete(staged.path)
        staged.path.mkdir(mode=mode)
        staged.path.chmod(mode)
        return staged

    def publish(self, staged: Home) -> Home:
        home = self.home(staged.path.name.removeprefix(_STAGED))
        staged.path.rename(home.path)
        return home

    def discard(self, staged: Home) -> None:
        self._delete(staged.path)

    def retire(self, container_id: str) -> Path | None:
        """Take a directory out of sight at once; the path to delete, None if there was none."""
        gone = self.root / f"{_DELETED}{container_id}"
        self._stopping.pop(container_id, None)
        try:
            self.home(container_id).path.rename(gone)
        except FileNotFoundError:
            return gone if is_there(gone) else None
        # Nobody comes down to it any more while it is deleted.
        gone.chmod(0o700)
        return gone

    def delete(self, gone: Path) -> bool:
        """Delete a retired directory; False where some of it stays, which the log says. Raises TakesLong.

        What is not its user's to delete is set aside. What the disk does not delete now is tried again with the next
        container that is removed, and when the agent starts: nothing waits for it.
        """
        for earlier in self._undeleted - {gone}:
            with contextlib.suppress(OSError, TakesLong):
                self._undeleted.discard(earlier)
                self._delete_or_keep_apart(earlier)
        return self._delete_or_keep_apart(gone)

    def _delete_or_keep_apart(self, gone: Path) -> bool:
        container_id = gone.name.removeprefix(_DELETED)
        try:
            if delete_home(gone):
                return True
            left = self.root / f"{_LEFT}{container_id}-{secrets.token_hex(4)}"
            gone.rename(left)
            log.warning("files that are not its user's to delete were set aside", container=container_id)
        except OSError as error:
            self._undeleted.add(gone)
            log.error("files of a container stay for now", container=container_id, at=str(gone), reason=str(error))
        return False

    def _delete(self, path: Path) -> None:
        with contextlib.suppress(OSError, TakesLong):
            delete_home(path)


def _may_be_complete(home: Home) -> bool:
    try:
        return is_there(home.path / "container.json")
    except OSError:
        return True


def write_private(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write a new file that nobody else could read at any moment."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode), "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(content)


def _read(path: Path, kind: type[Record]) -> Record | None:
    """The record, None if it is not there or is none. Raises OSError: one that cannot be read now may be there."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (FileNotFoundError, NotADirectoryError, msgspec.MsgspecError):
        return None
