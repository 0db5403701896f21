"""Keeps one container in its desired state: load (inspect it), decide, apply; one serial task per container.

All decisions are in ``tenax.agent.decide``; here is what carries them out and what waits. An error of the machine is
logged and tried again with growing pauses; it never ends the agent.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec
import structlog
from structlog.contextvars import bind_contextvars

from tenax.agent import placing, spool
from tenax.agent.container_reports import ContainerReports
from tenax.agent.contexts import Contexts, Damaged
from tenax.agent.decide import (
    ContainerSituation,
    Gone,
    KeeperAction,
    NeverRan,
    Remove,
    Rest,
    Settle,
    Signal,
    Start,
    Vanished,
    decide,
)
from tenax.agent.link import Link, MasterRefused, MasterUnreachable, pause, retry
from tenax.agent.output import OutputShipper
from tenax.agent.turns import Turns
from tenax.runtime.port import ContainerStatus, Placement, Runtime, RuntimeAway, StartFailed
from tenax.wire.agents import (
    ContainerReport,
    ContainerSpec,
    DesiredRun,
    DesiredState,
    Exit,
    ReportedState,
    TaskFile,
)
from tenax.wire.task_names import RUN_DIRECTORY

log = structlog.get_logger("tenax.agent")

Result = TypeVar("Result")
#: A running container is inspected this often even if there is no news of it.
_BACKSTOP_S = 1.0
#: For the reports of a container that is to be removed.
_RETRY_BEFORE_END_S = 30.0
#: Of which it is remembered that they were here.
_MAX_GONE = 10_000
_DELETED = "its directory on the agent's machine was deleted while it ran"
_LOST_WITH_IT = "what it had reported and printed and was not sent yet was deleted with its directory"
_CERTIFICATE = "etc/ssl/master.crt"


@dataclass(slots=True)
class Tools:
    """What keepers share."""

    link: Link
    runtime: Runtime
    reports: ContainerReports
    contexts: Contexts
    own: placing.Self
    spool_patience_s: float
    #: The master's certificate (PEM), for tasks; "" for none.
    master_certificate: str
    #: Generation of the cluster, as of the last message of the master; None before the first.
    generation: int | None
    #: Connections so far. What was delivered over an earlier one may be gone: another may lead to a restored database.
    connections: int
    #: Where the other members of an allocation reach this machine.
    address: str
    #: Bounds of what goes on at once on this machine. What is fetched, and starts, may be slow at its user's will.
    fetches: Turns
    starts: Turns
    uploads: asyncio.Semaphore
    #: Ports given to containers that are not gone, by container.
    ports: dict[str, set[int]]
    #: The last containers of which nothing was left, in that order. None of them is started again.
    gone: dict[str, None] = field(default_factory=dict)

    def remember_gone(self, container_id: str) -> None:
        self.gone[container_id] = None
        if len(self.gone) > _MAX_GONE:
            del self.gone[next(iter(self.gone))]


class Keeper:
    """One container, from its first desired state (after a restart, from the runtime) until it is gone."""

    def __init__(self, tools: Tools, container_id: str) -> None:
        self._tools = tools
        self.container_id = container_id
        self._desired: DesiredState | None = None
        self._wake = asyncio.Event()
        #: Set while a start is not wanted (any more), and once its removal is.
        self._unwanted = asyncio.Event()
        self._settled: Exit | None = None
        self._killed_at: float | None = None
        self._ran = False
        #: There was nothing of it when it was inspected: it begins under this keeper.
        self._fresh = False
        #: The connection under which it was started here; -1: it was not.
        self._started_under = -1
        #: What was shipped of its end is to be looked at once more.
        self._again = False
        self._shipper: OutputShipper | None = None
        self._shipping: asyncio.Task[None] | None = None
        #: Nothing of it is left, and its task has done all that it had to.
        self.gone = False

    def set_desired(self, desired: DesiredState) -> None:
        """Take the state that the master desires; a specification once given is kept."""
        known = self._desired
        if isinstance(desired, DesiredRun) and desired.spec is None and isinstance(known, DesiredRun):
            desired = known
        self._desired = desired
        if isinstance(desired, DesiredRun):
            self._unwanted.clear()
        else:
            self._unwanted.set()
        self._wake.set()

    def poke(self) -> None:
        """Something about it may have changed."""
        self._wake.set()
        if self._shipper is not None:
            self._shipper.poke()

    def deliver_again(self) -> None:
        """There is another connection: agree with the master upon what it has, also of what has ended."""
        if self._shipper is None:
            return
        self._shipper.ask_again()
        if self._settled is not None:
            self._again = True
            self._tools.reports.withdraw_exit(self.container_id)
            self._wake.set()

    async def run(self) -> None:
        """Until nothing of it is left, or the task is cancelled (the container runs on); it may be run again then.

        In an asyncio task of its own: lines of the log name the container and its allocation from now on.
        """
        bind_contextvars(container=self.container_id)
        attempts = retry()
        try:
            while not self.gone:
                self._wake.clear()
                try:
                    await self._step()
                    attempts.reset()
                except RuntimeAway as away:
                    log.warning("cannot reconcile a container now", container=self.container_id, reason=away.message)
                    await pause(attempts.pause())
                except Exception:
                    log.exception("could not reconcile a container", container=self.container_id)
                    await pause(attempts.pause())
        finally:
            if self._shipping is not None:
                self._shipping.cancel()
            # Whoever runs it again ships from where the master is.
            self._shipper = self._shipping = None
            self._fresh = False

    async def _step(self) -> None:
        container = await self._tools.runtime.inspect(self.container_id)
        ours = container is not None and self._is_ours(container)
        self._fresh = self._fresh or container is None
        spec = self._spec_of(container)
        if spec is not None:
            bind_contextvars(allocation=spec.allocation_id)
        if self._again and container is not None:
            # Shipped anew from where the master is, and settled by what comes of that.
            self._again = self._fresh = False
            self._settled = self._shipper = self._shipping = None
        if container is not None:
            self._ran = self._ran or container.state != "starting"
            self.note(container)
        elif self._settled is not None:
            self._report("exited", exit=self._settled)
        situation = ContainerSituation(
            self._desired,
            container,
            ours,
            self._settled,
            self._killed_at,
            time.monotonic(),
            gone_before=self.container_id in self._tools.gone,
            ran=self._ran,
        )
        await self._apply(decide(situation), container)

    async def _apply(self, action: KeeperAction, container: ContainerStatus | None) -> None:
        match action:
            case Rest(until):
                await self._rest(until, container)
            case Start(spec):
                await self._start(spec)
            case Signal(number):
                if number == signal.SIGKILL:
                    self._killed_at = time.monotonic()
                await self._tools.runtime.signal(self.container_id, number)
            case Settle(exit):
                await self._settle(exit, container)
            case NeverRan(exit):
                self._settled = exit
            case Vanished():
                log.warning("the directory of a container was deleted", container=self.container_id)
                await self._stop_shipping()
                await self._tools.runtime.remove(self.container_id)
                self._settled = Exit(reason=_DELETED, spool_lost=_LOST_WITH_IT)
            case Remove():
                await self._stop_shipping()
                await self._tools.runtime.remove(self.container_id)
            case Gone():
                self._tools.ports.pop(self.container_id, None)
                self._tools.remember_gone(self.container_id)
                self._tools.reports.gone(self.container_id)
                self.gone = True

    async def _rest(self, until: float | None, container: ContainerStatus | None) -> None:
        running = container is not None and container.state != "exited"
        waits = [_BACKSTOP_S] if running else []
        if until is not None:
            waits.append(max(0.0, until - time.monotonic()))
        if waits:
            await pause(min(waits), self._wake)
        else:
            await self._wake.wait()

    def _spec_of(self, container: ContainerStatus | None) -> ContainerSpec | None:
        if container is not None and container.spec is not None:
            return container.spec
        return self._desired.spec if isinstance(self._desired, DesiredRun) else None

    # Its reports

    def _is_ours(self, container: ContainerStatus) -> bool:
        return container.cluster_id == self._tools.own.cluster_id

    def note(self, container: ContainerStatus) -> None:
        """Report what was found, and have its output shipped."""
        self._tools.ports.setdefault(self.container_id, placing.ports_of(container.placed))
        if self._is_ours(container) and self._shipper is None and container.state != "starting":
            self._ship_output()
        if container.state == "exited" and (self._settled is not None or not self._is_ours(container)):
            self._report("exited", exit=self._settled or container.exit, container=container)
        else:
            self._report("starting" if container.state == "starting" else "running", container=container)

    def note_unreadable(self) -> None:
        """There is one, and nothing can be seen of it now: whoever took it for lost might start it twice."""
        self._ran = True
        self._report("running")

    def _report(
        self, state: ReportedState, *, exit: Exit | None = None, container: ContainerStatus | None = None
    ) -> None:
        tools = self._tools
        report = ContainerReport(
            container_id=self.container_id,
            cluster_id=container.cluster_id if container is not None else tools.own.cluster_id,
            generation=container.generation if container is not None else tools.generation or 0,
            state=state,
            pid=container.pid if container is not None else None,
            address=tools.address,
            exit=exit,
        )
        tools.reports.put(report, passing=state in ("pulling", "starting"))

    # Its start

    async def _start(self, spec: ContainerSpec) -> None:
        tools = self._tools
        self._report("pulling")
        self._started_under = tools.connections
        try:
            kind, uuids = placing.devices(tools.own, spec)
        except ValueError as error:
            self._settled = Exit(reason=f"could not start: {error}", platform=True)
            return
        try:
            archive = await self._unless(self._unwanted, self._fetch(spec, kind))
            if self._unwanted.is_set():
                return
            async with tools.starts.of(spec.uid):
                if self._unwanted.is_set():
                    return
                self._report("starting")
                given = self._with_certificate(spec)
                await tools.runtime.start(given, self._placement(given, kind, uuids, archive))
        except StartFailed as failed:
            log.warning("could not start", container=self.container_id, reason=failed.message)
            self._settled = Exit(reason=failed.message, platform=failed.platform)

    async def _fetch(self, spec: ContainerSpec, kind: str) -> str | None:
        """The model code and the image or the interpreter, however long it takes. Raises StartFailed."""
        async with self._tools.fetches.of(spec.uid):
            archive = await self._fetch_context(spec.context_hash) if spec.context_hash else None
            await self._tools.runtime.pull(spec, kind)
            return archive

    async def _fetch_context(self, digest: str) -> str:
        attempts = retry()
        while True:
            try:
                return str(await self._tools.contexts.get(digest))
            except (MasterUnreachable, Damaged) as error:
                log.warning("model code is not here yet", container=self.container_id, reason=error.message)
            except MasterRefused as refused:
                if refused.status in (400, 404, 410):
                    text = f"could not start: the master does not have its model code: {refused.message}"
                    raise StartFailed(text, platform=True) from None
                log.warning("model code is refused", container=self.container_id, reason=refused.message)
            except OSError as error:
                # A full disk: another machine may have room, while this one may have none for days.
                text = f"could not start: its model code cannot be stored: {error.strerror}"
                raise StartFailed(text, platform=True) from error
            await pause(attempts.pause())

    def _with_certificate(self, spec: ContainerSpec) -> ContainerSpec:
        if not self._tools.master_certificate:
            return spec
        file = TaskFile(_CERTIFICATE, self._tools.master_certificate, 0o644)
        return msgspec.structs.replace(spec, files=[*spec.files, file])

    def _placement(self, spec: ContainerSpec, kind: str, uuids: tuple[str, ...], archive: str | None) -> Placement:
        tools = self._tools
        taken = set().union(*tools.ports.values())
        ports = placing.choose_ports(spec, taken, tools.own.first_place)
        occupied = placing.port_in_use(spec, ports, taken)
        if occupied is not None:
            text = f"port {occupied}, where the others would look for it, is in use here: the next run has another"
            raise StartFailed(f"could not start: {text}", platform=True)
        tools.ports[self.container_id] = set(ports.values())
        env = placing.environment(tools.own, spec, ports, tools.link.at)
        if tools.master_certificate:
            env["DET_MASTER_CERT_FILE"] = f"{RUN_DIRECTORY}/{_CERTIFICATE}"
        return Placement(
            env=env,
            device_uuids=uuids,
            device_kind=kind,
            context_archive=archive,
            cluster_id=tools.own.cluster_id,
            generation=tools.generation or 0,
        )

    # Its end

    def _ship_output(self) -> None:
        tools = self._tools
        self._shipper = OutputShipper(tools.link, tools.runtime, self.container_id, tools.uploads, fresh=self._fresh)
        self._shipping = asyncio.create_task(self._shipper.run())

    async def _settle(self, exit: Exit, container: ContainerStatus | None) -> None:
        """Ship what is left, then let the exit be reported."""
        connection = self._tools.connections
        if self._shipper is not None:
            self._shipper.end()
        lost = await self._ship_rest(container)
        self._again = self._tools.connections != connection
        if not self._again:
            self._settled = msgspec.structs.replace(exit, spool_lost=lost)

    async def _ship_rest(self, container: ContainerStatus | None) -> str:
        """A sentence about what is lost; "" for nothing."""
        lost = []
        if self._shipping is not None:
            (failed,) = await asyncio.gather(self._shipping, return_exceptions=True)
            if isinstance(failed, Exception):
                lost.append(f"output was not stored: {type(failed).__name__}: {failed}")
        if self._shipper is not None:
            lost.append(self._shipper.lost)
        if container is not None and container.spec is not None:
            tools = self._tools
            directory = Path(container.spool_directory)
            acks_hold = self._started_under == tools.connections
            lost.append(await spool.ship(tools.link, directory, container.spec, self._retry_for_s, acks_hold=acks_hold))
        return "; ".join(sentence for sentence in lost if sentence)

    def _retry_for_s(self) -> float:
        """How long the master may refuse what is left: not for long once the container is to end, or to be gone."""
        retry_for_s = self._tools.spool_patience_s
        return min(_RETRY_BEFORE_END_S, retry_for_s) if self._unwanted.is_set() else retry_for_s

    async def _stop_shipping(self) -> None:
        if self._shipping is not None:
            self._shipping.cancel()
            await asyncio.gather(self._shipping, return_exceptions=True)

    async def _unless(self, event: asyncio.Event, work: Coroutine[object, object, Result]) -> Result | None:
        """The work's result; None, the work cancelled, if the event comes first."""
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            stop.cancel()
            task.cancel()
            await asyncio.gather(task, stop, return_exceptions=True)
