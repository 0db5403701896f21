"""Requests that are alike are planned together, to the word as each would be by itself."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tenax.scheduler import policy, priority
from tenax.scheduler.registry import POLICIES, plan
from tenax.scheduler.snapshot import Constraints, Phase, PoolPlan, PoolRules, PoolSnapshot
from tests.kits.builders.pool import Pool, agent

_ZONED = Constraints((("zone", ("a",)),))


def crowded(chance: random.Random) -> PoolSnapshot:
    """A pool that is nearly full, in which several ask for the same, as the trials of a search do."""
    machines = [agent(f"a{number}", chance.randint(1, 4), aux_places=1) for number in range(chance.randint(1, 4))]
    machines = [replace(each, labels={"zone": chance.choice("ab")}) for each in machines]
    rules = PoolRules(
        policy=chance.choice(["", "", *POLICIES]),
        preemption=chance.random() < 0.4,
        reservation=chance.random() < 0.5,
        uneven_gangs=chance.random() < 0.5,
    )
    pool = Pool(machines, rules)
    limited = chance.random() < 0.3
    if limited:
        pool.limit("one", chance.randint(0, 8))
    for number in range(chance.randint(1, 3)):
        cap, limits = chance.choice([None, None, chance.randint(1, 6)]), ("one",) * (limited and chance.random() < 0.7)
        pool.job(f"j{number}", chance.choice([10, 42, 42]), float(chance.randint(0, 2)), max_slots=cap, limits=limits)
    for number in range(chance.randint(1, 6)):
        _ask(pool, number, chance)
        if chance.random() < 0.4:
            capped = pool.jobs
            pool.jobs = {name: replace(job, max_slots=None, limits=()) for name, job in capped.items()}
            pool.apply(replace(pool.plan(), preempt={}))
            pool.jobs = capped
    for name, asking in list(pool.requests.items()):
        if asking.phase is Phase.PLACED and chance.random() < 0.3:
            pool.requests[name] = replace(asking, phase=Phase.RELEASING)
        elif chance.random() < 0.1:
            pool.requests[name] = replace(asking, again=True)
    pool.at = chance.choice([0.0, 5.0])
    return pool.snapshot


def _ask(pool: Pool, number: int, chance: random.Random) -> None:
    """Some twins, and some that differ in a single thing."""
    job, slots = f"j{chance.randrange(len(pool.jobs))}", chance.choice([0, 1, 1, 2, 3, 4, 6])
    alike: dict[str, object] = {
        "preemptible": chance.random() < 0.6,
        "time_limit": chance.choice([None, 10.0, 60.0]),
        "single_node": chance.random() < 0.5,
        "blocked": set(),
        "constraints": chance.choice([None, None, _ZONED]),
    }
    others: dict[str, object] = {
        "preemptible": not alike["preemptible"],
        "time_limit": chance.choice([None, 10.0, 60.0]),
        "single_node": not alike["single_node"],
        "blocked": {chance.choice(list(pool.agents))},
        "constraints": chance.choice([None, _ZONED]),
    }
    for twin in range(chance.randint(1, 5)):
        name = chance.choice(list(alike)) if chance.random() < 0.3 else None
        asked = alike if name is None else {**alike, name: others[name]}
        pool.ask(f"r{number}.{twin}", slots, job, has_run=chance.random() < 0.2, **asked)  # type: ignore[arg-type]


def plan_plainly(snapshot: PoolSnapshot) -> PoolPlan:
    """As if no request had twins."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(priority, "twins", lambda ordered, jobs: [[each] for each in ordered])
        return plan(snapshot)


@pytest.mark.parametrize("seeds", [range(1500), pytest.param(range(1500, 20_000), marks=pytest.mark.long)], ids=len)
def test_twins_are_planned_as_each_would_be_by_itself(seeds: range) -> None:
    """Whatever is placed, kept, reserved or asked for some of them; and they are told so in the order of the queue."""
    for seed in seeds:
        snapshot = crowded(random.Random(seed))
        together, plainly = plan(snapshot), plan_plainly(snapshot)
        assert together == plainly, seed
        assert list(together.waiting) == list(plainly.waiting), seed


def test_the_queue_is_in_the_order_of_its_keys() -> None:
    """Those of one job are put in their place together."""
    for seed in range(500):
        snapshot = crowded(random.Random(seed))
        ordered = policy.in_order(snapshot, snapshot.requests)
        assert ordered == sorted(snapshot.requests, key=lambda each: policy.queue_key(snapshot, each)), seed


def test_who_is_gone_in_time_has_no_twin_that_is_not() -> None:
    """Of two that differ in their time limit alone one uses what is kept for another."""
    pool = Pool([agent("a", 4)], PoolRules(reservation=True))
    pool.job("j", 42, 0.0).ask("runs", 3, "j", time_limit=60.0)
    pool.apply(pool.plan())
    pool.job("k", 42, 1.0).ask("large", 4, "k").job("l", 42, 2.0)
    pool.ask("s1", 1, "l").ask("s2", 1, "l", time_limit=10.0)
    decided = pool.plan()
    assert (list(decided.placements), list(decided.waiting)) == (["s2"], ["large", "s1"])
