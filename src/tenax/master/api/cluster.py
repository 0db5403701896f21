"""The master's own: settings without secrets, level and colour of its log, its newest lines, the cluster's message."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta, timezone
from typing import Annotated, cast

from fastapi import Query
from fastapi.responses import StreamingResponse

from tenax.config.master_display import master_config_shown
from tenax.config.schedule import parse_duration
from tenax.errors import InvalidInput
from tenax.master import log_setup
from tenax.master.api.deps import CallerDep, MasterDep
from tenax.master.api.ndjson import line, ndjson
from tenax.master.api.routing import Allow, Routes
from tenax.master.context import Master
from tenax.master.own_log import OWN_LOG, Entry
from tenax.master.store import cluster_message
from tenax.master.store.cluster_message import ClusterMessage
from tenax.master.store.database import now
from tenax.wire.api.cluster import (
    ClusterMessageView,
    GetClusterMessageResponse,
    GetMasterConfigResponse,
    LogEntry,
    LogLevel,
    MasterLogsResponse,
    PatchMasterConfigRequest,
    SetClusterMessageRequest,
)
from tenax.wire.api.message import Document, Empty

routes = Routes("Master")

#: Lines in one part of the stream.
_PART = 500
#: A stream that has nothing to say looks whether the master is ending.
_LOOK_S = 1.0
_FIELDS = ("log.level", "log.color")
_LATEST_YEAR = 9000


@routes.get("/api/v1/master/config", "GetMasterConfig", allow=Allow.ADMIN)
async def get_config(master: MasterDep) -> GetMasterConfigResponse:
    """The settings of the master that answers, without secrets, with what was changed since it started."""
    shown = master_config_shown(master.settings)
    shown["log"] = {"level": log_setup.NOW.level, "color": log_setup.NOW.color, "json_lines": log_setup.NOW.json_lines}
    return GetMasterConfigResponse(config=cast(Document, shown))


@routes.patch("/api/v1/master/config", "PatchMasterConfig", allow=Allow.ADMIN)
async def patch_config(body: PatchMasterConfigRequest) -> Empty:
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
    level, color = log_setup.NOW.level, log_setup.NOW.color
    asked = body.config.log
    if "log.level" in meant and asked.level not in (None, LogLevel.UNSPECIFIED):
        assert asked.level is not None
        named = asked.level.name.lower()
        # There is nothing below debug.
        level = "debug" if named == "trace" else named
    if "log.color" in meant and asked.color is not None:
        color = asked.color
    log_setup.change(level, color, log_setup.NOW.json_lines)
    return Empty()


@routes.get("/api/v1/master/logs", "MasterLogs", allow=Allow.USER, response_class=StreamingResponse)
async def get_logs(
    master: MasterDep,
    offset: Annotated[int, Query()] = 0,
    limit: Annotated[int, Query()] = 0,
    follow: Annotated[bool, Query()] = False,
) -> StreamingResponse:
    """Its newest lines, from number ``offset`` on; a negative offset counts from the end, and limit 0 is all."""
    if limit < 0:
        raise InvalidInput(f"limit is {limit}: it must not be negative (0 is all)")
    start = max(0, OWN_LOG.following + offset) if offset < 0 else offset
    return ndjson(_lines(master, start, limit or None, follow))


@routes.get("/api/v1/master/cluster_message", "GetClusterMessage", allow=Allow.USER)
async def get_message(master: MasterDep) -> GetClusterMessageResponse:
    """The message that is shown to everyone, or will be."""
    async with master.db.connection() as conn:
        found = await cluster_message.get(conn)
    return GetClusterMessageResponse(cluster_message=None if found is None else message_view(found))


@routes.put("/api/v1/master/cluster_message", "SetClusterMessage", allow=Allow.ADMIN)
async def set_message(master: MasterDep, caller: CallerDep, body: SetClusterMessageRequest) -> Empty:
    """Show a message to everyone, in the place of the one before."""
    text = body.message.strip()
    if not 1 <= len(text) <= cluster_message.LONGEST:
        raise InvalidInput(f"message has {len(text)} characters: write 1 to {cluster_message.LONGEST}")
    async with master.db.transaction() as conn:
        moment = await now(conn)
        starts = body.start_time or moment
        ends = _end(starts, body)
        if ends is not None and ends <= moment:
            raise InvalidInput(f"endTime: the message would be over by {ends.isoformat()}, which has passed")
        await cluster_message.put(conn, text, starts, ends, caller.person.id)
    return Empty()


@routes.delete("/api/v1/master/cluster_message", "DeleteClusterMessage", allow=Allow.ADMIN)
async def delete_message(master: MasterDep) -> Empty:
    """Take the message back."""
    async with master.db.transaction() as conn:
        await cluster_message.drop(conn)
    return Empty()


def message_view(found: ClusterMessage) -> ClusterMessageView:
    """As it travels."""
    return ClusterMessageView(
        message=found.message, start_time=found.starts_at, end_time=found.ends_at, created_time=found.created_at
    )


def _end(starts: datetime, asked: SetClusterMessageRequest) -> datetime | None:
    if asked.end_time is not None and asked.duration:
        raise InvalidInput("endTime and duration are both given: give one of them")
    ends = asked.end_time
    if asked.duration:
        try:
            ends = starts + timedelta(seconds=parse_duration(asked.duration))
        except (ValueError, OverflowError) as error:
            raise InvalidInput(f"duration: {error}") from None
    for name, moment in (("startTime", starts), ("endTime", ends)):
        if moment is not None and not 1970 <= moment.year <= _LATEST_YEAR:
            raise InvalidInput(f"{name} is in the year {moment.year}: write a time from 1970 to {_LATEST_YEAR}")
    if ends is not None and ends <= starts:
        raise InvalidInput("endTime: the message would end before it begins")
    return ends


async def _lines(master: Master, start: int, limit: int | None, follow: bool) -> AsyncIterator[bytes]:
    at, left = start, limit
    # What is said while it is read is for followers.
    last = OWN_LOG.following
    while left is None or left > 0:
        most = _PART if left is None else min(left, _PART)
        found = OWN_LOG.since(at, most)
        if not follow:
            found = [entry for entry in found if entry.number < last]
        if found:
            at = found[-1].number + 1
            left = None if left is None else left - len(found)
            yield b"".join(line(_message(entry)) for entry in found)
        elif not follow or master.shutdown.is_set():
            return
        else:
            await OWN_LOG.wait(at, _LOOK_S)


def _message(entry: Entry) -> object:
    at = datetime.fromtimestamp(entry.at, timezone.utc)
    level = LogLevel.__members__.get(entry.level, LogLevel.UNSPECIFIED)
    told = LogEntry(id=entry.number, message=entry.message, timestamp=at, level=level)
    return MasterLogsResponse(log_entry=told).model_dump(mode="json")
