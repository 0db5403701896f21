"""The page about watching a cluster: its commands typed, and its tables held to what there is."""

from __future__ import annotations

import json
import re

import pytest
from prometheus_client import CollectorRegistry

from tenax.cli.master.prometheus import RULES
from tenax.config.master import load_master_settings
from tenax.jsonvalue import Json
from tenax.master.observability import counters
from tests.docs.desk import Hint, desk, walk
from tests.docs.pages import ROOT
from tests.kits.api import Api
from tests.kits.ports import free_port

PAGE = (ROOT / "docs" / "monitoring.md").read_text()
PROMETHEUS = "prometheus --config.file monitoring/prometheus.yml"


@pytest.mark.timeout(600)
def test_the_page() -> None:
    """Every command does what the page says: Prometheus takes what was written."""

    def beside_others(_: object) -> dict[str, str]:
        port = free_port()
        return {"prometheus.yml": f"prometheus.yml --web.listen-address 127.0.0.1:{port} --storage.tsdb.path tsdb"}

    with desk() as made:
        made.tenax("up")
        walk(
            made,
            "monitoring.md",
            {PROMETHEUS: Hint(put=beside_others, until="Server is ready to receive web requests")},
        )
        assert '"loops": "up"' in made.said
        assert (made.home / "monitoring" / "token").stat().st_mode & 0o077 == 0
        dashboard = json.loads((made.home / "monitoring" / "grafana-dashboard.json").read_text())
        assert dashboard["title"] == "Tenax cluster"


def _named(registry: CollectorRegistry) -> set[str]:
    names = set()
    for family in registry.collect():
        ending = {"counter": "_total", "info": "_info"}.get(family.type, "")
        names.add(family.name + ending)
    return {name for name in names if name.startswith("tenax_")}


def _in_tables() -> set[str]:
    return set(re.findall(r"^\| `(tenax_\w+)` \|", PAGE, re.MULTILINE))


async def test_the_page_has_each_name(api: Api) -> None:
    """Nothing is counted that it does not tell of, and it tells of nothing else."""
    state = (await api.user.get("/prom/det-state-metrics")).text
    of_state = set(re.findall(r"^# TYPE (tenax_\w+)", state, re.MULTILINE))
    counted = _named(counters.REGISTRY) | _named(counters.OF_POOLS)
    # Not everywhere is the database's disk seen.
    assert _in_tables() == counted | of_state | {"tenax_database_free_bytes"}
    for name in re.findall(r"^# TYPE (det_\w+)", state, re.MULTILINE):
        assert f"`{name}`" in PAGE


def test_the_page_has_each_alert() -> None:
    """In the order of the file."""
    assert re.findall(r"^\| (Tenax\w+) \|", PAGE, re.MULTILINE) == [rule.name for rule in RULES]


def test_the_settings_of_the_page_are_settings() -> None:
    """Those of traces."""
    flags: dict[str, Json] = {"tracing.endpoint": "http://collector:4318/", "tracing.sample": 0.1}
    assert load_master_settings(environ={}, flags=flags).tracing.traces_url == "http://collector:4318/v1/traces"
