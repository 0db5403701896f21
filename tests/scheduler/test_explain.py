"""Why a job waits, who is before it, and what would help."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tenax.config.durations import parse_duration
from tenax.ids import JobId, PoolName
from tenax.scheduler.constraints import without_each
from tenax.scheduler.explain import Explanation, Remedy, RemedyKind, explain
from tenax.scheduler.snapshot import PoolRules
from tests.kits.builders.pool import Pool, agent
from tests.scheduler.pools import pools


def of(pool: Pool, job: str, **others: Pool) -> Explanation | None:
    snapshots = {name: replace(other.snapshot, pool=PoolName(name)) for name, other in others.items()}
    return explain(JobId(job), "default", {"default": pool.snapshot, **snapshots})


def test_what_does_not_wait_has_no_explanation() -> None:
    assert of(Pool([agent("a", 2)]).ask("r", 1, "j"), "j") is None
    assert of(Pool([agent("a", 2)]).run("r", 1, "a", "j"), "j") is None


def test_who_is_ahead_and_what_would_help() -> None:
    """Fewer slots, another pool, and where nothing is taken from others no priority that does not help."""
    pool = Pool([agent("a", 4)]).job("urgent", 1).run("u", 3, "a", "urgent")
    pool.job("first", 10).ask("f", 4, "first").job("mine", 10).ask("m", 2, "mine").ask("m2", 1, "mine")
    explained = of(pool, "mine", spare=Pool([agent("b", 8)]), busy=Pool([agent("c", 8)]).ask("w", 9, "x"))
    assert explained is not None
    assert explained.request.allocation_id == "m"
    assert explained.ahead == ("first",)
    assert explained.reason.startswith("waits for 2 free slots")
    assert explained.remedies == (Remedy(RemedyKind.POOL, "spare"), Remedy(RemedyKind.SLOTS, "1"))


def test_a_priority_that_helps_is_the_least_urgent_one() -> None:
    """With how many would have to leave."""
    pool = Pool([agent("a", 4)], PoolRules(preemption=True))
    pool.job("low", 90).run("l1", 2, "a", "low").run("l2", 2, "a", "low").job("mine", 95).ask("m", 2, "mine")
    explained = of(pool, "mine")
    assert explained is not None
    assert explained.remedies == (Remedy(RemedyKind.PRIORITY, "89", 1),)


def test_the_cap_of_the_own_job() -> None:
    pool = Pool([agent("a", 4)]).job("mine", max_slots=2).run("r", 2, "a", "mine").ask("m", 2, "mine")
    explained = of(pool, "mine")
    assert explained is not None
    assert explained.remedies == (Remedy(RemedyKind.MAX_SLOTS, "4"),)


def test_a_weight_where_slots_are_shared() -> None:
    pool = Pool([agent("a", 4)], PoolRules(policy="fair_share"))
    for number in range(4):
        pool.ask(f"x{number}", 1, "other").ask(f"m{number}", 1, "mine")
    pool.apply(pool.plan())
    explained = of(pool, "mine")
    assert explained is not None
    assert explained.ahead == ()
    # With twice the weight its part of four slots is two and a bit, as before.
    assert explained.remedies == (Remedy(RemedyKind.WEIGHT, "4", 1),)


def test_a_quota_goes_along_to_another_pool() -> None:
    """Free slots there help nobody whose quota is used up."""
    pool = Pool([agent("a", 1)]).limit("ana", 1).job("mine", limits=("ana",)).run("runs", 1, "a", "mine")
    explained = of(pool.ask("waits", 1, "mine"), "mine", spare=Pool([agent("b", 4)]))
    assert explained is not None
    assert explained.reason.startswith("waits for the quota of ana: 1 slot, of which 1 in use")
    assert explained.remedies == ()


@given(pools(), st.integers(0, 3))
@settings(deadline=None)
def test_what_is_said_to_help_does(pool: Pool, number: int) -> None:
    """Done, and nothing else: it starts, or somebody leaves for it."""
    pool.apply(pool.plan())
    job = JobId(f"j{number % len(pool.jobs)}")
    explained = of(pool, job)
    if explained is None:
        return
    name = explained.request.allocation_id
    assert explained.reason == pool.plan().waiting[name]
    for remedy in explained.remedies:
        changed = Pool(pool.agents.values(), pool.rules)
        changed.jobs, changed.requests, changed.limits = dict(pool.jobs), dict(pool.requests), dict(pool.limits)
        changed.at = pool.at
        before = changed.jobs[job]
        match remedy.kind:
            case RemedyKind.SLOTS:
                changed.requests[name] = replace(changed.requests[name], slots=int(remedy.value))
            case RemedyKind.CONSTRAINT:
                asked = changed.requests[name]
                assert asked.constraints is not None
                changed.requests[name] = replace(asked, constraints=dict(without_each(asked.constraints))[remedy.value])
            case RemedyKind.TIME_LIMIT:
                changed.requests[name] = replace(changed.requests[name], time_limit=parse_duration(remedy.value))
            case RemedyKind.PRIORITY:
                changed.jobs[job] = replace(before, priority=int(remedy.value))
            case RemedyKind.MAX_SLOTS:
                changed.jobs[job] = replace(before, max_slots=int(remedy.value))
            case RemedyKind.WEIGHT:
                changed.jobs[job] = replace(before, weight=float(remedy.value))
            case RemedyKind.POOL:
                raise AssertionError("there is one pool")
        decided = changed.plan()
        if remedy.leaving:
            assert len(decided.preempt) >= remedy.leaving
        else:
            assert name in decided.placements
