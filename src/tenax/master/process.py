"""The life of a master process: bind, connect, migrate, serve, end.

Rules it keeps:

- the port is bound first: where it is taken, that is said at once, and no database is touched;
- a database that is away is waited for, with a line in the log; nothing is given up after a number of tries;
- a process whose event loop is held, or of which a loop has hung and cannot be ended, ends itself;
- SIGTERM and SIGINT set the shutdown event, which every stream and long poll waits on; what has not ended after a grace
  time is cut off. A second signal ends the process at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import platform
import signal
import socket
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import TypeVar

import asyncpg
import structlog
import uvicorn
from fastapi import FastAPI

from tenax import __version__
from tenax.backoff.background import keep_running
from tenax.config.agreement import differences, fingerprints
from tenax.config.master import DatabaseSettings, MasterSettings, Role
from tenax.errors import InvalidInput, TenaxError, TryAgain, UserError
from tenax.master import loops
from tenax.master.access.bootstrap import bootstrap
from tenax.master.access.passwords import Passwords
from tenax.master.api.cluster import reloading
from tenax.master.api.http.held_bodies import MAX_BODY_BYTES
from tenax.master.api.http.protocol import BoundedHttp, BoundedWebSocket
from tenax.master.api.http.server import Server, gate_for
from tenax.master.app import create_app, routes_of
from tenax.master.checkpoints import shared_folders
from tenax.master.concurrency.pulse import Pulse, end_process
from tenax.master.context import Master, SettingsFile
from tenax.master.observability import counters
from tenax.master.observability.tracing import tracing
from tenax.master.store.cluster import masters
from tenax.master.store.cluster.masters import MasterAbout
from tenax.master.store.cluster.rows import ClusterRow
from tenax.master.store.database.backup_command import run_backup
from tenax.master.store.database.connection import Database, NoAddress
from tenax.master.store.database.lanes import MIGRATION
from tenax.master.store.database.migrate import migrate, newest, waiting
from tenax.master.store.database.wakeups import Listener
from tenax.storage.private_directory import mark_private

log = structlog.get_logger("tenax.master")
T = TypeVar("T")

#: Requests get this long to end, loops the same; both together stay under three seconds.
GRACE_S = 1.5
_RETRY_S = (0.1, 0.3, 1.0, 2.0)
#: Answers of a database that stay the same however often it is asked, as long as the master was never let in.
_REFUSED = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)


class MasterPortTaken(UserError):
    """The port is in use."""


class ShutdownRequested(TenaxError):
    """The process is to end before the master could serve."""


async def serve(file: SettingsFile, *, make_dir: bool = True) -> None:
    """Run a master until a signal ends it; ``make_dir``: its directory is made where there is none.

    Raises PortTaken, InvalidInput, UserError of the database's content.
    """
    settings = file.started
    url = settings.db.url
    if url is None:
        raise InvalidInput(
            "no database is configured: start the whole cluster with `tenax up`, which brings its own, or set db.url "
            "(TENAX_MASTER_DB__URL) to a PostgreSQL of yours"
        )
    with tracing(settings.tracing), contextlib.closing(bind(settings.host, settings.port)) as listening:
        settings = settings.model_copy(update={"port": listening.getsockname()[1]})
        await _serve(settings, file, url.get_secret_value(), listening, make_dir=make_dir)


async def _serve(
    settings: MasterSettings, file: SettingsFile, url: str, listening: socket.socket, *, make_dir: bool
) -> None:
    shutdown = asyncio.Event()
    with contextlib.suppress(ShutdownRequested), _signals(shutdown) as cut_off:
        db = await _until_reachable(lambda: _open(url, settings.db.max_connections), shutdown)
        try:
            async with running(settings, db, shutdown, make_dir=make_dir) as master:
                master.settings_file = file
                # Before its pulse is watched: where the machine is busy it takes as long as a loop that has hung.
                app = create_app(master, routes_of(settings.roles))
                # What is loaded by now stays for good: the collector need not look through it again and again.
                gc.freeze()
                gc.enable()
                with Pulse(late=counters.EVENT_LOOP_LAG.observe), _ends_with(db.replaced), _reloads(master):
                    await serve_until_shutdown(master, app, listening, cut_off, end_process)
        finally:
            await db.close()


@asynccontextmanager
async def running(
    settings: MasterSettings, db: Database, shutdown: asyncio.Event, *, make_dir: bool = True
) -> AsyncIterator[Master]:
    """A master on a database: migrated, with its first users, listening for wake-ups. Raises UserError."""
    counters.begin(__version__, [role.value for role in settings.roles])
    passwords = Passwords()
    _make_directories(settings, make_dir=make_dir)
    backed_up: set[str] = set()
    left = await _until_reachable(
        lambda: _unless_ended(_migrate(db, settings.db, backed_up), shutdown),
        shutdown,
    )
    cluster = await _until_reachable(lambda: bootstrap(db, settings, passwords), shutdown)
    await _until_reachable(db.adopt, shutdown)
    await asyncio.to_thread(shared_folders.make, settings.checkpoint_storage, str(cluster.cluster_id))
    about = _about(settings, cluster)
    master: Master | None = None

    async def announce(conn: asyncpg.Connection, holder: str) -> None:
        own = about.settings if master is None else fingerprints(master.settings, cluster.secret)
        await masters.announce(conn, replace(about, settings=own), holder)

    listener = Listener(db, announce)
    listening = asyncio.create_task(keep_running("listener", listener.run), name="listener")
    try:
        master = Master(
            settings,
            db,
            listener,
            cluster,
            about.master_id,
            waiting_migrations=left,
            shutdown=shutdown,
            passwords=passwords,
        )
        await _listening(listener, shutdown)
        await _until_reachable(lambda: _warn_of_other_settings(db, about), shutdown)
        async with master.running():
            yield master
    finally:
        listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await listening


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Raises PortTaken, InvalidInput."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise InvalidInput(
            f"cannot listen on {host!r}: {error.strerror}; set host to an address of this machine"
        ) from None
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2048)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise MasterPortTaken(
                f"port {port} on {host} is in use, perhaps by another master: end that one, or choose another port "
                "with --port"
            ) from None
        raise InvalidInput(f"cannot listen on {host}:{port}: {error.strerror}; choose another host or port") from None
    listening.setblocking(False)
    return listening


async def serve_until_shutdown(
    master: Master,
    app: FastAPI,
    listening: socket.socket,
    cut_off: asyncio.Event,
    on_deaf: Callable[[str], None] = lambda reason: None,
) -> None:
    """Answer with ``app`` on a socket until ``master.shutdown`` is set; ``cut_off`` ends it at once.

    ``on_deaf`` is told of a loop that has hung and cannot be ended.
    """
    settings = master.settings
    tls = settings.tls
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        http=BoundedHttp,
        ws=BoundedWebSocket,
        # A client's address is what the socket says: addresses decide what a blank password may do.
        proxy_headers=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=GRACE_S,  # type: ignore[arg-type]
        ws_max_size=min(settings.body_limit_bytes, MAX_BODY_BYTES),
        ssl_certfile=None if tls is None else str(tls.cert),
        ssl_keyfile=None if tls is None else str(tls.key),
    )
    server = Server(config, gate_for(settings.connections))
    if Role.LOOPS in settings.roles:
        master.loops = loops.start(master.db, master.listener, settings, master.cluster, on_deaf)
    watching = asyncio.create_task(_relay(master.shutdown, cut_off, server))
    host, port = listening.getsockname()[:2]
    log.info("serving", host=host, port=port, cluster=master.cluster.cluster_id, tls=tls is not None)
    try:
        await server.serve(sockets=[listening])
    finally:
        watching.cancel()
        master.shutdown.set()
        if master.loops is not None:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(master.loops.stop(), GRACE_S)
    log.info("ended")


async def _relay(shutdown: asyncio.Event, cut_off: asyncio.Event, server: uvicorn.Server) -> None:
    await shutdown.wait()
    server.should_exit = True
    await cut_off.wait()
    server.force_exit = True


@contextmanager
def _signals(shutdown: asyncio.Event) -> Iterator[asyncio.Event]:
    cut_off = asyncio.Event()

    def on_signal(name: str) -> None:
        if shutdown.is_set():
            cut_off.set()
        else:
            log.info("ending on a signal", signal=name)
            shutdown.set()

    loop = asyncio.get_running_loop()
    # Until there is something to read again it means nothing.
    loop.add_signal_handler(signal.SIGHUP, lambda: None)
    ours = (signal.SIGTERM, signal.SIGINT)
    for number in ours:
        loop.add_signal_handler(number, on_signal, number.name)
    try:
        yield cut_off
    finally:
        for number in ours:
            loop.remove_signal_handler(number)


@contextmanager
def _reloads(master: Master) -> Iterator[None]:
    """Inside, SIGHUP lets it read its settings again."""

    async def reload() -> None:
        try:
            await reloading.reload(master)
        except TenaxError as error:
            log.error("the settings stay as they are", reason=str(error))

    under_way: set[asyncio.Task[None]] = set()

    def begin() -> None:
        task = asyncio.create_task(reload(), name="reload")
        under_way.add(task)
        task.add_done_callback(under_way.discard)

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, begin)
    try:
        yield
    finally:
        loop.add_signal_handler(signal.SIGHUP, lambda: None)


async def _open(url: str, max_connections: int) -> Database:
    """Connect. Raises TryAgain while nobody answers, InvalidInput for an answer that will stay the same."""
    try:
        # Whoever upgrades the database sees by the name which masters are of before.
        return await Database.open(url, max_connections=max_connections, name=f"tenax-master/{newest()}")
    except TryAgain as error:
        if not isinstance(error.__cause__, _REFUSED):
            raise
        reason = error.__cause__
        raise InvalidInput(f"the database of db.url lets nobody in: {reason}; check user, password and name") from None
    except (ValueError, asyncpg.InterfaceError):
        # Not repeated: the address holds the password.
        raise NoAddress from None


def _make_directories(settings: MasterSettings, *, make_dir: bool) -> None:
    """Our own state is never served; where everything is kept elsewhere, the directory need not be writable.

    One that was moved away while this process started must not come back: it would be taken for a cluster.
    """
    with contextlib.suppress(OSError):
        if make_dir:
            settings.dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        settings.uploads.mkdir(exist_ok=True, mode=0o700)
        mark_private(str(settings.dir))


@contextmanager
def _ends_with(replaced: asyncio.Event) -> Iterator[None]:
    """Inside, this process ends itself once its database is another: all that it remembers is of the one before."""

    async def end() -> None:
        await replaced.wait()
        end_process("the database is another than before, such as a restored copy")

    ending = asyncio.create_task(end(), name="replaced")
    try:
        yield
    finally:
        ending.cancel()


async def _migrate(db: Database, settings: DatabaseSettings, backed_up: set[str]) -> tuple[str, ...]:
    """What a master needs; returns the names of what waits until somebody asks for it. Raises BackupFailed.

    ``backed_up``: before which migrations this process has made a backup; a connection that is lost after it needs none
    again.
    """

    async def back_up(first: str) -> None:
        if settings.backup_command is None:
            log.warning("the database is migrated without a backup: db.backup_command names none", migration=first)
        elif settings.backup_command and settings.url is not None and first not in backed_up:
            await run_backup(settings.backup_command, settings.url.get_secret_value(), first)
            backed_up.add(first)

    conn = await db.dedicated(MIGRATION)
    try:
        for name in await migrate(conn, before=back_up):
            log.info("migrated the database", step=name)
        left = tuple(each.name for each in await waiting(conn))
    finally:
        await conn.close()
    if left:
        log.warning("migrations of the database wait; apply them with `tenax upgrade-database`", names=", ".join(left))
    return left


def _about(settings: MasterSettings, cluster: ClusterRow) -> MasterAbout:
    machine = platform.node()
    host = machine if settings.host in ("0.0.0.0", "::", "") else settings.host
    return MasterAbout(
        master_id=uuid.uuid4().hex,
        machine=machine,
        address=f"{'https' if settings.tls else 'http'}://{f'[{host}]' if ':' in host else host}:{settings.port}",
        version=__version__,
        roles=tuple(role.value for role in settings.roles),
        settings=fingerprints(settings, cluster.secret),
    )


async def _warn_of_other_settings(db: Database, about: MasterAbout) -> None:
    async with db.connection() as conn:
        others = [row.about for row in await masters.present(conn) if row.about.master_id != about.master_id]
    for other in others:
        if names := differences(about.settings, other.settings):
            log.warning(
                "another master of this cluster has other settings: loops go by those of the master that runs them, "
                "requests by those of the one that takes them (`tenax master list`)",
                settings=", ".join(names),
                other=other.address,
                machine=other.machine,
            )


async def _listening(listener: Listener, shutdown: asyncio.Event) -> None:
    """Wait until it hears of changes: before that this master is not well. Raises ShutdownRequested."""
    ways = [asyncio.ensure_future(listener.connected()), asyncio.ensure_future(shutdown.wait())]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
    if not listener.is_connected:
        raise ShutdownRequested


async def _unless_ended(work: Coroutine[object, object, T], shutdown: asyncio.Event) -> T:
    """To its end, or until the process is to end: then it is cancelled. Raises ShutdownRequested."""
    doing, ended = asyncio.ensure_future(work), asyncio.ensure_future(shutdown.wait())
    try:
        await asyncio.wait([doing, ended], return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise ShutdownRequested
        return await doing
    finally:
        for task in (doing, ended):
            task.cancel()
        await asyncio.wait([doing])


async def _until_reachable(attempt: Callable[[], Awaitable[T]], shutdown: asyncio.Event) -> T:
    """Try until the database answers. Raises ShutdownRequested when the process is to end meanwhile."""
    tries = 0
    while not shutdown.is_set():
        try:
            return await attempt()
        except TryAgain as error:
            log.warning("the database cannot be reached; trying again", reason=str(error.__cause__ or error))
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(shutdown.wait(), _RETRY_S[min(tries, len(_RETRY_S) - 1)])
            tries += 1
    raise ShutdownRequested
