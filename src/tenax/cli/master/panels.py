"""The panels of the Grafana dashboard of a cluster, row by row, in words. Pure.

What they ask for is counted by `tenax.master.observability.counters` and `tenax.master.api.cluster.prometheus`; a test
has Prometheus answer each.
"""

from __future__ import annotations

from typing import NamedTuple, Tuple

#: How wide a row is.
COLUMNS = 24
_RATE = "$__rate_interval"
#: Restricts to what was chosen above the panels.
_POOL = '{pool=~"$pool"}'
_MASTER = '{instance=~"$instance"}'
#: What is refused to anybody is one series; and these wait until there is news, or for as long as somebody listens.
_PROMPT = (
    '{instance=~"$instance", method!="ANY", '
    'route!~".*(preemption|rendezvous|all_gather|watch|logs|stream|sessions?|events|changes|archive|download).*"}'
)


class PanelQuery(NamedTuple):
    """One line of a panel: PromQL, and what its lines are called."""

    expr: str
    legend: str = ""


class DashboardPanel(NamedTuple):
    """One panel; ``unit`` in Grafana's words, ``width`` of `COLUMNS`."""

    title: str
    queries: Tuple[PanelQuery, ...]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    help: str = ""
    #: From 1 on it is shown in red.
    is_bad: bool = False


class DashboardRow(NamedTuple):
    """Panels below a heading."""

    title: str
    panels: Tuple[DashboardPanel, ...]


def _single(expr: str, legend: str = "") -> Tuple[PanelQuery, ...]:
    return (PanelQuery(expr, legend),)


def _quantile(share: float, name: str, by: str = "", where: str = "") -> str:
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({labels}) (rate({name}_bucket{where}[{_RATE}])))"


def _rate(name: str, by: str = "", where: str = "") -> str:
    return f"sum{f' by ({by})' if by else ''} (rate({name}{where}[{_RATE}]))"


def _quantiles(name: str, *, by: str = "", where: str = "") -> Tuple[PanelQuery, ...]:
    legend = f"{{{{{by}}}}} " if by else ""
    return tuple(PanelQuery(_quantile(share, name, by, where), f"{legend}{word}") for share, word in _SHARES)


_SHARES = ((0.5, "median"), (0.95, "95 %"))

