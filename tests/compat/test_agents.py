"""Every verb of `det agent` and `det slot`, with what it does."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import cast

import pytest

from tenax.jsonvalue import JsonObject
from tests.compat.client import RealClient
from tests.compat.holding import experiment, runs, told, trial
from tests.kits.machine import wait_for


def agents(client: RealClient) -> list[JsonObject]:
    return cast("list[JsonObject]", client.json("agent", "list", "--json"))


def slots(client: RealClient) -> list[JsonObject]:
    return cast("list[JsonObject]", client.json("slot", "list", "--json"))


@pytest.fixture
def name(admin: RealClient) -> Iterator[str]:
    """The one agent; enabled with all its slots in the end."""
    one = str(agents(admin)[0]["id"])
    yield one
    admin.det("agent", "enable", one)
    for slot in (0, 1):
        admin.det("slot", "enable", one, slot)


def test_lists_of_agents_and_slots(admin: RealClient, real: RealClient) -> None:
    """As a table, CSV and JSON."""
    (one,) = agents(real)
    assert (one["num_slots"], one["enabled"], one["draining"], one["resource_pools"]) == (2, True, False, "default")
    assert str(one["id"]) in real.det("agent").out
    (row,) = csv.DictReader(StringIO(real.det("a", "ls", "--csv").out))
    assert (row["Agent ID"], row["Slots"]) == (one["id"], "2")
    found = slots(real)
    assert [(slot["slot_id"], slot["type"], slot["allocation_id"]) for slot in found] == [
        ("0", "cpu", "FREE"),
        ("1", "cpu", "FREE"),
    ]
    assert len(list(csv.DictReader(StringIO(real.det("slot", "list", "--csv").out)))) == 2
    assert "FREE" in real.det("s").out


def test_an_agent_is_disabled_and_enabled(admin: RealClient, tmp_path: Path, name: str) -> None:
    """What runs there is ended, waits without being charged a restart, and runs again; users may not do this."""
    with experiment(admin, tmp_path, "disabled") as number:
        wait_for(runs(admin, number), "a running trial")
        (busy,) = [slot for slot in slots(admin) if slot["allocation_id"] != "FREE"]
        assert f"Experiment {number}" in str(busy["task_name"])
        assert f"Disabled agent {name}." in admin.det("agent", "disable", name).err
        wait_for(lambda: trial(admin, number)["state"] == "STATE_QUEUED", "the trial to wait")
        (off,) = agents(admin)
        assert (off["enabled"], off["draining"]) == (False, False)
        # Why is known once the scheduler has looked.
        wait_for(lambda: "disabled" in str(told(admin, number)["reason"]), "a reason")
        admin.det("agent", "enable", "--all")
        wait_for(runs(admin, number), "the trial to run again")
        assert trial(admin, number)["restarts"] == 0


def test_an_agent_is_drained(admin: RealClient, real: RealClient, tmp_path: Path, name: str) -> None:
    """What runs there goes on and is listed; what comes waits."""
    with experiment(admin, tmp_path, "drained") as number, experiment(admin, tmp_path, "late") as late:
        wait_for(lambda: runs(admin, number)() and runs(admin, late)(), "two running trials")
        admin.det("e", "pause", late)
        wait_for(lambda: told(admin, late)["state"] == "STATE_PAUSED" and len(busy(admin)) == 1, "a free slot")
        done = admin.det("agent", "disable", "--drain", "--json", name)
        assert str(trial(admin, number)["taskId"]) in done.out
        (off,) = agents(admin)
        assert (off["enabled"], off["draining"]) == (False, True)
        admin.det("e", "activate", late)
        wait_for(lambda: "draining" in str(told(admin, late)["reason"]), "a reason")
        assert runs(admin, number)()
        admin.det("agent", "enable", name)
        wait_for(runs(admin, late), "the late one")
    refused = real.det("agent", "disable", name, check=False)
    assert refused.code != 0
    assert "administrators" in refused.out + refused.err


def test_a_slot_is_disabled_and_enabled(admin: RealClient, tmp_path: Path, name: str) -> None:
    """Only one of two experiments runs while it is off."""
    assert "Disabled slot 1" in admin.det("slot", "disable", name, 1).out
    assert [slot["enabled"] for slot in slots(admin)] == [True, False]
    with experiment(admin, tmp_path, "one") as first, experiment(admin, tmp_path, "two") as second:
        wait_for(runs(admin, first), "the first")
        wait_for(lambda: trial(admin, second).get("state") == "STATE_QUEUED", "the second to wait")
        assert [slot["allocation_id"] == "FREE" for slot in slots(admin)] == [False, True]
        assert "Enabled slot 1" in admin.det("slot", "enable", name, 1).out
        wait_for(runs(admin, second), "the second")


def busy(client: RealClient) -> list[JsonObject]:
    return [slot for slot in slots(client) if slot["allocation_id"] != "FREE"]
