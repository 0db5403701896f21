"""What every route and loop of one master process shares."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tenax.backoff.background import keep_running
from tenax.config.master import (
    MasterSettings,
    PoolSettings,
    container_defaults,
    container_network,
    startup_hook,
    task_variables,
)
from tenax.lifecycle.notice import Rebalance
from tenax.master.access.credential_cache import CredentialCache
from tenax.master.access.login_judge import LoginJudge
from tenax.master.access.passwords import Passwords
from tenax.master.agents.hub import Hub
from tenax.master.agents.specs import PoolDefaults
from tenax.master.checkpoints.roots import CheckpointRoots, checkpoint_roots, sharing
from tenax.master.concurrency.single_flight import SingleFlight
from tenax.master.concurrency.threads import FairThreads
from tenax.master.concurrency.turns import FairTurns
from tenax.master.ingest.intake import Intake
from tenax.master.loops import RunningLoops
from tenax.master.reading.events.feed import Feed
from tenax.master.reading.log_stream import LogReads
from tenax.master.store.cluster.rows import ClusterRow
from tenax.master.store.database.connection import Database
from tenax.master.store.database.lanes import AGENTS
from tenax.master.store.database.wakeups import Listener
from tenax.master.submission.machine_access import granted


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """Where the settings of this process come from."""

    #: Reads file, environment and flags again. For a thread. Raises InvalidInput.
    read: Callable[[], MasterSettings]
    #: What was read first.
    started: MasterSettings


@dataclass(slots=True)
class Master:
    """One per process. Owned by the process's event loop."""

    settings: MasterSettings
    db: Database
    listener: Listener
    cluster: ClusterRow
    #: Of this process, new at each start.
    master_id: str
    #: Post migrations that nobody had applied when it was last asked.
    waiting_migrations: tuple[str, ...] = ()
    #: Set when the process is to end: every stream and long poll waits on it, too.
    shutdown: asyncio.Event = field(default_factory=asyncio.Event)
    passwords: Passwords = field(default_factory=Passwords)
    #: Lets people in, or makes them wait.
    logins: LoginJudge = field(init=False)
    #: Shares what many ask for at once.
    single_flight: SingleFlight = field(default_factory=SingleFlight)
    #: Uploads whose body arrives, and those that are packed and stored: what one needs of memory is small, and bounded.
    arriving: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(32))
    packing: FairTurns = field(default_factory=lambda: FairTurns(2))
    #: Runs here; None where other processes have that role.
    loops: RunningLoops | None = None
    #: Held while its settings are read again.
    reloading: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: Where they come from; None: from no file.
    settings_file: SettingsFile | None = None
    #: Knows whose a credential is.
    credentials: CredentialCache = field(init=False)
    #: Where the master itself touches files of checkpoints.
    checkpoint_roots: CheckpointRoots = field(init=False)
    #: Serves the agents.
    hub: Hub = field(init=False)
    #: Takes in metrics, spools and output.
    intake: Intake = field(init=False)
    #: Reads output for many at once.
    log_reads: LogReads = field(init=False)
    #: Tells those who follow what changes.
    feed: Feed = field(init=False)
    #: Threads for those who read, so that a long search never holds up what comes in.
    readers: FairThreads = field(default_factory=FairThreads)
    #: For patterns in output, which take as long as whoever asks wants them to: nobody who only reads waits for them.
    searchers: FairThreads = field(default_factory=FairThreads)
    #: For configurations, which take seconds to read where somebody wants that.
    examiners: FairThreads = field(default_factory=FairThreads)
    #: For stores of objects, which may be away: nobody else waits for one.
    stores: FairThreads = field(default_factory=lambda: FairThreads(4))
    #: For archives that are made of what lies there: each holds some pieces while whoever asked for it reads.
    downloads: FairTurns = field(default_factory=lambda: FairTurns(256, each=4))

    def __post_init__(self) -> None:
        self.logins = LoginJudge(self.passwords, self.db)
        self.credentials = CredentialCache(self.db, self.listener)
        self.checkpoint_roots = checkpoint_roots(self.settings)
        self.intake = Intake(self.db, self.settings.budgets)
        self.log_reads = LogReads(self.db)
        self.feed = Feed(self.db, self.listener)
        self.intake.metrics.on_stored = self.feed.stored
        timeout_s = self.settings.kill_timeout
        self.hub = Hub(self.db.on(AGENTS), self.listener, self.cluster, self._pools(), kill_timeout_s=timeout_s)

    def apply_settings(self, settings: MasterSettings) -> None:
        """Go by these pools, and what their tasks get, from now on; nothing else of the settings may be other."""
        self.settings = settings
        self.hub.pools = self._pools()
        if self.loops is not None:
            self.loops.apply_settings(settings)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Master]:
        """With the background tasks and threads that its routes need."""
        feeding = [
            asyncio.create_task(keep_running("feed", self.feed.run), name="feed"),
            asyncio.create_task(self._end_streams(), name="streams"),
        ]
        try:
            async with self.intake.running():
                yield self
        finally:
            for task in feeding:
                task.cancel()
            await asyncio.gather(*feeding, return_exceptions=True)
            self.readers.close()
            self.searchers.close()
            self.examiners.close()
            self.stores.close()

    async def _end_streams(self) -> None:
        await self.shutdown.wait()
        self.feed.close()

    def _pools(self) -> dict[str, PoolDefaults]:
        return {pool.name: self._defaults(pool) for pool in self.settings.pools}

    def _defaults(self, pool: PoolSettings) -> PoolDefaults:
        return PoolDefaults(
            hook=startup_hook(self.settings, pool),
            env={**sharing(self.settings), **task_variables(self.settings, pool)},
            network=container_network(self.settings, pool),
            granted=granted(container_defaults(self.settings, pool), self.settings.checkpoint_storage),
            rendezvous_timeout=self.settings.rendezvous_timeout,
            rebalance=Rebalance.IGNORE if pool.provider is None else pool.provider.rebalance,
        )
