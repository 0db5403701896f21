"""What renting costs: its decision in a large cluster, the way from a submission to a first line, and a notice.

Prints one JSON line for each question. There is no peer: the figures are read beside the goals, and those of another
commit. The provider is moto's server; machines are doubles that run the real script and a real agent.

- ``decision``: what the loop that rents asks for each pool, 2,000 machines and 20,000 requests that wait in two pools,
  since a pool has at most 1,000 machines: with none there yet (``from_nothing_ms``), and after a machine's work has
  ended (``change_ms``). Milliseconds, and those of the processor.
- ``calls``: requests to the provider in an hour of the loop's clock where nothing waits, with machines and without.
- ``life``: from the call that submits to a machine's row, and from the agent's join to the first line that the user's
  command prints; what lies between is the machine's own boot.
- ``notice``: from the moment when AWS's metadata say that a machine is taken back until its trial is asked to save. The
  agent asks every five seconds.
- ``master``: its memory, and from its process's start to its first answer, without a provider and with one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest import mock

import psutil

from benchmarks._measure import LONG, Line, extremes, summary
from benchmarks.scheduling_pass import filled
from tenax.client import Client
from tenax.config.master import PoolSettings
from tenax.ids import AgentId, AllocationId, JobId, PoolName, SlotId
from tenax.master.loops import scaling
from tenax.master.loops.loop import PassContext
from tenax.master.loops.scaling import ScalingLoop
from tenax.master.provision.offers import decided
from tenax.master.provision.port import CLUSTER, MachineOrder, ProviderPlace, SeenMachine
from tenax.master.store.database import leases
from tenax.master.store.database.wakeups import MAX_WAIT_S, Woken
from tenax.master.store.machines.rows import RentedPool
from tenax.scheduler.demand import MachineStage, RentedMachine
from tenax.scheduler.devices import DeviceKind
from tenax.scheduler.snapshot import Phase, PlacedMember, PoolAgent, PoolJob, PoolSnapshot, SlotRequest
from tests.e2e.trials import config, script
from tests.kits.machine import Machine, home, wait_for
from tests.kits.metadata import MetadataDouble, aws_metadata
from tests.kits.rented import ACCOUNT, IMAGE, REGION, MachineDoubles, RentedAtMoto, moto, provider_settings

#: Of each of two pools.
MACHINES, QUEUED = 1_000, 10_000
GOAL_CHANGE_MS, GOAL_FROM_NOTHING_MS, GOAL_FIRST_LINE_S = 20, 500, 3
CHANGES = 9
ROUNDS = 5 if LONG else 2
_SLOTS = tuple(SlotId(number) for number in range(8))
_OFFER = "m5.large in us-west-2"
#: It says when it is asked to save.
_WAITS = """
    import pathlib, time
    from tenax import core, get_cluster_info
    place = pathlib.Path(get_cluster_info().trial.hparams["place"])
    with core.init() as context:
        (place / "stands").touch()
        while not context.preempt.should_preempt():
            time.sleep(0.01)
        (place / "asked").write_text(str(time.time()))
"""
#: A machine that has joined, works, and whose agent is connected.
_MACHINE = """
insert into agents (agent_id, pool, credential_hash) values ('m-1', 'p0', sha256('m-1'));
insert into agent_presence (agent_id, connected) values ('m-1', true);
insert into agent_slots (agent_id, slot_id, kind) values ('m-1', 0, 'cpu'), ('m-1', 1, 'cpu');
insert into machines (machine_id, pool, provider, region, endpoint, instance_type, slots, state, wanted_by, story,
                      offer, provider_id, joined_at, rented_at)
values ('m-1', 'p0', 'aws', 'us-west-2', 'http://127.0.0.1:2', 'm5.large', 2, 'JOINED', '{}', '',
        'm5.large in us-west-2', 'i-1', now(), now());
