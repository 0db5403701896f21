"""How many machines are rented, which are let go, and what those that wait are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenax.errors import NotFound, NotNow
from tenax.ids import AgentId, AllocationId, JobId
from tenax.scheduler.demand import (
    MachineStage,
    RentedMachine,
    ScalingLimits,
    demand,
    desired_new,
    is_idle,
    launch_count,
    retired,
)
from tenax.scheduler.offers import MachineOffer, OfferRest, by_hand, most_machines
from tenax.scheduler.registry import plan
from tenax.scheduler.snapshot import AgentState, Phase, PoolSnapshot
from tests.kits.builders.pool import Pool, agent
from tests.kits.cases import answers, collect, load
from tests.scheduler.pools import pools

FOUR = MachineOffer("g5.12xlarge in us-west-2", 4)
COMING, HERE = MachineStage.COMING, MachineStage.HERE


def machine(name: str, stage: MachineStage = HERE, **changes: object) -> RentedMachine:
    return RentedMachine(AgentId(name), stage, **{"offer": FOUR.name, "slots": 4, **changes})  # type: ignore[arg-type]


def with_coming(count: int, offer: MachineOffer = FOUR) -> list[RentedMachine]:
    return [machine(f"m{number}", COMING, offer=offer.name, slots=offer.slots) for number in range(count)]


def imaginary(snapshot: PoolSnapshot, offer: MachineOffer, count: int) -> PoolSnapshot:
    return replace(snapshot, agents=(*snapshot.agents, *offer.agents(count)))


limits = st.builds(
    lambda low, more, by_slots: ScalingLimits(low, low + more, 60.0, by_slots),
    st.integers(0, 2),
    st.integers(1, 4),
    st.booleans(),
)
offers = st.builds(MachineOffer, st.just("some"), st.integers(0, 4), aux_places=st.integers(0, 2))
stages = st.lists(st.sampled_from(list(MachineStage)), max_size=5)


@given(pools(), offers, limits, stages)
@settings(deadline=None)
def test_never_more_than_there_may_be(
    pool: Pool, offer: MachineOffer, its: ScalingLimits, present: list[MachineStage]
) -> None:
    """Those that are ending are counted: they may still run."""
    machines = [machine(f"m{number}", stage) for number, stage in enumerate(present)]
    decided = demand(pool.snapshot, [offer], its, machines)
    assert decided.launch == 0 or decided.launch + len(machines) <= its.max_instances


@given(pools(), offers, limits, st.integers(0, 3))
@settings(deadline=None)
def test_carried_out_and_asked_again_it_wants_nothing(
    pool: Pool, offer: MachineOffer, its: ScalingLimits, coming: int
) -> None:
    """What comes is counted before anything is rented."""
    first = demand(pool.snapshot, [offer], its, with_coming(coming, offer))
    again = demand(pool.snapshot, [offer], its, with_coming(coming + first.launch, offer))
    assert again.launch == 0
    assert not again.end


@given(pools(), offers, st.integers(0, 5))
@settings(deadline=None)
def test_nothing_is_rented_that_the_planner_would_not_use(pool: Pool, offer: MachineOffer, most: int) -> None:
    """Were the machines there, each would be given something of what waits."""
    snapshot = replace(
        pool.snapshot, requests=tuple(each for each in pool.snapshot.requests if each.phase is not Phase.RELEASING)
    )
    if plan(snapshot).preempt:
        return
    decided = demand(snapshot, [offer], ScalingLimits(max_instances=most), [])
    placed = plan(imaginary(snapshot, offer, decided.launch)).placements
    used = {member.agent_id for members in placed.values() for member in members}
    assert {each.id for each in offer.agents(decided.launch)} <= used
    assert set(decided.wanted_by) == placed.keys() - plan(snapshot).placements.keys() or not decided.launch


@given(pools(), offers, limits, st.integers(0, 2))
@settings(deadline=None)
def test_reasons_agree_with_what_is_done(pool: Pool, offer: MachineOffer, its: ScalingLimits, coming: int) -> None:
    """Whoever a machine is rented for is told so; nobody is told of both one that comes and why none does."""
    decided = demand(pool.snapshot, [offer], its, with_coming(coming, offer))
    assert set(decided.wanted_by) <= decided.coming_for.keys()
    assert not decided.coming_for.keys() & decided.none_for.keys()
    pending = {each.allocation_id for each in pool.snapshot.requests if each.phase is Phase.PENDING}
    assert decided.coming_for.keys() | decided.none_for.keys() <= pending
    explained = decided.explained(pool.plan().waiting)
    assert explained.keys() == pool.plan().waiting.keys()
    assert all(len(reason.split()) >= 4 for reason in explained.values())


@given(st.lists(st.tuples(st.sampled_from(list(MachineStage)), st.sampled_from([None, 0.0, 59.0, 60.0, 1e4]))), limits)
def test_no_machine_with_work_is_ended(given: list[tuple[MachineStage, float | None]], its: ScalingLimits) -> None:
    """Nor one that comes, and never so many that fewer are left than there must be."""
    machines = [machine(f"m{number}", stage, idle_s=idle) for number, (stage, idle) in enumerate(given)]
    end, drain = retired(machines, its)
    by_id = {each.id: each for each in machines}
    assert all(by_id[name].stage is HERE and by_id[name].idle_s is not None for name in end)
    assert not end.keys() & drain.keys()
    lasting = sum(each.stage in (COMING, HERE) for each in machines)
    assert lasting - len(end) - len(drain) >= min(lasting, its.min_instances)


def test_a_waiting_request_gets_a_machine_and_free_slots_none() -> None:
    """What an agent of one's own has room for is not rented for."""
    pool = Pool([agent("own", 2)]).ask("small", 2).ask("large", 4)
    decided = demand(pool.snapshot, [FOUR], ScalingLimits(), [])
    assert (decided.launch, decided.wanted_by) == (1, ("large",))
    assert decided.coming_for == {
        AllocationId("large"): "waits for a machine: g5.12xlarge in us-west-2, which is being asked for"
    }


