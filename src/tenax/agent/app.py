"""An agent put together: directory, devices, runtime, connection, containers.

It keeps no state of its own but its credential. When it is told to end it just leaves: containers run on, and the next
agent of this directory finds them. Whatever starts it must let them: under systemd that is ``KillMode=process``.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import structlog

from tenax.agent import join, placing
from tenax.agent.board import Board
from tenax.agent.contexts import Contexts
from tenax.agent.detect import detect
from tenax.agent.fleet import Fleet
from tenax.agent.keeper import Tools
from tenax.agent.link import Link, MasterRefused, address_towards, is_loopback
from tenax.agent.session import Face, Session
from tenax.config.agent import AgentSettings, RuntimeKind
from tenax.errors import UserError
from tenax.runtime.docker import open_docker
from tenax.runtime.engine import usual_sockets
from tenax.runtime.planning import Machine
from tenax.runtime.port import Runtime, RuntimeAway
from tenax.runtime.process import ProcessRuntime
from tenax.wire.agents import SlotInfo

log = structlog.get_logger("tenax.agent")

#: Starts and uploads at once.
_STARTS = 8
_UPLOADS = 8


async def run(settings: AgentSettings) -> None:
    """Until cancelled. Raises UserError when the agent cannot work as it is told to."""
    with directory_lock(settings.dir):
        slots = await asyncio.to_thread(detect, settings)
        log.info("devices", slots=[f"{slot.kind}:{slot.name}" for slot in slots])
        runtime = await make_runtime(settings)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(runtime.close)
            link = Link(settings)
            await link.open()
            stack.push_async_callback(link.close)
            credential = join.stored(settings.dir, settings.agent_id) or await join.join(link, settings)
            while True:
                link.credential = credential.credential
                try:
                    await _serve(settings, link, runtime, slots, credential.cluster_id)
                except MasterRefused as refused:
                    log.warning("the master does not know this agent's credential: joining again", reason=str(refused))
                    credential = await join.join(link, settings)


async def make_runtime(settings: AgentSettings) -> Runtime:
    """The runtime that the settings name; ``auto`` stays with the one that holds containers. Raises UserError."""
    held = await asyncio.to_thread(_holding, settings.dir)
    kind = settings.runtime
    if kind is RuntimeKind.AUTO and held:
        kind = held[0]
    for other in held:
        if other is not kind:
            # They would be taken for lost while they run.
            raise UserError(
                f"{settings.dir} holds containers of the {other.value} runtime: let them end under "
                f"--runtime {other.value} before changing it"
            )
    if kind is not RuntimeKind.PROCESS:
        docker = await _docker(settings, must=kind is RuntimeKind.DOCKER)
        if docker is not None:
            return docker
    python = str(settings.python) if settings.python is not None else Machine().python
    return ProcessRuntime(settings.dir, Machine(python, tuple(os.environ.items())))


async def _docker(settings: AgentSettings, *, must: bool) -> Runtime | None:
    """The first engine that answers. Raises UserError where there ``must`` be one."""
    hosts = [settings.docker_host] if settings.docker_host else usual_sockets()
    for host in hosts:
        try:
            runtime = await open_docker(settings.dir, host, _network(settings))
        except RuntimeAway as away:
            log.info("no container engine", host=host, reason=away.message)
            continue
        log.info("runtime", kind="docker", engine=host)
        return runtime
    if must:
        places = ", ".join(hosts) or "none of the usual places has a socket"
        raise UserError(f"no container engine answers ({places}): start it, or use --runtime process")
    return None


def _network(settings: AgentSettings) -> str:
    """A container with a network of its own does not reach a master on this machine's loopback."""
    if settings.docker_network != "auto":
        return settings.docker_network
    return "host" if is_loopback(settings.task_master_url or settings.master_url) else "bridge"


def _holding(directory: Path) -> list[RuntimeKind]:
    """The runtimes that have containers in this directory."""
    folders = ((RuntimeKind.PROCESS, "containers"), (RuntimeKind.DOCKER, "docker"))
    return [
        kind
        for kind, folder in folders
        if (directory / folder).is_dir()
        and any(not path.name.startswith(".") for path in (directory / folder).iterdir())
    ]


async def _serve(
    settings: AgentSettings, link: Link, runtime: Runtime, slots: tuple[SlotInfo, ...], cluster_id: str
) -> None:
    """Tend containers and stay connected. Raises UserError, MasterRefused."""
    board = Board()
    master_url = settings.task_master_url or settings.master_url
    own = placing.Self(settings.agent_id, cluster_id, master_url, settings.tls.master_cert_name, slots)
    tools = Tools(
        link=link,
        runtime=runtime,
        board=board,
        contexts=Contexts(link, settings.dir / "contexts", settings.context_cache_bytes),
        own=own,
        spool_patience_s=settings.spool_patience_s,
        master_certificate=_certificate(settings),
        generation=None,
        address=settings.address or address_towards(settings.master_url, ""),
        starts=asyncio.Semaphore(_STARTS),
        uploads=asyncio.Semaphore(_UPLOADS),
        ports={},
    )
    fleet = Fleet(tools)
    face = Face(socket.gethostname(), runtime.name, slots)
    session = Session(link, fleet, board, face, cluster_id)

    def connected(address: str) -> None:
        if settings.address is None:
            tools.address = address_towards(settings.master_url, address)

    await fleet.adopt()
    listening = asyncio.create_task(fleet.listen())
    try:
        await session.run(connected)
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        await fleet.close()


def _certificate(settings: AgentSettings) -> str:
    """The master's certificate, for tasks to trust it by. Raises UserError."""
    path = settings.tls.master_cert
    if path is None or not settings.master_url.startswith("https://"):
        return ""
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the master's certificate from {path}: {error}") from None


@contextmanager
def directory_lock(directory: Path) -> Iterator[None]:
    """Two agents in one directory would start everything twice. Raises UserError."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
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
