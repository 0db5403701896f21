"""What becomes of a machine whose agent reaches no master: a rented one powers itself off, as nobody else may.

Rules: nothing is done while a container runs here, known or not, nor where that cannot be seen, up to the busy limit;
before that what runs is asked to save and leave. An end that could not be told keeps no machine. A master that is heard
in the meantime takes it all back, but for what was asked to leave: that leaves.

Beside the agent stands the machine's watchdog (`tenax.master.provision.bootstrap`), which needs nothing of it but that
the lease is renewed: an agent that hangs, is stopped, or was killed renews nothing. The lease is a file of one line,
and each renewal changes that line. It is renewed while a master is heard, and while something runs here, up to the busy
limit. It says since when no master is heard, so that an agent that is started again goes on counting.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import structlog

from tenax.agent.hooks import run_hook
from tenax.config.agent import NEVER_RENEWED
from tenax.runtime.port import ContainerStatus, Runtime, RuntimeAway
from tenax.runtime.processes import boot_id
from tenax.runtime.users import acting_as, files_of
from tenax.wire.task_names import LEAVE_FILE

log = structlog.get_logger("tenax.agent")

#: Seconds between two looks at what runs here, and between two renewals of the lease.
_LOOK_S = 30.0
#: Seconds before the busy limit at which what runs is asked to save; of a short limit a quarter of it.
_SAVE_S = 600.0
#: Seconds that an agent has for its first connection, or as long as an idle machine has, before it gives a machine up
#: by what another one before it has noted.
_FIRST_S = 60.0


@dataclass(frozen=True, slots=True)
class OrphanLimits:
    """Seconds without any master."""

    #: After which a machine is given up where nothing runs.
    idle_s: float
    #: The same, whatever runs there; never less than ``idle_s`` in effect.
    busy_s: float

    @property
    def save_s(self) -> float:
        """After which what runs is asked to save and leave."""
        return self.busy_s - min(_SAVE_S, self.busy_s / 4)


class OrphanStep(Enum):
    """What is right for a machine now."""

    #: It is to live on.
    RENEW = "renew"
    #: The same, and what runs is asked to save and leave.
    SAVE = "save"
    #: Nothing yet; unless a master is heard it ends.
    LAPSE = "lapse"
    #: It ends now.
    GIVE_UP = "give up"


def next_step(unheard_s: float, limits: OrphanLimits, *, busy: bool) -> OrphanStep:
    """What to do after so many seconds without a master; ``busy``: something runs here, or that cannot be seen."""
    cases: Sequence[tuple[bool, OrphanStep]] = (
        (unheard_s <= 0, OrphanStep.RENEW),
        (not busy and unheard_s < limits.idle_s, OrphanStep.LAPSE),
        (not busy, OrphanStep.GIVE_UP),
        (unheard_s < limits.save_s, OrphanStep.RENEW),
        (unheard_s < max(limits.busy_s, limits.idle_s), OrphanStep.SAVE),
    )
    return next((step for holds, step in cases if holds), OrphanStep.GIVE_UP)


class MachineLease:
    """The file whose renewal keeps the machine's watchdog from powering it off. One user at a time; calls block."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._renewals = 0

    def lost_at(self, now: float) -> float:
        """Since when no master is heard, as it was noted last in this boot; ``now``: nobody noted it."""
        try:
            _, boot, text = self._path.read_text().split()
            return min(float(text), now) if boot == boot_id() else now
        except (OSError, ValueError):
            return now

    def claim(self, lost_at: float) -> None:
        """Renew it if nobody ever has, so that the watchdog knows of an agent that renews it. Raises OSError.

        Once: an agent that breaks at each start is not to keep its machine by that.
        """
        try:
            line = self._path.read_text().strip()
        except FileNotFoundError:
            line = ""
        if line in ("", NEVER_RENEWED):
            self.renew(lost_at)

    def renew(self, lost_at: float) -> None:
        """Raises OSError. In place: a full disk has room for what it holds already."""
        self._renewals += 1
        line = f"{os.getpid()}-{self._renewals:012d} {boot_id()} {lost_at:018.3f}\n".encode()
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(file, line, 0)
            os.ftruncate(file, len(line))
        finally:
            os.close(file)


