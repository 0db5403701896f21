"""Where a run by hand keeps its things: files of this user. Standard library only, Python 3.9.

``TENAX_DATA_DIR``, else the place that the system has for such data. Under it ``checkpoints/<id>/`` and, for each run,
``runs/<time>-<process>-<random>/`` with

    run.json        what was started, when, where, how it ended; 0600, since arguments may hold secrets
    reports.jsonl   one line for each report, in the format of the spool; a file for each process under `tenax track`,
                    and one of another name in detached mode
    stdout.log      and stderr.log: the output, in these two cases alone
    sent.json       to which trial of which cluster it was sent, and how far
    lock            held as long as the run lives; sending.lock by whoever sends it

``runs/beginning.lock`` is held by whoever begins a run of a trial that has a name: of two at once the second finds the
first. All but the locks are replaced as a whole. Whoever holds a lock is asked of the kernel, so that nothing is
believed of a process that was killed.
"""

from __future__ import annotations

import fcntl
import os
import sys
from contextlib import contextmanager, suppress
from time import localtime, strftime, time

from tenax.client.connection import fast_json
from tenax.errors import InvalidInput, NotFound, UserError
from tenax.local.user_data import VARIABLE, data_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Optional

    from tenax.jsonvalue import Json, JsonObject

REPORTS = "reports"
OUTPUTS = ("stdout", "stderr")
_SUFFIX = ".jsonl"


class DataDirectoryUnusable(UserError):
    """The directory for data of this user cannot be written."""


def runs_directory() -> str:
    return os.path.join(data_directory(), "runs")


