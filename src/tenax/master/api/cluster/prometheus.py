"""What Prometheus asks for: counters of this process, the state of the cluster, and which machines to ask themselves.

Names that begin with ``det_`` are those of Determined, so that dashboards made for it keep working: they join what
exporters on the machines know (a container, a GPU) with what it belongs to.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import anyio.to_thread
from asyncpg import Connection
from fastapi import Response
from fastapi.responses import JSONResponse
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest

from tenax.config.master import BudgetSettings, MasterSettings
from tenax.config.provider import MonthlyBudgetSettings
from tenax.lifecycle.machine import ENDED, MachineState
from tenax.master.access.authorization import Allow
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.ingest.budget import Usage
from tenax.master.observability import counters
from tenax.master.provision.budgets import prices_of, spent_by_pool
from tenax.master.provision.offers import offer_states
from tenax.master.store.cluster import gauges
from tenax.master.store.cluster.gauges import ClusterGauges
from tenax.master.store.database.connection import now
from tenax.master.store.machines import costs, offer_facts, offer_rests, silences
from tenax.master.store.machines import rows as machines
from tenax.master.store.machines.offer_facts import FactsOfPools
from tenax.master.store.machines.offer_rests import StoredRest
from tenax.master.store.machines.rows import MachineRow
from tenax.master.store.machines.silences import SilentProvider
from tenax.scheduler.reasons import WaitClass, class_of

routes = Routes("Prometheus")

_TEXT = "text/plain; version=0.0.4; charset=utf-8"
#: Of the exporters that are expected beside an agent: cAdvisor, DCGM.
_EXPORTER_PORTS = (8080, 9400)


@routes.get("/debug/prom/metrics", "PrometheusMetrics", allow=Allow.USER, response_class=Response)
async def metrics(master: MasterDep) -> Response:
    """As ``/metrics``, and what this process has counted of pools."""
    made = await master.single_flight.share(
        "metrics for users", lambda: master.readers.run(counters.exposition_for_users)
    )
    return Response(made, media_type=_TEXT)


@routes.get("/prom/det-state-metrics", "PrometheusState", allow=Allow.USER, response_class=Response)
async def state(master: MasterDep) -> Response:
    """What runs where, what it belongs to, and how full the pools are."""
    async with master.db.snapshot() as conn:
        snapshot = await gauges.snapshot(conn)
        database_bytes = await gauges.database_size(conn)
        reasons = await gauges.waiting(conn)
        rented = await _rented(conn, master.settings)
    usage = await master.intake.budget.usage()
    waiting: Counter[tuple[str, str]] = Counter()
    for (pool, reason), count in reasons.items():
        waiting[pool, _todo(reason)] += count
    registry = CollectorRegistry()
    registry.register(_State(snapshot, [pool.name for pool in master.settings.pools], waiting))
    registry.register(_Machines(rented, master.settings))
    registry.register(_Storage(usage, database_bytes, master.settings.budgets))
    text = await anyio.to_thread.run_sync(generate_latest, registry)
    return Response(text + await anyio.to_thread.run_sync(counters.exposition_of_pools), media_type=_TEXT)


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

    def __init__(self, snapshot: ClusterGauges, pools: Sequence[str], waiting: Mapping[tuple[str, str], int]) -> None:
        """``waiting``: requests by pool and what has to happen."""
        self._waiting = waiting
        self._gauges = snapshot
        self._pools = pools

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield from self._belonging()
        yield from self._supply()
        yield from self._demand()

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
        counts = {(pool, word): 0 for pool in self._pools for word in ("enabled", "away")}
        for agent in self._gauges.agents:
            key = (agent.pool, agent.state.lower() if agent.connected else "away")
            counts[key] = counts.get(key, 0) + 1
        for (pool, word), count in sorted(counts.items()):
            agents.add_metric([pool, word], count)
        yield agents
        silent = GaugeMetricFamily(
            "tenax_agent_silent_seconds", "Since an agent was heard.", labels=["agent_id", "pool"]
        )
        for agent in self._gauges.agents:
            if agent.silent_s is not None:
                silent.add_metric([agent.agent_id, agent.pool], agent.silent_s)
        yield silent
        out = GaugeMetricFamily(
            "tenax_agent_taken_out", "1: start after start failed on it, and it rests.", labels=["agent_id", "pool"]
        )
        for agent in self._gauges.agents:
            out.add_metric([agent.agent_id, agent.pool], float(agent.taken_out))
        yield out
        about = {(agent.agent_id, agent.pool, agent.version, agent.runtime) for agent in self._gauges.agents}
        yield _pairs("tenax_agent_info", "What agents are.", "agent_id pool version runtime", about)
        slots = GaugeMetricFamily("tenax_slots", "Slots by what they do.", labels=["pool", "kind", "state"])
        kinds = {(pool, kind) for pool, kind, _ in self._gauges.slots}
        known = {(*place, state): 0 for place in kinds for state in ("used", "free", "disabled", "broken", "away")}
        for labels, count in sorted({**known, **self._gauges.slots}.items()):
            slots.add_metric(list(labels), count)
        yield slots

    def _demand(self) -> Iterator[GaugeMetricFamily]:
        attempts = GaugeMetricFamily("tenax_attempts", "Attempts that wait or have places.", labels=["pool", "state"])
        requested = GaugeMetricFamily("tenax_attempt_slots", "Slots that they ask for.", labels=["pool", "state"])
        longest = GaugeMetricFamily("tenax_queue_longest_wait_seconds", "Of the first that waits.", labels=["pool"])
        known = {(each.pool, each.waiting): each for each in self._gauges.requests}
        for pool, waiting in sorted({*known, *((name, word) for name in self._pools for word in (False, True))}):
            each = known.get((pool, waiting))
            labels = [pool, "waiting" if waiting else "placed"]
            attempts.add_metric(labels, each.attempts if each else 0)
            requested.add_metric(labels, each.slots if each else 0)
            if waiting:
                longest.add_metric([pool], each.longest_s if each else 0)
        todo = GaugeMetricFamily("tenax_queue_waiting", "Requests by what has to happen.", labels=["pool", "todo"])
        every = {(pool, each.value.lower()): 0 for pool in self._pools for each in WaitClass}
        for place, count in sorted({**every, **self._waiting}.items()):
            todo.add_metric(list(place), count)
        yield todo
        experiments = GaugeMetricFamily("tenax_experiments", "Experiments that have not ended.", labels=["state"])
        for state, count in sorted({"ACTIVE": 0, "PAUSED": 0, **self._gauges.experiments}.items()):
            experiments.add_metric([state], count)
        yield from (attempts, requested, longest, experiments)


@dataclass(frozen=True, slots=True)
class _Rented:
    """What is known of rented machines, at one moment."""

    at: float
    rows: Sequence[MachineRow]
    rests: Mapping[str, Sequence[StoredRest]]
    facts: FactsOfPools
    #: Per hour, by pool and offer.
    prices: Mapping[tuple[str, str], float]
    #: This month, by pool.
    spent: Mapping[str, float]
    silent: Sequence[SilentProvider]


async def _rented(conn: Connection, settings: MasterSettings) -> _Rented:
    facts = await offer_facts.all_of(conn)
    prices = prices_of(settings.pools, facts)
    return _Rented(
        (await now(conn)).timestamp(),
        await machines.all_of(conn),
        await offer_rests.all_of(conn),
        facts,
        prices,
        spent_by_pool(settings.pools, await costs.this_month(conn), prices),
        await silences.all_of(conn),
    )


class _Machines:
    """Rented machines, what they cost, and what may be spent on them."""

    def __init__(self, rented: _Rented, settings: MasterSettings) -> None:
        self._rented = rented
        self._settings = settings

    def collect(self) -> Iterator[GaugeMetricFamily]:
        there = GaugeMetricFamily(
            "tenax_machines", "Rented machines that are not gone.", labels=["pool", "provider", "state"]
        )
        counts = Counter((row.pool, row.provider, row.state.value.lower()) for row in self._rented.rows)
        for pool in self._settings.pools:
            kind = "" if pool.provider is None else pool.provider.type
            counts.update({(pool.name, kind, state.value.lower()): 0 for state in MachineState if state not in ENDED})
        for labels, count in sorted(counts.items()):
            there.add_metric(list(labels), count)
        yield there
        yield from self._money()
        offers = GaugeMetricFamily("tenax_machine_offers", "Offers by whether they are used.", labels=["pool", "state"])
        for pool in self._settings.pools:
            facts, rests = self._rented.facts.get(pool.name, {}), self._rented.rests.get(pool.name, ())
            states = offer_states(pool, facts, rests, self._rented.at)
            for state, count in states.items():
                offers.add_metric([pool.name, state], count)
        yield offers
        silent = self._rented.silent
        yield GaugeMetricFamily("tenax_silent_providers", "Places of providers that do not answer.", len(silent))
        since = GaugeMetricFamily(
            "tenax_provider_silent_seconds", "Since one did not answer.", labels=["provider", "region"]
        )
        for each in silent:
            since.add_metric([each.provider, each.region], max(0.0, self._rented.at - each.since.timestamp()))
        yield since

    def _money(self) -> Iterator[GaugeMetricFamily]:
        known = self._rented.prices
        prices, unpriced = (dict.fromkeys(self._rented.spent, 0.0) for _ in range(2))
        for row in self._rented.rows:
            price = row.price if row.price is not None else known.get((row.pool, row.offer))
            # Those that are paid for were paid for in this month.
            if row.hours is not None:
                prices[row.pool] += price or 0.0
                unpriced[row.pool] += price is None
        budgets = {
            pool.name: math.inf if pool.provider is None else _amount(pool.provider) for pool in self._settings.pools
        }
        for name, help_text, values in (
            ("tenax_machine_price_per_hour", "Of the machines that are paid for now.", prices),
            ("tenax_machines_without_price", "Of these, those of which nobody knows what they cost.", unpriced),
            ("tenax_machine_spent", "On machines, since the month began in UTC.", self._rented.spent),
            ("tenax_machine_budget", "What may be spent on machines in a month; +Inf: there is none.", budgets),
        ):
            family = GaugeMetricFamily(name, help_text, labels=["pool"])
            for pool, value in sorted(values.items()):
                family.add_metric([pool], value)
            yield family
        overall = _amount(self._settings.renting)
        yield GaugeMetricFamily("tenax_machine_budget_of_all_pools", "The same, of all pools together.", overall)


def _amount(settings: MonthlyBudgetSettings) -> float:
    return math.inf if settings.budget_per_month is None else settings.budget_per_month


class _Storage:
    """What the database takes, and may take."""

    def __init__(self, usage: Usage, database_bytes: int, budgets: BudgetSettings) -> None:
        self._usage = usage
        self._database_bytes = database_bytes
        self._budgets = budgets

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield GaugeMetricFamily("tenax_database_bytes", "Of the whole database.", self._database_bytes)
        taken = GaugeMetricFamily("tenax_telemetry_bytes", "What logs and metrics take of it.", labels=["what"])
        allowed = GaugeMetricFamily("tenax_telemetry_budget_bytes", "What they may take.", labels=["what"])
        for what, size, budget in (
            ("logs", self._usage.logs, self._budgets.log_bytes),
            ("metrics", self._usage.metrics, self._budgets.metric_bytes),
        ):
            taken.add_metric([what], size)
            allowed.add_metric([what], budget)
        yield from (taken, allowed)
        if self._usage.free is not None:
            yield GaugeMetricFamily("tenax_database_free_bytes", "Left on its disk.", self._usage.free)


def _todo(reason: str) -> str:
    return (class_of(reason) or WaitClass.WAIT).value.lower()


def _pairs(name: str, help_text: str, labels: str, rows: Iterable[tuple[str, ...]]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, help_text, labels=labels.split())
    for row in sorted(rows):
        family.add_metric(list(row), 1)
    return family


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address
