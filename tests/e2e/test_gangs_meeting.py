"""Gangs on two agents while their members meet: preempted, paused, and with master or agent away."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.gangs import Gang
from tests.e2e.trials import output
from tests.kits.machine import Machine, machine, wait_for
from tests.kits.second_machine import SecondMachine, second_machine

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Three slots on its own machine; what is urgent takes them."""
    settings = tmp_path_factory.mktemp("settings") / "master.yaml"
    # What is slow on a busy machine is not given up.
    pools = [{"name": "default", "scheduler": {"preemption": True}, "agent_reconnect_wait": 120}]
    settings.write_text(yaml.safe_dump({"rendezvous_timeout": 240, "pools": pools}))
    with machine(slots=3, options=("--config", str(settings))) as up:
        yield up


@pytest.fixture(scope="module", autouse=True)
def second(place: Machine) -> Iterator[SecondMachine]:
    """Three more."""
    with second_machine(place, slots=3) as made:
        yield made


def test_preempted_while_they_meet(place: Machine, second: SecondMachine, tmp_path: Path) -> None:
    """It leaves at once, since there is nothing to save, and begins again when the urgent one has ended."""
    gang = Gang(place, tmp_path / "calm")
    gang.meets()
    urgent = Gang(place, tmp_path / "urgent", priority=1)
    urgent.meets()
    wait_for(lambda: gang.trial.state == "QUEUED", "the calm one to wait")
    urgent.let_go()
    urgent.completed()
    gang.let_go()
    gang.completed(runs=2)
    wait_for(lambda: not place.task_processes() and not second.task_processes(), "no process of them")


def test_paused_while_they_meet(place: Machine, second: SecondMachine, tmp_path: Path) -> None:
    """Nothing of it runs on either machine then; it goes on when it is asked to."""
    gang = Gang(place, tmp_path / "gang")
    gang.meets()
    with place.client() as client:
        client.experiment(gang.number).pause()
        wait_for(lambda: not place.task_processes() and not second.task_processes(), "no process of it")
        assert client.experiment(gang.number).state == "PAUSED"
        client.experiment(gang.number).activate()
    gang.meets(runs=2)
    gang.let_go()
    gang.completed(runs=2)


def test_the_master_is_killed_while_they_meet(place: Machine, tmp_path: Path) -> None:
    """The members that asked ask again, and nobody comes twice."""
    gang = Gang(place, tmp_path / "gang")
    gang.meets()
    place.kill("master")
    gang.let_go()
    gang.completed()


def test_an_agent_hangs_while_they_meet(place: Machine, second: SecondMachine, tmp_path: Path) -> None:
    """Its member lives, and comes when it is let go; the agent is heard of before it is given up."""
    gang = Gang(place, tmp_path / "gang")
    gang.meets()
    assert second.process is not None
    os.kill(second.process.pid, signal.SIGSTOP)
    gang.let_go()
    wait_for(lambda: "met 4 on 2" in output(place, gang.trial), "what the other member prints")
    os.kill(second.process.pid, signal.SIGCONT)
    gang.completed()
