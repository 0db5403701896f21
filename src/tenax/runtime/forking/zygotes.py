"""The interpreters of one agent that have loaded what trials import, one for each `Setting`: learned, opened, ended.

Of trials with one setting the first starts in an interpreter of its own; the second does so, too, and notes what it
imports; once that is known an interpreter loads it (`tenax.runtime.forking.zygote`), and further ones are forked from
there. Whatever goes wrong on the way, a trial starts in an interpreter of its own.

Rules it keeps:

- They are the agent's own user's, as are the trials: none for a task that runs as somebody else.
- `MAX_ZYGOTES` at a time, the one that was used last longest ago goes; `IDLE_S` after its last use; when what is
  installed has changed; with the agent.
- What one does not load, because scripts would not have it as their own, its successor leaves out from there on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import structlog

from tenax.exec.learn_imports import COMPLETE
from tenax.runtime.directory import Home
from tenax.runtime.forking.launching import Forks, Forkserver, fork_through
from tenax.runtime.forking.warmth import Setting
from tenax.runtime.forking.zygote import ROOM, ROOM_BYTES, ROOM_OF_WORDS

log = structlog.get_logger("tenax.runtime")

MAX_ZYGOTES = 2
IDLE_S = 300.0
#: Notes that nothing was added to for this long are all that there is to learn now.
_QUIET_S = 5.0
#: A trial waits for an interpreter that loads, as it would wait for its own; and not longer than that.
_LOADED_WITHIN_S = 15.0
_MAX_SETTINGS = 200
#: Successors that leave something out.
_MAX_REFUSALS = 8
_MAX_MEGABYTES = 4096
_SHARE_OF_MEMORY = 8


@dataclass(frozen=True, slots=True)
class Start:
    """How a container starts."""

    server: Forks
    #: Where its script is to note its imports.
    notes: Path | None = None
    #: Its script may start in the process that is forked.
    in_place: bool = False


class Zygote:
    """One interpreter that loads, or has loaded, and forks."""

    def __init__(self, setting: Setting, directory: Path, program: Path, otherwise: Forkserver) -> None:
        """``directory``: its own, with the ``notes``. Raises OSError."""
        self._otherwise = otherwise
        self.used_at = time.monotonic()
        #: What it said when it was ready, or why it is not.
        self.answer: asyncio.Future[dict[str, object]] = asyncio.get_running_loop().create_future()
        #: When the directories changed in which it has found modules.
        self.stamps: dict[str, int] = {}
        self._text = b""
        self._door, theirs = socket.socketpair()
        self._status, status = os.pipe()
        temporary = directory / "tmp"
        temporary.mkdir(mode=0o700, exist_ok=True)
        env = {**setting.env, "TMPDIR": str(temporary), ROOM: "x" * ROOM_BYTES}
        words = [str(theirs.fileno()), str(status), str(directory / "notes"), str(_megabytes()), " " * ROOM_OF_WORDS]
        try:
            with theirs, (directory / "output").open("wb") as output:
                self._process = subprocess.Popen(
                    [setting.python, program, *words],
                    env=env,
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=(theirs.fileno(), status),
                    start_new_session=True,
                )
        except BaseException:
            self._door.close()
            os.close(self._status)
            raise
        finally:
            os.close(status)
        os.set_blocking(self._status, False)
        asyncio.get_running_loop().add_reader(self._status, self._hear)

    @property
    def is_open(self) -> bool:
        return self._process.poll() is None and self._door.fileno() >= 0

    async def is_ready(self, within_s: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                return "ready" in await asyncio.shield(self.answer)
        return False

    async def is_current(self) -> bool:
        """Whether what is installed is what it was when it was ready."""
        return await asyncio.to_thread(_stamps, list(self.stamps)) == self.stamps

    def fork(self, home: Home, lock: int, ready: int) -> None:
        """As `Forkserver.fork`, which does it where this cannot."""
        self.used_at = time.monotonic()
        try:
            fork_through(self._door, home, lock, ready)
        except OSError:
            self.close()
            self._otherwise.fork(home, lock, ready)

    def close(self) -> None:
        """End it; what it has forked lives on."""
        self._stop_hearing()
        self._door.close()
        self._process.kill()
        self._process.wait()
        if not self.answer.done():
            self.answer.set_result({"refused": "it was ended"})

    def _hear(self) -> None:
        try:
            part = os.read(self._status, 65536)
        except BlockingIOError:
            return
        self._text += part
        if part and not self._text.endswith(b"\n"):
            return
        self._stop_hearing()
        try:
            answer = json.loads(self._text)
        except ValueError:
            answer = {"refused": "it ended while it loaded"}
        if not self.answer.done():
            self.stamps = _stamps(answer.get("path", []))
            self.answer.set_result(answer)

    def _stop_hearing(self) -> None:
        if self._status >= 0:
            asyncio.get_running_loop().remove_reader(self._status)
            os.close(self._status)
            self._status = -1


class _Lesson:
    """What is known of one setting."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.notes = directory / "notes"
        self.starts = 0
        self.is_learning = False
        self.refusals = 0
        self.zygote: Zygote | None = None

    def is_learned(self) -> bool:
        """Whether there is something to load, and no more of it is to come soon."""
        try:
            status = self.notes.stat()
            with self.notes.open("rb") as file:
                file.seek(max(0, status.st_size - len(COMPLETE) - 2))
                end = file.read()
        except OSError:
            return False
        return end.endswith(f"\n{COMPLETE}\n".encode()) or (
            status.st_size > 0 and time.time() - status.st_mtime > _QUIET_S
        )

    def forget(self) -> None:
        if self.zygote is not None:
            self.zygote.close()
            self.zygote = None
        shutil.rmtree(self.directory, ignore_errors=True)


