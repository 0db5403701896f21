"""The process runtime: each container a plain process in a directory of its own, under a detached supervisor.

Rules it keeps (beside those of the port and of ``tenax.runtime.supervisor``):

- The directory is the truth: a runtime object that is made anew finds all that an earlier one started.
- A container is started at most once: under its lock, and never where ``started`` stands.
- Reported as exited only when nothing of it runs: the supervisor's word, or a sweep that found nothing.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import structlog

from tenax.backoff import Backoff, Retry
from tenax.config.agent import AgentSettings, AllowedSettings
from tenax.host.disk import is_there
from tenax.host.runtimes import PROCESS
from tenax.runtime import contents, library, limits, metadata_guard, planning, segments
from tenax.runtime.directory import VERSION, Card, ExitRecord, Home, Homes, write_private
from tenax.runtime.environment import kept
from tenax.runtime.exit_reason import exit_of
from tenax.runtime.forking.launching import Forkserver, is_locked, kill, launch
from tenax.runtime.forking.zygotes import StartPlan, Zygotes
from tenax.runtime.interpreters import Interpreter, Interpreters
from tenax.runtime.metadata_guard import MetadataGuard
from tenax.runtime.planning import Machine
from tenax.runtime.port import ContainerStatus, OutputStream, Placement, StartFailed, unreadable
from tenax.runtime.processes import LINUX, Identity, boot_id, cgroup_parent, kill_belonging, send
from tenax.runtime.removal import delete_tree
from tenax.runtime.users import TaskUser, files_of, user_of
from tenax.runtime.wakes import Wakes
from tenax.wire.agents import ContainerSpec, Exit

log = structlog.get_logger("tenax.runtime")

#: Between two looks whether its supervisor, or all that belonged to it, is gone.
_UNTIL_GONE = Backoff(first=0.001, ceiling=0.5)
_UNTIL_SWEPT = Backoff(first=0.01, ceiling=1.0)

#: Answers of interpreters whose starts have not come; beyond that the oldest are asked for again.
_MAX_ANSWERS = 1000

#: A zygote that is ended lets go of what it was to fork.
_LET_GO_WITHIN_S = 10.0

#: What is left of a start that failed; after that it is tried again later.
_REMOVED_WITHIN_S = 30.0

#: Of the library that tasks get: programs that become the user's program, and what they import on the way. What is not
#: loaded by then may be out of reach of the task's user.
FIRST_PROGRAMS = (
    *("tenax.exec.trial", "tenax.exec.task"),
    *("tenax.exec.namespaces", "tenax.storage.registry", "pwd", "shutil"),
)


async def open_runtime(settings: AgentSettings) -> ProcessRuntime:
    """Every machine has it."""
    python = str(settings.python) if settings.python is not None else Machine().python
    machine = Machine(python, tuple(os.environ.items()))
    return ProcessRuntime(settings.dir, machine, settings.allowed, metadata_guard.guard_of(settings))


class ProcessRuntime:
    """See `tenax.runtime.port.Runtime`. ``directory``: the agent's own, which no other agent uses at the same time."""

    name = PROCESS.name
    by_engine = False

    def __init__(
        self,
        directory: Path,
        machine: Machine | None = None,
        allowed: AllowedSettings | None = None,
        guard: MetadataGuard | None = None,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._guard = guard
        self._allowed = allowed or AllowedSettings()
        self._machine = machine or Machine(environ=tuple(os.environ.items()))
        self._homes = Homes(directory / PROCESS.folder)
        self._library = library.install(directory / "lib")
        library.prune(directory, self._library)
        self._forkserver = Forkserver(self._library, FIRST_PROGRAMS)
        self._zygotes = Zygotes(directory / "zygotes", self._library, self._forkserver)
        self._interpreters = Interpreters(directory, self._forkserver)
        self._wakes = Wakes(directory / "wake")
        #: For starts that are about to be made, by container.
        self._answers: dict[str, Interpreter] = {}
        #: What is written once, so that a look costs little.
        self._written: dict[str, tuple[Card, ContainerSpec | None]] = {}
        #: What has ended does not change any more.
        self._ended: dict[str, ContainerStatus] = {}

    async def pull(self, spec: ContainerSpec, device_kind: str) -> None:
        """Ask its interpreter, which may be a program of its user's that never answers."""
        if is_there(self._homes.home(spec.container_id).path):
            return
        self._answers[spec.container_id] = await self._ask_interpreter(spec, await self._admit(spec))
        if len(self._answers) > _MAX_ANSWERS:
            del self._answers[next(iter(self._answers))]

    async def start(self, spec: ContainerSpec, placement: Placement) -> None:
        self._wakes.listen()
        home = self._homes.home(spec.container_id)
        start = StartPlan(self._forkserver)
        if not is_there(home.path):
            start = await self._prepare(spec, placement)
        if home.started or is_locked(home):
            return
        try:
            started = await self._launch(home, start)
        except OSError as error:
            await self.remove(spec.container_id)
            raise StartFailed(f"could not start: {error.strerror} ({error.filename})", platform=True) from error
        except StartFailed:
            with suppress(TimeoutError):
                async with asyncio.timeout(_REMOVED_WITHIN_S):
                    await self.remove(spec.container_id)
            raise
        if started:
            self._watch(home)

    async def _launch(self, home: Home, start: StartPlan) -> bool:
        """By the forkserver where a zygote has not got to it. Raises StartFailed and OSError."""
        try:
            return await launch(home, start.server)
        except StartFailed as failed:
            if start.server is self._forkserver or not failed.platform:
                raise
            self._zygotes.failed(start)
            with suppress(TimeoutError):
                async with asyncio.timeout(_LET_GO_WITHIN_S):
                    while is_locked(home):  # noqa: ASYNC110 - nobody tells of the end of a lock
                        await asyncio.sleep(0.01)
            if home.started or is_locked(home):
                raise
        return await launch(home, self._forkserver)

    async def find(self) -> list[ContainerStatus]:
        self._interpreters.clear()
        homes = await asyncio.to_thread(self._homes.all)
        statuses = [await self._inspected(home.container_id) for home in homes]
        return [status for status in statuses if status is not None]

    async def _inspected(self, container_id: str) -> ContainerStatus | None:
        try:
            return await self.inspect(container_id)
        except OSError as error:
            return unreadable(container_id, error)

    async def inspect(self, container_id: str) -> ContainerStatus | None:
        if container_id in self._ended:
            return self._ended[container_id]
        home = self._homes.home(container_id)
        written = self._written.get(container_id) or self._read(home)
        if written is None:
            return None
        card, spec = written
        if home.exit() is None and is_locked(home):
            self._watch(home)
            supervision = home.supervision()
            return self._status(home, card, spec, pid=supervision.main_pid if supervision else None)
        # The record may have been written just before the lock was let go.
        exit = home.exit()
        if exit is None and not home.started:
            if not is_there(home.path / "container.json"):
                # Somebody deleted it.
                return None
            return self._status(home, card, spec)
        if exit is None:
            exit = await self._lost(home, card)
        share = 0.0
        if exit.disk_full and exit.code != 0:
            share = await asyncio.to_thread(contents.own_share, home.run, files_of(spec))
        self._ended[container_id] = self._status(home, card, spec, exit=exit_of(exit, str(self._homes.root), share))
        return self._ended[container_id]

    def changed(self) -> AsyncIterator[str]:
        return self._wakes.changed()

    async def signal(self, container_id: str, number: int) -> None:
        home = self._homes.home(container_id)
        if number == signal.SIGTERM and home.card() is not None and self._homes.stopping_since(home) is None:
            self._homes.stop_begins(home)
        while home.exit() is None and is_locked(home):
            supervision = home.supervision()
            if number == signal.SIGKILL:
                if await kill(home):
                    return
            elif supervision is not None:
                supervisor = Identity(supervision.pid, supervision.start)
                send(supervisor, number)
                # One that somebody stopped would see to it only once it goes on.
                send(supervisor, signal.SIGCONT)
                return
            await asyncio.sleep(0.01)

    async def switch_off(self, container_id: str) -> None:
        home = self._homes.home(container_id)
        while (container := await self.inspect(container_id)) is not None and container.state != "exited":
            supervision = home.supervision()
            if supervision is not None:
                # Whoever looks next sweeps what it watched, and says that it was lost.
                send(Identity(supervision.pid, supervision.start), signal.SIGKILL)
            elif not is_locked(home):
                return
            await asyncio.sleep(0.01)

    async def read_output(self, container_id: str, stream: OutputStream, offset: int, limit: int) -> tuple[int, bytes]:
        home = self._homes.home(container_id)
        first, data = segments.read(home.output, stream, offset, limit)
        if not data and (exit := home.exit()) is not None:
            # What came before the exit was written is there now; where it is not, the disk did not take it.
            first, data = segments.read(home.output, stream, offset, limit)
            first = first if data else max(first, exit.stdout_bytes if stream == "stdout" else exit.stderr_bytes)
        return first, data

    async def output_time(self, container_id: str, stream: OutputStream, offset: int) -> tuple[float, int | None]:
        at, later = segments.written(self._homes.home(container_id).output, stream, offset)
        return max(0.0, time.monotonic() - at), later

    async def trim_output(self, container_id: str, stream: OutputStream, offset: int) -> None:
        segments.trim(self._homes.home(container_id).output, stream, offset)

    async def remove(self, container_id: str) -> None:
        home = self._homes.home(container_id)
        card = home.card()
        if card is None and container_id in self._written:
            card, _ = self._written[container_id]
        retry = Retry(_UNTIL_GONE)
        while is_locked(home):
            await self.signal(container_id, signal.SIGKILL)
            await asyncio.sleep(retry.pause())
        if not is_there(home.path):
            # Somebody deleted it, perhaps while it ran.
            await self._sweep(container_id, _cgroup_of(container_id))
        elif home.started and home.exit() is None:
            await self._sweep(container_id, card.cgroup if card is not None else "")
        if card is not None:
            planning.remove_temporary_link(card, home)
        spec = home.spec()
        gone = self._homes.retire(container_id)
        self._ended.pop(container_id, None)
        self._written.pop(container_id, None)
        self._answers.pop(container_id, None)
        if gone is not None:
            await asyncio.to_thread(self._homes.delete, gone)
        for path in filter(os.path.lexists, planning.leftovers(spec)):
            await asyncio.to_thread(delete_tree, path, files_of(spec))

    async def close(self) -> None:
        self._wakes.close()
        await self._interpreters.close()
        await self._zygotes.close()
        self._forkserver.close()

    async def _admit(self, spec: ContainerSpec) -> TaskUser | None:
        """Whom it runs as; None for the agent's own user. Raises StartFailed."""
        if spec.uid != 0 or os.geteuid() == 0:
            limits.check_user(spec, self._allowed)
        who = user_of(spec)
        await metadata_guard.check_start(self._guard, spec, self._allowed, "", who)
        if who is not None and self._guard is not None:
            who = replace(who, no_new_privileges=True)
        if who is not None and who.uid != 0:
            await asyncio.to_thread(contents.check_reachable, self._homes.home(spec.container_id).path, who)
        return who

    async def _ask_interpreter(self, spec: ContainerSpec, who: TaskUser | None) -> Interpreter:
        machines, named = kept(dict(self._machine.environ)), spec.env.get("DET_PYTHON_EXECUTABLE")
        if named:
            return await self._interpreters.find(named, {**machines, **spec.env}, who)
        return await self._interpreters.find(self._machine.python, machines, None)

    async def _prepare(self, spec: ContainerSpec, placement: Placement) -> StartPlan:
        who = await self._admit(spec)
        interpreter = self._answers.pop(spec.container_id, None) or await self._ask_interpreter(spec, who)
        start = StartPlan(self._forkserver)
        try:
            with suppress(OSError):  # its interpreter is gone, which its start will say
                start = await self._choose_start(spec, placement, interpreter, who)
            await asyncio.to_thread(self._stage, spec, placement, interpreter, who, start)
        except OSError as error:
            place = error.filename or self._homes.root
            raise StartFailed(f"could not prepare its directory: {error.strerror} ({place})", platform=True) from error
        return start

    async def _choose_start(
        self, spec: ContainerSpec, placement: Placement, interpreter: Interpreter, who: TaskUser | None
    ) -> StartPlan:
        """What a user brings is loaded by nobody else. Raises OSError."""
        library = None if interpreter.has_tenax else self._library
        if who is not None or not LINUX or not planning.runs_our_library(interpreter.path, library):
            return StartPlan(self._forkserver)
        changed_at = (await asyncio.to_thread(interpreter.path.stat)).st_mtime_ns
        setting = planning.setting_of(
            spec,
            placement,
            machine=self._machine,
            python=interpreter.path,
            python_changed_at=changed_at,
            library=self._library,
            has_tenax=interpreter.has_tenax,
        )
        return StartPlan(self._forkserver) if setting is None else await self._zygotes.choose(setting)

    def _stage(
        self,
        spec: ContainerSpec,
        placement: Placement,
        interpreter: Interpreter,
        who: TaskUser | None,
        start: StartPlan,
    ) -> None:
        staged = self._homes.stage(spec.container_id, mode=0o700 if who is None else 0o711)
        home = self._homes.home(spec.container_id)
        card = self._card(spec, placement, home)
        try:
            staged.output.mkdir(mode=0o700)
            contents.fill(staged, placement.context_archive, spec.files, who=who, links=planning.links(spec))
            passwd = None if who is None else contents.write_names(staged, who, spec, home.workdir)
            plan = planning.plan(
                spec,
                placement,
                machine=self._machine,
                home=home,
                card=card,
                python=interpreter.path,
                library=None if interpreter.has_tenax else self._library,
                who=who,
                passwd=passwd,
                notes=start.notes,
                in_place=start.in_place,
            )
            write_private(staged.path / "plan", plan)
            staged.write("spec.json", spec)
            staged.write("container.json", card)
            self._homes.publish(staged)
        except BaseException:
            planning.remove_temporary_link(card, home)
            self._homes.discard(staged)
            raise

    def _card(self, spec: ContainerSpec, placement: Placement, home: Home) -> Card:
        return Card(
            v=VERSION,
            container_id=spec.container_id,
            cluster_id=placement.cluster_id,
            generation=placement.generation,
            boot_id=boot_id(),
            placed=dict(placement.env),
            cgroup=_cgroup_of(spec.container_id),
            temporary=planning.temporary_link(home),
            library=self._library.name,
        )

    def _read(self, home: Home) -> tuple[Card, ContainerSpec | None] | None:
        card = home.card()
        if card is None:
            return None
        self._written[home.container_id] = card, home.spec()
        return self._written[home.container_id]

    def _watch(self, home: Home) -> None:
        supervision = home.supervision()
        if supervision is None:
            return
        self._wakes.watch(home.container_id, Identity(supervision.pid, supervision.start))

    async def _lost(self, home: Home, card: Card) -> ExitRecord:
        """It ran, and no exit status was left."""
        if card.boot_id != boot_id():
            reason = "the machine was restarted while it ran"
        else:
            await self._sweep(home.container_id, card.cgroup)
            reason = "its supervisor was killed on the agent's machine, and the task with it"
        # Somebody may have removed the lock of a supervisor that lived, and recorded the exit meanwhile.
        return home.write_lost(ExitRecord(v=VERSION, lost=reason))

    async def _sweep(self, container_id: str, cgroup: str) -> None:
        """Until nothing that belongs to it runs."""
        retry = Retry(_UNTIL_SWEPT)
        unseen = False
        while True:
            try:
                if await asyncio.to_thread(kill_belonging, container_id, cgroup):
                    return
            except OSError as error:
                if not unseen:
                    log.error("cannot see what is left of a container", container=container_id, reason=str(error))
                unseen = True
            await asyncio.sleep(retry.pause())

    def _status(
        self, home: Home, card: Card, spec: ContainerSpec | None, *, pid: int | None = None, exit: Exit | None = None
    ) -> ContainerStatus:
        return ContainerStatus(
            container_id=home.container_id,
            cluster_id=card.cluster_id,
            generation=card.generation,
            state="exited" if exit else "running" if pid else "starting",
            pid=pid,
            exit=exit,
            spec=spec,
            spool_directory=str(home.spool),
            placed=card.placed,
            stopping_since=self._homes.stopping_since(home),
        )


def _cgroup_of(container_id: str) -> str:
    parent = cgroup_parent()
    return "" if parent is None else str(parent / f"tenax-{container_id}")
