"""Messages about the master and the cluster: settings, log, health, the message to everyone.

The lists of notebooks, shells and TensorBoards are here too: empty, because none can be started.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from tenax.master.api.logs.messages import LogLevel
from tenax.wire.message import Document, Message, Pagination, Timestamp
from tenax.wire.task_names import DETERMINED_VERSION


class GetMasterConfigResponse(Message):
    """The settings, without secrets."""

    config: Document


class MasterView(Message):
    """A master of the cluster that is there."""

    master_id: str
    #: The name of its machine.
    machine: str
    #: Where it listens.
    address: str
    version: str
    roles: list[str]
    #: What it runs for the cluster.
    loops: list[str]
    started_at: Timestamp
    #: Whether it is the one that answers.
    answers: bool
    #: The settings that are other than those of the one that answers, of those that masters must agree on.
    other_settings: list[str]


class GetMastersResponse(Message):
    """The oldest first."""

    masters: list[MasterView]


class LogConfig(Message):
    """How the master talks."""

    level: LogLevel | None = None
    color: bool | None = None


class Config(Message):
    """What can change while the master runs."""

    log: LogConfig = LogConfig()


class FieldMask(Message):
    """Which fields are meant, by path: ``log.level``; a prefix means all below it."""

    paths: list[str] = []


class ReloadMasterConfigResponse(Message):
    """What reading the settings again has done."""

    #: Settings that are other than before.
    changed: list[str]
    #: Settings that are other than at the start, and wait for the next one.
    left: list[str]


class PatchMasterConfigRequest(Message):
    """Changes of this process, until it ends."""

    config: Config = Config()
    #: A list, or one text with commas between.
    field_mask: FieldMask | str = FieldMask()


class LogEntry(Message):
    """One line of the master's."""

    id: int
    message: str
    timestamp: Timestamp
    level: LogLevel


class MasterLogsResponse(Message):
    """One line of the stream."""

    log_entry: LogEntry


class ClusterMessageView(Message):
    """The message as people see it."""

    message: str
    start_time: Timestamp
    end_time: Timestamp | None = None
    created_time: Timestamp | None = None


class GetClusterMessageResponse(Message):
    """Absent where there is none."""

    cluster_message: ClusterMessageView | None = None


class SetClusterMessageRequest(Message):
    """Until ``endTime``, or for a ``duration`` (``24h``, ``2w``), or until it is taken back."""

    message: str = ""
    start_time: Timestamp | None = None
    end_time: Timestamp | None = None
    duration: str | None = None
    #: What of it is to be there still, as it was shown; else nothing is changed. None: whatever is there.
    expected: Document | None = None


#: What clients of Determined are told; they warn about any other.
COMPATIBLE_VERSION = DETERMINED_VERSION


class SsoProvider(Message):
    """Another place to log in."""

    name: str
    sso_url: str
    type: str = ""
    always_redirect: bool = False


class GetMasterResponse(Message):
    """What a client needs to know before it does anything else."""

    version: str
    master_id: str
    cluster_id: str
    cluster_name: str
    telemetry_enabled: bool = False
    sso_providers: list[SsoProvider] = []
    external_login_uri: str = ""
    external_logout_uri: str = ""
    branding: str = "tenax"
    rbac_enabled: bool = False
    product: str = "PRODUCT_COMMUNITY"
    feature_switches: list[str] = []
    user_management_enabled: bool = True
    strict_job_queue_control: bool = False
    has_custom_logo: bool = False
    #: What administrators show to everyone at the moment.
    cluster_message: ClusterMessageView | None = None
    #: When the next one begins to be shown.
    cluster_message_at: Timestamp | None = None
    tenax_version: str


class GetTelemetryResponse(Message):
    """We collect none."""

    enabled: bool = False
    segment_key: str = ""


class Plain(BaseModel):
    """A body outside ``/api/v1``: fields are named in snake case."""

    model_config = ConfigDict(extra="ignore")


class InfoTelemetry(Plain):
    enabled: bool = False
    otel_enabled: bool = False
    otel_endpoint: str = ""


class Info(Plain):
    """``GET /info``: the first thing that any client asks, without a credential."""

    version: str
    master_id: str
    cluster_id: str
    cluster_name: str
    #: No ``sso_providers``: clients take even an empty list for the edition that has them.
    telemetry: InfoTelemetry = InfoTelemetry()
    tenax_version: str


class ManagerHealth(Plain):
    cluster_name: str
    status: str


class SilentProviderView(Plain):
    """A provider of machines that does not answer the master that rents."""

    #: ``aws``, ``gcp``.
    provider: str
    #: Without what it is a part of, such as a project: nobody has to log in for this.
    region: str
    since: Timestamp


class Health(Plain):
    """``GET /health``: each part is ``up`` or ``down``; a role is ``elsewhere`` in a process that does not have it."""

    status: str
    database: str
    #: Whether this master hears of changes.
    listener: str
    loops: str
    #: ``api`` and ``loops``, each with all that it needs.
    roles: dict[str, str]
    #: What is wrong, by loop.
    trouble: dict[str, str]
    #: Of the database, that wait for ``tenax upgrade-database``.
    waiting_migrations: list[str]
    resource_managers: list[ManagerHealth]
    #: They make no master less ready: what is there works on.
    silent_providers: list[SilentProviderView] = []


class NotebooksResponse(Message):
    """A page of notebooks."""

    notebooks: list[Document]
    pagination: Pagination


class ShellsResponse(Message):
    """A page of shells."""

    shells: list[Document]
    pagination: Pagination


class TensorboardsResponse(Message):
    """A page of TensorBoards."""

    tensorboards: list[Document]
    pagination: Pagination