"""


def snapshot(pool: str, machines: int) -> PoolSnapshot:
    """So many machines that work, and what waits: jobs of fifty requests each, of one to eight slots."""
    jobs = [JobId(f"j{number}") for number in range(QUEUED // 50)]
    works = [AgentId(f"{pool}-{number}") for number in range(machines)]
    agents = (PoolAgent(each, _SLOTS, frozenset(_SLOTS), kind=DeviceKind.CUDA, rented=True) for each in works)
    running = (
        SlotRequest(AllocationId(f"r{each}"), jobs[0], 8, phase=Phase.PLACED, members=(PlacedMember(each, _SLOTS),))
        for each in works
    )
    waiting = (
        SlotRequest(AllocationId(f"w{number}"), jobs[number % len(jobs)], 1 + number % 8, float(number))
        for number in range(QUEUED)
    )
    by_name = {job: PoolJob(job, 40 + number % 5, float(number)) for number, job in enumerate(jobs)}
    return PoolSnapshot(PoolName(pool), tuple(agents), by_name, (*running, *waiting), at=1e9)


def there(snapshot: PoolSnapshot) -> RentedPool:
    """The machines of a snapshot, all at work."""
    return RentedPool(
        tuple(RentedMachine(each.id, MachineStage.HERE, 0.0, None, _OFFER, 8, 1.0) for each in snapshot.agents)
    )


def without_work(snapshot: PoolSnapshot, number: int) -> PoolSnapshot:
    """The work of one machine has ended."""
    freed = replace(snapshot.agents[number], in_use=frozenset[SlotId]())
    agents = (*snapshot.agents[:number], freed, *snapshot.agents[number + 1 :])
    requests = tuple(each for each in snapshot.requests if each.allocation_id != f"r{freed.id}")
    return replace(snapshot, agents=agents, requests=requests)


def decision() -> None:
    """Of both pools, as the loop asks for them in one pass."""
    line = Line("renting_decision")
    provider = provider_settings(instance_slots=8, cpu_slots_allowed=False, max_instances=MACHINES, price=1.0)
    pools = [PoolSettings(name=f"p{number}", provider=provider) for number in range(2)]

    def once(snapshots: Sequence[PoolSnapshot]) -> tuple[float, float, int]:
        machines = [there(each) for each in snapshots]
        began, began_cpu = time.perf_counter(), time.process_time()
        made = [
            decided(pool, provider, its, its_machines) for pool, its, its_machines in zip(pools, snapshots, machines)
        ]
        took = (time.perf_counter() - began) * 1e3, (time.process_time() - began_cpu) * 1e3
        return *took, sum(each.launch for each in made)

    nothing = [once([snapshot(pool.name, 0) for pool in pools]) for _ in range(3)]
    whole = [snapshot(pool.name, MACHINES) for pool in pools]
    changes = [once([without_work(whole[0], number), whole[1]]) for number in range(CHANGES)]
    line.add(
        machines=2 * MACHINES,
        queued=2 * QUEUED,
        rented_from_nothing=nothing[0][2],
        from_nothing_ms=extremes([took for took, _, _ in nothing]),
        from_nothing_cpu_ms=extremes([cpu for _, cpu, _ in nothing]),
        goal_from_nothing_ms=GOAL_FROM_NOTHING_MS,
        change_ms=summary([took for took, _, _ in changes], 1),
        change_cpu_ms=summary([cpu for _, cpu, _ in changes], 1),
        goal_change_ms=GOAL_CHANGE_MS,
    )
    line.emit()


class _Counting:
    """A provider that counts what it is asked."""

    def __init__(self, machines: Sequence[SeenMachine]) -> None:
        self._machines = machines
        self.asked = 0

    async def launch(self, order: MachineOrder) -> SeenMachine:
        raise AssertionError("nothing waits")

    async def look(self) -> Sequence[SeenMachine]:
        self.asked += 1
        return self._machines

    async def end(self, provider_ids: Sequence[str]) -> None:
        raise AssertionError("nothing is idle for long enough")


async def calls() -> None:
    """Requests in an hour of the loop's clock, each pass when the loop says that the next one is due."""
    line = Line("renting_calls")
    provider = provider_settings(max_idle_agent_period=86400.0)
    async with filled(0, 0, 1) as database:
        async with database.transaction() as conn:
            lease = await leases.acquire(conn, "scaling", "bench", 36000.0)
        assert lease is not None
        context = PassContext(database, lease)
        counts = {}
        for name, machines in {"without_machines": [], "with_a_machine": [SeenMachine("i-1", "m-1", "p0")]}.items():
            counting = _Counting(machines)

            def opened(place: ProviderPlace, cluster_id: str, counting: _Counting = counting) -> _Counting:
                return counting

            if machines:
                async with database.transaction() as conn:
                    await conn.execute(_MACHINE)
            loop = ScalingLoop([PoolSettings(name="p0", provider=provider)], CLUSTER, b"s" * 32, opened)
            await _an_hour(loop, context)
            counts[f"per_hour_{name}"] = counting.asked
        line.add(**counts)
    line.emit()


async def _an_hour(loop: ScalingLoop, context: PassContext) -> None:
    clock = [0.0]
    with mock.patch.object(scaling.time, "monotonic", side_effect=lambda: clock[0]):
        while clock[0] < 3600:
            due = await loop.make_pass(context, Woken(frozenset(), full=True))
            clock[0] += MAX_WAIT_S if due is None else min(max(due, 0.1), MAX_WAIT_S)


@contextlib.contextmanager
def renting(rented: RentedAtMoto) -> Iterator[tuple[Machine, dict[str, MetadataDouble], Path]]:
    """A cluster without agents that rents machines of one slot; what speaks for each to its agent; a directory."""
    with home() as directory, contextlib.ExitStack() as stack:
        file = directory / "master.yaml"
        cluster = Machine(directory / "cluster", options=("--no-agent", "--config", str(file)), environment=ACCOUNT)
        provider = {
            "type": "aws", "endpoint_url": rented.url, "master_url": cluster.url, "region": REGION, "image_id": IMAGE,
            "instance_type": "m5.large", "instance_slots": 1, "cpu_slots_allowed": True, "max_instances": 3,
            "max_idle_agent_period": "1s",
        }  # fmt: skip
        file.write_text(json.dumps({"pools": [{"name": "default", "provider": provider}]}))
        services: dict[str, MetadataDouble] = {}

        def environment(instance: str) -> dict[str, str]:
            services[instance] = stack.enter_context(aws_metadata())
            return {"TENAX_AGENT_METADATA_URL": services[instance].url}

        with MachineDoubles(rented, directory / "machines", environment).running():
            try:
                cluster.up()
                yield cluster, services, directory
            finally:
                cluster.down()
                for instance in rented.running():
                    rented.terminate(instance)


