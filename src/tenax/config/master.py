"""Settings of the master: YAML file, environment ``TENAX_MASTER_*``, flags.

Sizes are bytes, durations are seconds. A secret is given as a file or an environment variable, never as a flag.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from enum import Enum
from pathlib import Path as FilePath
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from tenax.config.container_defaults import CONTAINER_DEFAULTS, merged
from tenax.config.problems import Path, ProblemReport
from tenax.config.provider import MonthlyBudgetSettings, never_priced, refuse_what_is_not_yet
from tenax.config.provider.gcp import AnyProviderSettings
from tenax.config.schedule import Schedule, parse_schedule
from tenax.config.schema.storage import CHECKPOINT_STORAGE
from tenax.config.settings import Settings, load, state_directory
from tenax.jsonvalue import Document, Json, JsonObject
from tenax.scheduler.registry import POLICIES, USUAL, in_turns
from tenax.scheduler.snapshot import DEFAULT_PRIORITY, Fitting

MIB = 1 << 20
GIB = 1 << 30


class Role(str, Enum):
    """What a master process does; one process does all of them by default."""

    API = "api"
    LOOPS = "loops"
    PROXY = "proxy"


class DatabaseSettings(Settings):
    """Which PostgreSQL to use."""

    #: ``postgresql://...`` of a session-mode connection; None: the embedded server under ``dir``.
    url: SecretStr | None = None
    #: A program and its arguments, run before a release changes this database; it finds the address in
    #: ``TENAX_DATABASE_URL``. Where it fails nothing is changed, and the master does not start. None: none, or that of
    #: ``tenax up``, which copies its own database.
    backup_command: tuple[str, ...] | None = None
    #: Connections that one master process holds at most; requests, loops and agents have their shares of them.
    max_connections: int = Field(default=24, ge=6)


class SchedulerSettings(Settings):
    """How a pool orders and places its queue."""

    #: The rule by which requests compete.
    type: str = USUAL
    #: Whether a more urgent job may take slots from less urgent ones; where they are shared they are taken in any case.
    preemption: bool = False
    #: 1 (most urgent) to 99, for jobs that name none.
    default_priority: int = Field(default=DEFAULT_PRIORITY, ge=1, le=99)
    fitting_policy: Fitting = Fitting.BEST
    #: Whether a distributed trial may have members of unequal size, such as 5 + 3 slots.
    allow_heterogeneous_fits: bool = True
    #: Whether places are kept for the first request that does not fit; slots stay idle for it meanwhile.
    reservation: bool = False

    @field_validator("type")
    @classmethod
    def _is_there(cls, name: str) -> str:
        if name not in POLICIES:
            raise ValueError(f"there is no scheduler {name!r}: use {' or '.join(POLICIES)}")
        return name

    @property
    def in_turns(self) -> bool:
        """Whether jobs come one after the other, by priority; else they share the slots by weight."""
        return in_turns(self.type)


class PoolSettings(Settings):
    """A named set of agents."""

    name: str = Field(min_length=1)
    #: Where machines for it are rented when work waits; None: nowhere.
    provider: Annotated[AnyProviderSettings, Field(discriminator="type")] | None = None
    description: str = ""
    scheduler: SchedulerSettings = SchedulerSettings()
    #: Containers without slots that one agent takes at a time.
    max_aux_containers_per_agent: int = Field(default=100, ge=0)
    #: How long a silent agent is waited for before its containers count as lost.
    agent_reconnect_wait: float = Field(default=25.0, ge=0)
    #: Laid over the master's own, field by field.
    task_container_defaults: Document = Field(default_factory=dict)


class TlsSettings(Settings):
    """Certificate and key (PEM files) of the master's port."""

    cert: FilePath
    key: FilePath


class ConnectionSettings(Settings):
    """How many connections a master holds at a time; what comes beyond them is closed at once."""

    #: In all: two for each agent, some for each running task, and those of people.
    most: int = Field(default=8000, ge=16)
    #: Of one address. Behind a proxy everyone has the proxy's.
    most_per_address: int = Field(default=2000, ge=8)


