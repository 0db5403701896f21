"""Machines are rented, of each provider: pass by pass, killed at every point, answers lost, strays and refusals."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from tenax.config.master import PoolSettings
from tenax.errors import Forbidden, TryAgain
from tenax.ids import PoolName
from tenax.lifecycle.notice import Heeded, NoticePlan
from tenax.master.agents.hub import Hub
from tenax.master.provision.offers import decided
from tenax.master.store.agents import notices
from tenax.master.store.agents import rows as agents
from tenax.master.store.machines import rows as machines
from tenax.scheduler.snapshot import PoolSnapshot
from tenax.wire.agents import JoinRequest
from tests.kits.api import Api
from tests.kits.compute_engine import ZONES, Refused
from tests.kits.master.experiments import create
from tests.kits.master.scaling import (
    DENIED,
    EVERYTHING,
    NO_CAPACITY,
    KillableContext,
    Place,
    line,
    master_settings,
    place,
    refusing,
    rented,
    server,
    use,
)
from tests.kits.object_server import BROKEN, Between
from tests.kits.rented_gcp import RentedAtGoogle
from tests.kits.rows import add_trial, run_attempt

__all__ = ["line", "master_settings", "place", "rented", "server"]

at_moto = pytest.mark.parametrize("server", ["aws"], indirect=True)
at_google = pytest.mark.parametrize("server", ["gcp"], indirect=True)


async def test_from_none_to_one_and_back(place: Place) -> None:
    """A row, a call, an answer; it joins, works, is idle, closed, ended, and forgotten with its agent."""
    await place.waits()
    await place.passes(2)
    [instance] = place.rented.running()
    [(name, state)] = (await place.states()).items()
    assert state == "STARTING"
    tags = place.rented.marks(instance)
    assert (tags["tenax-machine"], tags["tenax-pool"]) == (name, "default")
    assert place.rented.people_mark in tags.items()
    assert tags["tenax-cluster"] == str(place.api.master.cluster.cluster_id)
    assert await place.join(instance) == name
    await place.passes(2)
    assert await place.states() == {name: "JOINED"}
    # What waited is over; the machine is idle.
    await place.execute("update allocations set state = 'TERMINATED', ended_at = now()")
    await place.later(20)
    await place.passes(2)
    assert await place.states() == {name: "JOINED"}
    await place.later(40)
    await place.passes(2)
    assert place.rented.running() == []
    async with place.api.master.db.connection() as conn:
        assert await conn.fetchval("select state from agents") == "DISABLED"
    await place.execute("update agent_presence set connected = false")
    # What is not listed any more is looked for twice.
    await place.passes(4)
    assert await place.states() == {name: "GONE"}
    async with place.api.master.db.connection() as conn:
        assert await conn.fetchval("select count(*) from agents") == 0


#: Before and after: the rows, that it is sent, the call, its answer.
@pytest.mark.parametrize("point", range(1, 9))
async def test_killed_at_any_point_of_renting_there_is_one_machine(place: Place, point: int) -> None:
    """A new master finds what the killed one has done, by rows and marks, and does the rest once; it is told once."""
    await place.listen()
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
    assert [event for event, _ in await place.deliveries()] == ["LAUNCHED"]


#: Before and after: that its agent is closed, that its end is sent, the call, the removal.
@pytest.mark.parametrize("point", range(1, 9))
async def test_killed_at_any_point_of_ending_nothing_is_left(place: Place, point: int) -> None:
    """The machine ends, and its row and its agent go with it; it is told once."""
    await place.listen()
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
    assert [event for event, _ in await place.deliveries()] == ["LAUNCHED", "ENDED"]


async def test_an_answer_that_is_lost_is_looked_up(place: Place, line: Between) -> None:
    """The machine was made; it is found by its mark, and no other is asked for."""
    await place.waits()
    line.fault = lambda method, path: BROKEN if method == "POST" else None
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


async def notes(place: Place) -> dict[str, str]:
    """What is said of offers that are not used."""
    async with place.api.master.db.transaction() as conn:
        there = (await machines.of_pools(conn)).get("default")
        at = await conn.fetchval("select extract(epoch from now())::float8")
    [pool] = place.loop._pools
    assert pool.provider is not None
    snapshot = PoolSnapshot(PoolName("default"), (), {}, (), at=at)
    return dict(decided(pool, pool.provider, snapshot, there).not_used)


@at_moto
async def test_without_capacity_the_next_zone_has_its_turn(place: Place, line: Between) -> None:
    """By another row, with its own key; the zone rests a minute, and twice as long after each time in a row."""
    use(place, offers=({"zones": ("us-west-2a", "us-west-2b")},), max_instances=1)
    await place.waits()
    refusing(line, *NO_CAPACITY)
    await place.passes(1)
    told = await notes(place)
    assert list(told) == ["m5.large in us-west-2a"]
    assert "because: the provider has none of that type there now (InsufficientInstanceCapacity" in told.popitem()[1]
    place.loop = place._begun()
    use(place, offers=({"zones": ("us-west-2a", "us-west-2b")},), max_instances=1)
    line.fault = lambda method, path: None
    await place.passes(3)
    assert sorted((await place.states()).values()) == ["FAILED", "STARTING"]
    [machine] = [each for each in place.rented.instances() if each["State"]["Name"] == "running"]
    assert machine["Placement"]["AvailabilityZone"] == "us-west-2b"


@at_moto
async def test_what_is_not_allowed_is_off_until_the_settings_change(place: Place, line: Between) -> None:
    """It names the right that is missing; with other settings it is asked for again."""
    await place.waits()
    refusing(line, *DENIED)
    await place.passes(1)
    [(name, why)] = (await notes(place)).items()
    assert name == "m5.large in us-west-2"
    assert "is off until the settings of its pool's provider change" in why
    assert "allow ec2:RunInstances, see tenax machine policy (UnauthorizedOperation" in why
    line.fault = lambda method, path: None
    await place.later(90_000)
    await place.passes(2)
    assert list((await place.states()).values()) == ["FAILED"]
    use(place, instance_name="another")
    await place.passes(2)
    assert sorted((await place.states()).values()) == ["FAILED", "STARTING"]


@at_moto
async def test_what_is_refused_rests_and_says_why(place: Place, line: Between) -> None:
    """Twice as long after each; then it is asked for again."""
    await place.waits()
    refusing(line, "SomethingNew", "nobody knows")
    await place.passes(3)
    assert list((await place.states()).values()) == ["FAILED"]
    assert "because: SomethingNew: nobody knows" in str(await notes(place))
    await place.later(61)
    await place.passes(3)
    assert list((await place.states()).values()) == ["FAILED", "FAILED"]
    assert "2 in a row failed, the last: SomethingNew" in str(await notes(place))
    await place.later(61)
    await place.passes(3)
    assert len(await place.states()) == 2


async def test_three_in_a_row_that_never_join_stop_their_offer(place: Place) -> None:
    """And it says so; one that joins between them begins the count anew."""
    await place.listen()
    await place.waits()
    for _ in range(6):
        await place.passes(3)
        await place.later(1201)
    await place.passes(3)
    assert "is off until" in str(await notes(place))
    assert "3 in a row failed, the last: its agent did not join in time" in str(await notes(place))
    await place.later(90_000)
    await place.passes(3)
    assert list((await place.states()).values()) == ["GONE"] * 3
    sent = await place.deliveries()
    assert Counter(event for event, _ in sent) == {"LAUNCHED": 3, "FAILED": 3, "ENDED": 3, "OFFER_OFF": 1}
    [off] = [it for event, it in sent if event == "OFFER_OFF"]
    assert (off["resource_pool"], off["cause"]) == ("default", "NEVER_JOINED")


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
    await place.passes(4)
    assert list((await place.states()).values()) == ["GONE"]


async def test_a_machine_with_fewer_slots_than_were_rented_is_ended(place: Place) -> None:
    """And counts as one that never joined: no circle of machines that come and go."""
    await place.waits()
    await place.passes(2)
    await place.join(place.rented.running()[0], has=1)
    await place.execute("update allocations set slots = 2")
    await place.passes(2)
    assert place.rented.running() == []
    assert "fewer slots than were rented" in str(await notes(place))


async def test_what_carries_our_mark_and_has_no_row_is_ended_after_two_looks(place: Place) -> None:
    """Where no agent can be asked; it has a row from then on, and what carries another cluster's is left alone."""
    await place.listen()
    cluster = str(place.api.master.cluster.cluster_id)
    ours = place.rented.launch({"tenax-cluster": cluster, "tenax-machine": "m-old", "tenax-pool": "default"})
    theirs = place.rented.launch({"tenax-cluster": "another"})
    await place.passes(1)
    assert set(place.rented.running()) == {ours, theirs}
    await place.passes(3)
    assert place.rented.running() == [theirs]
    async with place.api.master.db.connection() as conn:
        [row] = await machines.all_of(conn, ended=True)
    assert (row.provider_id, row.story) == (
        ours,
        "it carries the mark of this cluster, and nobody knows of it: it is ended",
    )
    orphans = [it["provider_id"] for event, it in await place.deliveries() if event == "ORPHAN"]
    assert orphans == [ours]


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


