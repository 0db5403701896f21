"""What machines cost is divided among what ran on them: nothing twice, nothing lost, in whatever order."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import pytest

from tenax.lifecycle.machine_cost import (
    DAY,
    HOUR,
    IDLE,
    CostSums,
    MachineUse,
    PaidMachine,
    by_day,
    by_pool,
    by_use,
    to_cents,
)

Rented = tuple[PaidMachine, tuple[MachineUse, ...]]


def costs(*rented: Rented) -> CostSums:
    sums = CostSums()
    for machine, uses in rented:
        sums.add(machine, by_use(machine, uses))
    return sums


def random_machines(rng: random.Random) -> list[Rented]:
    """Some with uses that overlap, begin before the machine, end after it, or take more slots than there are."""
    rented = []
    for _ in range(rng.randint(1, 6)):
        begins = rng.randrange(0, 3 * DAY)
        machine = PaidMachine(
            rng.choice("pq"), rng.choice([0, 1, 2, 4, 7]), rng.choice([None, 0.0, 0.1, 3.06, 5.672]), begins,
            begins + rng.randrange(0, 2 * DAY),
        )  # fmt: skip
        uses = []
        for _ in range(rng.randint(0, 8)):
            since = begins + rng.randrange(-HOUR, DAY)
            uses.append(MachineUse(rng.choice("abc"), rng.choice([0, 1, 2, 4]), since, since + rng.randrange(0, DAY)))
        rented.append((machine, tuple(uses)))
    return rented


def at_each_moment(machine: PaidMachine, uses: Sequence[MachineUse]) -> dict[str | None, Fraction]:
    """The rule, looked at from one border to the next."""
    borders = sorted({machine.begins, machine.ends, *(b for use in uses for b in (use.begins, use.ends))})
    parts: dict[str | None, Fraction] = defaultdict(Fraction)
    for begins, ends in itertools.pairwise(borders):
        if begins < machine.begins or ends > machine.ends:
            continue
        there = [use for use in uses if use.begins <= begins and ends <= use.ends]
        weights = [(use.name, use.slots if machine.slots else 1) for use in there]
        whole = max(machine.slots, sum(weight for _, weight in weights)) or 1
        for name, weight in weights:
            parts[name] += Fraction(weight * (ends - begins), whole)
        parts[IDLE] += Fraction((whole - sum(weight for _, weight in weights)) * (ends - begins), whole)
    return {name: part for name, part in parts.items() if part}


@pytest.mark.parametrize("seed", range(80))
def test_nothing_is_counted_twice_and_nothing_is_lost(seed: int) -> None:
    """Each part is what the rule says of each moment; together they are the machines, to the microsecond."""
    rng = random.Random(seed)
    for machine, uses in random_machines(rng):
        parts = by_use(machine, uses)
        assert parts == at_each_moment(machine, uses)
        assert all(part > 0 for part in parts.values())
        whole = machine.ends - machine.begins
        assert sum(parts.values()) == sum(by_day(machine).values()) == sum(by_pool(machine).values()) == whole


@pytest.mark.parametrize("seed", range(80))
def test_parts_make_the_sum_of_the_machines_to_the_cent(seed: int) -> None:
    """By whatever they are divided; none is a cent or more away from what it is."""
    rented = random_machines(random.Random(seed))
    exact = sum(
        (
            Fraction(Decimal(repr(machine.price))) * (machine.ends - machine.begins) / HOUR
            for machine, _ in rented
            if machine.price is not None
        ),
        Fraction(),
    )
    divided, pools, days = costs(*rented), CostSums(), CostSums()
    for machine, _ in rented:
        pools.add(machine, by_pool(machine))
        days.add(machine, by_day(machine))
    for sums in (divided, pools, days):
        assert sums.total().cost == exact
        amounts = {name: part.cost for name, part in sums.parts.items()}
        cents = to_cents(amounts)
        assert sum(cents.values()) == to_cents({IDLE: exact})[IDLE]
        assert all(abs(Fraction(cents[name]) - amount) < Fraction(1, 100) for name, amount in amounts.items())


@pytest.mark.parametrize("seed", range(50))
def test_the_order_changes_nothing(seed: int) -> None:
    """Of machines, and of uses of each."""
    rng = random.Random(seed)
    rented = random_machines(rng)
    mixed = [(machine, tuple(rng.sample(uses, len(uses)))) for machine, uses in rng.sample(rented, len(rented))]
    first, second = costs(*rented), costs(*mixed)
    assert first.parts == second.parts
    assert to_cents({name: part.cost for name, part in first.parts.items()}) == to_cents(
        {name: part.cost for name, part in second.parts.items()}
    )


def test_by_slots_out_of_those_that_the_machine_has() -> None:
    """Half of the machine for half of its time is a quarter of its cost; the rest is idle."""
    machine = PaidMachine("p", 4, 2.0, 0, 10 * HOUR)
    sums = costs((machine, (MachineUse("ada", 2, 0, 5 * HOUR),)))
    assert {name: part.cost for name, part in sums.parts.items()} == {"ada": 5, IDLE: 15}


def test_what_takes_no_slots_pays_where_there_are_none() -> None:
    """On a machine with slots it pays nothing."""
    uses = (MachineUse("ada", 0, 0, 2 * HOUR), MachineUse("bob", 0, HOUR, 2 * HOUR))
    assert by_use(PaidMachine("p", 1, 1.0, 0, 2 * HOUR), uses) == {IDLE: 2 * HOUR}
    assert by_use(PaidMachine("p", 0, 1.0, 0, 2 * HOUR), uses) == {"ada": HOUR * 3 // 2, "bob": HOUR // 2}


def test_what_has_no_price_is_unknown() -> None:
    """Its hours are told apart, and never cost nought."""
    free, unknown = PaidMachine("p", 1, 0.0, 0, HOUR), PaidMachine("p", 1, None, 0, HOUR)
    sums = costs((free, (MachineUse("ada", 1, 0, HOUR),)), (unknown, (MachineUse("bob", 1, 0, HOUR),)))
    assert sums.parts["ada"].is_known
    assert not sums.parts["bob"].is_known
    assert (int(sums.parts["bob"].unpriced), int(sums.total().held)) == (HOUR, 2 * HOUR)


def test_cents_that_are_left_go_to_who_loses_most() -> None:
    """Three thirds of ten cents: 4, 3 and 3, and always the same one has the 4."""
    thirds: dict[str | None, Fraction] = {name: Fraction(1, 30) for name in ("c", "a", None)}
    assert to_cents(thirds) == {"a": Decimal("0.04"), "c": Decimal("0.03"), None: Decimal("0.03")}