class BudgetSettings(Settings):
    """How much disk telemetry may take, and when it is refused so that state can still be written."""

    log_bytes: int = Field(default=20 * GIB, ge=MIB)
    metric_bytes: int = Field(default=20 * GIB, ge=MIB)
    #: Below this much free disk logs are refused, below half of it metrics.
    min_free_bytes: int = Field(default=2 * GIB, ge=0)
    #: What the database may take on the machine of ``db.url``, where that is another one: what is free there cannot be
    #: seen from here, and is taken to be the rest. Without it such a disk is not watched.
    disk_bytes: int | None = Field(default=None, ge=MIB)


class TokenSettings(Settings):
    """Access tokens of people."""

    #: Of tokens that name no lifespan, and of all; -1: no end (which is a hundred years).
    default_lifespan_days: int = Field(default=30, ge=-1, le=36500)
    max_lifespan_days: int = Field(default=30, ge=-1, le=36500)

    @model_validator(mode="after")
    def _default_fits(self) -> TokenSettings:
        usual, most = self.default_lifespan_days, self.max_lifespan_days
        if usual == 0 or most == 0:
            raise ValueError("a lifespan of 0 days is none: give at least 1, or -1 for no end")
        if most != -1 and (usual == -1 or usual > most):
            raise ValueError(
                f"default_lifespan_days is {usual} and max_lifespan_days {most}: lower one or raise the other"
            )
        return self


def _http_url(given: str) -> str:
    if given and not given.startswith(("http://", "https://")):
        raise ValueError("it must begin with http:// or https://")
    if given and (not (parts := urlsplit(given)).hostname or "@" in parts.netloc or parts.query or parts.fragment):
        raise ValueError("it must be an address with a host, without a password and without a query")
    return given.rstrip("/")


def _check_networks(given: tuple[str, ...]) -> tuple[str, ...]:
    for network in given:
        try:
            ipaddress.ip_network(network)
        except ValueError:
            raise ValueError(f"{network!r} is not a network: write it as in 127.0.0.0/8") from None
    return given


class SecuritySettings(Settings):
    """Who gets in."""

    #: File with a token that any number of agents join with, for ever; made at first start if it is not there. None:
    #: under ``dir``.
    agent_join_token_file: FilePath | None = None
    #: Whether the token of that file lets agents in; without it only those of ``tenax agent join-token create`` do.
    agent_join_by_file: bool = True
    #: File with the password that the user ``admin`` gets at first start. None: a random one. That of ``determined`` is
    #: random in any case. Both are kept under ``dir`` in a file that only its owner can read.
    initial_password_file: FilePath | None = None
    #: Networks of proxies in front of the master, as in ``10.0.0.0/8``: what they write into ``X-Forwarded-For`` is
    #: where a login comes from.
    trusted_proxies: tuple[str, ...] = ()
    #: Blank passwords; never from another machine.
    allow_blank_passwords: bool = False
    session_lifetime: float = Field(default=7 * 86400.0, gt=0)
    token: TokenSettings = TokenSettings()
    #: Tells clients that there are roles, so that Determined's offers its commands for groups. It gives nobody a right,
    #: and there are none.
    rbac_ui_enabled: bool = False

    _are_networks = field_validator("trusted_proxies")(_check_networks)


class WebhookSettings(Settings):
    """Messages to other services."""

    #: Where people reach this master, for links in messages: ``https://tenax.example.org``.
    base_url: str = ""
    #: What receivers check signatures with; None: one derived from the cluster's secret.
    signing_key: SecretStr | None = None
    #: Networks that are reached although they would be refused: addresses of this machine, and of its own link, where
    #: clouds keep credentials. ``127.0.0.0/8``.
    allowed_networks: tuple[str, ...] = ()
    #: How long one request may take, all in all.
    timeout: float = Field(default=10.0, gt=0, le=60)
    #: After how long without success a message is given up.
    give_up_after: float = Field(default=86400.0, gt=0)
    #: How long what was sent, or given up, is remembered.
    keep_days: int = Field(default=7, ge=0)

    _are_networks = field_validator("allowed_networks")(_check_networks)

    @field_validator("base_url")
    @classmethod
    def _is_url(cls, given: str) -> str:
        return _http_url(given)


