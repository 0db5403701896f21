"""Machines of several offers: what must hold of any decision, and which offer is taken in plain cases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tenax.ids import AgentId
from tenax.scheduler.demand import MachineStage, OfferLaunch, RentedMachine, Scaling, demand
from tenax.scheduler.fitting import can_never_fit
from tenax.scheduler.offers import MachineOffer, OfferRest, ScalingLimits
from tenax.scheduler.registry import placer, plan
from tests.kits.builders.pool import Pool
from tests.scheduler.rentals import faults, overtaken, rental

_FEW, _ALL = 300, 100_000


def _check(seeds: range) -> None:
    for seed in seeds:
        assert list(faults(rental(seed))) == [], f"seed {seed}"


def test_what_must_hold_of_any_decision() -> None:
    """Never above a limit; asked again it wants nothing; all of it is used; everyone who waits has a reason."""
    _check(range(_FEW))


def test_what_is_placed_on_other_agents_is_what_a_plan_with_them_places() -> None:
    """Under each policy, however often it is asked with what was looked at once; only the reasons are left out."""
    for seed in range(_FEW):
        case = rental(seed)
        placed = placer(case.snapshot)
        for agents in ((), case.snapshot.agents, case.snapshot.agents, (*case.snapshot.agents, *LARGE.agents(2))):
            whole, bare = plan(replace(case.snapshot, agents=agents)), placed(agents)
            assert list(bare.placements.items()) == list(whole.placements.items()), f"seed {seed}"
            assert bare.preempt == whole.preempt, f"seed {seed}"


@pytest.mark.parametrize("seed", [11_810, 14_731])
def test_what_did_not_hold_once(seed: int) -> None:
    """One that the planner leaves out with a machine that comes; one that only machines of all offers at once hide."""
    assert list(faults(rental(seed))) == []


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_what_must_hold_of_any_decision_in_many_cases() -> None:
    """The whole of it."""
    _check(range(_FEW, _ALL))


def test_more_machines_overtake_nobody() -> None:
    """With a larger max_instances one waits longer only for a more urgent one that does not wait any more.

    Now and then (5 of 4,000) the planner itself packs more machines otherwise, so that one of them waits.
    """
    assert sum(bool(overtaken(rental(seed))) for seed in range(_FEW)) <= 1


SMALL, LARGE = MachineOffer("small", 4, price=5.0), MachineOffer("large", 8, price=9.0)


def rented(scaling: Scaling) -> dict[str, int]:
    return {each.offer: each.count for each in scaling.launches}


def test_the_first_listed_that_serves_the_most_urgent_is_taken() -> None:
    """Though another that is listed before it would serve what is less urgent."""
    pool = Pool([]).job("soon", 10).job("later", 90).ask("a", 4, "later").ask("b", 8, "soon", single_node=True)
    one = ScalingLimits(max_instances=1)
    assert demand(pool.snapshot, [SMALL, LARGE], one, []).launches == (
        OfferLaunch("large", 1, ("b",), "of what may be rented it is the first that serves"),  # type: ignore[arg-type]
    )
    two = demand(pool.snapshot, [SMALL, LARGE], ScalingLimits(max_instances=2), [])
    assert rented(two) == {"small": 1, "large": 1}
    assert [two.coming_for[name].split(",")[0] for name in sorted(two.coming_for)] == [
        "waits for a machine: small",
        "waits for a machine: large",
    ]


def test_what_costs_least_is_taken_where_that_is_chosen() -> None:
    """For all that waits together, not one by one; and never more per hour than there may be."""
    pool = Pool([]).ask("a", 4).ask("b", 4)
    dear = ScalingLimits(cheapest=True)
    assert rented(demand(pool.snapshot, [SMALL, LARGE], ScalingLimits(), [])) == {"small": 2}
    assert rented(demand(pool.snapshot, [SMALL, LARGE], dear, [])) == {"large": 1}
    limited = demand(pool.snapshot, [SMALL, LARGE], ScalingLimits(max_cost=8.0), [])
    assert rented(limited) == {"small": 1}
    assert list(limited.none_for.values()) == [
        "no machine is rented for it: there are some for 5 per hour, and max_cost_per_hour is 8"
    ]


def test_what_rests_or_is_too_dear_is_not_used_and_says_so() -> None:
    """The next offer is; where none is left, what waits is told of each."""
    pool = Pool([]).ask("a", 4)
    rests = {"small": OfferRest(60.0, "no capacity")}
    next_one = demand(pool.snapshot, [SMALL, LARGE], ScalingLimits(), [], rests)
    assert rented(next_one) == {"large": 1}
    assert next_one.not_used == {"small": "offer small rests until 00:01:00 UTC because: no capacity"}
    off = {**rests, "large": OfferRest(float("inf"), "ec2:RunInstances is not allowed")}
    none = demand(pool.snapshot, [SMALL, LARGE], ScalingLimits(), [], off)
    assert list(none.none_for.values()) == [
        "no machine is rented for it: offer small rests until 00:01:00 UTC because: no capacity; offer large is off "
        "until the settings of its pool's provider change, because: ec2:RunInstances is not allowed"
    ]
    dear = MachineOffer("dear", 4, price=5.0, max_price=4.0)
    assert rented(demand(pool.snapshot, [dear, LARGE], ScalingLimits(), [])) == {"large": 1}
    told = demand(pool.snapshot, [dear], ScalingLimits(), []).none_for
    assert list(told.values()) == ["no machine is rented for it: offer dear costs 5 per hour, and its max_price is 4"]


def test_a_gang_that_needs_more_than_may_be_added_says_so() -> None:
    """Machines that are ending are counted: they may still run."""
    pool = Pool([]).ask("gang", 16)
    waits = demand(pool.snapshot, [SMALL], ScalingLimits(max_instances=4), rental_of_one_ending())
    assert list(waits.none_for.values()) == [
        "no machine is rented for it: it takes more than may be added to the 1 that there are: max_instances is 4"
    ]


def rental_of_one_ending() -> list[RentedMachine]:
    return [RentedMachine(AgentId("m"), MachineStage.ENDING, offer="small", slots=4, price=5.0)]


def test_what_could_be_rented_is_counted_one_size_at_a_time() -> None:
    """Else a request would wait for ever that all sizes together could serve, of which there cannot be the most."""
    agents = (*SMALL.agents(2), *LARGE.agents(2, 2))
    snapshot = replace(Pool([]).snapshot, prospects=agents)
    assert can_never_fit(16, snapshot) is None
    assert can_never_fit(8, snapshot, single_node=True) is None
    assert "16 slots on 2 agents" in (can_never_fit(17, snapshot) or "")
