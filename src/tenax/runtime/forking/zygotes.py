"""The interpreters of one agent that have loaded what trials import, one for each `Setting`: learned, opened, ended.

Of trials with one setting the first starts in an interpreter of its own; the second does so, too, and notes what it
imports; once that is known an interpreter loads it (`tenax.exec.zygote`), and further ones are forked from
there. Whatever goes wrong on the way, a trial starts in an interpreter of its own.

Rules it keeps:

- They are the agent's own user's, as are the trials: none for a task that runs as somebody else.
- `MAX_ZYGOTES` at a time: another one takes the place of the one that was used last longest ago, and none that is
  loading. They end `IDLE_S` after their last use; when something that was loaded has changed; with the agent.
- What one does not load, because scripts would not have it as their own, its successor leaves out from there on. After
  a start that failed there is no successor.
- One that is ended forks first what was requested of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import structlog

from tenax.host.disk import stamp
from tenax.runtime.directory import Home
from tenax.runtime.forking.launching import Forks, Forkserver, fork_through
from tenax.runtime.forking.warmth import Setting
from tenax.runtime.processes import identity_of, kill_with_descendants
from tenax.wire.imports import COMPLETE, ROOM, ROOM_BYTES, ROOM_OF_WORDS

log = structlog.get_logger("tenax.runtime")

MAX_ZYGOTES = 2
IDLE_S = 300.0
#: Notes that nothing was added to for this long are all that there is to learn now.
_QUIET_S = 5.0
#: A trial waits for an interpreter that loads, as it would wait for its own; and not longer than that.
_LOADED_WITHIN_S = 15.0
#: Longer than an interpreter gives itself.
_LOADING_S = 150.0
#: A supervisor that is forked from one that somebody stopped is not waited for as long as the forkserver's.
_ANSWERS_WITHIN_S = 20.0
#: What was requested of one that is ended is forked by then.
_DRAINED_WITHIN_S = 5.0
#: Temporary files of trials that an earlier agent's interpreters have begun.
_KEPT_S = 7 * 86400.0
_MAX_SETTINGS = 200
#: Successors that leave something out.
_MAX_REFUSALS = 8
#: Bytes of notes that are read: of PyTorch and all that it imports they have some 300,000.
_MAX_NOTES = 4 << 20
_MAX_MEGABYTES = 4096
_SHARE_OF_MEMORY = 8

Stamps = dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class StartPlan:
    """How a container starts."""

    server: Forks
    #: Where its script is to note its imports.
    notes: Path | None = None
    #: Its script may start in the process that is forked.
    in_place: bool = False


@dataclass(frozen=True, slots=True)
class _Answer:
    """What an interpreter said of its imports."""

    #: Why nothing is forked from it; "" where it is ready.
    refused: str = ""
    #: Line of its notes at which that was, from 0; below that: of none.
    at: int = -1
    #: Of all that it has read.
    stamps: Stamps | None = None


class Zygote:
    """One interpreter that loads, or has loaded, and forks."""

    answers_within_s = _ANSWERS_WITHIN_S

    def __init__(self, setting: Setting, directory: Path, program: Path, otherwise: Forkserver) -> None:
        """``directory``: its own, with the notes in ``load``. Raises OSError."""
        self._otherwise = otherwise
        self.used_at = self._opened_at = time.monotonic()
        #: Set once, when it is ready or never will be.
        self.answer: asyncio.Future[_Answer] = asyncio.get_running_loop().create_future()
        self._text = b""
        temporary = directory / f"tmp-{uuid.uuid4().hex[:8]}"
        temporary.mkdir(mode=0o700)
        with contextlib.ExitStack() as opened:
            self._door, theirs = socket.socketpair()
            opened.enter_context(theirs)
            ends = [os.pipe(), os.pipe()]
            (self._status, status), (printed, output) = ends
            for end in (status, printed, output):
                opened.callback(os.close, end)
            words = [str(theirs.fileno()), str(status), str(printed), str(directory / "load"), str(_megabytes())]
            try:
                self._process = subprocess.Popen(
                    [setting.python, program, *words, " " * ROOM_OF_WORDS],
                    env={**setting.env, "TMPDIR": str(temporary), ROOM: "x" * ROOM_BYTES},
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=(theirs.fileno(), status, printed),
                    start_new_session=True,
                )
            except BaseException:
                self._door.close()
                os.close(self._status)
                raise
        os.set_blocking(self._status, False)
        asyncio.get_running_loop().add_reader(self._status, self._hear)
        self._reaper: threading.Thread | None = None

    @property
    def is_loading(self) -> bool:
        return not self.answer.done() and not self.is_stuck

    @property
    def is_stuck(self) -> bool:
        """Whether it has been loading for longer than it can."""
        return not self.answer.done() and time.monotonic() - self._opened_at > _LOADING_S

    @property
    def is_ready(self) -> bool:
        return self.answer.done() and not self.answer.result().refused and self._reaper is None

    async def is_current(self) -> bool:
        """Whether all that it has read is what it was."""
        stamps = self.answer.result().stamps if self.answer.done() else None
        return stamps is None or await asyncio.to_thread(_are_current, stamps)

    def fork(self, home: Home, lock: int, ready: int) -> None:
        """As `Forkserver.fork`, which does it where this cannot."""
        self.used_at = time.monotonic()
        try:
            fork_through(self._door, home, lock, ready)
        except OSError:
            self.close()
            self._otherwise.fork(home, lock, ready)

    def close(self) -> None:
        """Have it end; what it has forked lives on."""
        if self._reaper is not None:
            return
        self._stop_hearing()
        was_ready = self.is_ready
        self._door.close()
        if not self.answer.done():
            self.answer.set_result(_Answer("it was ended"))
        self._reaper = threading.Thread(target=_reap, args=(self._process, was_ready), name="reaper", daemon=True)
        self._reaper.start()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def is_ending(self) -> bool:
        return self._reaper is not None and self._reaper.is_alive()

    def wait(self) -> None:
        """Until it has ended. Blocking."""
        if self._reaper is not None:
            self._reaper.join()

    def _hear(self) -> None:
        try:
            part = os.read(self._status, 65536)
        except BlockingIOError:
            return
        self._text += part
        if part and not self._text.endswith(b"\n"):
            return
        self._stop_hearing()
        self.used_at = time.monotonic()
        self.answer.set_result(_answer_of(self._text))

    def _stop_hearing(self) -> None:
        if self._status >= 0:
            asyncio.get_running_loop().remove_reader(self._status)
            os.close(self._status)
            self._status = -1


class _Lesson:
    """What is known of one setting."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        #: Written by a trial; and what is made of it, for an interpreter.
        self.notes, self.load = directory / "notes", directory / "load"
        self.starts = 0
        self.is_learning = False
        self.refusals = 0
        self.zygote: Zygote | None = None

    def is_learned(self) -> bool:
        """Whether there is something to load, and no more of it is to come soon."""
        try:
            status = self.notes.stat()
            if not stat.S_ISREG(status.st_mode):
                return False
            with self.notes.open("rb") as file:
                file.seek(max(0, status.st_size - len(COMPLETE) - 2))
                end = file.read()
        except OSError:
            return False
        is_quiet = status.st_size > 0 and time.time() - status.st_mtime > _QUIET_S
        return is_quiet or f"\n{end.decode(errors='replace')}".endswith(f"\n{COMPLETE}\n")

    def lines(self) -> list[bytes]:
        """Modules to load, each with where it is found. Raises OSError."""
        try:
            content = _beginning(self.load)
        except FileNotFoundError:
            content = _beginning(self.notes)
        return [line for line in content.splitlines(keepends=True) if b"\t" in line]


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MAX_NOTES)