class LogSettings(Settings):
    """What the master says about itself."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    #: None: colour when the output is a terminal.
    color: bool | None = None
    #: One JSON object per line, for machines that read it.
    json_lines: bool = False


class TracingSettings(Settings):
    """Spans for OpenTelemetry, whose own variables hold as well (``OTEL_EXPORTER_OTLP_HEADERS``)."""

    #: Of a collector that takes OTLP over HTTP: ``http://collector:4318``. Empty: nothing is traced.
    endpoint: str = ""
    #: Share of requests and passes that are kept.
    sample: float = Field(default=0.1, ge=0, le=1)

    @field_validator("endpoint")
    @classmethod
    def _is_url(cls, given: str) -> str:
        return _http_url(given)

    @property
    def traces_url(self) -> str:
        """Where spans go."""
        return self.endpoint if self.endpoint.endswith("/v1/traces") else f"{self.endpoint}/v1/traces"


class FeatureSwitch(str, Enum):
    """What is off unless it is asked for, under Determined's names."""

    #: The websocket ``/stream``: projects, models and model versions, as they change.
    STREAMING_UPDATES = "streaming_updates"


class MasterSettings(Settings):
    """All settings of a master process."""

    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65535)
    tls: TlsSettings | None = None
    connections: ConnectionSettings = ConnectionSettings()
    #: Embedded database, spooled uploads, generated secrets.
    dir: FilePath = Field(default_factory=lambda: state_directory("master"))
    db: DatabaseSettings = DatabaseSettings()
    cluster_name: str = ""
    roles: tuple[Role, ...] = (Role.API, Role.LOOPS, Role.PROXY)
    pools: tuple[PoolSettings, ...] = (PoolSettings(name="default"),)
    #: Of all pools together.
    renting: MonthlyBudgetSettings = MonthlyBudgetSettings()
    #: Pool of jobs that name none: with slots, and without.
    default_compute_pool: str = "default"
    default_aux_pool: str = "default"
    #: As under ``checkpoint_storage`` of an experiment; None: each experiment must name one.
    checkpoint_storage: Document | None = None
    #: Where that is a bucket: store files that checkpoints have in common once. Whoever reads the bucket without Tenax
    #: finds no whole checkpoints then.
    share_checkpoint_files: bool = False
    #: Directories below which the master itself reads and deletes files of checkpoints, beside that of
    #: ``checkpoint_storage`` above; elsewhere a task on an agent deletes them, and the master serves no download.
    checkpoint_roots: tuple[str, ...] = ()
    #: As in Determined's master configuration: image, environment variables, mounts, ... of every task.
    task_container_defaults: Document = Field(default_factory=dict)
    security: SecuritySettings = SecuritySettings()
    webhooks: WebhookSettings = WebhookSettings()
    budgets: BudgetSettings = BudgetSettings()
    #: The largest code directory of an experiment, packed.
    context_limit_bytes: int = Field(default=95 * MIB, gt=0)
    #: The largest body of any request.
    body_limit_bytes: int = Field(default=128 * MIB, gt=0)
    #: How long a task may take to save and exit once it is asked to, unless its experiment says otherwise.
    preemption_timeout: int = Field(default=3600, ge=0)
    #: How long a task that a person kills may take to exit, from SIGTERM to SIGKILL.
    kill_timeout: float = Field(default=5.0, ge=0)
    #: After how long a rendezvous or all-gather fails, naming who is missing.
    rendezvous_timeout: float = Field(default=600.0, gt=0)
    #: Days that output is kept after the end of its task, unless its experiment or trial says otherwise; -1: for ever.
    log_retention_days: int = Field(default=-1, ge=-1, le=32767)
    #: Days that the reports of a trial are kept after its end; -1: for ever. What they came to is kept with the trial.
    metric_retention_days: int = Field(default=-1, ge=-1, le=32767)
    #: When output and metrics that are kept no longer are removed: every so often (``1h``, ``7d``), or at the times of
    #: a cron line in UTC (``0 3 * * *``). Empty: only when an administrator asks for it.
    log_retention_schedule: str = "1h"
    log: LogSettings = LogSettings()
    tracing: TracingSettings = TracingSettings()
    #: What could never run as its pool is now is refused; false: it waits, with a warning.
    launch_error: bool = True
    feature_switches: tuple[FeatureSwitch, ...] = ()

    @model_validator(mode="after")
    def _pools_hang_together(self) -> MasterSettings:
        names = [pool.name for pool in self.pools]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two pools are called {', '.join(twice)}: give each its own name")
        for kind, name in (("compute", self.default_compute_pool), ("aux", self.default_aux_pool)):
            if name not in names:
                raise ValueError(f"default_{kind}_pool is {name!r}, which is not among the pools: {', '.join(names)}")
        return self

    @model_validator(mode="after")
    def _budget_has_prices(self) -> MasterSettings:
        if self.renting.budget_per_month is not None:
            for pool in self.pools:
                for offer in pool.provider.each_offer() if pool.provider is not None else ():
                    if never_priced(offer):
                        raise ValueError(
                            f"the offer {offer.offer_name} of pool {pool.name} has no price, which "
                            "renting.budget_per_month needs: write price"
                        )
        return self

    @field_validator("checkpoint_roots")
    @classmethod
    def _are_directories(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for path in given:
            if not os.path.isabs(path) or os.path.normpath(path) != path.rstrip("/"):
                raise ValueError(f"{path!r} is not the absolute path of a directory below / (without . and ..)")
        return given

    @field_validator("log_retention_schedule")
    @classmethod
    def _a_schedule(cls, value: str) -> str:
        if value.strip():
            parse_schedule(value)
        return value

    def retention_schedule(self) -> Schedule | None:
        """When output that is kept no longer is removed; None: when somebody asks."""
        return parse_schedule(self.log_retention_schedule) if self.log_retention_schedule.strip() else None

    @property
    def uploads(self) -> FilePath:
        """Where what is uploaded lies until it is stored."""
        return self.dir / "uploads"

    def pool(self, name: str) -> PoolSettings | None:
        """The pool of that name, if there is one."""
        return next((pool for pool in self.pools if pool.name == name), None)


#: Settings for communication between the members of a task, by the variable that its libraries read.
_VARIABLES = {
    "DET_INTER_NODE_NETWORK_INTERFACE": "dtrain_network_interface",
    "NCCL_PORT_RANGE": "nccl_port_range",
    "GLOO_PORT_RANGE": "gloo_port_range",
}


def startup_hook(settings: MasterSettings, pool: PoolSettings) -> str:
    """The shell lines that every task of a pool sources first: the pool's own, else the master's; empty for none."""
    return _container_default(settings, pool, "startup_hook")


def container_network(settings: MasterSettings, pool: PoolSettings) -> str:
    """The network mode of a pool's containers: the pool's own, else the master's; empty for the agent's choice."""
    return _container_default(settings, pool, "network_mode")


def task_variables(settings: MasterSettings, pool: PoolSettings) -> dict[str, str]:
    """The variables that every task of a pool has because of its defaults, the pool's own, else the master's."""
    values = {name: _container_default(settings, pool, setting) for name, setting in _VARIABLES.items()}
    return {name: value for name, value in values.items() if value}


def container_defaults(settings: MasterSettings, pool: PoolSettings) -> JsonObject:
    """``task_container_defaults`` of a pool, laid over the master's."""
    return merged(settings.task_container_defaults, pool.task_container_defaults, ProblemReport())


def _container_default(settings: MasterSettings, pool: PoolSettings, name: str) -> str:
    for defaults in (pool.task_container_defaults, settings.task_container_defaults):
        value = defaults.get(name)
        if isinstance(value, str):
            return value
    return ""


def load_master_settings(
    file: FilePath | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Json] | None = None,
) -> MasterSettings:
    """The master's settings. ``flags`` are dotted names (``db.url``); None values are ignored. Raises `ConfigError`."""
    return load(
        MasterSettings,
        what="master's configuration",
        prefix="TENAX_MASTER_",
        file=file,
        environ=os.environ if environ is None else environ,
        flags=flags or {},
        also=_check_documents,
    )


def _check_documents(document: JsonObject, report: ProblemReport) -> None:
    """What would otherwise fail each experiment later: storage and defaults that no experiment could take."""
    storage = document.get("checkpoint_storage")
    if storage is not None:
        at: Path = ("checkpoint_storage",)
        CHECKPOINT_STORAGE.finish(CHECKPOINT_STORAGE.fill(CHECKPOINT_STORAGE.check(storage, at, report)), at, report)
    CONTAINER_DEFAULTS.check(document.get("task_container_defaults") or {}, ("task_container_defaults",), report)
    pools = document.get("pools")
    for index, pool in enumerate(pools if isinstance(pools, list) else []):
        if isinstance(pool, dict):
            refuse_what_is_not_yet(pool, ("pools", index), report)
            defaults = pool.get("task_container_defaults") or {}
            CONTAINER_DEFAULTS.check(defaults, ("pools", index, "task_container_defaults"), report)
