"""Pools that live on: plans are carried out, work ends, caps and priorities change, agents come and go."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenax.ids import AgentId, JobId
from tenax.scheduler.registry import POLICIES
from tenax.scheduler.snapshot import AgentState, Fitting, Phase, PoolRules
from tests.kits.builders.pool import Pool, agent


def begun(chance: random.Random) -> Pool:
    """A pool without requests."""
    agents = [
        agent(f"a{number}", chance.randint(0, 5), aux_places=chance.randint(0, 2))
        for number in range(chance.randint(1, 4))
    ]
    rules = PoolRules(
        policy=chance.choice(list(POLICIES)),
        preemption=chance.random() < 0.5,
        fitting=chance.choice(list(Fitting)),
        uneven_gangs=chance.random() < 0.5,
        reservation=chance.random() < 0.5,
    )
    pool = Pool(agents, rules)
    limits = chance.choice([(), ("one",), ("one", "two")])
    for name in limits:
        pool.limit(name, chance.choice([None, 1, 2, 4, 6, 8]), elsewhere=chance.choice([0, 0, 1]))
    for number in range(chance.randint(1, 5)):
        priority, place = chance.choice([10, 42, 42, 90]), float(chance.randint(0, 3))
        cap, weight = chance.choice([None, None, 1, 2, 3, 4, 6]), chance.choice([0.5, 1, 1, 3])
        pool.job(f"j{number}", priority, place, max_slots=cap, weight=weight)
        bound = tuple(limit for limit in limits if chance.random() < 0.5)
        pool.jobs[JobId(f"j{number}")] = replace(
            pool.jobs[JobId(f"j{number}")], turn=chance.choice([0, 0, 1]) if limits else 0, limits=bound
        )
    return pool


def ask(pool: Pool, chance: random.Random, name: str) -> None:
    """One more request, of any job."""
    pool.ask(
        name,
        chance.choice([0, 1, 1, 1, 2, 2, 3, 4, 6]),
        f"j{chance.randrange(len(pool.jobs))}",
        preemptible=chance.random() < 0.7,
        single_node=chance.random() < 0.3,
        blocked={f"a{chance.randrange(len(pool.agents))}"} if chance.random() < 0.2 else (),
    )


def go_on(pool: Pool, chance: random.Random) -> None:
    """Some of what was asked to leave leaves, and most of that asks again; some of what runs ends; things change."""
    for name, held in list(pool.requests.items()):
        if held.phase is Phase.RELEASING and chance.random() < 0.5:
            ended = pool.end(name)
            if chance.random() < 0.6:
                pool.ask(
                    f"{name}+", ended.slots, ended.job_id, preemptible=True, single_node=ended.single_node, has_run=True
                )
        elif held.phase is Phase.PLACED and chance.random() < 0.2:
            pool.end(name)
    for place, there in list(pool.agents.items()):
        if chance.random() < 0.1:
            pool.agents[AgentId(place)] = replace(there, state=chance.choice(list(AgentState)))
    if chance.random() < 0.3:
        job = JobId(chance.choice(list(pool.jobs)))
        priority, cap = chance.choice([10, 42, 90]), chance.choice([None, 1, 2, 3, 4])
        pool.jobs[job] = replace(pool.jobs[job], priority=priority, max_slots=cap)
    if pool.limits and chance.random() < 0.3:
        ranked = JobId(chance.choice(list(pool.jobs)))
        pool.jobs[ranked] = replace(pool.jobs[ranked], turn=chance.choice([0, 1]))


def lives(seed: int) -> None:
    """At each instant of its life a plan that was carried out leaves nothing to start and nobody to ask, and what
    waits still waits."""
    chance = random.Random(seed)
    pool, number = begun(chance), 0
    for _ in range(chance.randint(5, 30)):
        for _ in range(chance.randint(0, 3)):
            number += 1
            ask(pool, chance, f"r{number}")
        decided = pool.plan()
        pool.apply(decided)
        again = pool.plan()
        assert (again.placements, again.preempt) == ({}, {})
        assert set(again.waiting) == set(decided.waiting)
        assert pool.plan() == again
        go_on(pool, chance)


@given(st.integers(0, 1 << 32))
@settings(deadline=None, max_examples=100)
def test_a_plan_that_was_carried_out_leaves_nothing_to_do(seed: int) -> None:
    lives(seed)


@pytest.mark.long
def test_the_same_of_many_pools() -> None:
    """Ten thousand lives, of some plans each."""
    for seed in range(10_000):
        lives(seed)