def test_what_comes_is_told_with_the_time_of_asking() -> None:
    """An instant, so that the sentence stays the same."""
    pool = Pool([]).ask("large", 4)
    decided = demand(pool.snapshot, [FOUR], ScalingLimits(), [machine("m1", COMING, since=40.0)])
    assert decided.launch == 0
    assert list(decided.coming_for.values()) == [
        "waits for a machine: g5.12xlarge in us-west-2, asked for at 00:00:40 UTC"
    ]


def test_a_gang_gets_all_of_its_machines_or_none() -> None:
    """Of a request that never fits nothing is rented."""
    assert demand(Pool([]).ask("gang", 12).snapshot, [FOUR], ScalingLimits(max_instances=3), []).launch == 3
    too_large = demand(Pool([]).ask("gang", 12).snapshot, [FOUR], ScalingLimits(max_instances=2), [])
    assert (too_large.launch, too_large.none_for) == (0, {})
    assert demand(Pool([]).ask("one", 5, single_node=True).snapshot, [FOUR], ScalingLimits(), []).launch == 0


def test_slots_that_are_being_released_are_waited_for() -> None:
    """What will be free in a moment is not rented again."""
    pool = Pool([agent("own", 4)]).run("old", 4, "own").ask("new", 4)
    assert demand(pool.snapshot, [FOUR], ScalingLimits(), []).launch == 1
    pool.requests[AllocationId("old")] = replace(pool.requests[AllocationId("old")], phase=Phase.RELEASING)
    assert demand(pool.snapshot, [FOUR], ScalingLimits(), []).launch == 0


def test_caps_and_quotas_hold_for_what_is_rented() -> None:
    """Of a job that may hold four slots one machine is rented, of one whose limit is spent none."""
    capped = Pool([]).job("j", max_slots=4).ask("a", 4, "j").ask("b", 4, "j")
    assert demand(capped.snapshot, [FOUR], ScalingLimits(), []).launch == 1
    spent = Pool([]).limit("mine", spent="all is used").job("j", limits=("mine",)).ask("a", 4, "j")
    assert demand(spent.snapshot, [FOUR], ScalingLimits(), []).launch == 0


def test_at_the_most_and_at_rest_it_says_so() -> None:
    """And why, and until when."""
    pool = Pool([]).ask("a", 4)
    full = demand(pool.snapshot, [FOUR], ScalingLimits(max_instances=1), [machine("m1", MachineStage.ENDING)])
    assert list(full.none_for.values()) == ["no machine is rented for it: there are 1, and max_instances is 1"]
    rest = OfferRest(60.0, "the provider has none of that type (InsufficientInstanceCapacity)")
    resting = demand(pool.snapshot, [FOUR], ScalingLimits(), [], {FOUR.name: rest})
    assert resting.launch == 0
    assert list(resting.explained({AllocationId("a"): "waits for 4 free slots"}).values()) == [
        "waits for 4 free slots; no machine is rented for it: offer g5.12xlarge in us-west-2 rests until 00:01:00 UTC "
        "because: the provider has none of that type (InsufficientInstanceCapacity)"
    ]
    assert demand(replace(pool.snapshot, at=60.0), [FOUR], ScalingLimits(), [], {FOUR.name: rest}).launch == 1


