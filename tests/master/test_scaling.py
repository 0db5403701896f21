"""Machines are rented at moto's server: pass by pass, killed at every point, answers lost, strays and refusals."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tenax.config.master import MasterSettings, PoolSettings
from tenax.config.provider import NetworkInterfaceSettings
from tenax.errors import Forbidden, TryAgain
from tenax.master.agents.hub import Hub
from tenax.master.loops.loop import PassContext
from tenax.master.loops.scaling import ScalingLoop
from tenax.master.provision.port import MachineOrder, Provider, ProviderPlace, SeenMachine
from tenax.master.provision.registry import open_provider
from tenax.master.store.agents import rows as agents
from tenax.master.store.database import leases
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.machines import rows as machines
from tenax.wire.agents import Hello, JoinRequest, SlotInfo
from tests.kits.api import Api
from tests.kits.master.experiments import create
from tests.kits.object_server import BROKEN, Between, between
from tests.kits.rented import ACCOUNT, RentedAtMoto, moto, provider_settings
from tests.kits.rows import add_trial, request_attempt, run_attempt

EVERYTHING = Woken(frozenset(), full=True)


@pytest.fixture(scope="module")
def server() -> Iterator[RentedAtMoto]:
    """One for the module: it takes a while to begin."""
    with moto() as rented:
        yield rented


@pytest.fixture
def rented(server: RentedAtMoto, monkeypatch: pytest.MonkeyPatch) -> RentedAtMoto:
    """With nothing running."""
    for name, value in ACCOUNT.items():
        monkeypatch.setenv(name, value)
    for instance in server.running():
        server.terminate(instance)
    return server


@pytest.fixture
def line(rented: RentedAtMoto) -> Iterator[Between]:
    """What stands between the master and the provider."""
    with between(rented.url) as passing:
        yield passing


@pytest.fixture
def master_settings(master_settings: MasterSettings, line: Between) -> MasterSettings:
    """Machines of two slots, at most two."""
    provider = provider_settings(endpoint_url=line.url, max_instances=2, max_idle_agent_period=60.0)
    return master_settings.model_copy(update={"pools": (PoolSettings(name="default", provider=provider),)})


class Killed(Exception):
    """The master was, here."""


@dataclass
class Point:
    """Where it is killed: at the so-manieth of the things that can be before or after one."""

    left: int

    def reach(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed


class KillableContext(PassContext):
    """A pass may be killed before each transaction, and after each commit."""

    def __init__(self, api: Api, lease: leases.Lease, point: Point) -> None:
        super().__init__(api.master.db, lease)
        self._point = point

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        self._point.reach()
        async with super().transaction() as conn:
            yield conn
        self._point.reach()


class KillableProvider:
    """And before and after each call."""

    def __init__(self, provider: Provider, point: Point) -> None:
        self._provider = provider
        self._point = point

    async def launch(self, order: MachineOrder) -> SeenMachine:
        return await self._reached(lambda: self._provider.launch(order))

    async def look(self) -> Sequence[SeenMachine]:
        return await self._provider.look()

    async def end(self, provider_ids: Sequence[str]) -> None:
        await self._reached(lambda: self._provider.end(provider_ids))

    async def _reached(self, call: Callable[[], Awaitable[Any]]) -> Any:
        self._point.reach()
        answer = await call()
        self._point.reach()
        return answer


class Place:
    """The loop, pass by pass; killed, it begins again with nothing in memory."""

    def __init__(self, api: Api, rented: RentedAtMoto, lease: leases.Lease) -> None:
        self.api = api
        self.rented = rented
        self._lease = lease
        self.point = Point(0)
        self.loop = self._begun()

    def _begun(self) -> ScalingLoop:
        def opened(place: ProviderPlace, cluster_id: str) -> Provider:
            return KillableProvider(open_provider(place, cluster_id), self.point)

        master = self.api.master
        return ScalingLoop(master.settings.pools, str(master.cluster.cluster_id), master.cluster.secret, opened)

    async def passes(self, count: int = 1) -> None:
        """So many in a row; a kill among them is met with a new master."""
        for _ in range(count):
            try:
                await self.loop.make_pass(KillableContext(self.api, self._lease, self.point), EVERYTHING)
            except Killed:
                self.loop = self._begun()

    async def execute(self, sql: str) -> None:
        async with self.api.master.db.transaction() as conn:
            await conn.execute(sql)

    async def later(self, seconds: float) -> None:
        """So much time goes by for all machines."""
        by = f"interval '{seconds} seconds'"
        await self.execute(
            f"update machines set changed_at = changed_at - {by}, planned_at = planned_at - {by},"
            f" joined_at = joined_at - {by}, ended_at = ended_at - {by}"
        )
        await self.execute(f"update containers set gone_at = gone_at - {by}")

    async def states(self) -> dict[str, str]:
        """Of all machines, ended ones too."""
        async with self.api.master.db.connection() as conn:
            return {row.machine_id: row.state.value for row in await machines.all_of(conn, ended=True)}

    async def waits(self, slots: int = 1) -> str:
        """An attempt that waits."""
        experiment: Any = (await create(self.api))["experiment"]
        async with self.api.master.db.transaction() as conn:
            return await request_attempt(conn, await add_trial(conn, experiment["id"]), slots)

    async def join(self, instance: str, has: int = 2) -> str:
        """The agent of an instance joins, by what its user data say, and is heard; its id."""
        script = self.rented.user_data(instance)
        found = re.search(r"^(tnxm_\S+)$", script, re.MULTILINE), re.search(r"--agent-id (\S+)", script)
        assert found[0]
        assert found[1]
        token, name = found[0][1], found[1][1]
        await self.api.master.hub.join(JoinRequest(name, token, "default", None), None)
        slots = [SlotInfo(number, "cpu", "core", f"cpu-{number}") for number in range(has)]
        hello = Hello(1, "0.1.0", name, "process", slots, [])
        async with self.api.master.db.transaction() as conn:
            await agents.open_session(conn, name, hello, "10.0.0.1", [])
        return name


@pytest.fixture
async def place(api: Api, rented: RentedAtMoto) -> Place:
    async with api.master.db.transaction() as conn:
        lease = await leases.acquire(conn, "scaling", "test", 3600.0)
    assert lease is not None
    return Place(api, rented, lease)


async def test_from_none_to_one_and_back(place: Place) -> None:
    """A row, a call, an answer; it joins, works, is idle, closed, ended, and forgotten with its agent."""
    await place.waits()
    await place.passes(2)
    [instance] = place.rented.running()
    [(name, state)] = (await place.states()).items()
    assert state == "STARTING"
    tags = {tag["Key"]: tag["Value"] for tag in place.rented.instances()[-1]["Tags"]}
    assert (tags["tenax-machine"], tags["tenax-pool"], tags["managed_by"]) == (name, "default", "tenax")
    assert tags["tenax-cluster"] == str(place.api.master.cluster.cluster_id)
    assert await place.join(instance) == name
    await place.passes(2)
    assert await place.states() == {name: "JOINED"}
    # What waited is over; the machine is idle.
    await place.execute("update allocations set state = 'TERMINATED', ended_at = now()")
    await place.later(59)
    await place.passes(2)
    assert await place.states() == {name: "JOINED"}
    await place.later(1)
    await place.passes(2)
    assert place.rented.running() == []
    async with place.api.master.db.connection() as conn:
        assert await conn.fetchval("select state from agents") == "DISABLED"
    await place.execute("update agent_presence set connected = false")
    await place.passes(2)
    assert await place.states() == {name: "GONE"}
    async with place.api.master.db.connection() as conn:
        assert await conn.fetchval("select count(*) from agents") == 0


#: Before and after: the rows, that it is sent, the call, its answer.
@pytest.mark.parametrize("point", range(1, 9))
async def test_killed_at_any_point_of_renting_there_is_one_machine(place: Place, point: int) -> None:
    """A new master finds what the killed one has done, by rows and marks, and does the rest once."""
    await place.waits()
    place.point.left = point
    await place.passes(1)
    assert place.point.left == 0, "it was never there"
    for _ in range(4):
        await place.passes(1)
        await place.later(20)
    [instance] = place.rented.running()
    assert list((await place.states()).values()) == ["STARTING"]
    await place.join(instance)
    await place.passes(2)
    assert list((await place.states()).values()) == ["JOINED"]
    assert len(place.rented.running()) == 1


#: Before and after: that its agent is closed, that its end is sent, the call, the removal.
@pytest.mark.parametrize("point", range(1, 9))
async def test_killed_at_any_point_of_ending_nothing_is_left(place: Place, point: int) -> None:
    """The machine ends, and its row and its agent go with it."""
    await place.waits()
    await place.passes(2)
    await place.join(place.rented.running()[0])
    await place.execute("update allocations set state = 'TERMINATED', ended_at = now()")
    await place.execute("update agent_presence set connected = false")
    await place.later(60)
    place.point.left = point
    await place.passes(4)
    assert place.point.left <= 0, "it was never there"
    await place.later(31)
    await place.passes(6)
    assert place.rented.running() == []
    assert list((await place.states()).values()) == ["GONE"]


async def test_an_answer_that_is_lost_is_looked_up(place: Place, line: Between) -> None:
    """The machine was made; it is found by its mark, and no other is asked for."""
    await place.waits()
    line.fault = lambda method, path: BROKEN
    await place.passes(1)
    assert list((await place.states()).values()) == ["ASKED"]
    assert len(place.rented.running()) == 1
    with pytest.raises(TryAgain, match="not stored yet"):
        await place.join(place.rented.running()[0])
    line.fault = lambda method, path: None
    await place.passes(2)
    assert list((await place.states()).values()) == ["STARTING"]
    assert len(place.rented.running()) == 1


async def test_while_the_provider_is_away_nothing_is_doubled(place: Place, line: Between) -> None:
    """What it never got is sent again once it is back, by the same row."""
    await place.waits()
    line.fault = lambda method, path: "gone"
    await place.passes(3)
    assert place.rented.running() == []
    line.fault = lambda method, path: None
    await place.later(31)
    await place.passes(4)
    assert len(place.rented.running()) == 1
    assert list((await place.states()).values()) == ["STARTING"]


async def test_what_is_refused_rests_and_says_why(place: Place, api: Api) -> None:
    """Twice as long after each; then it is asked for again."""
    provider = provider_settings(endpoint_url=place.api.master.settings.pools[0].provider.endpoint_url)  # type: ignore[union-attr]
    wrong = provider.model_copy(update={"network_interface": NetworkInterfaceSettings(subnet_id="subnet-nowhere")})
    place.loop.use_pools([PoolSettings(name="default", provider=wrong)])
    await place.waits()
    await place.passes(3)
    assert list((await place.states()).values()) == ["FAILED"]
    async with api.master.db.connection() as conn:
        [row] = await machines.all_of(conn, ended=True)
        rest = (await machines.rests(conn))["default"]
    assert row.story.startswith("network_interface.subnet_id is none of that region (InvalidSubnetID")
    assert rest.why == row.story
    await place.later(61)
    await place.passes(3)
    assert list((await place.states()).values()) == ["FAILED", "FAILED"]
    await place.later(61)
    await place.passes(3)
    assert len(await place.states()) == 2


async def test_a_machine_that_does_not_join_is_ended(place: Place) -> None:
    """After its starting period; its token is of no use then."""
    await place.waits()
    await place.passes(2)
    [instance] = place.rented.running()
    await place.later(1201)
    await place.passes(2)
    assert place.rented.running() == []
    with pytest.raises(Forbidden, match="join token is wrong"):
        await place.join(instance)
    await place.passes(2)
    assert list((await place.states()).values()) == ["GONE"]


async def test_a_machine_with_fewer_slots_than_were_rented_is_ended(place: Place) -> None:
    """And counts as one that never joined: no circle of machines that come and go."""
    await place.waits()
    await place.passes(2)
    await place.join(place.rented.running()[0], has=1)
    await place.execute("update allocations set slots = 2")
    await place.passes(2)
    assert place.rented.running() == []
    async with place.api.master.db.connection() as conn:
        assert "fewer slots than were rented" in (await machines.rests(conn))["default"].why


async def test_what_carries_our_mark_and_has_no_row_is_ended_after_two_looks(place: Place) -> None:
    """And has a row from then on; what carries another cluster's is left alone."""
    cluster = str(place.api.master.cluster.cluster_id)
    ours = place.rented.launch({"tenax-cluster": cluster, "tenax-machine": "m-old", "tenax-pool": "default"})
    theirs = place.rented.launch({"tenax-cluster": "another"})
    await place.passes(1)
    assert set(place.rented.running()) == {ours, theirs}
    await place.passes(3)
    assert place.rented.running() == [theirs]
    async with place.api.master.db.connection() as conn:
        [row] = await machines.all_of(conn, ended=True)
    assert (row.provider_id, row.story) == (ours, "it carries the mark of this cluster and has no row: it is ended")


