"""Pools that are changed while work runs in them: the master reads its settings again, and nothing is restarted."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.trials import config, script
from tests.kits.machine import Machine, machine, wait_for

TRAIN = """
    import time
    from tenax import core

    with core.init() as context:
        while not context.preempt.should_preempt():
            time.sleep(0.05)
"""


def write(settings: Path, preemption: bool, **more: object) -> None:
    pools = [{"name": "default", "scheduler": {"preemption": preemption}}, {"name": "spare"}]
    settings.write_text(yaml.safe_dump({"pools": pools, **more}))


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("settings") / "master.yaml"
    write(path, preemption=False)
    return path


@pytest.fixture(scope="module")
def place(settings: Path) -> Iterator[Machine]:
    with machine(slots=1, options=("--config", str(settings))) as up:
        yield up


def test_a_policy_that_changes_while_work_waits(place: Machine, settings: Path, tmp_path: Path) -> None:
    """What is urgent waits behind what runs, until its pool preempts; agent and master are those of before."""
    code = script(tmp_path / "code", TRAIN)
    before = {name: place.pid(name) for name in ("master", "agent")}
    with place.client() as client:
        calm = client.create_experiment(config(), code)
        wait_for(lambda: client.experiment(calm.id).trials()[0].state == "RUNNING", "the first one to run")
        urgent = client.create_experiment(config(resources={"slots_per_trial": 1, "priority": 1}), code)
        assert client.experiment(urgent.id).state == "QUEUED"

        settings.write_text("pools: [{name: default, scheduler: {preemption: perhaps}}]")
        wrong = place.tenax("master", "config", "reload", check=False)
        assert (wrong.returncode, "preemption" in wrong.stderr) == (1, True), wrong.stderr
        write(settings, preemption=True, cluster_name="other")
        done = place.tenax("master", "config", "reload")
        assert done.stdout == "Changed: pools\n"
        assert "restarted: cluster_name" in done.stderr
        wait_for(lambda: client.experiment(urgent.id).trials()[0].state == "RUNNING", "the urgent one to run")
        wait_for(lambda: client.experiment(calm.id).state == "QUEUED", "the first one to wait")

        os.kill(place.pid("master"), signal.SIGHUP)
        wait_for(lambda: "changed=nothing" in place.tenax("master", "logs").stdout, "the signal to be followed")
        place.tenax("experiment", "kill", str(calm.id), str(urgent.id))
    assert {name: place.pid(name) for name in before} == before


def test_a_pool_that_comes_and_goes(place: Machine, settings: Path) -> None:
    """Jobs and agents may name it from then on; one that is gone takes none."""
    command = ("command", "run", "-d", "--config", "resources.slots=0", "--config", "resources.resource_pool=spare")
    settings.write_text(yaml.safe_dump({"pools": [{"name": "default"}]}))
    assert place.tenax("master", "config", "reload").stdout == "Changed: pools\n"
    refused = place.tenax(*command, "--", "true", check=False)
    assert (refused.returncode, "spare" in refused.stderr) == (1, True), refused.stderr
    write(settings, preemption=False)
    place.tenax("master", "config", "reload")
    names = [pool["name"] for pool in place.json("pool", "list")]  # type: ignore[union-attr,index,call-overload]
    assert names == ["default", "spare"]
    place.tenax(*command, "--", "true")
    assert "other settings" not in place.tenax("master", "list").stderr