# Each master says the same of the cluster: the largest is taken, not the sum.
ROWS: Tuple[DashboardRow, ...] = (
    DashboardRow(
        "Cluster",
        (
            DashboardPanel(
                "Slots in use",
                _single('sum(max by (pool, kind) (tenax_slots{pool=~"$pool", state="used"}))'),
                kind="stat",
                width=4,
            ),
            DashboardPanel(
                "Slots that are free",
                _single('sum(max by (pool, kind) (tenax_slots{pool=~"$pool", state="free"}))'),
                kind="stat",
                width=4,
            ),
            DashboardPanel(
                "Requests that wait",
                _single('sum(max by (pool) (tenax_attempts{pool=~"$pool", state="waiting"}))'),
                kind="stat",
                width=4,
            ),
            DashboardPanel(
                "Active experiments",
                _single('sum(max by (state) (tenax_experiments{state="ACTIVE"}))'),
                kind="stat",
                width=4,
            ),
            DashboardPanel(
                "Agents",
                _single('sum(max by (pool, state) (tenax_agents{pool=~"$pool", state!="away"}))'),
                kind="stat",
                width=4,
            ),
            DashboardPanel(
                "Agents that are away",
                _single('sum(max by (pool) (tenax_agents{pool=~"$pool", state="away"}))'),
                kind="stat",
                width=4,
                is_bad=True,
            ),
            DashboardPanel(
                "Slots",
                _single(
                    f"sum by (pool, state) (max by (pool, kind, state) (tenax_slots{_POOL}))", "{{pool}} {{state}}"
                ),
            ),
            DashboardPanel(
                "Slots that requests ask for",
                _single(f"max by (pool, state) (tenax_attempt_slots{_POOL})", "{{pool}} {{state}}"),
                help="Of requests that wait, and of those that have their slots.",
            ),
            DashboardPanel(
                "Experiments that have not ended", _single("max by (state) (tenax_experiments)", "{{state}}")
            ),
            DashboardPanel(
                "Containers that ended",
                _single(_rate("tenax_containers_ended_total", "outcome"), "{{outcome}}"),
                unit="ops",
                help="ok: with exit code 0. platform: for a reason that is not the task's.",
            ),
            DashboardPanel(
                "Agents where they fail",
                _single(
                    "topk(5, " + _rate("tenax_containers_ended_total", "agent_id", '{outcome!="ok"}') + ")",
                    "{{agent_id}}",
                ),
                unit="ops",
            ),
            DashboardPanel(
                "What has to happen for those that wait",
                _single(f"max by (pool, todo) (tenax_queue_waiting{_POOL})", "{{pool}} {{todo}}"),
                help="wait: its turn comes. change: as it is asked for it never starts. ask: somebody else has to act.",
            ),
        ),
    ),
    DashboardRow(
        "Queue",
        (
            DashboardPanel(
                "The longest wait",
                _single(f"max by (pool) (tenax_queue_longest_wait_seconds{_POOL})", "{{pool}}"),
                unit="s",
                help="Of the requests that wait now: how long the first has waited.",
            ),
            DashboardPanel(
                "Waits of what was placed",
                _quantiles("tenax_queue_wait_seconds", by="pool", where=_POOL),
                unit="s",
            ),
            DashboardPanel(
                "Placed, and asked to leave",
                _single(_rate("tenax_scheduling_decisions_total", "pool, decision", _POOL), "{{pool}} {{decision}}"),
                unit="ops",
            ),
        ),
    ),
    DashboardRow(
        "Agents",
        (
            DashboardPanel(
                "Agents",
                _single(f"max by (pool, state) (tenax_agents{_POOL})", "{{pool}} {{state}}"),
            ),
            DashboardPanel(
                "Silent for",
                _single(f"topk(10, max by (agent_id) (tenax_agent_silent_seconds{_POOL}))", "{{agent_id}}"),
                unit="s",
                help="A sign of life comes every five seconds; the ten that were silent for longest.",
            ),
            DashboardPanel(
                "Versions",
                _single(f"count by (version) (max by (agent_id, version) (tenax_agent_info{_POOL}))", "{{version}}"),
            ),
            DashboardPanel(
                "Connected, by master",
                _single('tenax_agent_connections{instance=~"$instance"}', "{{instance}}"),
            ),
            DashboardPanel("Reports of containers", _single(_rate("tenax_agent_reports_total")), unit="ops"),
            DashboardPanel("Time to apply a report", _quantiles("tenax_agent_report_seconds"), unit="s"),
        ),
    ),
    DashboardRow(
        "Rented machines",
        (
            DashboardPanel(
                "Machines",
                _single(
                    f"sum by (pool, state) (max by (pool, provider, state) (tenax_machines{_POOL}))",
                    "{{pool}} {{state}}",
                ),
            ),
            DashboardPanel(
                "By provider",
                _single(f"sum by (provider) (max by (pool, provider, state) (tenax_machines{_POOL}))", "{{provider}}"),
            ),
            DashboardPanel(
                "Orders in an hour",
                _single(f"sum by (outcome) (increase(tenax_machine_orders_total{_POOL}[1h]))", "{{outcome}}"),
                help="One that was answered may count a second time by what went wrong with it later.",
            ),
            DashboardPanel(
                "From an order until its agent joined",
                _quantiles("tenax_machine_join_seconds", by="pool", where=_POOL),
                unit="s",
            ),
            DashboardPanel(
                "Price per hour of what is paid for",
                _single(f"max by (pool) (tenax_machine_price_per_hour{_POOL})", "{{pool}}"),
                help="By the prices of settings; of machines without one nothing is known.",
            ),
            DashboardPanel(
                "Spent since the month began",
                _single(f"max by (pool) (tenax_machine_spent{_POOL})", "{{pool}}"),
            ),
            DashboardPanel(
                "Of the budget of the month",
                (
                    PanelQuery(
                        f"max by (pool) (tenax_machine_spent{_POOL}) / max by (pool) (tenax_machine_budget{_POOL})",
                        "{{pool}}",
                    ),
                    PanelQuery(
                        "sum(max by (pool) (tenax_machine_spent)) / max(tenax_machine_budget_of_all_pools)",
                        "all pools",
                    ),
                ),
                unit="percentunit",
                help="Without a budget it is 0.",
            ),
            DashboardPanel(
                "Offers of which nothing is rented now",
                _single(
                    'max by (pool, state) (tenax_machine_offers{pool=~"$pool", state!="usable"})', "{{pool}} {{state}}"
                ),
                help="tenax machine plan says why, and until when.",
            ),
            DashboardPanel(
                "Providers that do not answer", _single("max(tenax_silent_providers)"), kind="stat", is_bad=True
            ),
        ),
    ),
    DashboardRow(
        "Requests",
        (
            DashboardPanel(
                "Answers",
                _single(_rate("tenax_http_requests_total", "status", _MASTER), "{{status}}"),
                unit="reqps",
            ),
            DashboardPanel(
                "Time to answer",
                _quantiles("tenax_http_request_seconds", where=_PROMPT),
                unit="s",
                help="Without long polls and streams, which take as long as somebody listens.",
            ),
            DashboardPanel(
                "The slowest routes",
                _single(
                    "topk(5, " + _quantile(0.95, "tenax_http_request_seconds", "route", _PROMPT) + " > 0)", "{{route}}"
                ),
                unit="s",
            ),
            DashboardPanel(
                "Being answered",
                _single('tenax_http_requests_in_progress{instance=~"$instance"}', "{{instance}}"),
            ),
            DashboardPanel(
                "Logins",
                _single(_rate("tenax_logins_total", "outcome"), "{{outcome}}"),
                unit="ops",
            ),
            DashboardPanel(
                "Connections that were closed",
                (
                    PanelQuery(_rate("tenax_connections_refused_total"), "too many"),
                    PanelQuery(_rate("tenax_answers_given_up_total"), "nobody read the answer"),
                ),
                unit="ops",
            ),
        ),
    ),
    DashboardRow(
        "Masters",
        (
            DashboardPanel(
                "Up for",
                _single('(time() - process_start_time_seconds{job="tenax"}) * up{job="tenax"}', "{{instance}}"),
                unit="s",
            ),
            DashboardPanel(
                "Processors in use",
                _single(_rate("process_cpu_seconds_total", "instance", '{job="tenax"}'), "{{instance}}"),
                help="1 is one processor.",
            ),
            DashboardPanel(
                "Memory",
                _single('process_resident_memory_bytes{job="tenax", instance=~"$instance"}', "{{instance}}"),
                unit="bytes",
            ),
            DashboardPanel(
                "Lateness of the event loop, 99 %",
                _single(_quantile(0.99, "tenax_event_loop_lag_seconds", "instance", _MASTER), "{{instance}}"),
                unit="s",
            ),
            DashboardPanel(
                "Open files",
                (
                    PanelQuery('process_open_fds{job="tenax", instance=~"$instance"}', "{{instance}}"),
                    PanelQuery('process_max_fds{job="tenax", instance=~"$instance"}', "{{instance}} allowed"),
                ),
            ),
            DashboardPanel(
                "Versions",
                _single("count by (version, roles) (tenax_build_info)", "{{version}} {{roles}}"),
            ),
        ),
    ),
    DashboardRow(
        "Loops",
        (
            DashboardPanel(
                "Which master has which loop",
                _single("max by (loop, instance) (tenax_loop_lease_held == 1)"),
                kind="table",
            ),
            DashboardPanel("Passes", _single(_rate("tenax_loop_passes_total", "loop"), "{{loop}}"), unit="ops"),
            DashboardPanel(
                "Time of a pass, 95 %",
                _single(_quantile(0.95, "tenax_loop_pass_seconds", "loop"), "{{loop}}"),
                unit="s",
            ),
            DashboardPanel(
                "Passes that failed",
                _single(_rate("tenax_loop_failures_total", "reason"), "{{reason}}"),
                unit="ops",
            ),
            DashboardPanel(
                "What a pass could not handle",
                _single(_rate("tenax_loop_failed_objects_total", "loop"), "{{loop}}"),
                unit="ops",
                help="An experiment, a task or something else that costs itself: the master's log has the error.",
            ),
            DashboardPanel(
                "Time to decide about a pool",
                _quantiles("tenax_scheduling_plan_seconds", by="pool", where=_POOL),
                unit="s",
            ),
        ),
    ),
    DashboardRow(
        "Database",
        (
            DashboardPanel(
                "Connections in use, of those that there may be",
                _single(
                    'max by (lane) (sum by (instance, lane) (tenax_db_connections{instance=~"$instance", state="used"})'
                    " / on (instance, lane) tenax_db_max_connections)",
                    "{{lane}}",
                ),
                unit="percentunit",
                help="Of the master that has the least left.",
            ),
            DashboardPanel(
                "Wait for a connection, 95 %",
                _single(_quantile(0.95, "tenax_db_acquire_seconds", "lane", _MASTER), "{{lane}}"),
                unit="s",
            ),
            DashboardPanel("Time of a statement", _quantiles("tenax_db_statement_seconds", where=_MASTER), unit="s"),
            DashboardPanel("Statements", _single(_rate("tenax_db_statement_seconds_count", where=_MASTER)), unit="ops"),
            DashboardPanel(
                "Errors",
                _single(_rate("tenax_db_errors_total", "kind", _MASTER), "{{kind}}"),
                unit="ops",
                help="What the database could not do at that moment; it was tried again.",
            ),
            DashboardPanel(
                "Hears of changes",
                _single('tenax_db_listener_connected{instance=~"$instance"}', "{{instance}}"),
            ),
            DashboardPanel(
                "Size",
                (
                    PanelQuery("max(tenax_database_bytes)", "database"),
                    PanelQuery("max by (what) (tenax_telemetry_bytes)", "{{what}}"),
                ),
                unit="bytes",
            ),
            DashboardPanel(
                "Of the budget",
                _single(
                    "max by (what) (tenax_telemetry_bytes) / max by (what) (tenax_telemetry_budget_bytes)",
                    "{{what}}",
                ),
                unit="percentunit",
            ),
            DashboardPanel("Left on its disk", _single("min(tenax_database_free_bytes)"), unit="bytes"),
        ),
    ),
    DashboardRow(
        "What tasks send",
        (
            DashboardPanel(
                "Reports of metrics",
                (
                    PanelQuery(_rate("tenax_ingested_total", where='{kind="reports"}'), "stored"),
                    PanelQuery(_rate("tenax_ingest_refused_total", where='{kind="reports"}'), "refused"),
                ),
                unit="ops",
            ),
            DashboardPanel("Output", _single(_rate("tenax_ingested_total", where='{kind="output_bytes"}')), unit="Bps"),
            DashboardPanel(
                "Refused for want of room",
                _single(_rate("tenax_no_room_total", "what"), "{{what}}"),
                unit="ops",
            ),
        ),
    ),
)
