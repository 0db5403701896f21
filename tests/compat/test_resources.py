"""Every verb of `det resources` and `det resource-pool`, and the SDK's objects of both, with what they do."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from io import StringIO
from pathlib import Path
from typing import cast

import pytest

from tenax.jsonvalue import JsonObject
from tests.compat.client import RealClient
from tests.compat.experiments import CONFIG
from tests.kits.machine import wait_for


def around_today() -> tuple[str, str, str]:
    """Yesterday, today and tomorrow, in UTC."""
    today = datetime.now(timezone.utc).date()
    yesterday, tomorrow = today - timedelta(days=1), today + timedelta(days=1)
    return yesterday.isoformat(), today.isoformat(), tomorrow.isoformat()


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(text)))


def test_usage_of_each_attempt(real: RealClient, finished: int) -> None:
    """As CSV, with more columns, and as JSON: the same attempt, with the same seconds."""
    yesterday, _, tomorrow = around_today()
    (one,) = [
        row for row in rows(real.det("res", "raw", yesterday, tomorrow).out) if row["experiment_id"] == str(finished)
    ]
    assert (one["kind"], one["username"], one["slots"]) == ("experiment", "determined", "1")
    begins, ends = (datetime.fromisoformat(one[name]) for name in ("start_time", "end_time"))
    assert float(one["seconds"]) == pytest.approx((ends - begins).total_seconds())
    told = cast(JsonObject, real.json("resources", "raw", yesterday, tomorrow, "--json"))
    entries = cast("list[JsonObject]", told["resourceEntries"])
    (entry,) = [entry for entry in entries if entry.get("experimentId") == finished]
    assert entry["seconds"] == float(one["seconds"])
    (more,) = [
        row
        for row in rows(real.det("res", "allocations", f"{yesterday}T00:00:00Z", f"{tomorrow}T00:00:00Z").out)
        if row["experiment_id"] == str(finished)
    ]
    assert float(more["slot_hours"]) == pytest.approx(float(one["seconds"]) / 3600)


def test_usage_summed_up(real: RealClient, finished: int) -> None:
    """By day and by month: the sums of attempts that have ended, in all and by whom."""
    yesterday, today, tomorrow = around_today()

    def of_attempts() -> float:
        attempts = rows(real.det("res", "raw", yesterday, tomorrow).out)
        return sum(float(row["seconds"]) * int(row["slots"]) for row in attempts)

    def both() -> tuple[float, list[JsonObject]] | None:
        """The sum of attempts, and what is said of days; None where an attempt ended between the two."""
        before = of_attempts()
        told = cast(JsonObject, real.json("res", "aggregated", yesterday, today, "--json"))
        return (before, cast("list[JsonObject]", told["resourceEntries"])) if of_attempts() == before else None

    total, days = wait_for(both, "a moment in which nothing ends")
    assert [day["periodStart"] for day in days] == [yesterday, today]
    assert sum(cast(float, day["seconds"]) for day in days) == pytest.approx(total)
    assert str(finished) in {name for day in days for name in cast(JsonObject, day["byExperiment"])}
    months = rows(real.det("res", "agg", yesterday[:7], today[:7], "--monthly").out)
    mine = [float(row["seconds"]) for row in months if row["aggregation_type"] == "resource_pool"]
    assert sum(mine) >= total - 1e-3
    assert {row["date"] for row in months} <= {yesterday[:7], today[:7]}
    assert real.det("res", "raw", "whenever", today, check=False).code != 0


@pytest.fixture
def workspaces(admin: RealClient) -> Iterator[tuple[str, str]]:
    """Two of them."""
    names = ("pool-lab", "pool-shop")
    for name in names:
        admin.det("workspace", "create", name)
    yield names
    for name in names:
        admin.det("workspace", "delete", name, "--yes")


def kept_for(client: RealClient) -> str:
    return client.det("rp", "bindings", "list-workspaces", "spare").out


def test_a_pool_is_bound_to_workspaces(
    admin: RealClient, real: RealClient, workspaces: tuple[str, str], tmp_path: Path, code: Path
) -> None:
    """Others cannot use it then; the bindings are added, replaced, removed, by administrators."""
    lab, shop = workspaces
    admin.det("resource-pool", "bindings", "add", "spare", lab)
    assert lab in kept_for(real)
    config = tmp_path / "spare.json"
    config.write_text(json.dumps({**CONFIG, "resources": {"slots_per_trial": 1, "resource_pool": "spare"}}))
    refused = real.det("e", "create", config, code, "--paused", check=False)
    assert refused.code != 0
    assert "kept for other workspaces" in refused.out + refused.err
    admin.det("rp", "bindings", "replace", "spare", shop)
    assert (lab in kept_for(real), shop in kept_for(real)) == (False, True)
    assert "spare" in real.det("workspace", "list-pools", shop).out
    assert "spare" not in real.det("workspace", "list-pools", lab).out
    assert real.det("rp", "bindings", "add", "spare", lab, check=False).code != 0
    assert admin.det("rp", "bindings", "add", "default", lab, check=False).code != 0
    admin.det("rp", "bindings", "remove", "spare", shop)
    assert shop not in kept_for(real)
    real.det("e", "create", config, code, "--paused")


def test_pools_in_the_sdk(admin: RealClient, workspaces: tuple[str, str]) -> None:
    """The same, by its objects."""
    lab, shop = workspaces
    found = admin.sdk(
        "pools = {pool.name: pool for pool in client.get_workspace(lab).list_pools()}\n"
        "spare = pools['spare']\n"
        "spare.add_bindings([lab])\n"
        "first = len(spare.list_workspaces())\n"
        "spare.replace_bindings([lab, shop])\n"
        "second = len(spare.list_workspaces())\n"
        "hidden = [pool.name for pool in client.get_workspace('Uncategorized').list_pools()]\n"
        "spare.remove_bindings([lab, shop])\n"
        "result = [first, second, hidden, len(spare.list_workspaces())]",
        lab=lab,
        shop=shop,
    )
    assert found == [1, 2, ["default"], 0]


def test_output_is_cleaned_up(admin: RealClient, real: RealClient, finished: int) -> None:
    """By an administrator: only what is kept no longer."""
    before = real.det("e", "logs", finished).out
    assert "Deleted 0 rows" in admin.det("task", "cleanup-logs").out
    assert real.det("e", "logs", finished).out == before
    assert real.det("task", "cleanup-logs", check=False).code != 0


def test_log_retention_of_one_trial(real: RealClient, admin: RealClient, config: Path, code: Path) -> None:
    """Set for a trial and for an experiment; what is kept no longer is gone after the clean-up."""
    made = real.det("e", "create", config, code)
    number = int(made.out.split("Created experiment ")[1].split()[0])
    real.sdk("client.get_experiment(number).wait(interval=0.2)", number=number)
    trial = cast(
        int, real.sdk("result = [one.id for one in client.get_experiment(number).list_trials()][0]", number=number)
    )
    assert "done after" in real.det("t", "logs", trial).out
    real.det("t", "set", "log-retention", trial, "--days", 30)
    admin.det("task", "cleanup-logs")
    assert "done after" in real.det("t", "logs", trial).out
    real.det("e", "set", "log-retention", number, "--days", 0)
    removed = admin.det("task", "cleanup-logs").out
    assert int(removed.split("Deleted ")[1].split()[0]) > 0
    assert "done after" not in real.det("t", "logs", trial).out
