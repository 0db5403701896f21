"""The queue as people see it and change it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.ids import AllocationId, JobId
from tenax.scheduler.queueing import JobStanding, QueueLine, lines, moved
from tenax.scheduler.registry import POLICIES, queue
from tenax.scheduler.snapshot import SlotLimit
from tests.kits.builders.pool import Pool, agent, rules
from tests.kits.cases import collect


def by_job(pool: Pool) -> dict[str, QueueLine]:
    return {line.job_id: line for line in lines(pool.snapshot)}


def test_a_job_stands_where_its_first_request_does() -> None:
    """It asks for the sum of its requests, and has what those have that were placed."""
    pool = Pool([agent("a", 2)]).job("late", 50).job("urgent", 40)
    pool.run("late.1", 1, "a", "late").ask("late.2", 2, "late").ask("urgent.1", 2, "urgent", preemptible=False)
    lines = by_job(pool)
    assert [(line.job_id, line.ahead) for line in lines.values()] == [("urgent", 0), ("late", 1)]
    assert (lines["late"].requested_slots, lines["late"].allocated_slots) == (3, 1)
    assert (lines["urgent"].standing, lines["urgent"].preemptible) == (JobStanding.QUEUED, False)


def test_what_runs_before_more_urgent_ones_was_backfilled() -> None:
    """Unless it cannot leave, or is of the other kind: with slots or without."""
    pool = Pool([agent("a", 4)], rules(preemption=True)).job("big", 1).job("small", 90).job("fixed", 90).job("aux", 90)
    pool.run("small.1", 1, "a", "small").run("fixed.1", 1, "a", "fixed", preemptible=False)
    pool.run("aux.1", 0, "a", "aux").ask("big.1", 4, "big")
    lines = by_job(pool)
    assert lines["small"].standing is JobStanding.SCHEDULED_BACKFILLED
    assert (lines["fixed"].standing, lines["aux"].standing) == (JobStanding.SCHEDULED, JobStanding.SCHEDULED)


def test_what_cannot_leave_was_not_backfilled() -> None:
    """Where nothing is preempted, or more urgent ones wait for their own cap alone, a job that runs is scheduled."""
    for pool_rules, cap in ((rules(preemption=False), None), (rules(preemption=True), 3)):
        pool = Pool([agent("a", 8)], pool_rules).job("urgent", 1, max_slots=cap).job("small", 90)
        pool.run("small.1", 1, "a", "small").ask("urgent.1", 16 if cap is None else 4, "urgent")
        assert by_job(pool)["small"].standing is JobStanding.SCHEDULED


def test_what_runs_beside_those_that_wait_for_a_quota_was_not_backfilled() -> None:
    """They wait for no room."""
    pool = Pool([agent("a", 8)], rules(preemption=True)).job("urgent", 1).job("small", 90)
    pool.run("small.1", 1, "a", "small").ask("urgent.1", 4, "urgent")
    jobs = dict(pool.snapshot.jobs)
    jobs[JobId("urgent")] = replace(jobs[JobId("urgent")], limits=("user:1:0",))
    snapshot = replace(pool.snapshot, jobs=jobs, limits={"user:1:0": SlotLimit("ann", max_slots=2)})
    assert [line.standing for line in lines(snapshot)] == [JobStanding.QUEUED, JobStanding.SCHEDULED]


#: Cases of the policies that there are.
CASES = [case for case in collect("job_queue", "queue") if case.values[0]["scheduler"] in POLICIES]


@pytest.mark.parametrize("case", CASES)
def test_queues_as_the_cases_say(case: Any) -> None:
    """Counts, places and slots after one round of the scheduler."""
    agents = [
        agent(entry["id"], entry["slots"], aux_places=entry["max_zero_slot_containers"]) for entry in case["agents"]
    ]
    pool = Pool(agents)
    for group in case["groups"]:
        pool.job(group["id"], group["priority"])
    for task in case["tasks"]:
        pool.ask(task["id"], task["slots"], task["job"])
    pool.apply(pool.plan())
    lines = by_job(pool)
    if "expect_stats" in case:
        waiting = sum(1 for line in lines.values() if line.standing is JobStanding.QUEUED)
        expected = case["expect_stats"]
        assert (waiting, len(lines) - waiting) == (expected["queued_count"], expected["scheduled_count"])
    names = {"state": "standing", "jobs_ahead": "ahead"}
    for job, expected in case.get("expect_jobs", {}).items():
        for field, value in expected.items():
            assert getattr(lines[job], names.get(field, field)) == value, (job, field)


POSITIONS = st.lists(st.floats(0, 2e15, allow_nan=False), min_size=2, max_size=8)


@given(POSITIONS, st.data())
def test_a_moved_job_stands_beside_its_anchor(positions: list[float], data: st.DataObject) -> None:
    """Whatever the numbers: directly before or behind it; the order of the others stays as it was."""
    order = sorted(((JobId(f"j{n}"), position) for n, position in enumerate(positions)), key=lambda entry: entry[1])
    names = [name for name, _ in order]
    job = data.draw(st.sampled_from([*names, JobId("new")]))
    anchor = data.draw(st.sampled_from([name for name in names if name != job]))
    behind = data.draw(st.booleans())
    after = {**dict(order), **moved(order, job, anchor, behind=behind)}
    now = sorted(after, key=after.__getitem__)
    assert len(set(after.values())) == len(after) or len(set(positions)) < len(positions)
    others = [name for name in names if name != job]
    place = others.index(anchor) + behind
    expected = [*others[:place], job, *others[place:]]
    strictly = sorted(after, key=lambda name: (after[name], expected.index(name)))
    assert strictly == expected
    neighbours = [after[name] for name in now]
    assert after[job] not in [value for name, value in after.items() if name != job] or len(neighbours) == 1


def test_a_moved_job_is_served_where_it_stands() -> None:
    """The scheduler takes the new place as any other."""
    pool = Pool([agent("a", 1)]).job("first", position=10.0).job("second", position=20.0).job("third", position=30.0)
    for name in ("first", "second", "third"):
        pool.ask(f"{name}.1", 1, name)
    order = [(job.id, job.queue_position) for job in pool.jobs.values()]
    for name, position in moved(order, JobId("third"), JobId("second"), behind=False).items():
        pool.job(name, position=position)
    assert [request.allocation_id for request in queue(pool.snapshot)] == [
        AllocationId(f"{name}.1") for name in ("first", "third", "second")
    ]
