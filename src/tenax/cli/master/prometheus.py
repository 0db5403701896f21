"""Prometheus' configuration for a cluster, and its alerts. Pure."""

from __future__ import annotations

from typing import List, NamedTuple, Sequence
from urllib.parse import urlsplit

from tenax.jsonvalue import Json, JsonObject

#: Beside the configuration: the rules, and what Prometheus logs in with.
ALERTS, TOKEN = "tenax-alerts.yml", "token"


class Alert(NamedTuple):
    """What is wrong while ``expr`` has a result, for so long."""

    name: str
    expr: str
    lasting: str
    severity: str
    summary: str


RULES: Sequence[Alert] = (
    Alert(
        "TenaxMasterDown",
        'up{job="tenax"} == 0',
        "1m",
        "critical",
        "The master {{ $labels.instance }} does not answer.",
    ),
    Alert(
        "TenaxLoopWithoutMaster",
        "sum by (loop) (tenax_loop_lease_held) == 0",
        "1m",
        "critical",
        "No master runs the loop {{ $labels.loop }}: experiments do not get on.",
    ),
    Alert(
        "TenaxLoopStands",
        "sum by (loop) (increase(tenax_loop_passes_total[5m])) == 0",
        "5m",
        "critical",
        "The loop {{ $labels.loop }} makes no passes; it goes through everything every 30 seconds.",
    ),
    Alert(
        "TenaxLoopFails",
        'sum by (loop) (increase(tenax_loop_failures_total{reason=~"error|hung"}[10m])) > 0',
        "0m",
        "warning",
        "Passes of the loop {{ $labels.loop }} fail: the master's log has the error.",
    ),
    Alert(
        "TenaxObjectNotHandled",
        "sum by (loop) (increase(tenax_loop_failed_objects_total[10m])) > 0",
        "0m",
        "warning",
        "The loop {{ $labels.loop }} cannot handle an object: the master's log names it.",
    ),
    Alert(
        "TenaxAgentAway",
        'max by (pool) (tenax_agents{state="away"}) > 0',
        "5m",
        "warning",
        "{{ $value }} agents of the pool {{ $labels.pool }} are away (tenax agent list).",
    ),
    Alert(
        "TenaxQueueStands",
        "max by (pool) (tenax_queue_longest_wait_seconds) > 3600"
        ' and on (pool) sum by (pool) (max by (pool, kind) (tenax_slots{state="free"})) > 0',
        "10m",
        "warning",
        "A request waits for an hour in the pool {{ $labels.pool }}, where slots are free (tenax queue explain).",
    ),
    Alert(
        "TenaxServerErrors",
        'sum by (instance) (rate(tenax_http_requests_total{status="500"}[5m])) > 0.05',
        "5m",
        "warning",
        "The master {{ $labels.instance }} answers with errors of its own: its log has them, each with its request.",
    ),
    Alert(
        "TenaxEventLoopLate",
        "histogram_quantile(0.95, sum by (le, instance) (rate(tenax_event_loop_lag_seconds_bucket[5m]))) > 0.5",
        "10m",
        "warning",
        "The master {{ $labels.instance }} is overloaded: timers come half a second late.",
    ),
    Alert(
        "TenaxDatabaseErrors",
        "sum by (kind) (increase(tenax_db_errors_total[5m])) > 0",
        "5m",
        "warning",
        "The database is {{ $labels.kind }} again and again.",
    ),
    Alert(
        "TenaxDatabaseDisk",
        "min(tenax_database_free_bytes) < 5e9",
        "5m",
        "critical",
        "The disk of the database has less than 5 GB left: output and metrics will be refused.",
    ),
    Alert(
        "TenaxBudget",
        "max by (what) (tenax_telemetry_bytes) / max by (what) (tenax_telemetry_budget_bytes) > 0.9",
        "5m",
        "warning",
        "{{ $labels.what }} take more than nine tenths of their budget: delete experiments or shorten their retention.",
    ),
)


def alerts() -> JsonObject:
    """The file of rules."""
    rules: List[Json] = [
        {
            "alert": rule.name,
            "expr": rule.expr,
            "for": rule.lasting,
            "labels": {"severity": rule.severity},
            "annotations": {"summary": rule.summary},
        }
        for rule in RULES
    ]
    return {"groups": [{"name": "tenax", "rules": rules}]}


def configuration(masters: Sequence[str], certificate: str = "") -> JsonObject:
    """``masters``: their URLs; ``certificate``: file with what theirs is checked by, "" for the system's."""
    places = [urlsplit(url) for url in masters]
    tls: JsonObject = {"ca_file": certificate} if certificate else {}
    jobs: List[Json] = []
    for name, path in (("tenax", "/debug/prom/metrics"), ("tenax-cluster", "/prom/det-state-metrics")):
        job: JsonObject = {
            "job_name": name,
            "metrics_path": places[0].path.rstrip("/") + path,
            "scheme": places[0].scheme,
            "authorization": {"credentials_file": TOKEN},
            "static_configs": [{"targets": [*(place.netloc for place in places)]}],
        }
        if tls:
            job["tls_config"] = tls
        jobs.append(job)
    return {
        "global": {"scrape_interval": "15s", "evaluation_interval": "15s"},
        "rule_files": [ALERTS],
        "scrape_configs": jobs,
    }
