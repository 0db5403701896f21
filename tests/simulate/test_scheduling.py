"""Whole days of a cluster: every job ends, nothing is given twice, the urgent do not wait for the others."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenax.scheduler.least_attained import KEPT
from tenax.scheduler.registry import POLICIES
from tenax.scheduler.snapshot import Fitting, PoolRules
from tests.kits.builders.pool import agent
from tests.simulate.cluster import Cluster


def a_day(seed: int, rules: PoolRules, requests: int = 40) -> Cluster:
    """Agents of different sizes and requests of all kinds, arriving over time."""
    rng = random.Random(seed)
    sizes = [rng.choice([1, 2, 4, 8]) for _ in range(rng.randint(1, 4))]
    cluster = Cluster([agent(f"a{number}", size) for number, size in enumerate(sizes)], rules)
    for number in range(5):
        cap = rng.choice([None, None, max(sizes)])
        cluster.pool.job(f"j{number}", rng.choice([10, 42, 42, 90]), float(number), max_slots=cap)
    for number in range(requests):
        single = rng.random() < 0.3 or not rules.uneven_gangs
        most = max(sizes) if single else min(sum(sizes), max(sizes) if rng.random() < 0.7 else sum(sizes))
        job = f"j{rng.randrange(5)}"
        cap = cluster.pool.jobs[job].max_slots  # type: ignore[index]
        slots = rng.randint(0, most if cap is None else min(most, cap))
        cluster.submit(
            rng.random() * 100,
            f"r{number}",
            slots,
            rng.uniform(1, 20),
            job,
            single_node=single,
            preemptible=rng.random() < 0.8,
        )
    return cluster


@given(
    st.integers(0, 10**6), st.sampled_from(list(POLICIES)), st.booleans(), st.sampled_from(list(Fitting)), st.booleans()
)
@settings(max_examples=60, deadline=None)
def test_every_request_ends(seed: int, policy: str, preemption: bool, fitting: Fitting, uneven: bool) -> None:
    """Whatever comes, every request runs to its end, and the pool is empty after."""
    rules = PoolRules(policy, preemption=preemption, fitting=fitting, uneven_gangs=uneven)
    cluster = a_day(seed, rules)
    cluster.run()
    assert all(work.ended_at is not None and work.left == 0 for work in cluster.work.values())
    assert not cluster.pool.requests
    assert not any(agent.in_use or agent.aux_in_use for agent in cluster.pool.agents.values())
    if not preemption and not POLICIES[policy].always_preempts:
        assert all(work.starts == 1 for work in cluster.work.values())


@pytest.mark.parametrize("seed", range(5))
def test_who_left_for_who_has_held_less_is_kept_for_an_hour_then(seed: int) -> None:
    """Under least-attained service: long jobs beside a stream of short ones."""
    rng = random.Random(seed)
    cluster = Cluster([agent("a", 4), agent("b", 4)], PoolRules("least_attained"), saving=60.0)
    for number in range(60):
        long = rng.random() < 0.3
        work = rng.uniform(30_000, 200_000) if long else rng.uniform(60, 3600)
        cluster.submit(rng.random() * 400_000, f"r{number}", rng.choice([1, 2, 4, 8]), work, f"j{number}")
    cluster.run()
    assert all(work.left == 0 for work in cluster.work.values())
    again = [each for work in cluster.work.values() for each in work.held_before[1:]]
    assert min(held for held, reason in again if "waited for a day" not in reason) >= KEPT


@pytest.mark.parametrize("seed", range(5))
def test_the_urgent_do_not_wait_for_the_others(seed: int) -> None:
    """With preemption, an urgent request starts after at most the time that others need to save."""
    rng = random.Random(seed)
    cluster = Cluster([agent("a", 4), agent("b", 4)], PoolRules(preemption=True), saving=2.0)
    cluster.pool.job("low", 90).job("urgent", 1)
    for number in range(30):
        cluster.submit(rng.random() * 10, f"low{number}", rng.randint(1, 4), 50.0, "low")
    cluster.submit(20.0, "now", 8, 5.0, "urgent")
    cluster.run()
    assert cluster.work["now"].ended_at == 27.0  # type: ignore[index]
    assert all(work.left == 0 for work in cluster.work.values())


def test_work_that_can_run_does_run() -> None:
    """Requests of one slot keep every slot busy until there are fewer of them than slots."""
    cluster = Cluster([agent("a", 4)], PoolRules())
    for number in range(20):
        cluster.submit(0.0, f"r{number}", 1, 10.0, "j")
    cluster.run()
    assert cluster.now == 50.0
    assert cluster.busy == 200.0
