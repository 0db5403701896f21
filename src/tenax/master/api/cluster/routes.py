"""The master about itself: who answers and in what health, its settings and its log, and the message to everyone.

Settings are shown without secrets. Of them only the level and the colour of the log change while the master runs, and
only in the process that answers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta, timezone
from typing import Annotated, Literal

from fastapi import Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from tenax import __version__
from tenax.config.agreement import differences, fingerprints
from tenax.config.durations import parse_duration
from tenax.config.master import MasterSettings, Role
from tenax.errors import InvalidInput, TryAgain
from tenax.jsonvalue import JsonObject
from tenax.master.access.authorization import Allow, Caller
from tenax.master.api.cluster import messages
from tenax.master.api.cluster.reloading import reload
from tenax.master.api.cluster.shown_settings import master_config_shown
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.expected import check_expected
from tenax.master.api.http.openapi import encoded
from tenax.master.api.http.routing import Routes
from tenax.master.api.http.streaming import line, ndjson
from tenax.master.api.logs.messages import LogLevel
from tenax.master.context import Master
from tenax.master.observability import counters, log
from tenax.master.observability.log import OWN_LOG, OwnLogEntry
from tenax.master.store.cluster import rows as cluster
from tenax.master.store.cluster.masters import present
from tenax.master.store.cluster.rows import ClusterMessage
from tenax.master.store.database.connection import now
from tenax.master.store.database.lanes import LEASES
from tenax.master.store.database.migrate import waiting
from tenax.master.store.machines import silences
from tenax.wire.message import Document, Empty

routes = Routes("Cluster")


@routes.get("/info", "Info", allow=Allow.PUBLIC)
async def info(master: MasterDep) -> messages.Info:
    """Who answers here, and in which version."""
    return messages.Info(
        version=messages.COMPATIBLE_VERSION,
        master_id=master.master_id,
        cluster_id=master.cluster.cluster_id,
        cluster_name=master.cluster.name,
        tenax_version=__version__,
    )


@routes.get("/health", "Health", allow=Allow.PUBLIC, response_model=messages.Health)
async def health(master: MasterDep, role: Annotated[Literal["api", "loops"] | None, Query()] = None) -> Response:
    """Whether this master can do its work: 200, or 503 with what is down; of one ``role`` alone where it is named."""
    try:
        # Not behind requests: many that are slow do not make the database one that is away.
        async with master.db.on(LEASES).connection() as conn:
            await now(conn)
            if master.waiting_migrations:
                master.waiting_migrations = tuple(each.name for each in await waiting(conn))
            silent = await silences.all_of(conn)
        database = "up"
    except TryAgain:
        database, silent = "down", []
    listener = "up" if master.listener.is_connected else "down"
    trouble = {} if master.loops is None else master.loops.trouble()
    broken = master.shutdown.is_set() or "down" in (database, listener)
    roles = {
        "api": _role(Role.API in master.settings.roles, broken),
        "loops": _role(master.loops is not None, broken or bool(trouble)),
    }
    down = (broken or "down" in roles.values()) if role is None else roles[role] != "up"
    body = messages.Health(
        status="down" if down else "up",
        database=database,
        listener=listener,
        loops=_role(master.loops is not None, bool(trouble)),
        roles=roles,
        trouble=trouble,
        waiting_migrations=list(master.waiting_migrations),
        resource_managers=[messages.ManagerHealth(cluster_name=master.cluster.name, status="up")],
        silent_providers=[
            messages.SilentProviderView(provider=each.provider, region=each.region.rpartition("/")[2], since=each.since)
            for each in silent
        ],
    )
    return JSONResponse(body.model_dump(mode="json"), status_code=503 if down else 200)


def _role(is_here: bool, is_down: bool) -> str:
    return "elsewhere" if not is_here else "down" if is_down else "up"


@routes.get("/metrics", "Metrics", allow=Allow.PUBLIC, response_class=Response)
async def metrics(master: MasterDep) -> Response:
    """Counters of this process for Prometheus."""
    # Made once for all who ask meanwhile, in the threads that may be busy: nobody has to log in for it.
    made = await master.single_flight.share("metrics", lambda: master.readers.run(counters.exposition))
    return Response(made, media_type="text/plain; version=0.0.4; charset=utf-8")


@routes.get("/api/v1/openapi.json", "OpenApi", allow=Allow.PUBLIC, response_model=Document)
async def openapi(master: MasterDep, request: Request) -> Response:
    """This contract."""
    made = await master.single_flight.share("openapi", lambda: master.readers.run(encoded, request.app))
    return Response(made, media_type="application/json")


@routes.get("/api/v1/master", "GetMaster", allow=Allow.PUBLIC)
async def get_master(master: MasterDep) -> messages.GetMasterResponse:
    """What a client needs to know before it does anything else."""
    message = await _cluster_message(master)
    return messages.GetMasterResponse(
        version=messages.COMPATIBLE_VERSION,
        master_id=master.master_id,
        cluster_id=master.cluster.cluster_id,
        cluster_name=master.cluster.name,
        feature_switches=[switch.value for switch in master.settings.feature_switches],
        rbac_enabled=master.settings.security.rbac_ui_enabled,
        cluster_message=message_view(message) if message is not None and message.begun else None,
        cluster_message_at=None if message is None or message.begun else message.starts_at,
        tenax_version=__version__,
    )


@routes.get("/api/v1/masters", "GetMasters", allow=Allow.ADMIN)
async def get_masters(master: MasterDep) -> messages.GetMastersResponse:
    """The masters that are there, and which settings of theirs are other than those of the one that answers.

    Loops go by the settings of the master that runs them, requests by those of the one that takes them.
    """
    async with master.db.connection() as conn:
        rows = await present(conn)
    own = fingerprints(master.settings, master.cluster.secret)
    return messages.GetMastersResponse(
        masters=[
            messages.MasterView(
                master_id=row.about.master_id,
                machine=row.about.machine,
                address=row.about.address,
                version=row.about.version,
                roles=list(row.about.roles),
                loops=list(row.loops),
                started_at=row.started_at,
                answers=row.about.master_id == master.master_id,
                other_settings=differences(own, row.about.settings),
            )
            for row in rows
        ]
    )


@routes.get("/api/v1/master/telemetry", "GetTelemetry", allow=Allow.PUBLIC)
async def get_telemetry() -> messages.GetTelemetryResponse:
    """Nothing is collected."""
    return messages.GetTelemetryResponse()


async def _cluster_message(master: Master) -> ClusterMessage | None:
    """The one there is; none while the database is away, which is no reason not to say who answers."""
    try:
        async with master.db.connection() as conn:
            return await cluster.get_message(conn)
    except TryAgain:
        return None


#: Lines in one part of the stream.
_PART = 500
NOT_SHOWN = "the log of the master is for administrators, and is not shown here"
#: A stream that has nothing to say looks whether the master is ending.
_POLL_S = 1.0
_FIELDS = ("log.level", "log.color")
_LATEST_YEAR = 9000


@routes.get("/api/v1/master/config", "GetMasterConfig", allow=Allow.ADMIN)
async def get_config(master: MasterDep) -> messages.GetMasterConfigResponse:
    """The settings of the master that answers, without secrets, with what was changed since it started."""
    shown = master_config_shown(master.settings)
    shown |= _as_determined(master.settings)
    shown["log"] = {"level": log.CURRENT.level, "color": log.CURRENT.color, "json_lines": log.CURRENT.json_lines}
    return messages.GetMasterConfigResponse(config=shown)


def _as_determined(settings: MasterSettings) -> JsonObject:
    """What readers of Determined's configuration look for, under the names that they know."""
    return {
        "resource_manager": {
            "type": "agent",
            "default_compute_resource_pool": settings.default_compute_pool,
            "default_aux_resource_pool": settings.default_aux_pool,
            "cluster_name": settings.cluster_name,
        },
        "resource_pools": [
            {
                "pool_name": pool.name,
                "description": pool.description,
                "scheduler": {"type": pool.scheduler.type},
                "max_aux_containers_per_agent": pool.max_aux_containers_per_agent,
            }
            for pool in settings.pools
        ],
        "feature_switches": [switch.value for switch in settings.feature_switches],
    }


