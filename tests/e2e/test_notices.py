"""Machines that their cloud takes back, with notice and without: their work goes on elsewhere, by real processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.trials import config, output, script
from tests.kits.machine import Machine, home, outlast, wait_for
from tests.kits.metadata import MetadataDouble, aws_metadata
from tests.kits.rented import ACCOUNT, IMAGE, REGION, MachineDoubles, RentedAtMoto, moto

SPOT, ADVICE = "spot/instance-action", "events/recommendations/rebalance"
#: Longer than a busy machine takes to start a master, which tells of it: nothing here waits for its end.
NOTICE_S = 600.0
#: Each run says where it began, and stands at step 10, or at its first after that, until it is asked to leave or may go
#: on.
TRAINS = """
    import pathlib
    import time
    from tenax import core, get_cluster_info
    info = get_cluster_info()
    place = pathlib.Path(info.trial.hparams["place"])
    with core.init() as context:
        first = 0
        if info.latest_checkpoint is not None:
            with context.checkpoint.restore_path(info.latest_checkpoint) as path:
                first = int((path / "step").read_text())
        with (place / "runs").open("a") as runs:
            runs.write(f"{first} {info.agent_id}\\n")
        for step in range(first + 1, 21):
            context.train.report_validation_metrics(step, {"loss": 1.0 / step})
            if step == 5:
                with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
                    (path / "step").write_text(str(step))
            stands = step == max(10, first + 1)
            if stands:
                (place / "stands").touch()
            leaves = False
            while stands and not leaves and not (place / "go on").exists():
                leaves = context.preempt.should_preempt()
                time.sleep(0.02)
            if leaves or step == 20:
                with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
                    (path / "step").write_text(str(step))
                break
