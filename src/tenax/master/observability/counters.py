"""What a master process counts about itself, for Prometheus.

Two registries: what anyone may read who reaches the port (``GET /metrics``), and what names pools, for users.
Names are Prometheus' conventions: base units, ``_total`` of counters.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import generate_latest

from tenax.lifecycle.offer import RestCause

# Of each series when it began: nobody draws that.
disable_created_metrics()  # type: ignore[no-untyped-call]

#: Of this process; registries of our own, so that libraries do not add to them.
REGISTRY = CollectorRegistry()
OF_POOLS = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)

_SHORT = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10)
_LONG = (*_SHORT, 60)
_VERY_SHORT = (0.0001, 0.0003, *_SHORT)
_WAITS = (0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 2 * 3600, 4 * 3600, 12 * 3600, 24 * 3600)
_STARTS = (10, 20, 30, 45, 60, 90, 120, 180, 240, 300, 420, 600, 900, 1200, 1800, 3600)

BUILD = Info("tenax_build", "Version and roles of this master.", registry=REGISTRY)

# Requests

REQUESTS = Counter(
    "tenax_http_requests", "Requests answered, by route and status.", ["method", "route", "status"], registry=REGISTRY
)
REQUEST_SECONDS = Histogram(
    "tenax_http_request_seconds",
    "Time to answer, long polls and streams included.",
    ["method", "route"],
    buckets=_LONG,
    registry=REGISTRY,
)
IN_PROGRESS = Gauge("tenax_http_requests_in_progress", "Requests that are being answered.", registry=REGISTRY)
CONNECTIONS_REFUSED = Counter(
    "tenax_connections_refused", "Connections closed because there were too many.", registry=REGISTRY
)
ANSWERS_GIVEN_UP = Counter(
    "tenax_answers_given_up", "Connections closed because nobody read what was answered.", registry=REGISTRY
)
LOGINS = Counter("tenax_logins", "Attempts to log in, by outcome.", ["outcome"], registry=REGISTRY)
EVENT_LOOP_LAG = Histogram(
    "tenax_event_loop_lag_seconds",
    "How late a timer of the event loop was, twice a second.",
    buckets=_SHORT,
    registry=REGISTRY,
)

# Loops

LOOP_PASSES = Counter("tenax_loop_passes", "Passes of the master's loops.", ["loop"], registry=REGISTRY)
LOOP_SECONDS = Histogram(
    "tenax_loop_pass_seconds", "Time of one pass of a loop.", ["loop"], buckets=_SHORT, registry=REGISTRY
)
LOOP_FAILURES = Counter(
    "tenax_loop_failures",
    "Passes that did not get to their end: an error, a database that was away, a pass that hung, a lost lease.",
    ["loop", "reason"],
    registry=REGISTRY,
)
LOOP_FAILED_OBJECTS = Counter(
    "tenax_loop_failed_objects",
    "Experiments, tasks and others that a pass could not handle.",
    ["loop"],
    registry=REGISTRY,
)
LEASE_HELD = Gauge(
    "tenax_loop_lease_held",
    "1 where this process has the lease of a loop, 0 where another has it.",
    ["loop"],
    registry=REGISTRY,
)

# The database

DB_CONNECTIONS = Gauge(
    "tenax_db_connections",
    "Connections to the database, by kind of work: used, idle.",
    ["lane", "state"],
    registry=REGISTRY,
)
DB_MAX_CONNECTIONS = Gauge(
    "tenax_db_max_connections", "How many connections a kind of work may have.", ["lane"], registry=REGISTRY
)
DB_ACQUIRE_SECONDS = Histogram(
    "tenax_db_acquire_seconds", "Time until a connection was free.", ["lane"], buckets=_VERY_SHORT, registry=REGISTRY
)
DB_STATEMENT_SECONDS = Histogram(
    "tenax_db_statement_seconds", "Time of one statement, the way included.", buckets=_VERY_SHORT, registry=REGISTRY
)
DB_ERRORS = Counter(
    "tenax_db_errors",
    "What the database could not do at the moment: away, slow, full, outcome unknown.",
    ["kind"],
    registry=REGISTRY,
)
LISTENER_CONNECTED = Gauge(
    "tenax_db_listener_connected", "1 while this process hears of changes, else 0.", registry=REGISTRY
)

# Agents and tasks

AGENT_CONNECTIONS = Gauge("tenax_agent_connections", "Agents that are connected to this master.", registry=REGISTRY)
AGENT_CONNECTS = Counter("tenax_agent_connects", "Connections of agents so far.", registry=REGISTRY)
AGENT_REPORTS = Counter("tenax_agent_reports", "Reports of containers that were applied.", registry=REGISTRY)
AGENT_REPORT_SECONDS = Histogram(
    "tenax_agent_report_seconds", "Time to apply what an agent reported.", buckets=_SHORT, registry=REGISTRY
)
INGESTED = Counter("tenax_ingested", "What tasks and agents sent and was stored, by kind.", ["kind"], registry=REGISTRY)
INGEST_REFUSED = Counter(
    "tenax_ingest_refused", "Reports and chunks that were refused, by kind.", ["kind"], registry=REGISTRY
)

NO_ROOM = Counter(
    "tenax_no_room", "What was refused since its budget or the disk is used up.", ["what"], registry=REGISTRY
)

# The queue

PLAN_SECONDS = Histogram(
    "tenax_scheduling_plan_seconds",
    "Time to decide about one pool, without reading and writing.",
    ["pool"],
    buckets=_VERY_SHORT,
    registry=OF_POOLS,
)
CACHE_DIFFERED = Counter(
    "tenax_scheduling_cache_differed",
    "Agents, requests and jobs that the scheduler had in memory otherwise than the database, as its audits found.",
    registry=REGISTRY,
)
DECISIONS = Counter(
    "tenax_scheduling_decisions", "Requests placed, and asked to leave.", ["pool", "decision"], registry=OF_POOLS
)
QUEUE_WAIT_SECONDS = Histogram(
    "tenax_queue_wait_seconds",
    "From a request for slots until it was placed.",
    ["pool"],
    buckets=_WAITS,
    registry=OF_POOLS,
)

CONTAINERS_ENDED = Counter(
    "tenax_containers_ended",
    "Containers that ended, as their agents first said over a connection: ok, failed, platform.",
    ["agent_id", "outcome"],
    registry=OF_POOLS,
)

# Rented machines

MACHINE_ORDERS = Counter(
    "tenax_machine_orders",
    "Orders of machines, by what became of them; one may count as answered, and later as what went wrong with it.",
    ["pool", "outcome"],
    registry=OF_POOLS,
)
MACHINE_JOIN_SECONDS = Histogram(
    "tenax_machine_join_seconds",
    "From the order of a machine until its agent joined.",
    ["pool"],
    buckets=_STARTS,
    registry=OF_POOLS,
)

#: The provider has taken an order; nobody knows whether it has. All else is a `RestCause`.
ANSWERED, UNSURE = "answered", "unsure"
PLACED, ASKED_TO_LEAVE = "placed", "asked_to_leave"
#: Why a pass did not get to its end.
ERROR, NO_DATABASE, HUNG, LEASE_LOST = "error", "database", "hung", "lease"
#: What is wrong with the database.
AWAY, SLOW, FULL, UNKNOWN = "away", "slow", "full", "unknown"


def begin(version: str, roles: Iterable[str]) -> None:
    """Say what this process is. What can happen is there from the start, as 0: of what never was there is no rate."""
    BUILD.info({"version": version, "roles": ",".join(roles)})
    for kind in (AWAY, SLOW, FULL, UNKNOWN):
        DB_ERRORS.labels(kind)
    for outcome in ("accepted", "refused"):
        LOGINS.labels(outcome)
    for kind in ("reports", "output_bytes"):
        INGESTED.labels(kind)
    INGEST_REFUSED.labels("reports")
    for what in ("logs", "metrics"):
        NO_ROOM.labels(what)


def begin_loops(loops: Iterable[str], pools: Iterable[str]) -> None:
    """The same of loops that run here."""
    for loop in loops:
        LOOP_PASSES.labels(loop)
        LOOP_SECONDS.labels(loop)
        LOOP_FAILED_OBJECTS.labels(loop)
        LEASE_HELD.labels(loop)
        for reason in (ERROR, NO_DATABASE, HUNG, LEASE_LOST):
            LOOP_FAILURES.labels(loop, reason)
    for pool in pools:
        PLAN_SECONDS.labels(pool)
        QUEUE_WAIT_SECONDS.labels(pool)
        for decision in (PLACED, ASKED_TO_LEAVE):
            DECISIONS.labels(pool, decision)
        MACHINE_JOIN_SECONDS.labels(pool)
        for outcome in (ANSWERED, UNSURE, *map(failed_as, RestCause)):
            MACHINE_ORDERS.labels(pool, outcome)


def failed_as(cause: RestCause) -> str:
    """The outcome of an order with which something went wrong."""
    return cause.value.lower()


def exposition() -> bytes:
    """What anyone may read, in Prometheus' text form."""
    return generate_latest(REGISTRY)


def exposition_of_pools() -> bytes:
    """What names pools and agents."""
    return generate_latest(OF_POOLS)


def exposition_for_users() -> bytes:
    """Both."""
    return exposition() + exposition_of_pools()
