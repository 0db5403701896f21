"""Prometheus' configuration for a cluster, and its alerts."""

from __future__ import annotations

import re
from typing import List, NamedTuple, Sequence
from urllib.parse import urlsplit

from tenax.client.connection.address import canonical
from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject

#: Beside the configuration: the rules, and what Prometheus logs in with.
ALERTS, TOKEN = "tenax-alerts.yml", "token"


_PLACE = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")


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
        "TenaxClusterNotSeen",
        'max(up{job="tenax-cluster"}) == 0 or absent(up{job="tenax-cluster"})',
        "2m",
        "critical",
        "No master tells of the cluster: its database is away, or the token of Prometheus has ended.",
    ),
    Alert(
        "TenaxMasterRestarts",
        'changes(process_start_time_seconds{job="tenax"}[15m]) > 2',
        "0m",
        "warning",
        "The master {{ $labels.instance }} was started again and again.",
    ),
    Alert(
        "TenaxLoopWithoutMaster",
        "sum by (loop) (tenax_loop_lease_held) == 0 or absent(tenax_loop_lease_held)",
        "1m",
        "critical",
        "No master runs the loop {{ $labels.loop }}: experiments do not get on.",
    ),
    Alert(
        "TenaxLoopStands",
        # Those that delete may take an hour over one.
        'sum by (loop) (increase(tenax_loop_passes_total{loop!~"deletion|checkpoint_gc|retention"}[2m])) == 0',
        "3m",
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
        "max by (agent_id, pool) (tenax_agent_silent_seconds) > 300",
        "0m",
        "warning",
        "The agent {{ $labels.agent_id }} of the pool {{ $labels.pool }} is away: see to its machine, or remove it "
        "(tenax agent remove).",
    ),
    Alert(
        "TenaxAgentTakenOut",
        "max by (agent_id, pool) (tenax_agent_taken_out) > 0",
        "0m",
        "warning",
        "Start after start failed on the agent {{ $labels.agent_id }} of the pool {{ $labels.pool }}: tenax agent list "
        "says why; once it is well, tenax agent enable {{ $labels.agent_id }}.",
    ),
    Alert(
        "TenaxDeviceBroken",
        'max by (pool, kind) (tenax_slots{state="broken"}) > 0',
        "0m",
        "warning",
        "A device of the kind {{ $labels.kind }} in the pool {{ $labels.pool }} is broken: tenax slot list says which.",
    ),
    Alert(
        "TenaxAgentFails",
        'sum by (agent_id) (increase(tenax_containers_ended_total{outcome!="ok"}[30m])) > 5'
        ' unless sum by (agent_id) (increase(tenax_containers_ended_total{outcome="ok"}[30m])) > 0',
        "0m",
        "warning",
        "Everything that ran on {{ $labels.agent_id }} in the last half hour failed.",
    ),
    Alert(
        "TenaxQueueNeedsSomebody",
        'max by (pool) (tenax_queue_waiting{todo="ask"}) > 0',
        "10m",
        "warning",
        "A request of the pool {{ $labels.pool }} starts only once somebody acts (tenax queue list).",
    ),
    Alert(
        "TenaxProviderSilent",
        "max(tenax_silent_providers) > 0",
        "5m",
        "warning",
        "A provider of machines does not answer: /health of a master names it, and the master's log says why.",
    ),
    Alert(
        "TenaxOfferOff",
        'max by (pool) (tenax_machine_offers{state="off"}) > 0',
        "0m",
        "warning",
        "An offer of the pool {{ $labels.pool }} is off until settings change: tenax machine plan says why.",
    ),
    Alert(
        "TenaxMachineBudget",
        "max by (pool) (tenax_machine_spent) / max by (pool) (tenax_machine_budget) > 0.8"
        " or sum(max by (pool) (tenax_machine_spent)) / max(tenax_machine_budget_of_all_pools) > 0.8",
        "0m",
        "warning",
        "More than 80 % of a month's budget for machines is spent: of pool {{ $labels.pool }}, or, unnamed, of all.",
    ),
    Alert(
        "TenaxServerErrors",
        'sum by (instance) (rate(tenax_http_requests_total{status=~"5.."}[5m]))'
        " / sum by (instance) (rate(tenax_http_requests_total[5m])) > 0.01",
        "5m",
        "warning",
        "More than one answer in a hundred of {{ $labels.instance }} is an error: its log has them, by request.",
    ),
    Alert(
        "TenaxEventLoopLate",
        "rate(tenax_event_loop_lag_seconds_sum[5m]) > 0.2",
        "10m",
        "warning",
        "The master {{ $labels.instance }} is overloaded.",
    ),
    Alert(
        "TenaxDatabaseErrors",
        "sum by (instance, kind) (increase(tenax_db_errors_total[5m])) > 0",
        "2m",
        "warning",
        "The database is {{ $labels.kind }} for {{ $labels.instance }}.",
    ),
    Alert(
        "TenaxHearsNothing",
        "tenax_db_listener_connected == 0",
        "1m",
        "critical",
        "The master {{ $labels.instance }} does not hear of changes: its database is away.",
    ),
    Alert(
        "TenaxDatabaseBusy",
        "histogram_quantile(0.95, sum by (le, instance, lane) (rate(tenax_db_acquire_seconds_bucket[5m]))) > 1",
        "10m",
        "warning",
        "{{ $labels.lane }} of {{ $labels.instance }} wait for connections to the database (db.max_connections).",
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
    Alert(
        "TenaxNoRoom",
        "sum by (what) (increase(tenax_no_room_total[5m])) > 0",
        "0m",
        "critical",
        "{{ $labels.what }} are refused: their budget or the disk is used up.",
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


def configuration(masters: Sequence[str], certificate: str = "", alertmanager: str = "") -> JsonObject:
    """``masters``: their addresses, alike but for host and port; ``certificate``: file with what theirs is checked by
    ("" for the system's); ``alertmanager``: ``host:port`` of who is told of alerts.

    Raises InvalidInput.
    """
    places = list(dict.fromkeys(urlsplit(canonical(url)) for url in masters))
    for place in places:
        if (place.scheme, place.path) != (places[0].scheme, places[0].path):
            raise InvalidInput(
                f"{place.geturl()} has another scheme or path than {places[0].geturl()}: write what is for it into "
                "another directory"
            )
    if alertmanager and not _PLACE.fullmatch(alertmanager):
        raise InvalidInput(f"{alertmanager!r} is not the place of an Alertmanager: write HOST:PORT, as in alerts:9093")

    def job(name: str, path: str) -> JsonObject:
        about: JsonObject = {"job_name": name, "metrics_path": places[0].path + path, "scheme": places[0].scheme}
        if certificate:
            about["tls_config"] = {"ca_file": certificate}
        return {**about, "static_configs": [{"targets": [place.netloc for place in places]}]}

    # What a master counts about itself needs no login, so that it is seen, too, while the database is away.
    jobs: List[Json] = [
        job("tenax", "/metrics"),
        {**job("tenax-cluster", "/prom/det-state-metrics"), "authorization": {"credentials_file": TOKEN}},
    ]
    document: JsonObject = {
        "global": {"scrape_interval": "15s", "evaluation_interval": "15s"},
        "rule_files": [ALERTS],
        "scrape_configs": jobs,
    }
    if alertmanager:
        document["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]}
    return document