async def joined_at_work(place: Place, notice: str) -> str:
    """A machine that works, and of whose agent there is a notice; its id."""
    await place.waits()
    await place.passes(2)
    name = await place.join(place.rented.running()[0])
    await place.passes(2)
    async with place.api.master.db.transaction() as conn:
        experiment: Any = (await create(place.api))["experiment"]
        await conn.execute("update allocations set state = 'TERMINATED', ended_at = now()")
        attempt = await run_attempt(conn, await add_trial(conn, experiment["id"], 2), (name,))
        await conn.execute("update allocations set ready_at = now() where allocation_id = $1", attempt.allocation_id)
    await heed(place, name, notice)
    return name


async def heed(place: Place, name: str, plan: str | None) -> None:
    notice = None if plan is None else Heeded(NoticePlan[plan], "it is taken back at noon", 120.0)
    async with place.api.master.db.transaction() as conn:
        session = (await agents.standing(conn, name)).session
        assert await notices.put(conn, name, session, notice)


async def asked(place: Place) -> list[str]:
    """Why attempts were asked to leave."""
    async with place.api.master.db.connection() as conn:
        rows = await conn.fetch("select preemption_reason from allocations where preemption <> 'NONE'")
    return [row["preemption_reason"] for row in rows]


async def test_for_a_machine_that_is_taken_back_another_is_rented_at_once(place: Place) -> None:
    """While its work still saves there; where that was not to go on, none is."""
    name = await joined_at_work(place, "LEAVE")
    await place.execute("update experiments set state = 'PAUSED'")
    await place.passes(2)
    assert await place.states() == {name: "LEAVING"}
    await place.execute("update experiments set state = 'ACTIVE'")
    await place.passes(2)
    states = await place.states()
    assert (states.pop(name), list(states.values())) == ("LEAVING", ["STARTING"])
    await place.passes(2)
    assert len(place.rented.running()) == 2


