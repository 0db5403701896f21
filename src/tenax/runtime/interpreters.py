"""Which Python a task runs in, and whether that Python has ``tenax`` itself.

The program is the user's to name, so it is asked as the task itself would run it: as the task's user, under a
supervisor that leaves nothing of it behind, with none of the agent's own variables. Neither is its path looked at by
anyone else. What the agent's own user may run anyway is asked once per interpreter and version.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import structlog

from tenax.runtime import segments
from tenax.runtime.directory import Home, write_private
from tenax.runtime.environment import kept
from tenax.runtime.forking.launching import Forkserver, is_locked, kill, launch
from tenax.runtime.planning import encoded
from tenax.runtime.port import StartFailed
from tenax.runtime.processes import boot_id
from tenax.runtime.removal import TakesLong, delete_home
from tenax.runtime.users import TaskUser

log = structlog.get_logger("tenax.runtime")

OLDEST = (3, 9)
_ASK = (
    "import importlib.util as u, sys; "
    "print(sys.version_info[0], sys.version_info[1], int(u.find_spec('tenax') is not None), sys.executable)"
)
_ANSWER_WITHIN_S = 30.0
#: What is left of a question; after that it is for the next agent to end.
_ENDED_WITHIN_S = 15.0
_ANSWER_BYTES = 16 * 1024
_POLL_S = 0.005


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that can run tasks."""

    path: Path
    version: tuple[int, int]
    #: False: tasks need our library on PYTHONPATH.
    has_tenax: bool


class Interpreters:
    """Remembers answers that the agent's own user got, until the interpreter's file changes.

    ``directory``: the agent's own, for the questions that are being asked.
    """

    def __init__(self, directory: Path, server: Forkserver) -> None:
        self._questions = directory / "questions"
        self._server = server
        self._known: dict[tuple[str, int], Interpreter] = {}
        self._open: set[Path] = set()
        self._ending: asyncio.Task[None] | None = None

    async def find(self, name: str, search: Mapping[str, str], who: TaskUser | None) -> Interpreter:
        """The interpreter ``name``, a path or looked up in ``search["PATH"]``, as ``who`` has it; StartFailed."""
        if who is not None:
            return await self._ask(name, search, who)
        path = name if os.path.isabs(name) else shutil.which(name, path=search.get("PATH"))
        if path is None or not os.access(path, os.X_OK):
            raise _missing(name, "")
        key = (path, os.stat(path).st_mtime_ns)
        if key not in self._known:
            self._known[key] = await self._ask(path, search, None)
        return self._known[key]

    def clear(self) -> None:
        """Begin to end what an agent that was killed was still asking; nobody waits for that."""
        left = [path for path in self._questions.glob("*") if path not in self._open]
        if left and self._ending is None:
            self._ending = asyncio.create_task(self._end_all(left))

    async def close(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
            await asyncio.gather(self._ending, return_exceptions=True)

    async def _end_all(self, left: list[Path]) -> None:
        for path in left:
            try:
                await _end(Home(path))
            except (OSError, TakesLong) as error:
                log.warning("could not remove a question to an interpreter", path=str(path), reason=str(error))

    async def _ask(self, name: str, search: Mapping[str, str], who: TaskUser | None) -> Interpreter:
        home = Home(self._questions / str(uuid.uuid4()))
        self._open.add(home.path)
        try:
            home.path.mkdir(parents=True, mode=0o700)
            home.output.mkdir(mode=0o700)
            write_private(home.path / "plan", _plan(name, search, who))
            await self._launch(home, name)
            await self._until_answered(home, name)
            return _understood(home, name)
        except OSError as error:
            raise StartFailed(f"cannot ask {name} for its version: {error.strerror}", platform=True) from error
        finally:
            await _end(home)
            self._open.discard(home.path)

    async def _launch(self, home: Home, name: str) -> None:
        try:
            await launch(home, self._server)
        except StartFailed as failed:
            raise failed if failed.platform else _missing(name, failed.message) from None

    async def _until_answered(self, home: Home, name: str) -> None:
        try:
            async with asyncio.timeout(_ANSWER_WITHIN_S):
                while is_locked(home):  # noqa: ASYNC110 - nobody tells of the end of a lock
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            text = f"{name} did not tell its version within {_ANSWER_WITHIN_S:.0f} s"
            raise StartFailed(text, platform=False) from None


def _plan(name: str, search: Mapping[str, str], who: TaskUser | None) -> bytes:
    """Isolated (``-I``), so that the answer depends on the interpreter alone."""
    items = [("argv", word) for word in (name, "-I", "-c", _ASK)]
    items += [("env", f"{variable}={value}") for variable, value in kept(search).items()]
    items += [("cwd", "/"), ("cap", str(_ANSWER_BYTES)), ("boot", boot_id())]
    if who is not None:
        items += who.plan()
    return encoded(items)


def _understood(home: Home, name: str) -> Interpreter:
    """Raises StartFailed."""
    _, output = segments.read(home.output, "stdout", 0, _ANSWER_BYTES)
    fields = output.decode(errors="surrogateescape").rstrip("\n").split(" ", 3)
    record = home.exit()
    if record is None or record.code != 0 or len(fields) != 4 or not all(field.isdecimal() for field in fields[:3]):
        _, errors = segments.read(home.output, "stderr", 0, _ANSWER_BYTES)
        last_line = errors.decode(errors="replace").strip().rpartition("\n")[2]
        raise StartFailed(f"{name} is not a Python that runs: {last_line or 'it gave no answer'}", platform=False)
    version = (int(fields[0]), int(fields[1]))
    path = name if os.path.isabs(name) else fields[3]
    if version < OLDEST or not os.path.isabs(path):
        raise StartFailed(
            f"{path} is Python {version[0]}.{version[1]}: tasks need {OLDEST[0]}.{OLDEST[1]} or newer", platform=False
        )
    return Interpreter(Path(path), version, fields[2] == "1")


def _missing(name: str, why: str) -> StartFailed:
    return StartFailed(
        f"there is no Python interpreter {name!r} on this machine that this task may run: give the path of one in "
        "the variable DET_PYTHON_EXECUTABLE of the experiment, or leave it out to use the agent's own"
        + (f" ({why})" if why else ""),
        platform=False,
    )


async def _end(home: Home) -> None:
    """Kill all that is left of a question, and forget it; where the system does not do so in time, leave it."""
    try:
        async with asyncio.timeout(_ENDED_WITHIN_S):
            while is_locked(home):
                await kill(home)
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        log.warning("what was asked for its version does not end", path=str(home.path))
        return
    await asyncio.to_thread(delete_home, home.path)
