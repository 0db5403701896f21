"""Days and a month of a cluster that rents all its machines: nothing waits for ever, nothing runs that nobody knows."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction

import pytest

from tenax.lifecycle.machine import ENDED
from tenax.lifecycle.machine_cost import HOUR, CostSums, by_use
from tenax.scheduler.offers import ScalingLimits
from tests.kits.figures import Figures
from tests.simulate.clouds import DAY_S, HOUR_S, CloudOffer, Price, Spans
from tests.simulate.renting import RentingCluster


def renting(seed: int, days: float, jobs: int, limits: ScalingLimits) -> tuple[RentingCluster, float]:
    """Two clouds, three offers; work that comes by day more than by night. Also the least price of a slot per hour."""
    until = days * DAY_S
    chance = random.Random(f"offers {seed}")
    spot = CloudOffer(
        "spot", 8, Price(chance, until, 5.0, 0.4), Spans(chance, until, 6 * HOUR_S, 2 * HOUR_S), 20 * HOUR_S
    )
    same = CloudOffer("on demand", 8, Price(chance, until, 12.0, 0.1), Spans(chance, until, DAY_S, HOUR_S))
    other = CloudOffer("elsewhere", 4, Price(chance, until, 7.0, 0.1), Spans(chance, until, DAY_S, HOUR_S))
    cluster = RentingCluster({"a": [spot, same], "b": [other]}, limits, seed, until)
    chance = random.Random(f"work {seed}")
    for number in range(jobs):
        at = int(chance.random() * days) * DAY_S + min(max(chance.gauss(14, 5), 0.0), 24.0) * HOUR_S
        slots = chance.choice([1, 1, 1, 2, 4, 8, 8, 16])
        lasts = min(chance.lognormvariate(8.0, 1.3), DAY_S)
        cluster.submit(at, f"r{number}", slots, lasts, f"j{number % 50}", single_node=slots < 16)
    return cluster, min(each.price.least / each.slots for each in (spot, same, other))


def check(cluster: RentingCluster, limits: ScalingLimits) -> None:
    """All work is done, all machines are gone with their rows, and the accounts add up."""
    assert all(work.left <= 0 and work.ended_at is not None for work in cluster.work.values())
    assert not cluster.pool.agents
    assert all(row.state in ENDED for row in cluster.rows.values())
    assert cluster.most <= limits.max_instances
    made = [machine for cloud in cluster.clouds.values() for machine in cloud.machines.values()]
    assert len({machine.machine_id for machine in made}) == len(made), "an order was made twice"
    for machine in made:
        row = cluster.rows[machine.machine_id]
        assert machine.ended is not None
        assert row.ended_at is not None
        assert machine.ended <= row.ended_at, "a machine outlived its row"
    sums, held = CostSums(), Fraction()
    for row in cluster.rows.values():
        machine = cluster.paid(row)
        if machine is not None:
            shares = by_use(machine, row.uses)
            assert sum(shares.values()) == machine.ends - machine.begins
            sums.add(machine, shares)
            held += Fraction(machine.ends - machine.begins) * Fraction(Decimal(repr(row.price))) / HOUR
    assert sums.total().cost == held


def report(figures: Figures, what: str, cluster: RentingCluster, least: float, **more: object) -> None:
    """What it has cost, beside what nobody can go below: each slot at the least price, and nobody waits."""
    bills = [
        (machine.ended - machine.began) / HOUR_S * machine.price
        for cloud in cluster.clouds.values()
        for machine in cloud.machines.values()
        if machine.ended is not None
    ]
    rows = [row for row in cluster.rows.values() if row.rented_at is not None and row.ended_at is not None]
    by_rows = sum((row.ended_at - row.rented_at) / HOUR_S * row.price for row in rows)  # type: ignore[operator]
    done = sum((use.ends - use.begins) / HOUR * use.slots for row in cluster.rows.values() for use in row.uses)
    waited = [work.waited for work in cluster.work.values()]
    figures.tell(
        what, machines=len(bills), at_once=cluster.most, cost=round(sum(bills)), by_our_rows=round(by_rows),
        no_less_than=round(done * least), mean_wait_s=round(sum(waited) / len(waited)),
        longest_wait_s=round(max(waited)), **more,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("by_slots", [False, True])
def test_days_of_renting(seed: int, by_slots: bool, figures: Figures) -> None:
    """Under our rule, and under Determined's."""
    limits = ScalingLimits(max_instances=12, by_slots=by_slots)
    cluster, least = renting(seed, 2, 60, limits)
    cluster.run()
    check(cluster, limits)
    report(figures, "two days of renting", cluster, least, seed=seed, rule="determined" if by_slots else "ours")


@pytest.mark.long
@pytest.mark.timeout(14400)
@pytest.mark.parametrize("by_slots", [False, True])
def test_a_month_of_renting(by_slots: bool, figures: Figures) -> None:
    """Of up to 500 machines."""
    limits = ScalingLimits(max_instances=500, by_slots=by_slots)
    cluster, least = renting(1, 30, 8000, limits)
    cluster.run(limit=10_000_000)
    check(cluster, limits)
    report(figures, "a month of renting", cluster, least, rule="determined" if by_slots else "ours")
