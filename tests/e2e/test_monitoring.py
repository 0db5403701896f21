"""What `tenax master monitoring` writes: Debian's Prometheus scrapes a real master with it, and answers each query of
the dashboard and of the alerts."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.trials import config
from tests.kits.machine import ROOT, Machine, outlast, wait_for
from tests.kits.prometheus import Prometheus, prometheus

#: What people choose above the panels, and how far a rate looks back.
#: A quantile of what never happens there: its series are, and are no numbers.
OF_NOTHING = frozenset({"From an order until its agent joined"})
CHOSEN = {"$pool": ".*", "$instance": ".*", "$__rate_interval": "5m"}


@pytest.fixture
def files(shared: Machine, tmp_path: Path) -> Path:
    """As the operator makes them, but for how often is scraped."""
    directory = tmp_path / "monitoring"
    done = shared.tenax("master", "monitoring", str(directory))
    assert done.stdout.splitlines() == [
        str(directory / name) for name in ("prometheus.yml", "tenax-alerts.yml", "grafana-dashboard.json")
    ]
    if "prometheus" not in shared.tenax("user", "list").stdout:
        shared.tenax("user", "create", "prometheus", "--remote")
    (directory / "token").write_text(shared.tenax("token", "create", "prometheus", "-e", "-1").stdout)
    path = directory / "prometheus.yml"
    text = path.read_text()
    assert "scrape_interval: 15s" in text
    path.write_text(text.replace("interval: 15s", "interval: 1s"))
    return directory


@pytest.fixture
def watching(files: Path, tmp_path: Path) -> Iterator[Prometheus]:
    with prometheus(files / "prometheus.yml", tmp_path / "tsdb") as server:
        yield server


def test_each_query_of_the_dashboard_is_answered(
    shared: Machine, files: Path, watching: Prometheus, tmp_path: Path
) -> None:
    """With numbers, while experiments run; what counts slots, requests and experiments counts those."""
    wait_for(lambda: _numbers(watching, "up") == [1.0, 1.0] or None, "both jobs to be scraped")
    hyperparameters = {"reports": 15, "seconds": 0.1, "checkpoint_every": 0, "log_dir": str(tmp_path), "quality": 0.5}
    searcher = {"name": "grid", "metric": "loss", "max_concurrent_trials": 4}
    # Two run and two wait for as long as it takes to see all of it: a busy machine is scraped late.
    code = shutil.copytree(ROOT / "examples" / "noop", tmp_path / "code")
    (code / "startup-hook.sh").write_text(f'while [ ! -e "{tmp_path}/go" ]; do sleep 0.05; done\n')
    with shared.client() as client:
        many = {**hyperparameters, "quality": {"type": "categorical", "vals": [0.1, 0.2, 0.3, 0.4]}}
        experiment = client.create_experiment(config(name="watched", hyperparameters=many, searcher=searcher), code)
        for title, number in (
            ("Slots in use", 2.0),
            ("Slots that are free", 0.0),
            ("Requests that wait", 2.0),
            ("Active experiments", 1.0),
            ("Agents", 1.0),
        ):
            expr = _expressions(files)[title][0]
            wait_for(lambda e=expr, n=number: _numbers(watching, e) == [n] or None, f"{title} to be {number:g}")
    (tmp_path / "go").touch()
    assert outlast(shared, experiment.id).state == "COMPLETED"
    for title, exprs in _expressions(files).items():
        answered = _numbers if title in OF_NOTHING else _is_answered
        for expr in exprs:
            wait_for(lambda e=expr, a=answered: a(watching, e) or None, f"an answer to {title}: {expr}", seconds=60)
    # Each is there, or whole, with the next scrape.
    for expr, least, what in (
        ('max by (outcome) (tenax_containers_ended_total{outcome="ok"})', 4, "the ends of four containers"),
        ('max(tenax_scheduling_decisions_total{decision="placed"})', 4, "four that were placed"),
        ("max(tenax_queue_wait_seconds_sum)", 1, "seconds of waiting"),
    ):
        wait_for(lambda e=expr, n=least: max(_numbers(watching, e), default=0) >= n or None, what)


def test_the_alerts_are_rules(shared: Machine, files: Path, watching: Prometheus) -> None:
    """Debian's own tool takes the files; nothing is wrong with a cluster that was just started."""
    for kind, name in (("config", "prometheus.yml"), ("rules", "tenax-alerts.yml")):
        done = subprocess.run(["promtool", "check", kind, name], cwd=files, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def evaluated() -> object:
        groups = watching.get("rules")["groups"]
        assert isinstance(groups, list)
        (group,) = groups
        assert isinstance(group, dict)
        rules = group["rules"]
        assert isinstance(rules, list)
        assert all(isinstance(rule, dict) for rule in rules)
        found = [rule for rule in rules if isinstance(rule, dict)]
        return found if all(rule["health"] == "ok" for rule in found) else None

    rules = wait_for(evaluated, "the rules to be evaluated")
    assert isinstance(rules, list)
    assert len(rules) >= 10
    # Each names series that there are.
    for rule in rules:
        for name in set(re.findall(r"\b(?:tenax_\w+|up)\b", rule["query"])):
            wait_for(lambda n=name: _numbers(watching, n) or None, f"series of {name}")


def test_whoever_has_no_login_sees_no_pool(shared: Machine) -> None:
    """Of what a master counts about itself, nothing names pools, agents or people."""
    with urllib.request.urlopen(f"{shared.url}/metrics", timeout=30) as reply:
        text = reply.read().decode()
    assert "tenax_loop_passes_total" in text
    assert not re.search(r"pool=|agent_id=|user=|default", text)
    for path in ("/debug/prom/metrics", "/prom/det-state-metrics"):
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{shared.url}{path}", timeout=30)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--also", "nonsense:port"), "not the address of a master"),
        (("--also", "https://other:8443"), "another scheme or path"),
        (("--also", "http://other:8080/below"), "another scheme or path"),
        (("--certificate", "/nowhere.pem"), "does not exist"),
        (("--alertmanager", "a b"), "write HOST:PORT"),
    ],
)
def test_what_cannot_be_is_not_written(shared: Machine, tmp_path: Path, options: tuple[str, ...], reason: str) -> None:
    """It is said, and nothing is there."""
    done = shared.tenax("master", "monitoring", str(tmp_path / "made"), *options, check=False)
    assert done.returncode != 0
    assert reason in done.stderr
    assert not (tmp_path / "made").exists()