"""


@dataclass
class Rented:
    """A cluster whose pool rents up to two machines of one slot each, and what their metadata services say."""

    cluster: Machine
    doubles: MachineDoubles
    place: Path
    services: dict[str, MetadataDouble] = field(default_factory=dict)

    def machines(self) -> list[Any]:
        listed = self.cluster.json("machine", "list", "--all")
        assert isinstance(listed, list)
        return listed

    def machine(self, state: str) -> Any:
        """The first in this state, once there is one."""
        return wait_for(
            lambda: next((it for it in self.machines() if it["state"] == state), None), f"a {state} machine"
        )

    def begin(self) -> tuple[int, MetadataDouble, str]:
        """A trial that stands at step 10; what speaks for its machine, and what the provider calls that."""
        with self.cluster.client() as client:
            document = config(hyperparameters={"place": str(self.place)})
            number = client.create_experiment(document, script(self.place / "code", TRAINS)).id
        wait_for((self.place / "stands").exists, "the trial at work")
        name = self.machine("JOINED")["providerId"]
        return number, self.services[name], name

    def runs(self) -> list[tuple[int, str]]:
        """Of each run, after which step it began, and where."""
        lines = [line.split() for line in (self.place / "runs").read_text().splitlines()]
        return [(int(step), agent) for step, agent in lines]

    def end(self, number: int) -> str:
        """The trial may go on, and does so to its end with no restart and its curve whole; its log."""
        (self.place / "go on").touch()
        ended = outlast(self.cluster, number)
        with self.cluster.client() as client:
            [trial] = client.experiment(number).trials()
            curve = [(int(each.steps), each.metrics["loss"]) for each in client.trial(trial.id).metrics("validation")]
        told = output(self.cluster, trial)
        assert (ended.state, trial.restarts) == ("COMPLETED", 0), f"{told}\n{self.cluster.logs()}"
        assert curve == [(step, 1.0 / step) for step in range(1, 21)], curve
        return told


@pytest.fixture(scope="module")
def server() -> Iterator[RentedAtMoto]:
    with moto() as rented:
        yield rented


@pytest.fixture
def rented(server: RentedAtMoto, request: pytest.FixtureRequest) -> Iterator[Rented]:
    """The parameter: for how many seconds an agent is waited for that is not heard."""
    with home() as directory, contextlib.ExitStack() as stack:
        file = directory / "master.yaml"
        cluster = Machine(directory / "cluster", options=("--no-agent", "--config", str(file)), environment=ACCOUNT)
        provider = {
            "type": "aws", "endpoint_url": server.url, "master_url": cluster.url, "region": REGION, "image_id": IMAGE,
            "instance_type": "m5.large", "instance_slots": 1, "cpu_slots_allowed": True, "max_instances": 2,
            "rebalance": "drain",
        }  # fmt: skip
        pool = {"name": "default", "provider": provider, "agent_reconnect_wait": getattr(request, "param", 120)}
        file.write_text(json.dumps({"pools": [pool]}))

        def environment(instance: str) -> dict[str, str]:
            service = made.services[instance] = stack.enter_context(aws_metadata())
            return {"TENAX_AGENT_METADATA_URL": service.url, "TENAX_AGENT_METADATA_EVERY_S": "0.1"}

        doubles = MachineDoubles(server, directory / "machines", environment)
        (directory / "place").mkdir()
        made = Rented(cluster, doubles, directory / "place")
        with doubles.running():
            try:
                cluster.up()
                yield made
            finally:
                cluster.down()
                for instance in server.running():
                    server.terminate(instance)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("rented", [pytest.param(5, id="waited-for-5-s")], indirect=True)
def test_a_machine_without_power_and_without_notice(rented: Rented) -> None:
    """Its trial goes on from its last checkpoint elsewhere, and nobody has restarted anything."""
    number, _, name = rented.begin()
    with rented.cluster.client() as client:
        [trial] = client.experiment(number).trials()
        wait_for(lambda: client.trial(trial.id).checkpoints(), "the master to know of the checkpoint")
    rented.doubles.pull(name)
    [(step, _)] = wait_for(lambda: rented.runs()[1:], "the next run")
    assert step == 5
    rented.end(number)


@pytest.mark.timeout(300)
def test_a_notice_while_the_master_is_away(rented: Rented) -> None:
    """It is told when there is one again, with what is left by then."""
    number, service, name = rented.begin()
    supervisor = rented.cluster.pid("supervisor")
    assert supervisor is not None
    # So that no master is started meanwhile.
    os.kill(supervisor, signal.SIGSTOP)
    rented.cluster.kill("master")
    service.interrupt(NOTICE_S)
    service.until_asked(SPOT, service.asked[SPOT] + 3)
    os.kill(supervisor, signal.SIGCONT)
    wait_for(lambda: rented.cluster.answers() or None, "the master again")
    [(step, _)] = wait_for(lambda: rented.runs()[1:], "the next run")
    assert step == 10
    rented.end(number)
    [machine] = [it for it in rented.machines() if it["providerId"] == name]
    assert machine["story"].startswith("AWS takes this spot machine back")


@pytest.mark.timeout(300)
def test_a_trial_goes_on_elsewhere_at_the_step_at_which_it_heard(rented: Rented) -> None:
    """It saves within the notice; another machine is rented meanwhile, and the first is ended. So it goes for a second
    notice. For advice this pool's machines take nothing new until it is taken back; the trial does not notice."""
    number, service, name = rented.begin()
    advice = '{"noticeTime": "2026-11-14T22:13:20Z"}'
    service.say(ADVICE, advice)
    assert "AWS expects to take this machine back" in rented.machine("LEAVING")["notice"]
    service.say(ADVICE, None)
    assert rented.machine("JOINED")["notice"] == ""
    assert len(rented.runs()) == 1
    service.say(ADVICE, advice)
    service.interrupt(NOTICE_S)
    wait_for(lambda: rented.runs()[1:], "the next run")
    (first, second) = (agent for _, agent in rented.runs())
    assert first != second
    other = rented.services[rented.machine("JOINED")["providerId"]]
    other.say("events/maintenance/scheduled", _maintenance())
    wait_for(lambda: rented.runs()[2:], "the third run")
    assert [step for step, _ in rented.runs()] == [0, 10, 11]

    def is_gone() -> bool:
        [its] = [it for it in rented.machines() if it["providerId"] == name]
        return bool(its["state"] == "GONE")

    wait_for(is_gone, "the end of the first machine")
    told = rented.end(number)
    assert "AWS takes this spot machine back (terminate)" in told
    assert "it is asked to save and leave within" in told


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_trial_on_a_machine_that_a_person_ends(rented: Rented) -> None:
    """It saves and goes on elsewhere at the step at which it was asked to leave, and then the machine ends."""
    number, _, name = rented.begin()
    [machine] = [it for it in rented.machines() if it["providerId"] == name]
    rented.cluster.tenax("machine", "end", machine["id"])
    [(step, agent)] = wait_for(lambda: rented.runs()[1:], "the next run")
    assert step == 10
    assert agent != machine["id"]

    def gone() -> Any:
        return next((it for it in rented.machines() if it["providerId"] == name and it["state"] == "GONE"), None)

    assert wait_for(gone, "the end of the machine")["story"] == "ended by admin"
    rented.end(number)


def _maintenance() -> str:
    soon = datetime.fromtimestamp(time.time() + NOTICE_S, timezone.utc).strftime("%d %b %Y %H:%M:%S GMT")
    event = {"Code": "instance-retirement", "State": "active", "NotBefore": soon}
    return json.dumps([event])
