"""An agent put together: directory, devices, runtime, connection, containers.

It keeps no state of its own but its credential. On SIGTERM it just leaves: containers run on, and the next
agent of this directory finds them. Whatever starts it must let them: under systemd that is ``KillMode=process``.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import structlog

from tenax.agent import join, notices, orphaned, placing
from tenax.agent.container_reports import ContainerReports
from tenax.agent.contexts import Contexts
from tenax.agent.devices import DeviceWatch, offered
from tenax.agent.fleet import Fleet
from tenax.agent.keeper import Tools
from tenax.agent.link import Link, MasterRefused, address_towards, pause, retry
from tenax.agent.session import AgentSession, Face
from tenax.agent.turns import Turns
from tenax.backoff.background import keep_running
from tenax.config.agent import AgentSettings, AllowedSettings
from tenax.errors import UserError
from tenax.host import runtimes
from tenax.host.runtimes import AUTO, RUNTIMES
from tenax.runtime import metadata_guard
from tenax.runtime.opening import open_kind
from tenax.runtime.port import Runtime, RuntimeAway
from tenax.runtime.processes import boot_id
from tenax.storage.private_directory import mark_private
from tenax.wire.agents import Allowed, SlotInfo

log = structlog.get_logger("tenax.agent")

#: At once: of each owner of tasks, and of all.
_FETCHES = 8
_STARTS = 8
_UPLOADS = 8
#: A container whose records cannot be read is waited for so long at the start, then the others go on without it.
_LOOK_WITHIN_S = 10.0


async def run(settings: AgentSettings, *, make_parents: bool = True) -> None:
    """Until cancelled; ``make_parents``: of its directory, where they are missing.

    Raises UserError when the agent cannot work with these settings.
    """
    notices.check(settings)
    await metadata_guard.begin(settings)
    with directory_lock(settings.dir, make_parents=make_parents):
        runtime = await make_runtime(settings)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(runtime.close)
            in_use = await _slots_in_use(runtime)
            slots = await asyncio.to_thread(offered, settings, in_use)
            log.info("devices", slots=[f"{slot.kind}:{slot.name}" for slot in slots])
            link = Link(settings)
            await link.open()
            stack.push_async_callback(link.close)
            lease = None if settings.lease_file is None else orphaned.MachineLease(settings.lease_file)
            lost_at = None if lease is None else await asyncio.to_thread(lease.lost_at, time.monotonic())
            contact = orphaned.MasterContact(time.monotonic, lost_at)
            watching = asyncio.create_task(_watch(contact, runtime, settings, lease))
            stack.push_async_callback(_end, watching)
            # Also while it has no credential: what an earlier agent started may run.
            guarding = keep_running("keeping tasks from the metadata service", lambda: metadata_guard.watch(settings))
            stack.push_async_callback(_end, asyncio.create_task(guarding))
            credential = await join.credential_of(link, settings)
            while True:
                link.credential = credential.credential
                try:
                    await _serve(settings, link, runtime, slots, credential.cluster_id, contact)
                except MasterRefused as refused:
                    log.warning("the master does not know this agent's credential: joining again", reason=str(refused))
                    credential = await join.credential_of(link, settings, anew=True)


async def _watch(
    contact: orphaned.MasterContact, runtime: Runtime, settings: AgentSettings, lease: orphaned.MachineLease | None
) -> None:
    if settings.orphan_after_s is None:
        return
    limits = orphaned.OrphanLimits(settings.orphan_after_s, settings.orphan_busy_after_s)
    program = settings.hooks.on_orphaned
    await keep_running("watching for a master", lambda: orphaned.watch(contact, runtime, limits, program, lease))


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def make_runtime(settings: AgentSettings) -> Runtime:
    """The runtime that the settings name; ``auto`` stays with the one that holds containers. Raises UserError."""
    held = await asyncio.to_thread(runtimes.held, settings.dir)
    name = settings.runtime
    if name == AUTO and held:
        name = held[0].name
    for other in held:
        if other.name != name:
            # They would be taken for lost while they run.
            raise UserError(
                f"{settings.dir} holds containers of the {other.name} runtime: let them end under "
                f"--runtime {other.name} before changing it"
            )
    for kind in RUNTIMES.values() if name == AUTO else [RUNTIMES[name]]:
        try:
            runtime = await open_kind(kind, settings)
        except RuntimeAway as away:
            if name != AUTO:
                others = " or ".join(other for other in RUNTIMES if other != name)
                raise UserError(f"{away.message}: start it, or use --runtime {others}") from None
            continue
        log.info("runtime", kind=kind.name)
        return runtime
    raise UserError(f"none of the runtimes {', '.join(RUNTIMES)} is on this machine: start one")


async def _serve(
    settings: AgentSettings,
    link: Link,
    runtime: Runtime,
    slots: tuple[SlotInfo, ...],
    cluster_id: str,
    contact: orphaned.MasterContact,
) -> None:
    """Keep containers and stay connected. Raises UserError, MasterRefused."""
    watch = DeviceWatch(slots)
    await watch.begin()
    reports = ContainerReports()
    urls = settings.task_master_urls
    own = placing.Self(settings.agent_id, cluster_id, urls, settings.tls.master_cert_name, slots)
    tools = Tools(
        link=link,
        runtime=runtime,
        reports=reports,
        contexts=Contexts(link, settings.dir / "contexts", settings.context_cache_bytes),
        own=own,
        spool_patience_s=settings.spool_patience_s,
        master_certificate=_certificate(settings),
        generation=None,
        connections=0,
        address=settings.address or address_towards(""),
        fetches=Turns(_FETCHES),
        starts=Turns(_STARTS),
        uploads=asyncio.Semaphore(_UPLOADS),
        ports={},
    )
    fleet = Fleet(tools)
    allowed = _allowed(settings.allowed, by_engine=runtime.by_engine)
    face = Face(
        socket.gethostname(), runtime.name, watch.slots, allowed, _place(settings.dir), _labels(settings.labels)
    )
    forewarning = notices.Forewarning()
    on_lost = settings.hooks.on_connection_lost
    session = AgentSession(link, fleet, reports, face, cluster_id, contact, on_lost, forewarning)

    def connected(address: str) -> None:
        if settings.address is None:
            tools.address = address_towards(address)

    await _adopted(fleet)
    beside = [
        asyncio.create_task(keep_running("news of the runtime", fleet.listen)),
        asyncio.create_task(keep_running("watching devices", lambda: watch.run(session.offer))),
        asyncio.create_task(
            keep_running("asking this machine's cloud", lambda: notices.watch(settings, forewarning)),
        ),
    ]
    try:
        await session.run(connected)
    finally:
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        await fleet.close()


async def _slots_in_use(runtime: Runtime) -> frozenset[int] | None:
    """Numbers of the slots that containers here have; None where that cannot be read now."""
    try:
        containers = await runtime.find()
    except (OSError, RuntimeAway) as error:
        log.warning("cannot see what runs here", reason=str(error))
        return None
    if any(each.spec is None for each in containers):
        return None
    return frozenset(number for each in containers if each.spec is not None for number in each.spec.slots)


def _labels(pairs: Iterable[str]) -> Mapping[str, str]:
    return {key: value for key, _, value in (pair.partition("=") for pair in pairs)}


def _allowed(settings: AllowedSettings, *, by_engine: bool) -> Allowed:
    return Allowed(
        bind_mounts=list(settings.bind_mounts),
        capabilities=list(settings.capabilities),
        devices=list(settings.devices),
        # A process of uid 0 is the agent itself, where that is not root.
        root=settings.root or (not by_engine and os.geteuid() != 0),
        unmapped=settings.unmapped,
        by_engine=by_engine,
    )


def _certificate(settings: AgentSettings) -> str:
    """The master's certificate, for tasks to trust it by. Raises UserError."""
    path = settings.tls.master_cert
    if path is None or not settings.uses_tls:
        return ""
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the master's certificate from {path}: {error}") from None