class Zygotes:
    """All of an agent. One event loop. ``directory``: their own; ``library``: the tenax that tasks get."""

    def __init__(self, directory: Path, library: Path, forkserver: Forkserver) -> None:
        self._directory = directory
        self._program = library / "tenax" / "runtime" / "forking" / "zygote.py"
        self._forkserver = forkserver
        self._lessons: dict[str, _Lesson] = {}
        self._idle: asyncio.TimerHandle | None = None
        shutil.rmtree(directory, ignore_errors=True)

    async def choose(self, setting: Setting) -> Start:
        """How the next container with this setting starts. Waits where an interpreter is loading."""
        lesson = self._lessons.pop(setting.key, None) or _Lesson(self._directory / setting.key)
        self._lessons[setting.key] = lesson
        self._forget_oldest()
        lesson.starts += 1
        try:
            return await self._start(setting, lesson)
        except OSError as error:
            log.warning("no interpreter is kept for trials of this code", reason=str(error))
            lesson.refusals = _MAX_REFUSALS
            return Start(self._forkserver)

    def close(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        for lesson in self._lessons.values():
            lesson.forget()
        shutil.rmtree(self._directory, ignore_errors=True)

    async def _start(self, setting: Setting, lesson: _Lesson) -> Start:
        await self._let_go_of_what_changed(lesson)
        while lesson.refusals < _MAX_REFUSALS and (lesson.zygote is not None or lesson.is_learned()):
            zygote = lesson.zygote or self._open(setting, lesson)
            if not await zygote.is_ready(_LOADED_WITHIN_S):
                if not zygote.answer.done():
                    return Start(self._forkserver)
                self._leave_out(lesson, zygote)
            elif zygote.is_open:
                zygote.used_at = time.monotonic()
                return Start(zygote, in_place=True)
            else:
                # Somebody killed it.
                lesson.refusals += 1
                self._end(lesson)
        if lesson.starts > 1 and not lesson.is_learning:
            lesson.directory.mkdir(parents=True, mode=0o700, exist_ok=True)
            lesson.is_learning = True
            return Start(self._forkserver, notes=lesson.notes)
        return Start(self._forkserver)

    async def _let_go_of_what_changed(self, lesson: _Lesson) -> None:
        zygote = lesson.zygote
        if zygote is not None and not await zygote.is_current() and lesson.zygote is zygote:
            lesson.forget()
            lesson.is_learning = False

    def _open(self, setting: Setting, lesson: _Lesson) -> Zygote:
        lesson.zygote = Zygote(setting, lesson.directory, self._program, self._forkserver)
        others = [other for other in self._lessons.values() if other.zygote is not None and other is not lesson]
        others.sort(key=lambda other: other.zygote.used_at if other.zygote is not None else 0.0)
        for other in others[: max(0, len(others) + 1 - MAX_ZYGOTES)]:
            self._end(other)
        self._end_idle()
        return lesson.zygote

    def _leave_out(self, lesson: _Lesson, zygote: Zygote) -> None:
        """The notes from what it refused on, for its successor."""
        if lesson.zygote is not zygote:
            return
        self._end(lesson)
        answer = zygote.answer.result()
        lesson.refusals += 1
        log.info("trials import this by themselves, and what follows", reason=answer.get("refused"))
        at = answer.get("at")
        if not isinstance(at, int):
            lesson.refusals = _MAX_REFUSALS
            return
        lines = [line for line in lesson.notes.read_bytes().splitlines(keepends=True) if b"\t" in line]
        lesson.notes.write_bytes(b"".join(lines[:at]) + f"\n{COMPLETE}\n".encode())

    def _end(self, lesson: _Lesson) -> None:
        if lesson.zygote is not None:
            lesson.zygote.close()
            lesson.zygote = None

    def _end_idle(self) -> None:
        """Now those that nobody has used for long, and look again when the next may be one."""
        now = time.monotonic()
        due = []
        for lesson in self._lessons.values():
            if lesson.zygote is not None:
                if now - lesson.zygote.used_at >= IDLE_S:
                    self._end(lesson)
                else:
                    due.append(lesson.zygote.used_at + IDLE_S - now)
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(min(due), self._end_idle) if due else None

    def _forget_oldest(self) -> None:
        while len(self._lessons) > _MAX_SETTINGS:
            self._lessons.pop(next(iter(self._lessons))).forget()


def _megabytes() -> int:
    """What one may hold of this machine's memory."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(_MAX_MEGABYTES, total // _SHARE_OF_MEMORY >> 20)


def _stamps(path: object) -> dict[str, int]:
    stamps = {}
    for place in path if isinstance(path, list) else ():
        try:
            stamps[str(place)] = os.stat(str(place)).st_mtime_ns
        except OSError:
            stamps[str(place)] = 0
    return stamps
