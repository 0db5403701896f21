"""The master about itself: /info, /health, /metrics, the contract."""

from __future__ import annotations

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from tenax import __version__
from tenax.errors import TryAgain
from tenax.master import telemetry
from tenax.master.api.cluster import message_view
from tenax.master.api.deps import MasterDep
from tenax.master.api.openapi import document
from tenax.master.api.routing import Allow, Routes
from tenax.master.context import Master
from tenax.master.store import cluster_message
from tenax.master.store.database import now
from tenax.wire.api.cluster import ClusterMessageView
from tenax.wire.api.master import (
    COMPATIBLE_VERSION,
    GetMasterResponse,
    GetTelemetryResponse,
    Health,
    Info,
    ManagerHealth,
)
from tenax.wire.api.message import Document

routes = Routes("Cluster")


@routes.get("/info", "Info", allow=Allow.PUBLIC)
async def info(master: MasterDep) -> Info:
    """Who answers here, and in which version."""
    return Info(
        version=COMPATIBLE_VERSION,
        master_id=master.master_id,
        cluster_id=master.cluster.cluster_id,
        cluster_name=master.cluster.name,
        tenax_version=__version__,
    )


@routes.get("/health", "Health", allow=Allow.PUBLIC, response_model=Health)
async def health(master: MasterDep) -> Response:
    """Whether this master can do its work: 200, or 503 with what is down."""
    try:
        async with master.db.connection() as conn:
            await now(conn)
        database = "up"
    except TryAgain:
        database = "down"
    down = database == "down" or master.shutdown.is_set()
    body = Health(
        status="down" if down else "up",
        database=database,
        resource_managers=[ManagerHealth(cluster_name=master.cluster.name, status="up")],
    )
    return JSONResponse(body.model_dump(), status_code=503 if down else 200)


@routes.get("/metrics", "Metrics", allow=Allow.PUBLIC, response_class=Response)
async def metrics() -> Response:
    """Counters of this process for Prometheus."""
    return Response(telemetry.exposition(), media_type="text/plain; version=0.0.4; charset=utf-8")


@routes.get("/api/v1/openapi.json", "OpenApi", allow=Allow.PUBLIC, response_model=Document)
async def openapi(request: Request) -> JSONResponse:
    """This contract."""
    return JSONResponse(document(request.app))


@routes.get("/api/v1/master", "GetMaster", allow=Allow.PUBLIC)
async def get_master(master: MasterDep) -> GetMasterResponse:
    """What a client needs to know before it does anything else."""
    return GetMasterResponse(
        version=COMPATIBLE_VERSION,
        master_id=master.master_id,
        cluster_id=master.cluster.cluster_id,
        cluster_name=master.cluster.name,
        rbac_enabled=master.settings.security.rbac_ui_enabled,
        cluster_message=await _message(master),
        tenax_version=__version__,
    )


@routes.get("/api/v1/master/telemetry", "GetTelemetry", allow=Allow.PUBLIC)
async def get_telemetry() -> GetTelemetryResponse:
    """Nothing is collected."""
    return GetTelemetryResponse()


async def _message(master: Master) -> ClusterMessageView | None:
    """What is shown now; nothing while the database is away, which is no reason not to say who answers."""
    try:
        async with master.db.connection() as conn:
            found = await cluster_message.get(conn)
    except TryAgain:
        return None
    return message_view(found) if found is not None and found.begun else None