async def test_a_machine_stays_whose_notice_is_taken_back(place: Place) -> None:
    """It takes work again, and is ended for nothing but what ends any other."""
    await place.listen()
    name = await joined_at_work(place, "DRAIN")
    await heed(place, name, "DRAIN")
    await place.passes(2)
    assert [(event, it["id"], it["why"]) for event, it in (await place.deliveries())[1:]] == [
        ("NOTICE", name, "it is taken back at noon")
    ]
    async with place.api.master.db.connection() as conn:
        row = await machines.get(conn, name)
    assert (row.state.value, row.story, row.notice) == ("LEAVING", *["it is taken back at noon"] * 2)
    await heed(place, name, None)
    await place.passes(2)
    assert await place.states() == {name: "JOINED"}
    assert await asked(place) == []


async def test_work_is_moved_once_a_machine_is_there_in_the_place_of_the_first(place: Place) -> None:
    """Where the pool replaces first what may be taken back."""
    name = await joined_at_work(place, "REPLACE")
    await place.passes(3)
    assert await asked(place) == []
    assert (await place.states())[name] == "LEAVING"
    [second] = [each for each in place.rented.running() if name not in place.rented.user_data(each)]
    await place.join(second)
    await place.passes(3)
    assert await asked(place) == ["it is taken back at noon"]


