"""The master about itself."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from tenax.wire.api.cluster import ClusterMessageView
from tenax.wire.api.message import Message
from tenax.wire.task_names import DETERMINED_VERSION

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


class InfoSsoProvider(Plain):
    sso_url: str
    name: str
    type: str
    always_redirect: bool


class Info(Plain):
    """``GET /info``: the first thing that any client asks, without a credential."""

    version: str
    master_id: str
    cluster_id: str
    cluster_name: str
    telemetry: InfoTelemetry = InfoTelemetry()
    sso_providers: list[InfoSsoProvider] = []
    tenax_version: str


class ManagerHealth(Plain):
    cluster_name: str
    status: str


class Health(Plain):
    """``GET /health``: each part is ``up`` or ``down``."""

    status: str
    database: str
    resource_managers: list[ManagerHealth]
