"""What would become of a job that is submitted now."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tenax.ids import JobId
from tenax.scheduler.forecast import Forecast, forecast
from tenax.scheduler.outlook import LikelyStart, Spans, Sureness
from tenax.scheduler.snapshot import PoolJob, PoolRules, SlotRequest
from tests.kits.builders.pool import Pool, agent, request
from tests.scheduler.pools import pools

NEW = JobId("new")


def of(pool: Pool, slots: int, count: int, **job: object) -> Forecast:
    asked = [request(f"new.{number}", slots, NEW, requested_at=1e9 + number) for number in range(count)]
    return forecast(pool.snapshot, PoolJob(NEW, queue_position=1e9, **job), asked)  # type: ignore[arg-type]


def test_what_starts_and_why_the_next_waits() -> None:
    """All, some or none; what can never start says so."""
    pool = Pool([agent("a", 4)])
    assert of(pool, 1, 3) == Forecast(3, 3)
    some = of(pool, 1, 8)
    assert (some.requests, some.starting, some.leaving) == (8, 4, ())
    assert some.reason.startswith("waits for 1 free slot in pool default")
    assert of(pool, 8, 1).reason.startswith("can never start as it is: ")
    capped = of(pool, 1, 3, max_slots=2)
    assert (capped.starting, "max_slots is 2" in capped.reason) == (2, True)
    behind = of(pool.job("urgent", 1).run("u", 1, "a", "urgent").ask("large", 4, "urgent"), 1, 1)
    assert (behind.starting, "waits behind large (priority 1" in behind.reason) == (0, True)


def test_when_the_first_that_waits_is_likely_to_start() -> None:
    """By how long runs take, where it is known; of what starts at once, or never, nothing is said."""
    pool = Pool([agent("a", 1)]).run("runs", 1, "a", "other")
    spans = Spans(of_job={JobId("other"): 60.0})
    job, one = PoolJob(NEW, queue_position=1e9), request("new.0", 1, NEW, requested_at=1e9)
    assert forecast(pool.snapshot, job, [one], spans).likely == LikelyStart(60.0, Sureness.LIKELY)
    assert forecast(pool.snapshot, job, [one]).likely is None
    assert forecast(pool.snapshot, job, [replace(one, slots=2)], spans).likely is None
    assert forecast(Pool([agent("a", 1)]).snapshot, job, [one], spans).likely is None


def test_who_would_leave_for_it() -> None:
    """Those that leave in any case are not counted."""
    pool = Pool([agent("a", 4)], PoolRules(preemption=True)).job("low", 90).job("mid", 50)
    for number in range(4):
        pool.run(f"l{number}", 1, "a", "low")
    pool.ask("m", 1, "mid")
    urgent = of(pool, 2, 1, priority=1)
    assert (urgent.starting, len(urgent.leaving)) == (0, 2)
    assert "asked to save and leave" in urgent.reason
    shared = Pool([agent("a", 4)], PoolRules(policy="fair_share"))
    for number in range(4):
        shared.run(f"s{number}", 1, "a", "other")
    assert of(shared, 1, 4).leaving == ("s0", "s1")


@given(pools(), st.integers(0, 6), st.integers(1, 4), st.sampled_from([10, 42, 90]))
@settings(deadline=None)
def test_it_is_what_happens(pool: Pool, slots: int, count: int, priority: int) -> None:
    """Submitted, just that comes of it."""
    expected = of(pool, slots, count, priority=priority)
    job = PoolJob(NEW, priority, 1e9)
    pool.jobs[NEW] = job
    names = [f"new.{number}" for number in range(count)]
    for number, name in enumerate(names):
        asked: SlotRequest = request(name, slots, NEW, requested_at=1e9 + number)
        pool.requests[asked.allocation_id] = asked
    decided = pool.plan()
    assert expected.starting == sum(name in decided.placements for name in names)
    assert set(expected.leaving) <= set(decided.preempt)
    assert bool(expected.reason) == (expected.starting < count)