@at_google
async def test_a_machine_that_was_not_made_after_all_says_why(place: Place) -> None:
    """Its order was taken, and failed later; the next zone has its turn, and this one rests longer each time."""
    assert isinstance(place.rented, RentedAtGoogle)
    use(place, zone=None, zones=ZONES[:2], max_instances=1)
    place.rented.engine.exhausted = {ZONES[0]}
    await place.waits()
    await place.passes(4)
    [(name, why)] = (await notes(place)).items()
    assert name == f"e2-standard-2 in {ZONES[0]}"
    assert "because: the provider has none of that type there now (ZONE_RESOURCE_POOL_EXHAUSTED_WITH_" in why
    assert sorted((await place.states()).values()) == ["FAILED", "STARTING"]
    [instance] = place.rented.running()
    assert instance.startswith(ZONES[1])


@at_google
async def test_an_order_that_may_fail_yet_ends_no_rest(place: Place, line: Between) -> None:
    """That it was taken says little; nor, once its answer was lost, that it is listed."""
    assert isinstance(place.rented, RentedAtGoogle)
    place.rented.engine.exhausted = {ZONES[0]}
    await place.waits()
    await place.passes(4)
    await place.later(61)
    await place.passes(4)
    assert "2 in a row failed, the last: the provider has none" in str(await notes(place))
    place.rented.engine.stuck = True
    line.fault = lambda method, path: BROKEN if method == "POST" else None
    await place.later(121)
    await place.passes(1)
    line.fault = lambda method, path: None
    await place.passes(1)
    assert sorted((await place.states()).values()) == ["FAILED", "FAILED", "STARTING"]
    async with place.api.master.db.connection() as conn:
        assert await conn.fetchval("select failures from offer_rests") == 2


@at_google
async def test_what_google_does_not_allow_names_the_right(place: Place) -> None:
    """And is off in all zones until the settings change."""
    assert isinstance(place.rented, RentedAtGoogle)
    use(place, zone=None, zones=ZONES[:2])
    message = "Required 'compute.instances.create' permission for 'projects/my-project'"
    place.rented.engine.refusal = Refused(403, "forbidden", message)
    await place.waits()
    await place.passes(3)
    told = await notes(place)
    assert list(told) == [f"e2-standard-2 in {zone}" for zone in ZONES[:2]]
    for why in told.values():
        assert "is off until the settings of its pool's provider change" in why
        assert "lacks a right: allow compute.instances.create (forbidden: Required" in why
    place.rented.engine.refusal = None
    await place.later(90_000)
    await place.passes(2)
    assert place.rented.running() == []
    use(place, zone=None, zones=ZONES[:2], name_prefix="another-")
    await place.passes(2)
    assert len(place.rented.running()) == 1


@at_google
async def test_what_a_machine_of_google_costs_is_written_with_it(place: Place, api: Api) -> None:
    """And limits how many there are."""
    use(place, price=2.0, max_cost_per_hour=3.0)
    await place.waits(2)
    await place.waits(2)
    await place.passes(2)
    async with api.master.db.connection() as conn:
        [row] = await machines.all_of(conn)
    assert (row.offer, row.price, row.instance_type) == (f"e2-standard-2 in {ZONES[0]}", 2.0, "e2-standard-2")
