"""Every verb of `det job`, with what it does to the queue."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import cast

import pytest

from tenax.jsonvalue import JsonObject
from tests.compat.client import RealClient
from tests.compat.holding import experiment, runs, told
from tests.kits.machine import wait_for


def queue(client: RealClient, *more: str) -> list[JsonObject]:
    answer = cast(JsonObject, client.json("job", "list", "--json", *more))
    return cast("list[JsonObject]", answer["jobs"])


def order(client: RealClient) -> list[str]:
    return [str(job["name"]) for job in queue(client)]


@pytest.fixture
def jobs(real: RealClient, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Of one experiment that takes both slots, and two that wait behind it: job ids by name."""
    with experiment(real, tmp_path, "wide", slots=2) as wide:
        wait_for(runs(real, wide), "a running trial")
        with experiment(real, tmp_path, "second"), experiment(real, tmp_path, "third"):
            wait_for(lambda: len(queue(real)) == 3, "a queue of three")
            yield {str(job["name"]): str(job["jobId"]) for job in queue(real)}


def test_the_queue_is_listed(real: RealClient, jobs: dict[str, str]) -> None:
    """In the order of turns, from either end; as a table, CSV, JSON and YAML."""
    assert order(real) == ["wide", "second", "third"]
    rows = list(csv.DictReader(StringIO(real.det("job", "list", "--csv").out)))
    assert [(row["#"], row["Slots (acquired/needed)"], row["State"]) for row in rows] == [
        ("0", "2/2", "STATE_SCHEDULED"),
        ("1", "0/1", "STATE_QUEUED"),
        ("2", "0/1", "STATE_QUEUED"),
    ]
    assert [row["User"] for row in rows] == ["determined"] * 3
    assert rows[0]["Job Name"].startswith("wide (")
    reverse = cast(JsonObject, real.json("j", "ls", "--json", "--reverse", "--limit", "1"))
    assert [one["name"] for one in cast("list[JsonObject]", reverse["jobs"])] == ["third", "second", "wide"]
    assert "jobsAhead: 2" in real.det("job", "list", "--yaml").out
    assert "second" in real.det("job", "list", "--table").out
    assert queue(real, "-p", "spare") == []


def test_a_job_is_updated(real: RealClient, admin: RealClient, jobs: dict[str, str]) -> None:
    """Priority, weight, pool; one at a time or several in a batch; not those of others."""
    real.det("job", "update", jobs["third"], "--priority", 10)
    assert order(real) == ["third", "wide", "second"]
    batch = [f"{jobs['third']}.priority=60", f"{jobs['second']}.weight=3"]
    real.det("job", "update-batch", *batch)
    found = {str(job["name"]): job for job in queue(real)}
    assert (found["third"]["priority"], found["second"]["weight"]) == (60, 3.0)
    real.det("job", "update", jobs["second"], "--resource-pool", "spare")
    assert [job["name"] for job in queue(real, "--resource-pool", "spare")] == ["second"]
    assert order(real) == ["wide", "third"]
    real.det("job", "update-batch", f"{jobs['second']}.resource-pool=default")
    assert order(real) == ["second", "wide", "third"] or order(real) == ["wide", "second", "third"]
    for wrong in (("--priority", 100), ("--weight", 0), ("--resource-pool", "moon")):
        assert real.det("job", "update", jobs["third"], *wrong, check=False).code != 0


def test_commands_stand_in_the_queue(real: RealClient, jobs: dict[str, str]) -> None:
    """Beside experiments, in the order of turns, by what they are; their use of slots is told, too."""
    real.det("cmd", "run", "-d", "--config", "resources.slots=1", "--config", "description=late", "sleep", "600")
    (command,) = [job for job in queue(real) if job["type"] == "TYPE_COMMAND"]
    try:
        assert (command["name"], command["requestedSlots"], command["allocatedSlots"]) == ("late", 1, 0)
        assert cast(JsonObject, command["summary"])["jobsAhead"] == len(jobs)
        real.det("job", "update", str(command["jobId"]), "--priority", 1)
        assert order(real)[0] == "late"
    finally:
        real.det("cmd", "kill", str(command["entityId"]))
    wait_for(lambda: "late" not in order(real), "the command to leave the queue")


def test_a_running_job_moves_to_another_pool(admin: RealClient, tmp_path: Path) -> None:
    """It saves, leaves its slots, and waits for an agent there; back again, it runs."""
    with experiment(admin, tmp_path, "wanderer") as number:
        wait_for(runs(admin, number), "a running trial")
        job = str(told(admin, number)["jobId"])
        admin.det("job", "update", job, "--resource-pool", "spare")
        wait_for(lambda: told(admin, number)["state"] == "STATE_QUEUED", "it to wait")
        assert told(admin, number)["resourcePool"] == "spare"
        wait_for(lambda: "Pool spare has no agents" in str(told(admin, number)["reason"]), "a reason")
        admin.det("job", "update", job, "--resource-pool", "default")
        wait_for(runs(admin, number), "it to run again")
