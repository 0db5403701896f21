"""A pool without agents: a machine is rented for work that waits, runs it, and is ended, by real processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kits.compute_engine import PROJECT, ZONES
from tests.kits.machine import Machine, home, wait_for
from tests.kits.rented import IMAGE, REGION, MachineDoubles
from tests.kits.rented_gcp import RentedAtGoogle, gcp_document, google
from tests.kits.rented_rights import PROFILE, RentedUnderRights, moto_with_rights


@pytest.fixture(scope="module")
def rented() -> Iterator[RentedUnderRights]:
    """What is rented at moto's server, which lets masters do what their policy says."""
    with moto_with_rights() as server:
        yield server


@pytest.fixture(scope="module")
def doubles(rented: RentedUnderRights) -> Iterator[MachineDoubles]:
    """What runs what the machines are told to."""
    with home() as directory, MachineDoubles(rented, directory / "machines").running() as made:
        yield made


def renting(directory: Path, rented: RentedUnderRights, **settings: object) -> Machine:
    """A cluster without an agent, whose pool rents machines of two slots, with the rights for that; not started."""
    file = directory / "master.yaml"
    place = Machine(directory / "cluster", options=("--no-agent", "--config", str(file)), environment=rented.account)
    provider = {
        "type": "aws", "endpoint_url": rented.gate.url, "master_url": place.url, "region": REGION, "image_id": IMAGE,
        "instance_type": "m5.large", "instance_slots": 2, "cpu_slots_allowed": True, "price": 0.1,
        "iam_instance_profile_arn": PROFILE, **settings,
    }  # fmt: skip
    file.write_text(json.dumps({"pools": [{"name": "default", "provider": provider}]}))
    rented.attach(json.loads(place.tenax("machine", "policy", "--config", str(file)).stdout))
    return place


@pytest.fixture(scope="module")
def place(rented: RentedUnderRights, doubles: MachineDoubles) -> Iterator[Machine]:
    """A cluster without an agent, whose pool rents machines of two slots. A test leaves none."""
    with home() as directory:
        script = "echo set up for $(id -un)"
        place = renting(
            directory, rented, max_instances=1, max_idle_agent_period="2s", orphan_after="10s", startup_script=script
        )
        try:
            place.up()
            yield place
        finally:
            place.down()


def machines(place: Machine) -> list[Any]:
    """All that there were."""
    listed = place.json("machine", "list", "--all")
    assert isinstance(listed, list)
    return listed


def none_left(place: Machine) -> list[Any]:
    """All machines, once they are gone."""

    def look() -> list[Any] | None:
        found = machines(place)
        return found if {each["state"] for each in found} == {"GONE"} else None

    return wait_for(look, "the end of the machines")


def test_from_none_to_one_and_back_to_none(place: Machine, rented: RentedUnderRights, doubles: MachineDoubles) -> None:
    """Nobody started anything but the master, and in the end nothing is left."""
    assert place.tenax("machine", "list").stdout.count("\n") == 1
    earlier = [each["id"] for each in machines(place)]
    ended = [each["InstanceId"] for each in rented.instances()]
    with place.client() as client:
        doubles.powered.clear()
        try:
            command = client.run_command(["sh", "-c", "echo ran on a machine"], slots=2)

            def reason() -> str | None:
                its = client.command(command.id).reason
                return its if its.startswith("waits for a machine: m5.large in us-west-2") else None

            wait_for(reason, "a reason that names the machine")
        finally:
            doubles.powered.set()
        wait_for(lambda: client.command(command.id).has_ended, "the end of the command")
        lines = [line.log.strip() for line in client.command(command.id).logs()]
        assert lines.count("ran on a machine") == 1, lines
    [before] = [each for each in machines(place) if each["id"] not in earlier]
    assert before["wantedBy"]
    [machine] = [each for each in none_left(place) if each["id"] not in earlier]
    assert machine["story"] == "idle for 2 s (max_idle_agent_period)"
    assert rented.running() == []
    assert [it["State"]["Name"] for it in rented.instances() if it["InstanceId"] not in ended] == ["terminated"]
    assert place.json("agent", "list") == []
    assert place.json("machine", "plan") != []


def test_a_master_that_is_killed_rents_nothing_twice(place: Machine, rented: RentedUnderRights) -> None:
    """Killed as soon as there is a machine: the next one goes on with it, and ends it."""
    before = len(rented.instances())
    with place.client() as client:
        command = client.run_command(["echo", "ran once"], slots=2)
    wait_for(lambda: len(rented.instances()) > before, "a machine")
    place.kill("master")
    wait_for(lambda: place.answers() or None, "the master again")
    with place.client() as client:
        wait_for(lambda: client.command(command.id).has_ended, "the end of the command")
        assert [line.log.strip() for line in client.command(command.id).logs()].count("ran once") == 1
    none_left(place)
    assert len(rented.instances()) == before + 1
    assert rented.running() == []


