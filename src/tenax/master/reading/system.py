"""What the profiler measured, as series: one for each metric of an agent, or of one of its devices.

Rules: what is no number is left out; all is in the order of time; unpacking is for a thread.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tenax.jsonvalue import Json, JsonObject, to_json, to_number
from tenax.master.reading.charts import keep
from tenax.master.store.metrics.series import PackedReports

#: Points of all series together in one answer.
MAX_POINTS = 60_000
#: Series of a trial: a script may report agents and devices of its own, ten thousand of them, again and again.
MAX_SERIES = 2000


@dataclass(frozen=True, slots=True)
class Label:
    """One series: a metric of an agent, or of one of its devices."""

    name: str
    agent_id: str
    #: Empty for what is not of one device.
    gpu_uuid: str = ""


@dataclass(slots=True)
class SystemSeries:
    """The values of one series, in the order of time; microseconds since 1970. Mutable: it grows."""

    times: array[int]
    values: array[float]

    def __len__(self) -> int:
        return len(self.times)


def measured(packed: Iterable[PackedReports]) -> dict[Label, SystemSeries]:
    """All that these reports hold, in the order of labels; of more than `MAX_SERIES` series those that came first."""
    grouped: dict[tuple[str, str, str], SystemSeries] = {}
    for part in packed:
        for report in sorted(part.reports(), key=lambda report: report.at_us):
            for key, value in _values(report.metrics):
                own = grouped.get(key)
                if own is None:
                    if len(grouped) >= MAX_SERIES:
                        continue
                    own = grouped[key] = SystemSeries(array("q"), array("d"))
                own.times.append(report.at_us)
                own.values.append(value)
    return {Label(*key): grouped[key] for key in sorted(grouped)}


def _values(metrics: Mapping[str, Json]) -> Iterator[tuple[tuple[str, str, str], float]]:
    """Metrics of agents, and below the ids of their devices those of these: what makes a label, and the value."""
    for agent_id, own in metrics.items():
        for name, value in (own if isinstance(own, dict) else {}).items():
            if isinstance(value, dict):
                for inner, of_device in value.items():
                    number = to_number(of_device)
                    if number is not None:
                        yield (inner, agent_id, name), number
            else:
                number = to_number(value)
                if number is not None:
                    yield (name, agent_id, ""), number


def order(label: Label) -> tuple[str, str, str]:
    """By metric, then by agent and device."""
    return label.name, label.agent_id, label.gpu_uuid


def charts(packed: Iterable[PackedReports], most: int) -> list[JsonObject]:
    """Each series as ``{"name", "agentId", "device", "total", "times", "values"}`` with at most ``most`` points."""
    grouped = measured(packed)
    share = max(2, min(most, MAX_POINTS // max(1, len(grouped))))
    return [_chart(label, own, share) for label, own in grouped.items()]


def _chart(label: Label, own: SystemSeries, most: int) -> JsonObject:
    kept = keep(np.array(own.values), most).tolist() if len(own) > most else range(len(own))
    return {
        "name": label.name,
        "agentId": label.agent_id,
        "device": label.gpu_uuid,
        "total": len(own),
        "times": [own.times[place] for place in kept],
        "values": [to_json(own.values[place]) for place in kept],
    }
