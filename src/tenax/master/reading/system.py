"""What the profiler measured, as series: one for each metric of an agent, or of one of its devices.

Rules: what is no number is left out; all is in the order of time; unpacking is for a thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from tenax.jsonvalue import Json, JsonObject, to_json, to_number
from tenax.master.reading.charts import keep
from tenax.master.store.metrics.series import PackedReports

#: Points of all series together in one answer.
MAX_POINTS = 60_000


@dataclass(frozen=True, slots=True)
class Label:
    """One series: a metric of an agent, or of one of its devices."""

    name: str
    agent_id: str
    #: Empty for what is not of one device.
    gpu_uuid: str = ""


@dataclass(frozen=True, slots=True)
class SystemPoint:
    """One value of a series; microseconds since 1970."""

    label: Label
    at_us: int
    value: float


def points(packed: Iterable[PackedReports]) -> list[SystemPoint]:
    """All that these reports hold."""
    return [point for part in packed for point in _points(part)]


def _points(packed: PackedReports) -> Iterator[SystemPoint]:
    for report in sorted(packed.reports(), key=lambda report: report.at_us):
        for agent_id, measured in report.metrics.items():
            for label, value in _measured(agent_id, measured):
                yield SystemPoint(label, report.at_us, value)


def _measured(agent_id: str, measured: Json) -> Iterator[tuple[Label, float]]:
    """Metrics of an agent, and below the ids of its devices theirs."""
    for name, value in (measured if isinstance(measured, dict) else {}).items():
        if isinstance(value, dict):
            for inner, of_device in value.items():
                number = to_number(of_device)
                if number is not None:
                    yield Label(inner, agent_id, name), number
        else:
            number = to_number(value)
            if number is not None:
                yield Label(name, agent_id), number


def by_label(measured: Iterable[SystemPoint]) -> dict[Label, list[SystemPoint]]:
    """The points of each series."""
    grouped: dict[Label, list[SystemPoint]] = {}
    for point in measured:
        grouped.setdefault(point.label, []).append(point)
    return {label: grouped[label] for label in sorted(grouped, key=order)}


def order(label: Label) -> tuple[str, str, str]:
    """By metric, then by agent and device."""
    return label.name, label.agent_id, label.gpu_uuid


def charts(packed: Iterable[PackedReports], most: int) -> list[JsonObject]:
    """Each series as ``{"name", "agentId", "device", "total", "times", "values"}`` with at most ``most`` points."""
    grouped = by_label(points(packed))
    share = max(2, min(most, MAX_POINTS // max(1, len(grouped))))
    return [_chart(label, own, share) for label, own in grouped.items()]


def _chart(label: Label, own: list[SystemPoint], most: int) -> JsonObject:
    values = np.array([point.value for point in own], np.float64)
    kept = keep(values, most).tolist() if len(own) > most else range(len(own))
    return {
        "name": label.name,
        "agentId": label.agent_id,
        "device": label.gpu_uuid,
        "total": len(own),
        "times": [own[place].at_us for place in kept],
        "values": [to_json(own[place].value) for place in kept],
    }