def test_by_hand_a_machine_comes_and_is_let_go(place: Machine, rented: RentedUnderRights) -> None:
    """Rented before anything waits, it takes work; asked to end at once it ends that, and nothing is left."""
    [launched] = place.json("machine", "launch", "--pool", "default")
    assert launched["story"] == "rented by admin"
    refused = place.tenax("machine", "launch", "--pool", "default", check=False)
    assert "max_instances, which is 1" in refused.stderr
    with place.client() as client:
        command = client.run_command(["sleep", "1000"], slots=2)
        wait_for(lambda: client.command(command.id).state == "RUNNING" or None, "the command on the machine")
        [audited] = [each for each in place.json("machine", "audit")["machines"] if each["sighting"] == "RUNNING"]
        assert (audited["machineId"], audited["state"], audited["stray"]) == (launched["id"], "JOINED", False)
        place.tenax("machine", "end", launched["id"], "--now")
        wait_for(lambda: client.command(command.id).has_ended or None, "the end of the command")
    none_left(place)
    [gone] = [each for each in machines(place) if each["id"] == launched["id"]]
    assert gone["story"] == "ended by admin at once"
    assert rented.running() == []


@pytest.mark.long
def test_a_machine_whose_agent_hangs_ends_itself(
    place: Machine, rented: RentedUnderRights, doubles: MachineDoubles
) -> None:
    """With work that runs, and no master: its lease is over. The cluster that is started again learns of it."""
    with place.client() as client:
        command = client.run_command(["sh", "-c", "while :; do sleep 0.1; done"], slots=2)
        wait_for(lambda: client.command(command.id).state == "RUNNING" or None, "the command at work")
    [instance] = rented.running()
    agent = doubles.agent_of(instance)
    assert agent is not None
    agent.suspend()
    place.down()
    wait_for(lambda: not rented.running(), "the end of the machine")
    assert (doubles.directory(instance) / "shutdown.log").read_text().splitlines()[-1] == "-P now"
    place.up()
    with place.client() as client:
        client.command(command.id).kill()
    none_left(place)
    assert [each["story"] for each in machines(place) if each["providerId"] == instance] == [
        "the provider says that it has ended"
    ]


def test_a_cluster_that_is_stopped_says_what_is_still_rented(place: Machine, rented: RentedUnderRights) -> None:
    """Nobody ends it meanwhile; the cluster that is started again does."""
    with place.client() as client:
        command = client.run_command(["sh", "-c", "while :; do sleep 0.1; done"], slots=2)
        wait_for(lambda: client.command(command.id).state == "RUNNING" or None, "the command at work")
    [machine] = place.json("machine", "list")  # type: ignore[misc]
    warning = place.tenax("down").stderr
    assert f"1 machine is still rented ({machine['providerId']})" in warning  # type: ignore[index,call-overload]
    place.up()
    with place.client() as client:
        client.command(command.id).kill()
    none_left(place)
    assert rented.running() == []
    assert "still rented" not in place.tenax("down").stderr


@pytest.fixture
def at_google(tmp_path: Path) -> Iterator[tuple[Machine, RentedAtGoogle]]:
    """The same at the double of Compute Engine."""
    with google(tmp_path) as server, home() as directory:
        file = directory / "master.yaml"
        options = ("--no-agent", "--config", str(file))
        place = Machine(directory / "cluster", options=options, environment=server.account)
        provider = gcp_document(
            endpoint_url=server.url, master_url=place.url, max_instances=1, max_idle_agent_period="2s"
        )
        file.write_text(json.dumps({"pools": [{"name": "default", "provider": provider}]}))
        with MachineDoubles(server, directory / "machines").running():
            try:
                place.up()
                yield place, server
            finally:
                place.down()


@pytest.mark.long
def test_from_none_to_one_and_back_to_none_at_google(at_google: tuple[Machine, RentedAtGoogle]) -> None:
    """Nobody started anything but the master, and in the end nothing is left, no stopped machine either."""
    place, server = at_google
    with place.client() as client:
        command = client.run_command(["sh", "-c", "echo ran on a machine"], slots=2)
        wait_for(lambda: client.command(command.id).has_ended, "the end of the command")
        lines = [line.log.strip() for line in client.command(command.id).logs()]
        assert lines.count("ran on a machine") == 1, lines
    [machine] = none_left(place)
    assert (machine["provider"], machine["region"], machine["zone"]) == ("gcp", f"{PROJECT}/us-central1", ZONES[0])
    assert machine["story"] == "idle for 2 s (max_idle_agent_period)"
    assert server.engine.instances == {}
    assert place.json("agent", "list") == []


def test_once_a_budget_is_used_up_what_waits_is_told_and_what_runs_goes_on(
    rented: RentedUnderRights, doubles: MachineDoubles
) -> None:
    """The price is so high that the first machine alone spends it, and no other is rented."""
    with home() as directory:
        place = renting(directory, rented, max_instances=3, price=36000.0, budget_per_month=1.0)
        before = len(rented.instances())
        try:
            place.up()
            with place.client() as client:
                first = client.run_command(["sh", "-c", "while :; do sleep 0.1; done"], slots=2)
                wait_for(lambda: client.command(first.id).state == "RUNNING" or None, "the command at work")
                second = client.run_command(["true"], slots=2)
                told = "no machine is rented for it: the budget of pool default of 1 for "
                wait_for(lambda: told in client.command(second.id).reason or None, "a reason that names the budget")
                assert client.command(first.id).state == "RUNNING"
                assert len(rented.instances()) == before + 1
                [budget] = place.json("machine", "plan")[0]["budgets"]  # type: ignore[index,call-overload]
                assert (budget["resourcePool"], budget["stage"]) == ("default", "USED_UP")
                costs = place.json("machine", "cost")
                names = [each.get("name") for each in costs["costs"]]  # type: ignore[index,call-overload]
                assert client.command(first.id).owner in names
                client.command(first.id).kill()
        finally:
            place.down()
            for instance in rented.running():
                rented.terminate(instance)
