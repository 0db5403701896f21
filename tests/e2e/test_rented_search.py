"""A search on machines that are rented for it, each with a network and a metadata service of its own: real processes.

What happens meanwhile is what happens to machines, to masters, to databases and to clouds; what is left in the end is
nothing.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import pytest
import yaml

from tests.kits.cable import Cable, cable
from tests.kits.figures import Figures
from tests.kits.machine import ROOT, Machine, home, outlast, wait_for
from tests.kits.metadata import MetadataDouble, aws_metadata
from tests.kits.object_server import GONE, S3_REFUSAL, Refusal
from tests.kits.ports import free_port
from tests.kits.rented import IMAGE, REGION, MachineDoubles
from tests.kits.rented_rights import PROFILE, RentedUnderRights, moto_with_rights

DIGITS = ROOT / "examples" / "digits"
#: Longer than a busy machine takes to hear of it and to save.
NOTICE_S = 600.0
ROUNDS = 20


@dataclass
class RentedCluster:
    """A cluster without an agent, whose pool rents machines of one slot; what they are, and when they were."""

    place: Machine
    rented: RentedUnderRights
    doubles: MachineDoubles
    lines: dict[str, Cable] = field(default_factory=dict)
    services: dict[str, MetadataDouble] = field(default_factory=dict)

    def machines(self) -> list[Any]:
        """All that there were."""
        listed = self.place.json("machine", "list", "--all")
        assert isinstance(listed, list)
        return listed

    def joined(self) -> list[str]:
        """What the provider calls those that have an agent."""
        with contextlib.suppress(AssertionError):
            return [each["providerId"] for each in self.machines() if each["state"] == "JOINED"]
        return []

    def has(self, name: str) -> bool:
        """Whether there is a file of that name on a machine that runs."""
        return any((self.doubles.directory(each) / name).exists() for each in self.rented.running())

    def none_left(self) -> list[Any]:
        """All machines, once nothing of them is left: no row, no power, no agent, no process."""

        def look() -> list[Any] | None:
            with contextlib.suppress(AssertionError):
                found = self.machines()
                if {each["state"] for each in found} <= {"GONE"} and not self.rented.running():
                    return found
            return None

        found = wait_for(look, "the end of all machines", 300)
        assert self.place.json("agent", "list") == []
        assert self.place.task_processes() == []
        return found

    def search(self, **changes: Any) -> int:
        """That of the example, on three slots; its number."""
        document = yaml.safe_load((DIGITS / "adaptive.yaml").read_text())
        document["searcher"].update({"max_concurrent_trials": 3, **changes})
        with self.place.client() as client:
            return client.create_experiment(document, DIGITS).id

    def completed(self, number: int) -> None:
        """The search, and each trial of it has its curve whole, though nobody was charged for a restart.

        Whoever loses power between its save and its report has saved what it never reports: one epoch at most.
        """
        ended = outlast(self.place, number, 900)
        assert ended.state == "COMPLETED"
        with self.place.client() as client:
            for trial in client.experiment(number).trials():
                epochs = [each.metrics["epochs"] for each in client.trial(trial.id).metrics("validation")]
                assert epochs == sorted(set(epochs)), (trial.id, epochs)
                assert len(epochs) >= max(epochs) - 1, (trial.id, epochs)
                assert trial.restarts == 0


@contextlib.contextmanager
def cluster(rented: RentedUnderRights, **settings: object) -> Iterator[RentedCluster]:
    """One that is up, with nothing rented; each machine is behind a cable of its own."""
    with home() as directory, contextlib.ExitStack() as stack:
        own = stack.enter_context(cable())
        file = directory / "master.yaml"
        options = ("--no-agent", "--host", "0.0.0.0", "--config", str(file))
        place = Machine(directory / "cluster", options=options, environment=rented.account)
        provider = {
            "type": "aws", "endpoint_url": rented.gate.url, "master_url": f"http://{own.here}:{place.port}",
            "region": REGION, "image_id": IMAGE, "instance_type": "m5.large", "instance_slots": 1,
            "cpu_slots_allowed": True, "price": 0.1, "iam_instance_profile_arn": PROFILE, "max_instances": 3,
            "max_idle_agent_period": "2s", **settings,
        }  # fmt: skip
        file.write_text(json.dumps({"pools": [{"name": "default", "provider": provider}]}))
        rented.attach(json.loads(place.tenax("machine", "policy", "--config", str(file)).stdout))

        def environment(instance: str) -> dict[str, str]:
            address = made.lines[instance].here, free_port()
            service = made.services[instance] = stack.enter_context(aws_metadata(address))
            return {"TENAX_AGENT_METADATA_URL": service.url, "TENAX_AGENT_METADATA_EVERY_S": "0.1"}

        def inside(instance: str) -> list[str]:
            line = made.lines[instance] = stack.enter_context(cable())
            line.way_out()
            return line.inside

        doubles = MachineDoubles(rented, directory / "machines", environment, inside)
        made = RentedCluster(place, rented, doubles)
        with doubles.running():
            try:
                place.up()
                yield made
            finally:
                place.down()
                for instance in rented.running():
                    rented.terminate(instance)


@pytest.fixture(scope="module")
def rented() -> Iterator[RentedUnderRights]:
    with moto_with_rights() as server:
        yield server


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_search_grows_from_none_to_three_machines_and_back(rented: RentedUnderRights, figures: Figures) -> None:
    """Nobody started anything but the master, and in the end nothing is left."""
    before = len(rented.instances())
    with cluster(rented) as made:
        began = time.monotonic()
        number = made.search(max_trials=9)
        counts: list[int] = []

        def ended() -> bool:
            counts.append(len(made.joined()))
            with made.place.client() as client:
                return client.experiment(number).has_ended

        wait_for(ended, "the end of the search", 600)
        searched_s = time.monotonic() - began
        made.completed(number)
        gone = made.none_left()
        assert max(counts) == len(gone) == len(rented.instances()) - before == 3
        assert len(made.lines) == 3
        assert {each["story"] for each in gone} == {"idle for 2 s (max_idle_agent_period)"}
        seconds = {"search": round(searched_s), "and_back": round(time.monotonic() - began)}
        figures.tell("a search on rented machines", at_most=max(counts), seconds=seconds)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_search_survives_what_happens_to_machines_masters_databases_and_clouds(
    rented: RentedUnderRights, figures: Figures
) -> None:
    """One after another: notice, power, cable, master, database, provider. Its curves are whole, nobody is charged, and
    each machine that the provider has made is known and gone."""
    before = len(rented.instances())
    with cluster(rented, max_agent_starting_period="5m") as made:
        number = made.search(max_trials=40)

        def at_work() -> list[str]:
            return wait_for(lambda: made.joined() or None, "a machine at work", 300)

        def taken_back() -> None:
            [name, *_] = at_work()
            made.services[name].interrupt(NOTICE_S)
            wait_for(lambda: name not in rented.running() or None, "the end of what is taken back", 300)

        def without_power() -> None:
            [name, *_] = at_work()
            rented.terminate(name)

        def cut_off() -> None:
            [name, *_] = at_work()
            with made.lines[name].pulled(5.0):
                pass

        def without(server: str) -> None:
            at_work()
            made.place.kill(server)
            wait_for(lambda: made.place.answers() or None, f"the master after {server}", 300)

        def no_provider() -> None:
            rented.gate.fault = lambda _method, _path: GONE
            asked = len(rented.gate.requests)
            rented.terminate(at_work()[0])
            wait_for(lambda: len(rented.gate.requests) > asked + 2 or None, "that the provider is asked", 300)
            rented.gate.fault = lambda _method, _path: None

        def is_over() -> bool:
            with made.place.client() as client:
                return client.experiment(number).has_ended

        met = []
        faults: list[tuple[str, Callable[[], None]]] = [
            ("taken back with notice", taken_back), ("without power", without_power), ("cut off for 5 s", cut_off),
            ("master killed", lambda: without("master")), ("database killed", lambda: without("postgres")),
            ("provider away", no_provider),
        ]  # fmt: skip
        for name, fault in faults:
            if not is_over():
                fault()
                met.append(name)
        assert len(met) == len(faults), f"the search was over after {met}"
        made.completed(number)
        gone = made.none_left()
        instances = [each["InstanceId"] for each in rented.instances()][before:]
        assert sorted(each["providerId"] for each in gone if each["providerId"]) == sorted(instances)
        figures.tell("what a search on rented machines met", faults=met, machines=len(instances))


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_without_a_master_every_machine_ends_itself(rented: RentedUnderRights) -> None:
    """It is gone for good, with work on three machines: that is asked to save first, and then there is no power."""
    with cluster(rented, orphan_after="5s", orphan_busy_after="10s") as made:
        made.search(max_trials=16, max_time=1000)
        wait_for(lambda: len(made.joined()) == 3 or None, "three machines at work", 300)
        instances = rented.running()
        made.place.down()
        wait_for(lambda: not rented.running() or None, "the end of all machines", 300)
        for instance in instances:
            assert (made.doubles.directory(instance) / "shutdown.log").read_text().splitlines()[-1] == "-P now"


class Killer:
    """Kills the master at one point of a machine's life, once."""

    def __init__(self, made: RentedCluster) -> None:
        self._made = made
        self._judge = made.rented.gate.judge
        self._point = ""
        self._action = ""
        self.done = threading.Event()

    @contextlib.contextmanager
    def at(self, point: str, action: str) -> Iterator[Killer]:
        """``point``: ``call`` or ``answer`` of a request for ``action``."""
        gate = self._made.rented.gate
        self._point, self._action = point, action
        self.done.clear()
        gate.judge = self._before
        gate.effected = self._after
        try:
            yield self
        finally:
            gate.judge, gate.effected = self._judge, lambda _body: None

    def _before(self, body: bytes) -> Refusal | None:
        refusal = self._judge(body)
        # A call of somebody who is dead by then, and that goes no further.
        return S3_REFUSAL if self._point == "call" and self._kill(body) else refusal

    def _after(self, body: bytes) -> None:
        if self._point == "answer":
            self._kill(body)

    def _kill(self, body: bytes) -> bool:
        if self.done.is_set() or parse_qs(body.decode())["Action"] != [self._action]:
            return False
        self._made.place.kill("master")
        self.done.set()
        return True


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_master_that_is_killed_at_any_point_loses_and_doubles_nothing(
    rented: RentedUnderRights, figures: Figures
) -> None:
    """Twenty rounds: between row and call, call and answer, answer and power, power and join, join and the work's
    begin, amid the work, and at the machine's end. Each round has one machine, and ends with none."""
    with cluster(rented, max_instances=1) as made:
        killer = Killer(made)
        points: dict[str, Callable[[], object] | tuple[str, str]] = {
            "the row is there": lambda: [each for each in made.machines() if each["state"] != "GONE"],
            "the call is sent": ("call", "RunInstances"),
            "the machine is made, nothing is answered": ("answer", "RunInstances"),
            "it is answered, and the machine has no power": rented.running,
            "the machine starts": lambda: made.has("console.log"),
            "the agent joins": lambda: made.has("agent/credential"),
            "it has work": made.joined,
            "the call for its end is sent": ("call", "TerminateInstances"),
            "it has ended, nothing is answered": ("answer", "TerminateInstances"),
        }  # fmt: skip
        rounds: Counter[str] = Counter()
        for name in [*points, *points, *points][:ROUNDS]:
            if name.startswith("it is answered"):
                made.doubles.powered.clear()
            _round(made, killer, points[name])
            rounds[name] += 1
        for name, count in rounds.items():
            figures.tell("a master killed in a rented machine's life", point=name, rounds=count, doubled=0, lost=0)


def _round(made: RentedCluster, killer: Killer, point: Callable[[], object] | tuple[str, str]) -> None:
    """Work comes, the master is killed at the point, and the work is done on one machine, which is gone then."""
    before = len(made.rented.instances())
    with made.place.client() as client:
        number = client.run_command(["echo", "ran once"], slots=1).id
    if isinstance(point, tuple):
        with killer.at(*point):
            assert killer.done.wait(120), f"no request for {point}"
    else:
        wait_for(point, "the point of the kill")
        made.place.kill("master")
    made.doubles.powered.set()
    wait_for(lambda: made.place.answers() or None, "the master again")
    with made.place.client() as client:
        wait_for(lambda: client.command(number).has_ended, "the end of the command")
        assert [line.log.strip() for line in client.command(number).logs()].count("ran once") == 1
    made.none_left()
    assert len(made.rented.instances()) == before + 1, point