class Zygotes:
    """All of an agent. One event loop. ``directory``: their own; ``library``: the tenax that tasks get."""

    def __init__(self, directory: Path, library: Path, forkserver: Forkserver) -> None:
        self._directory = directory
        self._program = library / "tenax" / "exec" / "zygote.py"
        self._forkserver = forkserver
        self._lessons: dict[str, _Lesson] = {}
        self._ended: list[Zygote] = []
        self._idle: asyncio.TimerHandle | None = None
        _clear(directory, _KEPT_S)

    async def choose(self, setting: Setting) -> StartPlan:
        """How the next container with this setting starts. Waits where an interpreter is loading."""
        lesson = self._lessons.pop(setting.key, None) or _Lesson(self._directory / setting.key)
        self._lessons[setting.key] = lesson
        if len(self._lessons) > _MAX_SETTINGS:
            self._end(self._lessons.pop(next(iter(self._lessons))))
        lesson.starts += 1
        try:
            await self._let_go_of_what_changed(lesson)
            return await self._forked(setting, lesson) or self._by_itself(lesson)
        except OSError as error:
            log.warning("no interpreter is kept for trials of this code", reason=str(error))
            self._give_up(lesson)
            return StartPlan(self._forkserver)

    def failed(self, start: StartPlan) -> None:
        """A container that was started so did not start."""
        for lesson in self._lessons.values():
            if lesson.zygote is not None and lesson.zygote is start.server:
                log.warning("trials of this code start by themselves: one that was forked did not start")
                self._give_up(lesson)

    async def close(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        for lesson in self._lessons.values():
            self._end(lesson)
        for zygote in self._ended:
            await asyncio.to_thread(zygote.wait)
        await asyncio.to_thread(_clear, self._directory)

    async def _forked(self, setting: Setting, lesson: _Lesson) -> StartPlan | None:
        """From an interpreter that is ready, or is so in time; None where there is none."""
        until = time.monotonic() + _LOADED_WITHIN_S
        while lesson.refusals < _MAX_REFUSALS and (lesson.zygote is not None or lesson.is_learned()):
            zygote = lesson.zygote or self._open(setting, lesson)
            if zygote is None:
                return None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, until - time.monotonic())):
                    await asyncio.shield(zygote.answer)
            if zygote.is_loading or lesson.zygote is not zygote:
                return None
            if zygote.is_stuck:
                self._give_up(lesson)
                return None
            if zygote.is_ready and zygote.is_alive:
                zygote.used_at = time.monotonic()
                return StartPlan(zygote, in_place=True)
            self._leave_out(lesson, zygote.answer.result())
        return None

    def _by_itself(self, lesson: _Lesson) -> StartPlan:
        """Noting what it imports, if it is the second."""
        if lesson.starts < 2 or lesson.is_learning:
            return StartPlan(self._forkserver)
        lesson.directory.mkdir(parents=True, mode=0o700, exist_ok=True)
        lesson.is_learning = True
        return StartPlan(self._forkserver, notes=lesson.notes)

    async def _let_go_of_what_changed(self, lesson: _Lesson) -> None:
        zygote = lesson.zygote
        if zygote is None or await zygote.is_current() or lesson.zygote is not zygote:
            return
        self._end(lesson)
        lesson.is_learning = False
        old = lesson.directory.with_name(f"old-{uuid.uuid4().hex[:8]}")
        lesson.directory.rename(old)
        await asyncio.to_thread(_clear, old)

    def _open(self, setting: Setting, lesson: _Lesson) -> Zygote | None:
        """None where all places are taken by those that load."""
        others = [other for other in self._lessons.values() if other.zygote is not None]
        while len(others) >= MAX_ZYGOTES:
            done = [other for other in others if other.zygote is not None and not other.zygote.is_loading]
            if not done:
                return None
            oldest = min(done, key=lambda other: other.zygote.used_at if other.zygote is not None else 0.0)
            self._end(oldest)
            others.remove(oldest)
        lesson.load.write_bytes(b"".join(lesson.lines()))
        lesson.zygote = Zygote(setting, lesson.directory, self._program, self._forkserver)
        self._end_idle()
        return lesson.zygote

    def _leave_out(self, lesson: _Lesson, answer: _Answer) -> None:
        """What one refused, and what follows, for its successor; one that was killed has the same."""
        self._end(lesson)
        lesson.refusals += 1
        if answer.refused:
            log.info("trials import this by themselves, and what follows", reason=answer.refused)
            if answer.at < 0:
                self._give_up(lesson)
            else:
                lesson.load.write_bytes(b"".join(lesson.lines()[: answer.at]))

    def _give_up(self, lesson: _Lesson) -> None:
        self._end(lesson)
        lesson.refusals = _MAX_REFUSALS

    def _end(self, lesson: _Lesson) -> None:
        if lesson.zygote is not None:
            lesson.zygote.close()
            self._ended = [*(zygote for zygote in self._ended if zygote.is_ending), lesson.zygote]
            lesson.zygote = None

    def _end_idle(self) -> None:
        """Now those that nobody has used for long, and look again when the next may be one."""
        now = time.monotonic()
        due = []
        for lesson in self._lessons.values():
            if lesson.zygote is not None:
                if lesson.zygote.is_stuck:
                    self._give_up(lesson)
                elif not lesson.zygote.is_loading and now - lesson.zygote.used_at >= IDLE_S:
                    self._end(lesson)
                else:
                    due.append(max(IDLE_S / 10, lesson.zygote.used_at + IDLE_S - now))
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(min(due), self._end_idle) if due else None