def _refuse_if_others_may_write(directory: Path) -> None:
    """Programs of tasks lie there, and whom a folder belongs to is believed."""
    status = directory.stat()
    if status.st_uid != os.geteuid():
        raise UserError(
            f"{directory} belongs to user number {status.st_uid} and not to the agent's: choose another with --dir"
        )
    if status.st_mode & 0o022:
        raise UserError(f"others may write to {directory}: close it (chmod go-w {directory}), or choose another")


async def _adopted(fleet: Fleet) -> None:
    """However long it takes: what cannot be read now must not be taken for what is not there."""
    attempts = retry()
    patient_until = time.monotonic() + _LOOK_WITHIN_S
    while True:
        try:
            return await fleet.adopt(patient=time.monotonic() < patient_until)
        except OSError:
            log.exception("cannot see what runs here")
            await pause(attempts.pause())


def _place(directory: Path) -> str:
    """What the directory and its credential have in common with no copy of them; one agent is in it at a time."""
    status = directory.stat()
    return f"{boot_id()}:{status.st_dev}:{status.st_ino}"


@contextmanager
def directory_lock(directory: Path, *, make_parents: bool = True) -> Iterator[None]:
    """Two agents in one directory would start everything twice, and in one of others theirs. Raises UserError."""
    try:
        directory.mkdir(parents=make_parents, exist_ok=True, mode=0o700)
        _refuse_if_others_may_write(directory)
        if os.geteuid() == 0:
            # Tasks of other users come down to their own; what is secret in it has a mode of its own.
            directory.chmod(0o711)
        mark_private(str(directory))
        fd = os.open(directory / "agent.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UserError(
            f"cannot use {directory} as the agent's directory: {error.strerror}; choose another with --dir"
        ) from None
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"another agent works in {directory}: stop it, or give this one a directory and an id of its own "
                "(--dir, --agent-id)"
            ) from None
        yield
    finally:
        os.close(fd)