def test_several_masters_and_who_is_told(shared: Machine, tmp_path: Path) -> None:
    """Each master once, however often it is named."""
    names = ["--also", "http://other:8080", "--also", shared.url, "--alertmanager", "alerts:9093"]
    shared.tenax("master", "monitoring", str(tmp_path / "made"), *names)
    text = (tmp_path / "made" / "prometheus.yml").read_text()
    # Each job by itself, for whoever copies one.
    assert "&" not in text
    document = yaml.safe_load(text)
    expected = [{"targets": [shared.url.removeprefix("http://"), "other:8080"]}]
    assert [job["static_configs"] for job in document["scrape_configs"]] == [expected, expected]
    assert document["alerting"]["alertmanagers"] == [{"static_configs": [{"targets": ["alerts:9093"]}]}]


def test_files_that_somebody_has_changed_are_kept(shared: Machine, files: Path) -> None:
    """Until they are to be replaced."""
    again = shared.tenax("master", "monitoring", str(files), check=False)
    assert again.returncode != 0
    assert "prometheus.yml is there and differs" in again.stderr
    assert "interval: 1s" in (files / "prometheus.yml").read_text()
    assert shared.tenax("master", "monitoring", str(files), "--force").returncode == 0
    assert "interval: 15s" in (files / "prometheus.yml").read_text()


def _expressions(files: Path) -> dict[str, list[str]]:
    """Of each panel, by its row and title, as Grafana asks for them."""
    found: dict[str, list[str]] = {}
    document = json.loads((files / "grafana-dashboard.json").read_text())
    row = ""
    for panel in document["panels"]:
        if panel["type"] == "row":
            row = panel["title"]
            continue
        title = panel["title"] if panel["title"] not in found else f"{row}: {panel['title']}"
        found[title] = [_chosen(target["expr"]) for target in panel["targets"]]
    assert len(found) >= 40
    return found


def _chosen(expr: str) -> str:
    for name, value in CHOSEN.items():
        expr = expr.replace(name, value)
    assert "$" not in expr
    return expr


def _numbers(server: Prometheus, expr: str) -> list[float]:
    return [number for _, number in server.values(expr)]


def _is_answered(server: Prometheus, expr: str) -> bool:
    """With a number: a quantile of nothing is none."""
    return any(not math.isnan(number) for number in _numbers(server, expr))