def _clear(directory: Path, older_s: float = float("inf")) -> None:
    """Remove all but temporary files, which trials may use; those, too, where they are older."""
    for path in directory.glob("*/tmp-*"):
        with contextlib.suppress(OSError):
            if any(files for _, _, files in os.walk(path)) and time.time() - path.stat().st_mtime < older_s:
                continue
        shutil.rmtree(path, ignore_errors=True)
    for path in directory.glob("*/*"):
        if not path.name.startswith("tmp-"):
            path.unlink(missing_ok=True)
    for path in (*directory.glob("*"), directory):
        with contextlib.suppress(OSError):
            path.rmdir()


def _answer_of(text: bytes) -> _Answer:
    try:
        answer = json.loads(text)
        if answer.get("ready"):
            return _Answer(stamps={path: (changed, size) for path, (changed, size) in answer["stamps"].items()})
        return _Answer(str(answer["refused"]), int(answer["at"]))
    except (ValueError, TypeError, KeyError, AttributeError):
        return _Answer("it ended while it loaded")


def _are_current(stamps: Stamps) -> bool:
    return all(stamp(path) == known for path, known in stamps.items())


def _reap(process: subprocess.Popen[bytes], was_ready: bool) -> None:
    """Wait for the end of one that was ready, and has forked; of one that loads all that came from it goes, too."""
    if not was_ready:
        identity = identity_of(process.pid)
        with contextlib.suppress(OSError):
            if identity is not None:
                kill_with_descendants(identity)
        process.kill()
        process.wait()
        return
    with contextlib.suppress(OSError):
        poll = select.poll()
        pidfd = os.pidfd_open(process.pid)
        try:
            poll.register(pidfd, select.POLLIN)
            poll.poll(_DRAINED_WITHIN_S * 1000)
        finally:
            os.close(pidfd)
    if process.poll() is None:
        # It leads its session, and its number cannot be another's: nobody has collected it. Supervisors have their own.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _megabytes() -> int:
    """What one may hold of the memory of this machine, or of the agent's cgroup."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
        own = next(line[3:] for line in lines if line.startswith("0::"))
        total = min(total, int(Path(f"/sys/fs/cgroup{own}/memory.max").read_text(encoding="utf-8")))
    return min(_MAX_MEGABYTES, total // _SHARE_OF_MEMORY >> 20)