class LocalRun:
    """The directory of one run; making one touches nothing."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    @property
    def card(self) -> JsonObject:
        """What ``run.json`` says; empty of a run that an older release wrote."""
        return _read(os.path.join(self.path, "run.json"))

    def write_card(self, card: JsonObject) -> None:
        """Raises DataDirectoryUnusable."""
        self._write("run.json", card)

    @property
    def sent(self) -> JsonObject:
        """To which trial it was sent, and how far; empty: to none."""
        return _read(os.path.join(self.path, "sent.json"))

    def write_sent(self, sent: JsonObject) -> None:
        """Raises DataDirectoryUnusable."""
        self._write("sent.json", sent)

    def make(self) -> None:
        """Make the directory. Raises DataDirectoryUnusable."""
        try:
            os.makedirs(self.path, mode=0o700, exist_ok=True)
        except OSError as error:
            raise unusable(self.path, error) from error

    def streams(self) -> list[str]:
        """Names of the spools, in the order in which they were begun."""
        names = [name for name in self._entries() if name.endswith(_SUFFIX)]
        return [name[: -len(_SUFFIX)] for name in sorted(names, key=self._begun)]

    def stream_path(self, name: str) -> str:
        return os.path.join(self.path, name + _SUFFIX)

    def output_path(self, name: str) -> str:
        return os.path.join(self.path, name + ".log")

    def hold(self, name: str = "lock") -> Optional[int]:
        """Take a lock for as long as this process lives, or until `release`; None: another has it."""
        try:
            held = os.open(os.path.join(self.path, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise unusable(self.path, error) from error
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(held)
            return None
        return held

    def is_alive(self, name: str = "lock") -> bool:
        """Whether whoever holds the lock lives."""
        try:
            probe = os.open(os.path.join(self.path, name), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(probe, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(probe)
        return False

    def _entries(self) -> list[str]:
        try:
            return os.listdir(self.path)
        except OSError:
            return []

    def _begun(self, name: str) -> tuple[float, str]:
        try:
            with open(os.path.join(self.path, name), "rb") as file:
                first = fast_json.loads(file.readline().decode("utf-8", "replace"))
            at = first.get("at") if isinstance(first, dict) else 0.0
        except (OSError, ValueError):
            at = 0.0
        return (at if isinstance(at, (int, float)) else 0.0), name

    def _write(self, name: str, document: JsonObject) -> None:
        target = os.path.join(self.path, name)
        temporary = f"{target}.new-{os.getpid()}"
        try:
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
                file.write(fast_json.dumps(document))
            os.replace(temporary, target)
        except OSError as error:
            with suppress(OSError):
                os.unlink(temporary)
            raise unusable(self.path, error) from error


def new_run() -> LocalRun:
    """A run that begins now; nothing is made yet."""
    name = f"{strftime('%Y%m%d-%H%M%S', localtime())}-{os.getpid()}-{os.urandom(3).hex()}"
    return LocalRun(os.path.join(runs_directory(), name))


def local_runs() -> list[LocalRun]:
    """All runs of this user, the oldest first."""
    root = runs_directory()
    try:
        names = sorted(os.listdir(root))
    except OSError:
        return []
    return [LocalRun(os.path.join(root, name)) for name in names if os.path.isdir(os.path.join(root, name))]


def find_run(text: str) -> LocalRun:
    """A run by its name, the beginning of it, its last part, or ``last``. Raises NotFound, InvalidInput."""
    runs = local_runs()
    if text == "last" and runs:
        return runs[-1]
    exact = [run for run in runs if run.name == text]
    matching = exact or [run for run in runs if text and (run.name.startswith(text) or run.name.endswith("-" + text))]
    if not matching:
        raise NotFound(f"There is no local run {text!r} in {runs_directory()}: tenax local list")
    if len(matching) > 1:
        raise InvalidInput(
            f"{text!r} may be any of {len(matching)} local runs: give more of its name (tenax local list)."
        )
    return matching[0]


def unusable(path: str, error: OSError) -> DataDirectoryUnusable:
    """What to say of a directory that does not take a file."""
    return DataDirectoryUnusable(
        f"Nothing can be written to {path}: {error.strerror or error}. "
        f"Make room there, or name another directory for your data with {VARIABLE}."
    )


def new_card(argv: list[str], **more: Json) -> JsonObject:
    """What ``run.json`` says of a run of these arguments that begins now."""
    key = os.urandom(16).hex()
    return {
        "v": 1,
        "key": key,
        #: Runs that go on from one another are one trial: this is the first one's key.
        "trialKey": key,
        "argv": list(argv),
        "cwd": _working_directory(),
        "host": os.uname().nodename,
        "python": sys.version.split()[0],
        "commit": commit_of(_working_directory()),
        "started": time(),
        "ended": None,
        "state": "",
        "reason": "",
        **more,
    }


def commit_of(directory: str) -> str:
    """The commit of the working tree around a directory, read from its files; empty where there is none."""
    place = directory
    while place and not os.path.isdir(os.path.join(place, ".git")):
        above = os.path.dirname(place)
        if above == place:
            return ""
        place = above
    git = os.path.join(place, ".git")
    head = _first_line(os.path.join(git, "HEAD"))
    if not head.startswith("ref: "):
        return head[:40]
    name = head[5:]
    return (_first_line(os.path.join(git, name)) or _packed_ref(git, name))[:40]


def release(held: int) -> None:
    """Give a lock back, also where a process that was forked meanwhile holds it, too."""
    fcntl.flock(held, fcntl.LOCK_UN)
    os.close(held)


@contextmanager
def sending(run: LocalRun) -> Iterator[bool]:
    """Whether this process alone sends the run meanwhile."""
    held = run.hold("sending.lock")
    try:
        yield held is not None
    finally:
        if held is not None:
            release(held)


@contextmanager
def beginning() -> Iterator[None]:
    """No other process of this user begins a run meanwhile whose script says which trial it is.

    Raises DataDirectoryUnusable.
    """
    root = runs_directory()
    try:
        os.makedirs(root, mode=0o700, exist_ok=True)
        held = os.open(os.path.join(root, "beginning.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unusable(root, error) from error
    try:
        with suppress(OSError):  # of a file system without locks
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""


def _packed_ref(git: str, name: str) -> str:
    try:
        with open(os.path.join(git, "packed-refs"), encoding="utf-8", errors="replace") as file:
            return next((line.split()[0] for line in file if line.rstrip().endswith(" " + name)), "")
    except OSError:
        return ""


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""


def _read(path: str) -> JsonObject:
    try:
        with open(path, encoding="utf-8") as file:
            document = fast_json.loads(file.read())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
