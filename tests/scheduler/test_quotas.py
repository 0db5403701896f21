"""Quotas: whose turn it is, and what those who share a limit may hold together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.ids import AgentId, AllocationId, JobId, PoolName
from tenax.scheduler.explain import RemedyKind, explain
from tenax.scheduler.quotas import (
    Association,
    LimitBook,
    Quota,
    Quotas,
    Use,
    by_first_asking,
    rules_for,
    share_limits,
    turns_of,
    used_by,
    with_quotas,
)
from tenax.scheduler.reasons import WaitClass, class_of
from tenax.scheduler.registry import plan
from tenax.scheduler.snapshot import PoolPlan, PoolRules
from tests.kits.builders.pool import Pool, agent, rules

ANA, BEN, EVE = 1, 2, 3
VISION, SPEECH = 10, 20
NAMED = Quotas(workspaces={VISION: Quota(), SPEECH: Quota()})


def order(quotas: Quotas, use: dict[Association, float]) -> dict[Association, int]:
    return turns_of(quotas, {association: Use(recent) for association, recent in use.items()}, list(use))


def test_who_has_used_least_comes_first() -> None:
    """First the workspace, then the person in it; who has used nothing yet turns with whoever has not either."""
    used = {(ANA, VISION): 60.0, (BEN, VISION): 10.0, (EVE, SPEECH): 50.0}
    assert order(NAMED, used) == {(EVE, SPEECH): 0, (BEN, VISION): 1, (ANA, VISION): 2}
    assert set(order(NAMED, dict.fromkeys(used, 0.0)).values()) == {0}


def test_weights_divide_what_was_used() -> None:
    """Of a workspace, of a person everywhere, and of a person in one workspace, which goes before."""
    used = {(ANA, VISION): 30.0, (BEN, VISION): 20.0, (EVE, SPEECH): 30.0}
    heavy = Quotas(workspaces={VISION: Quota(4), SPEECH: Quota()})
    assert order(heavy, used) == {(BEN, VISION): 0, (ANA, VISION): 1, (EVE, SPEECH): 2}
    person = replace(heavy, users={ANA: Quota(2)})
    assert order(person, used)[ANA, VISION] == 0
    there = replace(person, associations={(ANA, VISION): Quota(0.5), (BEN, VISION): Quota(max_slots=3)})
    assert order(there, used)[ANA, VISION] == 1
    assert there.weight_of((BEN, VISION)) == 1.0


@given(st.dictionaries(st.tuples(st.integers(1, 4), st.integers(1, 3)), st.floats(0, 1e9), min_size=1))
def test_ranks_are_a_queue_of_workspaces_and_people_in_them(use: dict[Association, float]) -> None:
    """Nobody stands between two of a workspace unless all three are alike; less use is never a later turn."""
    found = order(Quotas(workspaces={number: Quota() for number in (1, 2, 3)}), use)
    whole = {workspace: sum(used for each, used in use.items() if each[1] == workspace) for _, workspace in use}
    for one, first in found.items():
        for other, second in found.items():
            if first < second:
                assert (whole[one[1]], use[one]) < (whole[other[1]], use[other])


def test_a_workspace_made_for_it_gains_nothing() -> None:
    """Those that no quota names are one, of weight 1, and in it counts what a person used in all of them."""
    used = {(ANA, 30): 60.0, (ANA, 31): 0.0, (BEN, 32): 50.0, (EVE, 33): 0.0}
    assert order(Quotas(), used) == {(EVE, 33): 0, (BEN, 32): 1, (ANA, 30): 2, (ANA, 31): 2}
    assert order(Quotas(workspaces={VISION: Quota()}), {**used, (EVE, VISION): 100.0})[EVE, VISION] == 0
    assert order(Quotas(workspaces={VISION: Quota()}), {**used, (EVE, VISION): 120.0})[EVE, VISION] == 3


def test_what_a_limit_is_of() -> None:
    """Of a person in all workspaces, of a workspace, of a person in one, of all in a group."""
    use = {(ANA, VISION): Use(1, 10), (ANA, SPEECH): Use(2, 20), (BEN, VISION): Use(4, 40)}
    groups = {BEN: {7}, ANA: {7, 8}}
    assert used_by(use, groups) == {
        ("user", ANA, 0): Use(3, 30),
        ("user", BEN, 0): Use(4, 40),
        ("workspace", VISION, 0): Use(5, 50),
        ("workspace", SPEECH, 0): Use(2, 20),
        ("association", ANA, VISION): Use(1, 10),
        ("association", ANA, SPEECH): Use(2, 20),
        ("association", BEN, VISION): Use(4, 40),
        ("group", 7, 0): Use(7, 70),
        ("group", 8, 0): Use(3, 30),
    }


def test_what_binds_a_job() -> None:
    """All that it falls under, each with its name; a month that is used up binds as well."""
    quotas = Quotas(
        workspaces={VISION: Quota(2, max_slots=8)},
        users={ANA: Quota(slot_hours=2)},
        groups={7: Quota(max_slots=3)},
        everyone=Quota(max_slots=4),
    )
    associations = {JobId("a"): (ANA, VISION), JobId("b"): (BEN, SPEECH)}
    names = {("user", ANA, 0): "ana", ("group", 7, 0): "the group g"}
    its = rules_for(quotas, {(ANA, VISION): Use(0, 7200)}, associations, {ANA: {7}}, names)
    bound = {association: [its.limits[name] for name in limits] for association, limits in its.limits_of.items()}
    assert [(limit.name, limit.max_slots) for limit in bound[ANA, VISION]] == [
        ("ana", None), ("workspace:10:0", 8), ("the group g", 3),
    ]  # fmt: skip
    assert bound[ANA, VISION][0].spent == "2 of 2 slot hours of this month are used"
    assert [limit.max_slots for limit in bound[BEN, SPEECH]] == [4]


def limited(policy: str, most: int | None, **changes: Any) -> Pool:
    """Eight slots; ana's two jobs share a limit, ben's job has none."""
    pool = Pool([agent("a", 8)], rules(policy=policy)).limit("ana", most, **changes)
    pool.job("first", limits=("ana",)).job("second", limits=("ana",)).job("ben")
    for number in range(4):
        pool.ask(f"f{number}", 1, "first").ask(f"s{number}", 1, "second")
    return pool


@pytest.mark.parametrize("policy", ["priority", "fair_share"])
def test_a_limit_is_shared_by_jobs(policy: str) -> None:
    """What one holds the others cannot; those without it go on, and what waits for it says so."""
    pool = limited(policy, 3).ask("b", 4, "ben")
    decided = pool.plan()
    started = sum(pool.requests[name].slots for name in decided.placements if pool.requests[name].job_id != "ben")
    assert started == 3
    assert "b" in decided.placements
    reason = "waits for the quota of ana: 3 slots, of which 3 in use or promised, and this needs 1"
    if policy == "priority":
        assert set(decided.waiting.values()) == {reason}
    assert {class_of(reason) for reason in decided.waiting.values()} == {WaitClass.WAIT}
    pool.apply(decided)
    ended = next(name for name in pool.placed() if name != "b")
    pool.end(ended)
    assert len(pool.plan().placements) == 1


@pytest.mark.parametrize("policy", ["priority", "fair_share"])
def test_what_runs_is_not_ended_for_a_limit(policy: str) -> None:
    """One that was lowered, and one whose month is used up: what runs goes on, and nothing starts."""
    pool = limited(policy, None)
    pool.apply(pool.plan())
    for changes in ({"max_slots": 2}, {"spent": "5 of 5 slot hours of this month are used"}):
        pool.limits = {"ana": replace(pool.limits["ana"], **changes)}  # type: ignore[arg-type]
        pool.ask("late", 1, "first")
        assert pool.plan().preempt == {}
        assert "late" not in pool.plan().placements
        del pool.requests[AllocationId("late")]
    pool.agents = {AgentId("a"): agent("a", 16, used=8)}
    pool.ask("late", 1, "first")
    reason = pool.plan().waiting[AllocationId("late")]
    assert reason == "waits for the next month: by the quota of ana, 5 of 5 slot hours of this month are used"


def test_what_is_larger_than_a_limit_never_starts() -> None:
    """It says so, and holds up nobody."""
    pool = Pool([agent("a", 8)]).limit("ana", 2).job("big", limits=("ana",)).ask("big", 4, "big").ask("small", 8)
    decided = pool.plan()
    assert list(decided.placements) == ["small"]
    [reason] = decided.waiting.values()
    assert reason == "can never start as it is: the quota of ana is 2 slots, and this needs 4"
    assert class_of(reason) is WaitClass.CHANGE


def test_less_urgent_work_does_not_take_what_urgent_work_waits_for() -> None:
    """Of a limit that both share: the urgent request waits for room, and its part of the limit is kept for it."""
    pool = Pool([agent("a", 4)], rules(preemption=True)).limit("ana", 4)
    pool.job("urgent", 10, limits=("ana",)).job("rest", 90, limits=("ana",)).run("held", 2, "a", preemptible=False)
    pool.ask("wide", 4, "urgent").ask("narrow", 1, "rest")
    decided = pool.plan()
    assert decided.placements == {}
    assert decided.waiting[AllocationId("narrow")].startswith("waits for the quota of ana: ")


@pytest.mark.parametrize("reservation", [True, False])
def test_a_stream_of_small_ones_does_not_hold_a_limit_from_a_larger_more_urgent_one(reservation: bool) -> None:
    """What comes free of the limit is kept for it; of its own priority the others have their chance, as elsewhere."""
    pool = Pool([agent("a", 8)], rules(reservation=reservation)).limit("lab", 3)
    pool.job("urgent", 1, limits=("lab",)).job("small", 90, limits=("lab",)).job("alike", 1, limits=("lab",))
    pool.run("s0", 1, "a", "small").run("s1", 1, "a", "small").ask("wide", 2, "urgent").ask("s2", 1, "small")
    assert pool.plan().placements == {}
    pool.ask("like", 1, "alike")
    assert list(pool.plan().placements) == ([] if reservation else ["like"])
    del pool.requests[AllocationId("like")]
    pool.end("s0")
    assert list(pool.plan().placements) == ["wide"]


def test_turns_go_by_rank_within_a_priority() -> None:
    """Before the place in the queue, after the priority."""
    pool = Pool([agent("a", 1)]).job("used", 42, 0.0, turn=1).job("fresh", 42, 1.0).job("urgent", 10, 2.0, turn=5)
    for name in ("used", "fresh", "urgent"):
        pool.ask(name, 1, name)
    order = []
    for _ in range(3):
        decided = pool.plan()
        pool.apply(decided)
        [name] = decided.placements
        order.append(str(name))
        pool.end(name)
    assert order == ["urgent", "fresh", "used"]


def test_nobody_is_asked_to_leave_for_a_rank() -> None:
    """Ranks change with every second that somebody holds slots: at the same priority who runs goes on."""
    pool = Pool([agent("a", 1)], rules(preemption=True)).job("used", 42, 5.0, turn=1).run("used", 1, "a", "used")
    pool.job("fresh", 42, 1.0).ask("fresh", 1, "fresh")
    assert pool.plan().preempt == {}
    pool.jobs[JobId("used")] = replace(pool.jobs[JobId("used")], turn=0)
    assert list(pool.plan().preempt) == ["used"]


def test_a_limit_is_of_all_pools() -> None:
    """What was placed in one is held in the next, within a pass and from the one before."""
    quotas = Quotas(users={ANA: Quota(max_slots=3)})
    pools = {}
    for name in ("left", "right"):
        made = Pool([agent(f"{name}-agent", 4)]).job(f"{name}-job")
        for number in range(4):
            made.ask(f"{name}{number}", 1, f"{name}-job")
        pools[name] = made
    associations = {JobId(f"{name}-job"): (ANA, VISION) for name in pools}
    its = rules_for(quotas, {}, associations, {}, {("user", ANA, 0): "ana"})
    started = []
    for _ in range(2):
        bound = [with_quotas(replace(made.snapshot, pool=PoolName(name)), its) for name, made in pools.items()]
        book = LimitBook(bound)
        for snapshot in bound:
            decided = plan(book.with_elsewhere(snapshot))
            book.note(snapshot, decided)
            pools[snapshot.pool].apply(decided)
            started.append(len(decided.placements))
    assert started == [3, 0, 0, 0]
    pools["left"].end("left0")
    bound = [with_quotas(replace(made.snapshot, pool=PoolName(name)), its) for name, made in pools.items()]
    assert [LimitBook(bound).with_elsewhere(snapshot).limits["user:1:0"].elsewhere for snapshot in bound] == [0, 2]


def test_what_runs_counts_where_it_started() -> None:
    """A job that is filed elsewhere neither frees what it holds of a limit nor takes from another."""
    quotas = Quotas(workspaces={VISION: Quota(max_slots=2), SPEECH: Quota(max_slots=2)})
    pool = Pool([agent("a", 8)]).run("moved.1", 2, "a", "moved").ask("moved.2", 1, "moved").ask("stays.1", 1, "stays")
    associations = {JobId("moved"): (ANA, SPEECH), JobId("stays"): (ANA, VISION)}
    its = rules_for(quotas, {}, associations, {}, {}, {AllocationId("moved.1"): (ANA, VISION)})
    decided = plan(with_quotas(pool.snapshot, its))
    assert list(decided.placements) == ["moved.2"]
    assert "2 slots, of which 2 in use" in decided.waiting[AllocationId("stays.1")]


def test_what_others_left_for_is_not_taken_in_another_pool() -> None:
    """A limit of which something was promised: who asks later in another pool does not take that, however urgent."""
    quotas = Quotas(users={ANA: Quota(max_slots=4)})
    near = Pool([agent("n", 4)], rules(preemption=True)).job("theirs", 90).job("mine", 50)
    near.run("theirs", 4, "n", "theirs").ask("mine", 4, "mine")
    far = Pool([agent("f", 4)]).job("other", 1)
    pools = {"near": near, "far": far}
    associations = {JobId("mine"): (ANA, VISION), JobId("other"): (ANA, VISION)}
    its = rules_for(quotas, {}, associations, {}, {("user", ANA, 0): "ana"})

    def one_pass() -> dict[str, PoolPlan]:
        bound = [with_quotas(replace(made.snapshot, pool=PoolName(name)), its) for name, made in pools.items()]
        book, ordered, plans = LimitBook(bound), by_first_asking(bound), {}
        for snapshot in ordered if share_limits(ordered) else ():
            book.expect(snapshot, plan(snapshot))
        for snapshot in ordered:
            plans[str(snapshot.pool)] = plan(book.with_elsewhere(snapshot))
            book.note(snapshot, plans[str(snapshot.pool)])
            pools[snapshot.pool].apply(plans[str(snapshot.pool)])
        return plans

    assert list(one_pass()["near"].preempt) == ["theirs"]
    far.ask("other", 4, "other", requested_at=9.0)
    assert one_pass()["far"].placements == {}
    near.end("theirs")
    plans = one_pass()
    assert list(plans["near"].placements) == ["mine"]
    assert plans["far"].placements == {}


def test_who_is_held_back_is_ahead_of_nobody() -> None:
    """Neither in the words nor in the list of those ahead; turns are named where they decide."""
    pool = Pool([agent("a", 2)]).limit("ana", 0).job("held", 10, limits=("ana",)).job("fresh", 42, 5.0)
    pool.job("used", 42, 1.0, turn=1).run("runs", 2, "a").ask("held", 1, "held").ask("fresh", 1, "fresh")
    pool.ask("used", 1, "used")
    waiting = pool.plan().waiting
    assert "ahead" not in waiting[AllocationId("fresh")]
    assert waiting[AllocationId("used")].endswith(
        "; 1 request of the same priority (1 by the turns that quotas give) is ahead"
    )
    found = explain(JobId("used"), "default", {"default": pool.snapshot})
    assert found is not None
    assert found.ahead == ("fresh",)


def test_what_quotas_refuse_is_no_remedy() -> None:
    """A priority beyond the ceiling is not advised."""
    pool = Pool([agent("a", 1)], rules(preemption=True)).job("mine", 60, most_urgent=50).job("theirs", 55)
    pool.run("theirs", 1, "a", "theirs").ask("mine", 1, "mine")
    for ceiling, advised in ((50, ["54"]), (55, [])):
        pool.jobs[JobId("mine")] = replace(pool.jobs[JobId("mine")], most_urgent=ceiling)
        found = explain(JobId("mine"), "default", {"default": pool.snapshot})
        assert found is not None
        assert [each.value for each in found.remedies if each.kind is RemedyKind.PRIORITY] == advised


def test_a_quota_of_no_slot_hours_is_for_ever() -> None:
    """Nobody waits for a month that brings nothing."""
    its = rules_for(Quotas(users={ANA: Quota(slot_hours=0)}), {}, {JobId("j"): (ANA, VISION)}, {}, {})
    pool = Pool([agent("a", 1)]).ask("j", 1)
    [reason] = plan(with_quotas(pool.snapshot, its)).waiting.values()
    assert class_of(reason) is WaitClass.CHANGE
    assert reason.endswith("gives no slot hours")


def test_what_its_own_job_holds_back_keeps_nothing_of_a_limit() -> None:
    """What waited for a limit when its turn came, and by the end of its priority's waits for its job: others may go on,
    in this pass and not only in the next."""
    pool = Pool([agent("a", 8)], PoolRules(preemption=True))
    pool.limit("two", 4)
    pool.job("other", 10, limits=("two",)).job("urgent", 10, max_slots=4, limits=("two",)).job(
        "low", 90, limits=("two",)
    )
    pool.run("running", 1, "a", "other")
    pool.ask("big", 4, "urgent").ask("small", 2, "urgent").ask("last", 1, "low")
    decided = pool.plan()
    assert set(decided.placements) == {"small", "last"}
    assert decided.waiting[AllocationId("big")].startswith("waits for its own job: max_slots is 4")