@routes.patch("/api/v1/master/config", "PatchMasterConfig", allow=Allow.ADMIN)
async def patch_config(body: messages.PatchMasterConfigRequest) -> Empty:
    """Change level and colour of the log, of the master that answers, until it ends."""
    mask = body.field_mask
    paths = [part.strip() for part in mask.split(",") if part.strip()] if isinstance(mask, str) else mask.paths
    for path in paths:
        if not any(field == path or field.startswith(f"{path}.") for field in _FIELDS):
            raise InvalidInput(
                f"fieldMask: {path!r} cannot change while the master runs, only {' and '.join(_FIELDS)} can: set it in "
                "the master's configuration and restart it"
            )
    meant = {field for field in _FIELDS if not paths or any(field == p or field.startswith(f"{p}.") for p in paths)}
    level, color = log.CURRENT.level, log.CURRENT.color
    requested = body.config.log
    if "log.level" in meant and requested.level not in (None, LogLevel.UNSPECIFIED):
        assert requested.level is not None
        named = requested.level.name.lower()
        # There is nothing below debug.
        level = "debug" if named == "trace" else named
    if "log.color" in meant and requested.color is not None:
        color = requested.color
    log.change(level, color, log.CURRENT.json_lines)
    return Empty()


@routes.post("/api/v1/master/config/reload", "ReloadMasterConfig", allow=Allow.ADMIN)
async def reload_config(master: MasterDep) -> messages.ReloadMasterConfigResponse:
    """Let the master that answers read its settings again: pools, and what their tasks get, change at once."""
    done = await reload(master)
    return messages.ReloadMasterConfigResponse(changed=done.changed, left=done.left)