SPENT = "the budget of pool p of 60 for 2026-11 is used up"


def test_once_the_money_is_spent_nothing_is_rented() -> None:
    """What waits says why; what is there works on, and there need not be as many as at least there are otherwise."""
    pool = Pool([agent("m1", 4, rented=True)]).run("a", 4, on="m1").ask("b", 4)
    scaling = demand(pool.snapshot, [FOUR], ScalingLimits(min_instances=2, spent=SPENT), [machine("m1")])
    assert (scaling.launches, scaling.end, scaling.drain, scaling.leave) == ((), {}, {}, {})
    assert list(scaling.none_for.values()) == [f"no machine is rented for it: {SPENT}"]


def test_money_that_stops_lets_go_what_is_there() -> None:
    """What is idle ends, what works takes nothing new, and what can be preempted there is asked to leave."""
    pool = Pool([agent(name, 4, rented=name != "own") for name in ("m1", "m2", "m3", "own")])
    pool.run("a", 4, on="m1").run("b", 4, on="m2", preemptible=False).run("c", 4, on="own").ask("d", 4)
    machines = [machine("m1"), machine("m2"), machine("m3", idle_s=0.0)]
    scaling = demand(pool.snapshot, [FOUR], ScalingLimits(min_instances=2, spent=SPENT, stops=True), machines)
    assert scaling.launches == ()
    assert scaling.end == {AgentId("m3"): SPENT}
    assert scaling.drain == {AgentId("m1"): SPENT, AgentId("m2"): SPENT}
    assert scaling.leave == {AllocationId("a"): SPENT}


def test_money_that_stops_lets_go_what_goes_on_elsewhere_once_there_is_room() -> None:
    """There will be none: nothing is rented for it."""
    pool = Pool([agent("m1", 4, rented=True)]).run("a", 4, on="m1")
    returning = frozenset({AllocationId("a")})
    machines = [machine("m1", MachineStage.LEAVING)]
    its = ScalingLimits(spent=SPENT, stops=True)
    assert demand(pool.snapshot, [FOUR], its, machines, returning=returning).leave == {AllocationId("a"): SPENT}


def test_an_idle_machine_goes_unless_something_is_placed_on_it() -> None:
    """Idle for as long as it may be, it still serves what waits."""
    idle = machine("m1", idle_s=60.0)
    its = ScalingLimits(max_idle_s=60.0)
    pool = Pool([agent("m1", 4, rented=True)])
    assert demand(pool.snapshot, [FOUR], its, [idle]).end == {AgentId("m1"): "idle for 60 s (max_idle_agent_period)"}
    decided = demand(pool.ask("a", 4).snapshot, [FOUR], its, [idle])
    assert (decided.launch, decided.end) == (0, {})
    assert demand(pool.snapshot, [FOUR], replace(its, min_instances=1), [idle]).end == {}


def test_above_the_most_those_that_work_take_nothing_new() -> None:
    """Idle ones go first; then the newest drains."""
    machines = [machine("old", since=1.0), machine("new", since=2.0), machine("idle", idle_s=0.0)]
    end, drain = retired(machines, ScalingLimits(max_instances=1))
    assert (list(end), list(drain)) == (["idle"], ["new"])


@pytest.mark.parametrize("case", collect("scaling", "desired_instances"))
def test_desired_instances_of_determined(case: Mapping[str, object]) -> None:
    """Its rule counts what waits, by slots."""
    pool = Pool([agent("there", 99, aux_places=99)])
    for group in case["groups"] or ():  # type: ignore[attr-defined]
        pool.job(group["id"], max_slots=group.get("max_slots"))
    for task in case["tasks"]:  # type: ignore[attr-defined]
        if task.get("allocated"):
            pool.run(task["id"], task["slots"], "there")
        else:
            pool.ask(task["id"], task["slots"], task.get("group"))
    for check in case["checks"]:  # type: ignore[attr-defined]
        found = desired_new(pool.snapshot, check["slots_per_agent"], check["max_zero_slot_tasks_per_agent"])
        assert found == check["expect"], check