async def test_a_machine_that_was_given_work_is_not_ended(place: Place, api: Api) -> None:
    """Whatever was decided before: its agent is looked at once more, and held."""
    await place.waits()
    await place.passes(2)
    name = await place.join(place.rented.running()[0])
    async with api.master.db.connection() as conn:
        row = await machines.get(conn, name)
    experiment: Any = (await create(api))["experiment"]
    async with api.master.db.transaction() as conn:
        await run_attempt(conn, await add_trial(conn, experiment["id"]), (name,))
    await place.loop._retire(KillableContext(api, place._lease, place.point), row, "idle")
    assert await place.states() == {name: "JOINED"}


async def test_a_machine_that_somebody_else_ends_is_noticed(place: Place) -> None:
    """Its row ends with its agent, and another one is rented for what waits."""
    await place.waits()
    await place.passes(2)
    [instance] = place.rented.running()
    await place.join(instance)
    place.rented.terminate(instance)
    await place.execute("update agent_presence set connected = false")
    place.loop = place._begun()
    await place.passes(4)
    assert sorted((await place.states()).values()) == ["GONE", "STARTING"]


async def test_a_token_lets_in_its_machine_alone_and_once(place: Place, api: Api) -> None:
    """Neither another id nor another pool, nor a second agent."""
    await place.waits()
    await place.passes(2)
    [instance] = place.rented.running()
    found = re.search(r"^(tnxm_\S+)$", place.rented.user_data(instance), re.MULTILINE)
    assert found is not None
    hub: Hub = api.master.hub
    with pytest.raises(Forbidden, match="is for the machine m-"):
        await hub.join(JoinRequest("another", found[1], "default", None), None)
    name = await place.join(instance)
    with pytest.raises(Forbidden, match="used up"):
        await hub.join(JoinRequest(name, found[1], "default", None), None)
    async with api.master.db.connection() as conn:
        assert await conn.fetchval("select token_hash from machines") is None


async def test_where_nothing_is_rented_nobody_is_asked_anything(place: Place, line: Between) -> None:
    """One look for what earlier settings left; then not even a statement."""
    place.loop.use_pools([PoolSettings(name="default")])
    await place.passes(1)
    place.loop.use_pools([PoolSettings(name="default")])
    await place.passes(1)
    assert line.requests == []
    assert await place.loop.make_pass(None, EVERYTHING) is None  # type: ignore[arg-type]


async def test_a_pool_that_rents_no_more_lets_its_machines_go(place: Place) -> None:
    """One that works takes nothing new, and is ended once it is idle; whatever was only planned is withdrawn."""
    await place.waits()
    await place.passes(2)
    name = await place.join(place.rented.running()[0])
    place.loop.use_pools([PoolSettings(name="default")])
    await place.execute("update agent_presence set connected = false")
    await place.passes(6)
    assert await place.states() == {name: "GONE"}
    assert place.rented.running() == []
