"""What the master counts about itself, for ``GET /metrics``."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import generate_latest

#: Of this process; a registry of our own, so that libraries do not add to it.
REGISTRY = CollectorRegistry()

REQUESTS = Counter(
    "tenax_http_requests", "Requests answered, by route and status.", ["method", "route", "status"], registry=REGISTRY
)
REQUEST_SECONDS = Histogram(
    "tenax_http_request_seconds",
    "Time to answer, long polls and streams included.",
    ["method", "route"],
    buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 60),
    registry=REGISTRY,
)
CONNECTIONS_REFUSED = Counter(
    "tenax_connections_refused", "Connections closed because there were too many.", registry=REGISTRY
)
ANSWERS_GIVEN_UP = Counter(
    "tenax_answers_given_up", "Connections closed because nobody read what was answered.", registry=REGISTRY
)
LOGINS = Counter("tenax_logins", "Attempts to log in, by outcome.", ["outcome"], registry=REGISTRY)
LOOP_PASSES = Counter("tenax_loop_passes", "Passes of the master's loops.", ["loop"], registry=REGISTRY)
LOOP_SECONDS = Histogram(
    "tenax_loop_pass_seconds",
    "Time of one pass of a loop.",
    ["loop"],
    buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10),
    registry=REGISTRY,
)
INGESTED = Counter("tenax_ingested", "What tasks and agents sent and was stored, by kind.", ["kind"], registry=REGISTRY)
INGEST_REFUSED = Counter(
    "tenax_ingest_refused", "Reports and chunks that were refused, by kind.", ["kind"], registry=REGISTRY
)


def exposition() -> bytes:
    """All counters in Prometheus' text form."""
    return generate_latest(REGISTRY)
