"""Every verb of `det master`, with what it does."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import cast

import yaml

from tenax.jsonvalue import JsonObject
from tests.compat.client import RealClient
from tests.kits.machine import wait_for


def shown(admin: RealClient) -> JsonObject:
    return cast(JsonObject, cast(JsonObject, admin.json("master", "config", "show", "--json"))["log"])


def test_info(real: RealClient) -> None:
    """As JSON and as YAML."""
    found = cast(JsonObject, real.json("master", "info", "--json"))
    assert found["version"] == "0.38.1"
    assert yaml.safe_load(real.det("master", "info", "--yaml").out)["clusterId"] == found["clusterId"]


def test_config_is_shown_and_its_log_changed(admin: RealClient, real: RealClient) -> None:
    """Without secrets, to administrators; level and colour until the master is restarted."""
    whole = admin.det("master", "config").out
    assert yaml.safe_load(whole)["default_compute_pool"] == "default"
    assert "postgresql://" not in whole
    assert real.det("master", "config", check=False).code != 0
    before = shown(admin)
    try:
        admin.det("master", "config", "set", "--log.level", "DEBUG", "--log.color", "on")
        assert (shown(admin)["level"], shown(admin)["color"]) == ("debug", True)
        wait_for(lambda: "request method=" in admin.det("master", "logs").out, "a line that is said at debug only")
    finally:
        admin.det("master", "config", "set", "--log.level", str(before["level"]).upper(), "--log.color", "off")
    assert shown(admin) == before


def test_logs(real: RealClient, admin: RealClient) -> None:
    """All that is kept, the last lines, and what comes; for administrators."""
    lines = admin.det("master", "logs").out.splitlines()
    assert any("agent connected" in line for line in lines)
    assert len(admin.det("master", "logs", "--tail", 2).out.splitlines()) == 2
    # Refused, the client would make no support bundle for others.
    assert [line for line in real.det("master", "logs").out.splitlines() if "administrators" in line]
    assert len(real.det("master", "logs").out.splitlines()) == 1
    admin.det("master", "config", "set", "--log.level", "DEBUG")
    try:
        with admin.running("master", "logs", "-f", "--tail", "1") as process:
            assert process.stdout is not None
            assert process.stdout.readline()
            # Each request is a line now, and this one is made once the stream is open.
            real.det("master", "info")
            assert process.stdout.readline()
    finally:
        admin.det("master", "config", "set", "--log.level", "INFO")


def message(real: RealClient) -> JsonObject:
    answer = cast(JsonObject, real.json("master", "cluster-message", "get", "--json"))
    return cast(JsonObject, answer.get("clusterMessage") or {})


def test_the_cluster_message(admin: RealClient, real: RealClient) -> None:
    """Set for a while or for good, replaced, shown with the master, and taken back; by administrators."""
    admin.det("master", "cluster-message", "set", "-m", "down at noon", "-d", "2h")
    found = message(admin)
    assert found["message"] == "down at noon"
    begins, ends = (datetime.fromisoformat(str(found[name])) for name in ("startTime", "endTime"))
    assert ends - begins == timedelta(hours=2)
    info = cast(JsonObject, real.json("master", "info", "--json"))
    assert json.dumps(info["clusterMessage"]).count("down at noon") == 1
    end = (datetime.now(timezone.utc) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    admin.det("master", "cluster-message", "set", "-m", "all is well", "-e", end)
    assert (message(admin)["message"], message(admin)["endTime"]) == ("all is well", end)
    assert "all is well" in admin.det("master", "cluster-message", "get").out
    # Its banner is for all; the message itself is for administrators.
    assert real.det("master", "cluster-message", "get", check=False).code != 0
    assert real.det("master", "cluster-message", "set", "-m", "mine", check=False).code != 0
    admin.det("master", "cluster-message", "clear")
    assert message(admin) == {}
    assert cast(JsonObject, real.json("master", "info", "--json")).get("clusterMessage") is None
