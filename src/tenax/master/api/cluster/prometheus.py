"""What Prometheus asks for: counters of this process, the state of the cluster, and which machines to ask themselves.

Names that begin with ``det_`` are those of Determined, so that dashboards made for it keep working: they join what
exporters on the machines know (a container, a GPU) with what it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import anyio.to_thread
from fastapi import Response
from fastapi.responses import JSONResponse
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest

from tenax.master.access.authorization import Allow
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.observability import counters
from tenax.master.store.cluster import gauges
from tenax.master.store.cluster.gauges import ClusterGauges

routes = Routes("Prometheus")

_TEXT = "text/plain; version=0.0.4; charset=utf-8"
#: Of the exporters that are expected beside an agent: cAdvisor, DCGM.
_EXPORTER_PORTS = (8080, 9400)


@routes.get("/debug/prom/metrics", "PrometheusMetrics", allow=Allow.USER, response_class=Response)
async def metrics(master: MasterDep) -> Response:
    """As ``/metrics``, under the path that Determined's users know."""
    made = await master.single_flight.share("metrics", lambda: master.readers.run(counters.exposition))
    return Response(made, media_type=_TEXT)


@routes.get("/prom/det-state-metrics", "PrometheusState", allow=Allow.USER, response_class=Response)
async def state(master: MasterDep) -> Response:
    """What runs where, what it belongs to, and how full the pools are."""
    async with master.db.snapshot() as conn:
        snapshot = await gauges.snapshot(conn)
    registry = CollectorRegistry()
    registry.register(_State(snapshot))
    return Response(await anyio.to_thread.run_sync(generate_latest, registry), media_type=_TEXT)


@routes.get("/prom/det-http-sd-config", "PrometheusTargets", allow=Allow.USER, response_class=JSONResponse)
async def targets(master: MasterDep) -> JSONResponse:
    """The machines of connected agents, for Prometheus' HTTP service discovery."""
    async with master.db.connection() as conn:
        agents = await gauges.agents(conn)
    return JSONResponse(
        [
            {
                "targets": [f"{_host(agent.address)}:{port}" for port in _EXPORTER_PORTS],
                "labels": {"det_agent_id": agent.agent_id, "det_resource_pool": agent.pool},
            }
            for agent in agents
            if agent.connected and agent.address
        ]
    )


class _State:
    """One answer, as prometheus_client wants it."""

    def __init__(self, snapshot: ClusterGauges) -> None:
        self._gauges = snapshot

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield from self._belonging()
        yield from self._supply()

    def _belonging(self) -> Iterator[GaugeMetricFamily]:
        members = self._gauges.members
        tasks = {(member.allocation_id, member.task_id, member.kind) for member in members}
        jobs = {(member.job_id, str(member.experiment_id)) for member in members if member.experiment_id is not None}
        labels = {(str(member.experiment_id), label) for member in members for label in member.labels or ()}
        devices = {(device, member.container_id) for member in members for device in member.devices or ()}
        where = {(member.container_id, member.agent_id) for member in members}
        of = {(member.container_id, member.allocation_id) for member in members}
        yield _pairs("det_container_id_allocation_id", "Containers of an allocation.", "container_id allocation_id", of)
        yield _pairs("det_allocation_id_task_id", "Tasks of allocations.", "allocation_id task_id task_type", tasks)
        yield _pairs("det_gpu_uuid_container_id", "GPUs of a container.", "gpu_uuid container_id", devices)
        yield _pairs("det_job_id_experiment_id", "Experiments of jobs.", "job_id experiment_id", jobs)
        yield _pairs("det_experiment_id_label", "Labels of experiments that run.", "experiment_id label", labels)
        yield _pairs("tenax_container_id_agent_id", "Agents of containers.", "container_id agent_id", where)

    def _supply(self) -> Iterator[GaugeMetricFamily]:
        agents = GaugeMetricFamily("tenax_agents", "Agents that were not removed.", labels=["pool", "state"])
        counts: dict[tuple[str, str], int] = {}
        for agent in self._gauges.agents:
            key = (agent.pool, agent.state.lower() if agent.connected else "away")
            counts[key] = counts.get(key, 0) + 1
        for (pool, word), count in sorted(counts.items()):
            agents.add_metric([pool, word], count)
        yield agents
        slots = GaugeMetricFamily("tenax_slots", "Slots of connected agents.", labels=["pool", "kind", "state"])
        for key3, count in sorted(self._gauges.slots.items()):
            slots.add_metric(list(key3), count)
        yield slots
        attempts = GaugeMetricFamily("tenax_attempts", "Attempts that wait or have places.", labels=["pool", "state"])
        for (pool, waiting), count in sorted(self._gauges.attempts.items()):
            attempts.add_metric([pool, "waiting" if waiting else "placed"], count)
        yield attempts


def _pairs(name: str, help_text: str, labels: str, rows: Iterable[tuple[str, ...]]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, help_text, labels=labels.split())
    for row in sorted(rows):
        family.add_metric(list(row), 1)
    return family


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address
