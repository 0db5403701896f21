"""The cluster as a whole: the master's settings and log, the message to everyone, log retention, the use of slots."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional

from tenax.client.connection import reading
from tenax.client.connection.reading import Answer, part
from tenax.client.connection.session import Session
from tenax.jsonvalue import Json, JsonObject


@dataclass(frozen=True)
class MasterLine:
    """A line of the master's log."""

    id: int
    time: Optional[datetime.datetime]
    level: str
    message: str


@dataclass(frozen=True)
class MasterInfo(Answer):
    """A master of the cluster that is there."""

    id: str = part(reading.text, "masterId")
    machine: str = part(reading.text, "machine")
    #: Where it listens.
    address: str = part(reading.text, "address")
    version: str = part(reading.text, "version")
    roles: List[str] = part(reading.texts, "roles")
    #: What it runs for the cluster.
    loops: List[str] = part(reading.texts, "loops")
    started: Optional[datetime.datetime] = part(reading.moment, "startedAt")
    #: Whether it is the one that answers.
    answers: bool = part(reading.flag, "answers")
    #: The settings that are other than those of the one that answers, of those that masters must agree on.
    other_settings: List[str] = part(reading.texts, "otherSettings")


def masters(session: Session) -> List[MasterInfo]:
    """Those that are there, the oldest first. For administrators."""
    return [MasterInfo.read(value) for value in reading.records(session.get("/api/v1/masters"), "masters")]


def master_config(session: Session) -> JsonObject:
    """The settings of the master that answers, without secrets. For administrators."""
    return reading.record(session.get("/api/v1/master/config"), "config")


@dataclass(frozen=True)
class ReloadedSettings(Answer):
    """What reading the settings again has done."""

    #: Settings that are other than before.
    changed: List[str] = part(reading.texts, "changed")
    #: Settings that are other than at the start, and wait for the next one.
    left: List[str] = part(reading.texts, "left")


def reload_master_config(session: Session) -> ReloadedSettings:
    """Let the master that answers read its settings again. For administrators. Raises InvalidInput."""
    return ReloadedSettings.read(session.call("POST", "/api/v1/master/config/reload"))


def set_master_log(session: Session, *, level: Optional[str] = None, color: Optional[bool] = None) -> None:
    """Change how the master talks until it ends: ``debug``, ``info``, ``warning``, ``error``, ``critical``."""
    log: Dict[str, Json] = {}
    if level is not None:
        log["level"] = f"LOG_LEVEL_{level.upper()}"
    if color is not None:
        log["color"] = color
    body: JsonObject = {"config": {"log": log}, "fieldMask": {"paths": [f"log.{name}" for name in log]}}
    session.call("PATCH", "/api/v1/master/config", body=body)


def master_logs(session: Session, *, tail: Optional[int] = None, follow: bool = False) -> Iterator[MasterLine]:
    """The newest lines of the master that answers, all that it keeps or the last ``tail``."""
    query = {"offset": -tail if tail is not None else 0, "follow": follow}
    if tail == 0 and not follow:
        return
    if tail == 0:
        # Only what comes: the offset 0 would be all.
        query["offset"] = _next_line(session)
    for result in session.lines("/api/v1/master/logs", query):
        entry = reading.record(result, "logEntry")
        level = reading.text(entry, "level").replace("LOG_LEVEL_", "", 1)
        yield MasterLine(
            reading.integer(entry, "id"), reading.moment(entry, "timestamp"), level, reading.text(entry, "message")
        )


def cluster_message(session: Session) -> Optional[JsonObject]:
    """The message that is shown to everyone, or will be; None for none."""
    message = session.get("/api/v1/master/cluster_message").get("clusterMessage")
    return message if isinstance(message, dict) else None


def set_cluster_message(
    session: Session,
    message: str,
    *,
    start: Optional[str] = None,
    end: Optional[str] = None,
    duration: Optional[str] = None,
) -> None:
    """Show a message to everyone, from ``start`` (RFC 3339; now) until ``end``, or for a ``duration`` (``24h``)."""
    fields: Dict[str, Json] = {"message": message, "startTime": start, "endTime": end, "duration": duration}
    session.call("PUT", "/api/v1/master/cluster_message", body=reading.without_nulls(fields))


def clear_cluster_message(session: Session) -> None:
    """Take the message back."""
    session.call("DELETE", "/api/v1/master/cluster_message")


def cleanup_logs(session: Session) -> int:
    """Remove output that is kept no longer; how many lines that were. For administrators."""
    return reading.integer(session.post("/api/v1/cleanup_logs"), "removedCount")


def _next_line(session: Session) -> int:
    newest = list(session.lines("/api/v1/master/logs", {"offset": -1}))
    return reading.integer(reading.record(newest[-1], "logEntry"), "id") + 1 if newest else 0


_MONTHLY = "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_MONTHLY"
_DAILY = "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY"


def aggregated(
    session: Session, start: str, end: str, *, monthly: bool = False, by: Optional[str] = None
) -> List[JsonObject]:
    """Slot seconds of each day or month from ``start`` to ``end`` (``2026-11-21``, ``2026-11``), both included.

    ``by``: ``user``, ``group``, ``workspace``, ``project``, ``pool``, ``agent``, ``type``, ``size`` (of an attempt, in
    slots), ``experiment`` or ``label`` alone, and with what was waited for it.
    """
    query = {"startDate": start, "endDate": end, "period": _MONTHLY if monthly else _DAILY}
    query |= {} if by is None else {"by": by}
    return reading.records(session.get("/api/v1/resources/allocation/aggregated", query), "resourceEntries")


def aggregated_csv(session: Session, start: str, end: str, *, monthly: bool = False) -> Iterator[str]:
    """The same as CSV, piece by piece."""
    query = {"start_date": start, "end_date": end, "period": _MONTHLY if monthly else _DAILY}
    with session.stream("GET", "/resources/allocation/aggregated", query=query, accept="text/csv") as response:
        yield from response.iter_text()


def attempts(session: Session, after: str, before: str) -> List[JsonObject]:
    """Every attempt that held slots between two times (RFC 3339, or days)."""
    query = {"timestampAfter": after, "timestampBefore": before}
    return reading.records(session.get("/api/v1/resources/allocation/raw", query), "resourceEntries")


def attempts_csv(session: Session, after: str, before: str) -> Iterator[str]:
    """The same as CSV with how long each waited, piece by piece."""
    query = {"timestamp_after": after, "timestamp_before": before}
    with session.stream("GET", "/resources/allocation/allocations-csv", query=query, accept="text/csv") as response:
        yield from response.iter_text()