@routes.stream("/api/v1/master/logs", "MasterLogs", allow=Allow.USER)
async def get_logs(
    master: MasterDep,
    caller: CallerDep,
    request: Request,
    offset: Annotated[int, Query()] = 0,
    limit: Annotated[int, Query()] = 0,
    follow: Annotated[bool, Query()] = False,
) -> StreamingResponse:
    """Its newest lines, from number ``offset`` on; a negative offset counts from the end, and limit 0 is all.

    For administrators. Others are told so in a line: Determined's client makes no support bundle where it is refused.
    """
    if not caller.is_admin:
        return ndjson(_not_shown())
    if limit < 0:
        raise InvalidInput(f"limit is {limit}: it must not be negative (0 is all)")
    start = max(0, OWN_LOG.following + offset) if offset < 0 else offset
    return ndjson(_lines(master, start, limit or None, request.state.identified if follow else None))


@routes.get("/api/v1/master/cluster_message", "GetClusterMessage", allow=Allow.ADMIN)
async def get_message(master: MasterDep) -> messages.GetClusterMessageResponse:
    """The message that is shown to everyone, or will be. What is shown now is in `GetMaster`, for all."""
    async with master.db.connection() as conn:
        message = await cluster.get_message(conn)
    return _set(message)


@routes.put("/api/v1/master/cluster_message", "SetClusterMessage", allow=Allow.ADMIN)
async def set_message(master: MasterDep, caller: CallerDep, body: messages.SetClusterMessageRequest) -> Empty:
    """Show a message to everyone, in the place of the one before."""
    text = body.message.strip()
    if not 1 <= len(text) <= cluster.MAX_MESSAGE:
        raise InvalidInput(f"message has {len(text)} characters: write 1 to {cluster.MAX_MESSAGE}")
    async with master.db.transaction() as conn:
        moment = await now(conn)
        starts = body.start_time or moment
        ends = _end(starts, body)
        if ends is not None and ends <= moment:
            raise InvalidInput(f"endTime: the message would be over by {ends.isoformat()}, which has passed")
        if body.expected is not None:
            await cluster.lock_message(conn)
            check_expected(body.expected, _set(await cluster.get_message(conn)), "the message to everyone")
        await cluster.set_message(conn, text, starts, ends, caller.person.id)
    return Empty()


@routes.delete("/api/v1/master/cluster_message", "DeleteClusterMessage", allow=Allow.ADMIN)
async def delete_message(master: MasterDep) -> Empty:
    """Take the message back."""
    async with master.db.transaction() as conn:
        await cluster.clear_message(conn)
    return Empty()


def _set(message: ClusterMessage | None) -> messages.GetClusterMessageResponse:
    return messages.GetClusterMessageResponse(cluster_message=None if message is None else message_view(message))


def message_view(message: ClusterMessage) -> messages.ClusterMessageView:
    """The message as the API sends it."""
    return messages.ClusterMessageView(
        message=message.message, start_time=message.starts_at, end_time=message.ends_at, created_time=message.created_at
    )


def _end(starts: datetime, request: messages.SetClusterMessageRequest) -> datetime | None:
    if request.end_time is not None and request.duration:
        raise InvalidInput("endTime and duration are both given: give one of them")
    ends = request.end_time
    if request.duration:
        try:
            ends = starts + timedelta(seconds=parse_duration(request.duration))
        except (ValueError, OverflowError) as error:
            raise InvalidInput(f"duration: {error}") from None
    for name, moment in (("startTime", starts), ("endTime", ends)):
        if moment is not None and not 1970 <= moment.year <= _LATEST_YEAR:
            raise InvalidInput(f"{name} is in the year {moment.year}: write a time from 1970 to {_LATEST_YEAR}")
    if ends is not None and ends <= starts:
        raise InvalidInput("endTime: the message would end before it begins")
    return ends


async def _not_shown() -> AsyncIterator[bytes]:
    entry = messages.LogEntry(id=0, message=NOT_SHOWN, timestamp=datetime.now(timezone.utc), level=LogLevel.WARNING)
    yield line(messages.MasterLogsResponse(log_entry=entry).model_dump(mode="json"))


async def _lines(
    master: Master, start: int, limit: int | None, follow: Callable[[], Awaitable[Caller]] | None
) -> AsyncIterator[bytes]:
    """``follow``: tells who is asking, for whoever stays is looked at again; None: what there is now."""
    at, left = start, limit
    # What is said while it is read is for followers.
    last = OWN_LOG.following
    while left is None or left > 0:
        most = _PART if left is None else min(left, _PART)
        entries = OWN_LOG.since(at, most)
        if follow is None:
            entries = [entry for entry in entries if entry.number < last]
        if follow is not None and not (await follow()).is_admin:
            return
        if entries:
            at = entries[-1].number + 1
            left = None if left is None else left - len(entries)
            yield b"".join(line(_log_message(entry)) for entry in entries)
        elif follow is None or master.shutdown.is_set():
            return
        else:
            await OWN_LOG.wait(at, _POLL_S)


def _log_message(entry: OwnLogEntry) -> object:
    at = datetime.fromtimestamp(entry.at, timezone.utc)
    level = LogLevel.__members__.get(entry.level, LogLevel.UNSPECIFIED)
    log_entry = messages.LogEntry(id=entry.number, message=entry.message, timestamp=at, level=level)
    return messages.MasterLogsResponse(log_entry=log_entry).model_dump(mode="json")
