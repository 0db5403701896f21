"""A loop that rents machines at each provider, pass by pass: its master may be killed at every point."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tenax.config.master import MasterSettings, PoolSettings
from tenax.config.provider.gcp import AnyProviderSettings
from tenax.lifecycle.machine import MachineNews
from tenax.master.loops.loop import PassContext
from tenax.master.loops.scaling import ScalingLoop
from tenax.master.provision.port import (
    MachineOrder,
    MachinePart,
    OfferAnswers,
    PartsAnswer,
    Provider,
    ProviderFinding,
    ProviderPlace,
    SeenMachine,
)
from tenax.master.provision.registry import open_provider
from tenax.master.store.agents import rows as agents
from tenax.master.store.database import leases
from tenax.master.store.database.paging import Page
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.machines import rows as machines
from tenax.master.store.webhooks import rows as webhooks
from tenax.master.store.webhooks.rows import TriggerRow, WebhookRow
from tenax.wire.agents import Hello, JoinRequest, SlotInfo
from tests.kits.api import Api
from tests.kits.master.experiments import create
from tests.kits.object_server import REFUSED, Between, Refusal, between
from tests.kits.rented import RentedAtMoto, moto
from tests.kits.rented_gcp import RentedAtGoogle, google
from tests.kits.rows import add_trial, request_attempt

EVERYTHING = Woken(frozenset(), full=True)
#: Refusals of AWS.
NO_CAPACITY = "InsufficientInstanceCapacity", "We currently do not have sufficient m5.large capacity."
DENIED = (
    "UnauthorizedOperation",
    "User: arn:aws:iam::1:user/a is not authorized to perform: ec2:RunInstances on resource",
)


#: What there is at the server of one provider's protocol.
RentedSomewhere = RentedAtMoto | RentedAtGoogle


@pytest.fixture(scope="module", params=["aws", "gcp"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RentedSomewhere]:
    """One of each for the module: it takes a while to begin."""
    with moto() if request.param == "aws" else google(tmp_path_factory.mktemp("google")) as rented:
        yield rented


@pytest.fixture
def rented(server: RentedSomewhere, monkeypatch: pytest.MonkeyPatch) -> RentedSomewhere:
    """With nothing running."""
    for name, value in server.account.items():
        monkeypatch.setenv(name, value)
    for instance in server.running():
        server.terminate(instance)
    if isinstance(server, RentedAtGoogle):
        server.engine.reset()
    return server


@pytest.fixture
def line(rented: RentedSomewhere) -> Iterator[Between]:
    """What stands between the master and the provider."""
    with between(rented.url) as passing:
        yield passing


@pytest.fixture
def master_settings(master_settings: MasterSettings, rented: RentedSomewhere, line: Between) -> MasterSettings:
    """Machines of two slots, at most two."""
    provider = rented.settings(endpoint_url=line.url, max_instances=2, max_idle_agent_period=60.0)
    return master_settings.model_copy(update={"pools": (PoolSettings(name="default", provider=provider),)})


def use(place: Place, **changes: Any) -> None:
    """Other settings of the provider from now on."""
    [pool] = place.api.master.settings.pools
    assert pool.provider is not None
    provider = place.rented.settings(endpoint_url=pool.provider.endpoint_url, **{"max_instances": 2, **changes})
    place.loop.use_pools([PoolSettings(name="default", provider=provider)])


def refusing(line: Between, code: str, message: str) -> None:
    """The provider refuses from now on."""
    body = f"<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors></Response>"
    line.refusal = Refusal(body.encode(), {"Content-Type": "text/xml"})
    line.fault = lambda method, path: REFUSED


class Killed(BaseException):
    """The master was, here: nothing that is there for errors meets it."""


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

    async def ask(self, offers: Sequence[AnyProviderSettings]) -> OfferAnswers:
        return await self._provider.ask(offers)

    async def check(self, settings: AnyProviderSettings) -> Sequence[ProviderFinding]:
        return await self._provider.check(settings)

    async def parts(self) -> PartsAnswer:
        return await self._provider.parts()

    async def remove(self, part: MachinePart) -> None:
        await self._provider.remove(part)

    async def _reached(self, call: Callable[[], Awaitable[Any]]) -> Any:
        self._point.reach()
        answer = await call()
        self._point.reach()
        return answer


class Place:
    """The loop, pass by pass; killed, it begins again with nothing in memory."""

    def __init__(self, api: Api, rented: RentedSomewhere, lease: leases.Lease) -> None:
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
        await self.execute(f"update offer_rests set since = since - {by}, until = until - {by}")

    async def states(self) -> dict[str, str]:
        """Of all machines, ended ones too."""
        async with self.api.master.db.connection() as conn:
            return {row.machine_id: row.state.value for row in await machines.all_of(conn, ended=True)}

    async def listen(self) -> None:
        """A webhook of all workspaces is told of all machines from now on."""
        triggers = tuple(TriggerRow("MACHINE", {"event": each.value}) for each in MachineNews)
        async with self.api.master.db.transaction() as conn:
            hook = WebhookRow("machines", "http://192.0.2.7/", "DEFAULT", "WORKSPACE", None, triggers)
            await webhooks.create(conn, hook, 1)

    async def deliveries(self) -> list[tuple[str, Any]]:
        """What is in its queue, the oldest first: the event, and what it is about."""
        async with self.api.master.db.connection() as conn:
            [hook] = await webhooks.listed(conn)
            sent = await webhooks.deliveries(conn, hook.id, Page(limit=100))
        events: list[Any] = [each.event for each in reversed(sent)]
        assert {each["event_type"] for each in events} <= {"MACHINE"}
        return [(each["condition"]["event"], next(iter(each["event_data"].values()))) for each in events]

    async def waits(self, slots: int = 1) -> str:
        """An attempt that waits."""
        experiment: Any = (await create(self.api))["experiment"]
        async with self.api.master.db.transaction() as conn:
            return await request_attempt(conn, await add_trial(conn, experiment["id"]), slots)

    async def rented_one(self) -> str:
        """A machine that starts; its id."""
        await self.waits()
        await self.passes(2)
        return self.told(self.rented.running()[0])[1]

    def told(self, instance: str) -> tuple[str, str]:
        """Token and id of the agent of an instance, as in its user data."""
        script = self.rented.user_data(instance)
        found = re.search(r"^(tnxm_\S+)$", script, re.MULTILINE), re.search(r"--agent-id (\S+)", script)
        assert found[0]
        assert found[1]
        return found[0][1], found[1][1]

    async def join(self, instance: str, has: int = 2, holds: Sequence[str] = ()) -> str:
        """The agent of an instance joins, by what its user data say, and is heard; its id.

        ``holds``: containers of this cluster that its database does not know.
        """
        token, name = self.told(instance)
        await self.api.master.hub.join(JoinRequest(name, token, "default", None), None)
        slots = [SlotInfo(number, "cpu", "core", f"cpu-{number}") for number in range(has)]
        hello = Hello(1, "0.1.0", name, "process", slots, [])
        cluster = str(self.api.master.cluster.cluster_id)
        foreign: list[Any] = [{"container_id": each, "cluster_id": cluster, "state": "running"} for each in holds]
        async with self.api.master.db.transaction() as conn:
            await agents.open_session(conn, name, hello, "10.0.0.1", foreign)
        return name


@pytest.fixture
async def place(api: Api, rented: RentedSomewhere) -> Place:
    async with api.master.db.transaction() as conn:
        lease = await leases.acquire(conn, "scaling", "test", 3600.0)
    assert lease is not None
    return Place(api, rented, lease)
