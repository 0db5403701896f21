"""A process beside the user's program that watches it for hangs. Standard library only, Python 3.9.

It is forked before this program becomes the user's, and is no child of that one; it ends with it. Until
beats are there (`tenax.core.hangs.beats`) it looks for them once a second and has nothing loaded: a program that does
not use `tenax.core` is not watched, and a short one costs a fork.
"""

from __future__ import annotations

import os
import select
import sys

from tenax.core.hangs.beats import DIRECTORY, start_ticks
from tenax.core.hangs.settings import OFF, HangSettings
from tenax.wire.task_names import LAUNCHER_NAMES

CLONE_PARENT = 0x8000

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

    from tenax.exec.prepare import TrialEnvironment


def watched(trial: TrialEnvironment, argv: list[str], env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a program that is to replace this process, and that a process watches from now on."""
    settings = HangSettings.of(trial.config)
    # Launchers watch by themselves.
    if settings.policy == OFF or any(name in word for word in argv for name in LAUNCHER_NAMES):
        return dict(env)
    directory = os.path.join(trial.run_dir, "beats")
    sys.stdout.flush()
    sys.stderr.flush()
    program = os.getpid(), start_ticks(os.getpid())
    if _fork_sibling():
        try:
            _watch(program, directory, settings, env, complete=not trial.members_expected())
        finally:
            os._exit(0)
    return {**env, DIRECTORY: directory}


def _fork_sibling() -> bool:
    """Fork a process that is a child of this one's parent, or of nobody; whether this is it."""
    # One fork instead of two: what a process has loaded makes each dear.
    pid = _clone() if sys.platform.startswith("linux") else -1
    if pid >= 0:
        return pid == 0
    between = os.fork()
    if between == 0:
        try:
            if os.fork() == 0:
                return True
        except OSError:
            os._exit(1)
        os._exit(0)
    os.waitpid(between, 0)
    return False


def _watch(
    program: tuple[int, int], directory: str, settings: HangSettings, env: Mapping[str, str], *, complete: bool
) -> NoReturn:
    """Until the program has ended."""
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        ended = _Ending(*program)
        while not os.path.isdir(directory):
            ended.wait(1.0)
        os.environ.update(env)
        from tenax.core.hangs.speaking import HangReporter
        from tenax.core.hangs.watcher import Alone, HangWatcher

        watcher = HangWatcher(directory, settings, HangReporter(directory, settings), Alone(complete))
        while True:
            watcher.step()
            ended.wait(settings.tick)
    except Exception as error:
        sys.stdout.write(f"WARNING: tenax: nobody watches for hangs any more: {type(error).__name__}: {error}\n")
        sys.stdout.flush()
    finally:
        os._exit(0)


def _clone() -> int:
    """As `os.fork`, but the parent is this one's; -1 where the system, or this Python, cannot do that."""
    try:
        from tenax.runtime import procfs
        from tenax.runtime.main_process import CLONE3
    except ImportError:
        return -1
    fields = (CLONE_PARENT, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    arguments = b"".join(field.to_bytes(8, sys.byteorder) for field in fields)
    return procfs.call("syscall", CLONE3, arguments, len(arguments))


class _Ending:
    """Of another process; this one ends with it."""

    def __init__(self, pid: int, start: int) -> None:
        self._pid, self._start = pid, start
        self._poll = select.poll()
        if hasattr(os, "pidfd_open"):
            try:
                self._poll.register(os.pidfd_open(pid), select.POLLIN)
            except ProcessLookupError:
                os._exit(0)
            except OSError:  # an old kernel
                pass

    def wait(self, seconds: float) -> None:
        """So long at most."""
        if self._poll.poll(seconds * 1000) or start_ticks(self._pid) != self._start:
            os._exit(0)