@answers("scaling/scaling_info", "TestScalingInfoAgentSummary")
def test_scaling_info_of_determined() -> None:
    """As agents come and go: how many are wanted, and which are idle."""
    pool = Pool([agent("agent1", 1), agent("agent2", 1)])
    pool.run("cpu1", 0, "agent1").run("cpu2", 0, "agent2").run("gpu3", 1, "agent2")
    pool.ask("pending4", 1).ask("pending5", 5)

    def summary() -> tuple[int, dict[str, bool]]:
        return desired_new(pool.snapshot, 4, 100), {each.id: is_idle(each) for each in pool.agents.values()}

    assert summary() == (1, {"agent1": False, "agent2": False})
    for new in (agent("agent3", 4), agent("agent4", 4, used=1)):
        pool.agents[new.id] = new
    assert summary() == (1, {"agent1": False, "agent2": False, "agent3": True, "agent4": False})
    del pool.agents[AgentId("agent1")]
    assert summary() == (1, {"agent2": False, "agent3": True, "agent4": False})
    pool.run("placed", 1, "agent3")
    assert summary() == (1, {"agent2": False, "agent3": False, "agent4": False})
    expected = [step["expect"] for step in _steps()]
    assert all(step["desired_new_instances"] == 1 for step in expected)
    assert not expected or expected[-1]["idle"] == summary()[1]


def _steps() -> list[Mapping[str, Mapping[str, object]]]:
    document = load("scaling")
    return [] if document is None else document["scaling_info"][0]["steps"]  # type: ignore[index]


@pytest.mark.parametrize("case", [*collect("scaledecider", "launch"), *collect("scaledecider", "derived_launch")])
def test_launch_counts_of_determined(case: Mapping[str, int]) -> None:
    """As many as are wanted beyond what was launched a moment ago, between the fewest and the most."""
    its = ScalingLimits(case["min_instances"], case["max_instances"])
    wanted = case["desired_new_instances"] - case["num_recently_launched"]
    assert launch_count(wanted, case["num_instances"], case["num_instances"], its) == case["expect"]


def test_by_the_rule_of_determined_free_slots_do_not_count() -> None:
    """Asked for one by one it rents for what the planner would place on an agent that is free."""
    pool = Pool([agent("own", 4)]).ask("a", 4)
    assert demand(pool.snapshot, [FOUR], ScalingLimits(by_slots=True), []).launch == 1
    assert demand(pool.snapshot, [FOUR], ScalingLimits(), []).launch == 0


def test_a_machine_that_takes_no_work_is_not_counted_as_free() -> None:
    """Its slots are nobody's; another one is rented."""
    pool = Pool([agent("m1", 4, rented=True, state=AgentState.DISABLED)]).ask("a", 4)
    leaving = [machine("m1", MachineStage.LEAVING)]
    assert demand(pool.snapshot, [FOUR], ScalingLimits(max_instances=2), leaving).launch == 1
    assert JobId("a") in pool.jobs


def test_what_leaves_a_machine_that_ends_is_rented_for_while_it_saves() -> None:
    """It holds its slots until it has left, and none of them count for anybody."""
    pool = Pool([agent("m1", 4)])
    pool.run("a", 4, "m1")
    leaving = replace(
        pool.snapshot,
        agents=tuple(replace(each, state=AgentState.DRAINING) for each in pool.snapshot.agents),
        requests=tuple(replace(each, phase=Phase.RELEASING) for each in pool.snapshot.requests),
    )
    machines, its = [machine("m1", MachineStage.LEAVING)], ScalingLimits(0, 2, 60.0)
    assert demand(leaving, [FOUR], its, machines).launch == 0
    decided = demand(leaving, [FOUR], its, machines, returning=frozenset({AllocationId("a")}))
    assert (decided.launch, decided.wanted_by, decided.room_for) == (1, ("a",), frozenset())
    coming = [*machines, machine("m2", COMING)]
    assert demand(leaving, [FOUR], its, coming, returning=frozenset({AllocationId("a")})).launch == 0
    # Nor more machines than there may be.
    assert (
        demand(leaving, [FOUR], ScalingLimits(0, 1, 60.0), machines, returning=frozenset({AllocationId("a")})).launch
        == 0
    )