class MasterContact:
    """Since when no master is heard; none was when this is made, or since ``lost_at``."""

    def __init__(self, now: Callable[[], float], lost_at: float | None = None) -> None:
        self._now = now
        self._begun_at = now()
        #: None: a connection stands.
        self._lost_at: float | None = self._begun_at if lost_at is None else lost_at
        self._news = asyncio.Event()

    def made(self) -> None:
        self._lost_at = None
        self._news.set()

    async def until_made(self, within_s: float) -> None:
        """Until the next master is heard, or one that was heard since this was asked last; so long at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._news.wait()
        self._news.clear()

    def age_s(self) -> float:
        """Seconds since this agent began to look for one."""
        return self._now() - self._begun_at

    def lost(self) -> None:
        if self._lost_at is None:
            self._lost_at = self._now()

    def unheard_s(self) -> float:
        """Seconds without a master; 0 while one is there."""
        return 0.0 if self._lost_at is None else self._now() - self._lost_at

    def lost_at(self) -> float:
        """From when on no master was heard; now, while one is there."""
        return self._now() if self._lost_at is None else self._lost_at


async def watch(
    contact: MasterContact,
    runtime: Runtime,
    limits: OrphanLimits,
    program: Sequence[str],
    lease: MachineLease | None = None,
) -> None:
    """Renew the lease while the machine is to live, and run the program whenever it is an orphan; for ever."""
    every_s = min(limits.idle_s / 4, _LOOK_S)
    leaving: set[str] = set()
    if lease is not None:
        await _written(lease.claim, contact.lost_at())
    while True:
        unheard_s = contact.unheard_s()
        running = await _running(runtime) if unheard_s > 0 else []
        step = next_step(unheard_s, limits, busy=running is None or bool(running))
        if step in (OrphanStep.RENEW, OrphanStep.SAVE) and lease is not None:
            await _written(lease.renew, contact.lost_at())
        if step is OrphanStep.SAVE:
            await _ask_to_leave(running or (), leaving, limits.busy_s - unheard_s)
        first_s = min(_FIRST_S, limits.idle_s) - contact.age_s()
        if step is OrphanStep.GIVE_UP and first_s > 0:
            await contact.until_made(first_s)
            continue
        if step is OrphanStep.GIVE_UP:
            log.error("no master is heard: this machine is given up", seconds=round(unheard_s), busy=running != [])
            await run_hook("on_orphaned", program)
            await contact.until_made(limits.idle_s)
            continue
        await contact.until_made(_pause_s(unheard_s, limits, every_s))


def _pause_s(unheard_s: float, limits: OrphanLimits, every_s: float) -> float:
    """Until the next look: at each limit there is one."""
    ahead = [limit_s - unheard_s for limit_s in (limits.idle_s, limits.save_s, limits.busy_s)]
    return min([every_s, *(left_s for left_s in ahead if left_s > 0)])


async def _written(write: Callable[[float], None], lost_at: float) -> None:
    try:
        await asyncio.to_thread(write, lost_at)
    except OSError as error:
        log.error("the lease of this machine cannot be renewed: it powers itself off in time", reason=error.strerror)


async def _running(runtime: Runtime) -> list[ContainerStatus] | None:
    """What runs here; None: that cannot be seen."""
    try:
        return [container for container in await runtime.find() if container.state != "exited"]
    except (OSError, RuntimeAway) as error:
        log.warning("cannot see what runs here", reason=str(error))
        return None


async def _ask_to_leave(running: Sequence[ContainerStatus], leaving: set[str], within_s: float) -> None:
    """Once each: a file in its own directory, which it looks for where no master tells it to leave."""
    for container in running:
        if container.spec is None or not container.spool_directory or container.container_id in leaving:
            continue
        leaving.add(container.container_id)
        file = Path(container.spool_directory).parent / LEAVE_FILE
        log.warning("no master is heard: a task is asked to save", container=container.container_id, seconds=within_s)
        try:
            await asyncio.to_thread(acting_as, files_of(container.spec), lambda file=file: _make(file))
        except OSError as error:
            log.error("a task cannot be asked to save", container=container.container_id, reason=str(error))


def _make(file: Path) -> None:
    # The directory is the task's: a pipe of that name is an error, and is not waited for.
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644))