def _machines(cluster: Machine) -> list[Any]:
    listed = cluster.json("machine", "list", "--all")
    assert isinstance(listed, list)
    return listed


def _at(moment: str) -> float:
    return datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp()


def _printed(client: Client, command: str) -> float:
    """The number that a command prints, once it has ended."""
    wait_for(lambda: client.command(command).has_ended or None, "the end of the command")
    lines = (line.log.strip() for line in client.command(command).logs())
    return next(float(text) for text in lines if text.replace(".", "").isdigit())


def life(cluster: Machine) -> None:
    """Each time a machine of its own."""
    line = Line("renting_life")
    to_row, to_line, boots = [], [], []
    for _ in range(ROUNDS):
        before = {each["id"] for each in _machines(cluster)}
        with cluster.client() as client:
            submitted = time.time()
            command = client.run_command(["date", "+%s.%N"], slots=1)
            first = _printed(client, command.id)
        [machine] = [each for each in _machines(cluster) if each["id"] not in before]
        to_row.append(_at(machine["plannedAt"]) - submitted)
        boots.append(_at(machine["joinedAt"]) - _at(machine["plannedAt"]))
        to_line.append(first - _at(machine["joinedAt"]))
        wait_for(lambda: all(it["state"] == "GONE" for it in _machines(cluster)) or None, "the end of the machine")
    line.add(
        submission_to_row_s=extremes(to_row, 3),
        row_to_join_s=extremes(boots, 3),
        join_to_first_line_s=extremes(to_line, 3),
        goal_s=GOAL_FIRST_LINE_S,
    )
    line.emit()


def _noticed(cluster: Machine, services: dict[str, MetadataDouble], place: Path) -> float:
    """Seconds until a trial is asked to save."""
    place.mkdir()
    with cluster.client() as client:
        document = config(hyperparameters={"place": str(place)})
        experiment = client.create_experiment(document, script(place / "code", _WAITS))
        wait_for((place / "stands").exists, "the trial at work")
        [machine] = [each for each in _machines(cluster) if each["state"] == "JOINED"]
        began = time.time()
        services[machine["providerId"]].interrupt(120.0)
        asked = wait_for(lambda: _text(place / "asked"), "the notice")
        experiment.kill()
    return float(asked) - began


def _text(file: Path) -> str | None:
    return (file.read_text() or None) if file.exists() else None


def notice(cluster: Machine, services: dict[str, MetadataDouble], directory: Path) -> None:
    """Each time another trial, on a machine of its own."""
    line = Line("renting_notice")
    took = []
    for number in range(ROUNDS):
        took.append(_noticed(cluster, services, directory / f"place-{number}"))
        wait_for(lambda: all(it["state"] == "GONE" for it in _machines(cluster)) or None, "the end of the machine")
    line.add(notice_to_save_s=extremes(took, 2), asked_every_s=5)
    line.emit()


def _master(cluster: Machine) -> tuple[float, float]:
    """Seconds from the start of its process to the first answer, and its memory in MiB once it has settled."""
    before = cluster.pid("master")
    assert before is not None
    # Not killed: another one would wait for what it held.
    os.kill(before, signal.SIGTERM)
    new = wait_for(lambda: pid if (pid := cluster.pid("master")) != before else None, "another master")
    while not cluster.answers():
        time.sleep(0.01)
    took = time.time() - psutil.Process(new).create_time()
    # The first look at the provider is made by then.
    time.sleep(8)
    return took, psutil.Process(new).memory_info().rss / 2**20


def master(rented: RentedAtMoto) -> None:
    """In turns, on clusters of their own."""
    line = Line("renting_master")
    with home() as directory:
        plain = Machine(directory / "cluster", options=("--no-agent",), environment=ACCOUNT)
        try:
            plain.up()
            without = [_master(plain) for _ in range(ROUNDS)]
        finally:
            plain.down()
    with renting(rented) as (cluster, _, _):
        with_one = [_master(cluster) for _ in range(ROUNDS)]
    for name, samples in (("without", without), ("with", with_one)):
        line.add(
            **{
                f"start_s_{name}_provider": extremes([start for start, _ in samples], 2),
                f"memory_mib_{name}_provider": extremes([size for _, size in samples]),
            }
        )
    line.emit()


def main() -> None:
    """Measure and print the lines."""
    decision()
    asyncio.run(calls())
    with moto() as rented:
        with renting(rented) as (cluster, services, directory):
            life(cluster)
            notice(cluster, services, directory)
        master(rented)


if __name__ == "__main__":
    main()