def test_what_is_to_go_on_elsewhere_is_told_once_there_is_room() -> None:
    """On a machine that takes work, and not on its own."""
    pool = Pool([agent("m1", 4), agent("m2", 4)])
    pool.run("a", 4, "m1")
    first, second = pool.snapshot.agents
    snapshot = replace(pool.snapshot, agents=(replace(first, state=AgentState.DRAINING), second))
    returning = frozenset({AllocationId("a")})
    machines = [machine("m1", MachineStage.LEAVING), machine("m2")]
    assert demand(snapshot, [FOUR], ScalingLimits(), machines, returning=returning).room_for == returning
    alone = replace(snapshot, agents=snapshot.agents[:1])
    assert demand(alone, [FOUR], ScalingLimits(), machines[:1], returning=returning).room_for == frozenset()


@given(pools(), offers, limits, st.data())
@settings(deadline=None)
def test_whatever_returns_never_more_than_there_may_be(
    pool: Pool, offer: MachineOffer, its: ScalingLimits, data: st.DataObject
) -> None:
    """And what is said of room is of those that return."""
    names = sorted(each.allocation_id for each in pool.snapshot.requests)
    returning = frozenset(data.draw(st.sets(st.sampled_from(names)))) if names else frozenset[AllocationId]()
    decided = demand(pool.snapshot, [offer], its, [machine("m", MachineStage.LEAVING)], returning=returning)
    assert decided.launch == 0 or decided.launch + 1 <= its.max_instances
    assert decided.room_for <= returning


SMALL, BIG = MachineOffer("small", 1, price=0.1), MachineOffer("big", 8, price=3.0)


@given(
    st.lists(st.sampled_from([None, 0.0, 0.1, 1.0, 3.0]), max_size=6),
    st.lists(st.sampled_from([None, 0.0, 0.1, 3.0]), min_size=1, max_size=3),
    st.integers(1, 8),
    st.integers(1, 6),
    st.sampled_from([None, 0.3, 1.0, 10.0]),
    st.booleans(),
)
def test_by_hand_no_limit_is_exceeded_and_what_is_refused_would_exceed_one(
    present: list[float | None],
    prices: list[float | None],
    count: int,
    top: int,
    money: float | None,
    cheapest: bool,
) -> None:
    """Of what is rented there is room and money for all; of what is refused there is not."""
    offered = [MachineOffer(f"offer {number}", 1, price=price) for number, price in enumerate(prices)]
    its = ScalingLimits(max_instances=top, max_cost=money, cheapest=cheapest)
    left = None if money is None else max(0.0, money - sum(price or 0.0 for price in present))
    possible = [each for each in offered if most_machines(each, top - len(present), left) >= count]
    try:
        offer = by_hand(offered, its, {}, present, count)
    except NotNow:
        assert not possible
    else:
        assert offer in possible


def test_what_is_rented_by_hand_is_the_first_offer_that_may_be_used() -> None:
    """Or the cheapest, where the pool chooses so; the named one or none."""
    its = ScalingLimits(max_instances=3)
    assert by_hand([BIG, SMALL], its, {}, [], 1) is BIG
    assert by_hand([BIG, SMALL], replace(its, cheapest=True), {}, [], 1) is SMALL
    assert by_hand([BIG, SMALL], its, {"big": "offer big rests"}, [], 1) is SMALL
    assert by_hand([BIG, SMALL], replace(its, max_cost=2.0), {}, [], 3) is SMALL
    with pytest.raises(NotNow, match=r"^no machine is rented: offer big rests$"):
        by_hand([BIG, SMALL], its, {"big": "offer big rests"}, [], 1, "big")
    with pytest.raises(NotFound, match="offer 'huge' not found; the offers are big, small"):
        by_hand([BIG, SMALL], its, {}, [], 1, "huge")


def test_what_is_not_rented_by_hand_says_which_limit() -> None:
    """With the numbers."""
    with pytest.raises(
        NotNow, match=r"there are 2, those that end counted, and with 2 more .* max_instances, which is 3"
    ):
        by_hand([BIG], ScalingLimits(max_instances=3), {}, [3.0, 3.0], 2)
    with pytest.raises(NotNow, match="some for 3 per hour, with 2 of big it would be 9, and max_cost_per_hour is 8"):
        by_hand([BIG], ScalingLimits(max_cost=8.0), {}, [3.0], 2)
    with pytest.raises(NotNow, match="no machine is rented: the budget is used up"):
        by_hand([BIG], ScalingLimits(spent="the budget is used up"), {}, [], 1)
