"""Recorded work, replayed: nothing is lost or given twice, the same comes out again, and what follows what is kept."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenax.ids import AgentId, JobId, PoolName
from tenax.scheduler.devices import SlotDevice
from tenax.scheduler.quotas import Quota, Quotas
from tenax.scheduler.registry import POLICIES
from tenax.scheduler.simulation.replay import NamedQuotas, ReplayOutcome, Scenario, Served, recorded, replay
from tenax.scheduler.simulation.summary import quantile, summary, waiting_slots, waits_by
from tenax.scheduler.simulation.trace import Trace, TraceAgent, TraceAttempt, pieces_of
from tenax.scheduler.simulation.use import UseOverTime
from tenax.scheduler.snapshot import Constraints, PoolRules

POOL = PoolName("p")
AGENTS = (TraceAgent(AgentId("a"), POOL, 4), TraceAgent(AgentId("b"), POOL, 2))


def attempt(name: str, asked: float, slots: int, seconds: float, user: str = "ann", **more: object) -> TraceAttempt:
    """One that started at once."""
    changed = {"task_id": name, "job_id": JobId(str(more.pop("job", name))), **more}
    made = TraceAttempt("", JobId(""), user, "w", POOL, slots, asked, asked, asked + seconds)
    return replace(made, **changed)  # type: ignore[arg-type]


def trace_of(*attempts: TraceAttempt, agents: tuple[TraceAgent, ...] = AGENTS, **rules: object) -> Trace:
    return Trace({POOL: PoolRules(**rules)}, agents, attempts)  # type: ignore[arg-type]


def replayed(trace: Trace, **changes: object) -> ReplayOutcome:
    return replay(trace, replace(Scenario("now", trace.rules, trace.agents), **changes))  # type: ignore[arg-type]


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    attempts = []
    for number in range(draw(st.integers(1, 12))):
        asked = draw(st.integers(0, 40))
        made = attempt(
            f"t{number}",
            float(asked),
            draw(st.integers(0, 6)),
            float(draw(st.integers(1, 30))),
            draw(st.sampled_from(["ann", "bob"])),
            job=f"j{draw(st.integers(0, 5))}",
            priority=draw(st.sampled_from([10, 42, 42, 90])),
            preemptible=draw(st.booleans()),
            single_node=draw(st.booleans()),
            time_limit_s=draw(st.sampled_from([None, None, 40.0])),
        )
        attempts.append(made)
    policy = draw(st.sampled_from([*POLICIES]))
    attempts.sort(key=lambda each: each.requested_at)
    # One job is of one priority.
    priorities = {each.job_id: each.priority for each in attempts}
    attempts = [replace(each, priority=priorities[each.job_id]) for each in attempts]
    return trace_of(*attempts, policy=policy, preemption=draw(st.booleans()), reservation=draw(st.booleans()))


@given(traces())
@settings(deadline=None)
def test_everything_runs_once_or_says_why_not(trace: Trace) -> None:
    """As long as it was recorded, and as often longer as it had to leave; never before it was asked for; never on more
    slots than there are. Again the same."""
    outcome = replayed(trace)
    assert outcome == replayed(trace)
    left = Counter(each.attempt.task_id for each in outcome.served)
    left.update(each.task_id for each, _ in outcome.unserved)
    assert set(left) == {each.task_id for each in trace.attempts}
    assert set(left.values()) <= {1}
    assert all(reason for _, reason in outcome.unserved)
    for each in outcome.served:
        work = each.attempt.ended_at - each.attempt.started_at
        again = sum(min(30.0, until - since) for since, until in each.spans[:-1])
        assert math.isclose(each.held_s, work + again)
        assert each.spans[0][0] >= each.requested_at
        assert all(until <= since for (_, until), (since, _) in zip(each.spans, each.spans[1:], strict=False))
    assert most_held(outcome) <= outcome.slots


def most_held(outcome: ReplayOutcome) -> int:
    changes = [
        change
        for each in outcome.served
        for since, until in each.spans
        for change in ((since, 1, each.attempt.slots), (until, 0, -each.attempt.slots))
        if since < until
    ]
    held = most = 0
    for _, _, slots in sorted(changes):
        held += slots
        most = max(most, held)
    return most


@given(traces())
@settings(deadline=None)
def test_what_a_replay_gives_replays_to_itself(trace: Trace) -> None:
    """A recorded outcome under the rules that it came of is the same again, where nobody had to leave."""
    outcome = replayed(trace)
    if outcome.unserved or any(each.preemptions for each in outcome.served):
        return
    served = sorted(outcome.served, key=lambda each: each.requested_at)
    order = {each.task_id: number for number, each in enumerate(trace.attempts)}
    served.sort(key=lambda each: (each.requested_at, order[each.attempt.task_id]))
    again = replace(
        trace,
        attempts=tuple(
            replace(each.attempt, requested_at=each.requested_at, started_at=each.spans[0][0], ended_at=each.ended_at)
            for each in served
        ),
    )
    assert times(replayed(again)) == times(outcome)


def times(outcome: ReplayOutcome) -> dict[str, tuple[float, float]]:
    return {each.attempt.task_id: (each.spans[0][0], each.ended_at) for each in outcome.served}


def test_the_next_trial_of_a_search_comes_with_the_end_of_the_one_before() -> None:
    """With more machines the search is done sooner, as it would be; what its owner asked for by hand stays where it
    was."""
    waited = attempt("second", 104.0, 4, 50.0, job="search")
    attempts = (
        replace(attempt("first", 0.0, 6, 100.0, job="search"), started_at=2.0, ended_at=102.0),
        replace(waited, started_at=110.0, ended_at=160.0),
        attempt("by hand", 1000.0, 1, 10.0, job="search"),
    )
    assert [(each.follows, each.gap_s) for each in pieces_of(attempts)] == [(None, 0.0), (0, 2.0), (None, 0.0)]
    assert times(replayed(trace_of(*attempts))) == {
        "first": (0.0, 100.0),
        "second": (102.0, 152.0),
        "by hand": (1000.0, 1010.0),
    }


def test_attempts_of_one_task_are_never_at_once() -> None:
    """However long its owner had paused it."""
    attempts = (attempt("t", 0.0, 1, 10.0), attempt("t", 5000.0, 1, 10.0))
    assert [(each.follows, each.gap_s) for each in pieces_of(attempts)] == [(None, 0.0), (0, 4990.0)]


def test_a_restart_costs_what_is_said() -> None:
    """What is asked to leave goes on later, and does that much anew."""
    low = attempt("low", 0.0, 6, 100.0, priority=50)
    urgent = attempt("urgent", 40.0, 6, 10.0, priority=1)
    outcome = replayed(trace_of(low, urgent, preemption=True), restart_s=7.0)
    by_name = {each.attempt.task_id: each for each in outcome.served}
    assert by_name["urgent"].spans == ((40.0, 50.0),)
    assert by_name["low"].spans == ((0.0, 40.0), (50.0, 117.0))
    assert (by_name["low"].preemptions, by_name["low"].waited_s) == (1, 10.0)


def test_other_machines_and_what_fits_on_none_of_them() -> None:
    """The reason is the scheduler's own."""
    trace = trace_of(attempt("big", 0.0, 16, 5.0), attempt("small", 0.0, 1, 5.0))
    ((lost, reason),) = replayed(trace).unserved
    assert (lost.task_id, "16 slots can never run here" in reason) == ("big", True), reason
    bigger = (*AGENTS, TraceAgent(AgentId("c"), POOL, 16))
    assert not replayed(trace, agents=bigger).unserved


def test_constraints_hold_in_a_replay() -> None:
    """Each runs where it could; what no machine of the scenario meets never runs."""
    agents = (
        replace(AGENTS[0], labels={"zone": "a"}, devices=(SlotDevice("T4"),) * 4),
        replace(AGENTS[1], labels={"zone": "b"}, devices=(SlotDevice("A100"),) * 2),
    )
    bound = attempt("bound", 0, 2, 10, constraints=Constraints(device_name=("A100",)))
    behind = attempt("behind", 1, 1, 10, constraints=Constraints((("zone", ("b",)),)))
    free = attempt("free", 2, 4, 10)
    trace = trace_of(bound, behind, free, agents=agents)
    ends = {each.attempt.task_id: each.ended_at for each in replayed(trace).served}
    assert ends == {"bound": 10.0, "behind": 20.0, "free": 12.0}
    outcome = replayed(trace, agents=agents[:1])
    assert {each.task_id for each, _ in outcome.unserved} == {"bound", "behind"}
    assert "has no device named A100, but T4 (4)" in {a.task_id: why for a, why in outcome.unserved}["bound"]


def test_quotas_bind_from_the_first_instant() -> None:
    """A cap holds somebody back, and the turn goes to who has used less."""
    named = NamedQuotas(Quotas(users={1: Quota(max_slots=2)}), {"ann": 1, "bob": 2}, {"w": 1}, {})
    attempts = [attempt(f"a{number}", float(number), 2, 100.0) for number in range(3)]
    outcome = replayed(trace_of(*attempts), quotas=named)
    assert [each.spans[0][0] for each in outcome.served] == [0.0, 100.0, 200.0]
    free = replace(named, quotas=Quotas())
    whole = (AGENTS[0],)
    first = attempt("first", 0.0, 4, 100.0)
    mine, other = attempt("mine", 1.0, 4, 10.0), attempt("other", 2.0, 4, 10.0, user="bob")
    outcome = replayed(trace_of(first, mine, other, agents=whole), quotas=free)
    assert [each.attempt.task_id for each in outcome.served] == ["first", "other", "mine"]


def test_limits_of_several_pools_are_one() -> None:
    """What is held in one is not there in the other."""
    other = PoolName("q")
    agents = (*AGENTS, TraceAgent(AgentId("z"), other, 4))
    attempts = (attempt("here", 0.0, 2, 50.0), attempt("there", 1.0, 2, 50.0, pool=other))
    trace = Trace({POOL: PoolRules(), other: PoolRules()}, agents, attempts)
    named = NamedQuotas(Quotas(users={1: Quota(max_slots=2)}), {"ann": 1}, {"w": 1}, {})
    assert times(replayed(trace)) == {"here": (0.0, 50.0), "there": (1.0, 51.0)}
    assert times(replayed(trace, quotas=named)) == {"here": (0.0, 50.0), "there": (50.0, 100.0)}


def test_use_is_halved_and_begins_anew_with_a_month() -> None:
    """As the master adds it up: what was held a half-life ago counts half."""
    november_end = 1796083200.0  # 2026-12-01T00:00:00Z
    use = UseOverTime(half_life_s=1000.0)
    use.begin((1, 1), 4, november_end - 1500.0)
    use.end((1, 1), 4, november_end - 500.0)
    use.begin((2, 1), 1, november_end - 500.0)
    use.advance(november_end + 500.0)
    used = use.used()
    fresh = 4 * 1000.0 / math.log(2) * 0.5
    assert used[1, 1].recent == pytest.approx(fresh / 2)
    assert used[1, 1].this_month == 0.0
    assert used[2, 1].recent == pytest.approx(1000.0 / math.log(2) * 0.5)
    assert used[2, 1].this_month == pytest.approx(500.0)


def test_figures() -> None:
    """By hand: of two attempts of one user and one of another."""
    served = (
        Served(attempt("a", 0.0, 2, 10.0, job="j"), 0.0, ((0.0, 10.0),), 0),
        Served(attempt("b", 0.0, 2, 10.0, job="j"), 0.0, ((20.0, 25.0), (35.0, 40.0)), 1),
        Served(attempt("c", 5.0, 4, 30.0, user="bob"), 5.0, ((10.0, 40.0),), 0),
    )
    outcome = ReplayOutcome("x", 6, served)
    its = summary(outcome)
    assert (its.attempts, its.waited_median_s, its.waited_p95_s, its.preemptions) == (3, 5.0, 30.0, 1)
    assert its.waited_mean_s == pytest.approx(35 / 3)
    assert its.completion_mean_s == pytest.approx((40 + 35) / 2)
    assert (its.span_s, its.used) == (40.0, pytest.approx((20 + 20 + 120) / 240))
    longer = [(30 + 20) / 20, (5 + 30) / 30]
    assert its.fairness == pytest.approx(sum(longer) ** 2 / (2 * sum(each**2 for each in longer)))
    assert waits_by(outcome, "user") == {"ann": 15.0, "bob": 5.0}
    assert waits_by(outcome, "slots") == {"2": 15.0, "4": 5.0}
    assert waiting_slots(outcome, [0.0, 7.0, 15.0, 24.0, 30.0, 41.0]) == [2, 6, 2, 0, 2, 0]
    assert (summary(ReplayOutcome("y", 0, ())).waited_mean_s, quantile([], 0.5)) == (0.0, 0.0)
    happened = summary(recorded(trace_of(attempt("a", 0.0, 6, 10.0))))
    assert (happened.used, happened.preemptions) == (None, None)


def test_time_alone_lets_a_short_job_pass() -> None:
    """Under least-attained service, though nothing comes or ends: as the long one has held four slot hours."""
    long, short = attempt("long", 0.0, 6, 36000.0), attempt("short", 60.0, 6, 600.0)
    outcome = replayed(trace_of(long, short, policy="least_attained"))
    by_name = {each.attempt.task_id: each for each in outcome.served}
    assert by_name["short"].spans[0][0] == pytest.approx(4 * 3600 / 6, abs=1)
    assert by_name["long"].preemptions == 1


def test_a_new_month_lets_go_on_who_had_used_up_theirs() -> None:
    """As it begins, though nothing comes or ends then; what never can is no reason to look for ever."""
    december = 1796083200.0
    named = NamedQuotas(Quotas(users={1: Quota(slot_hours=1.0)}), {"ann": 1}, {"w": 1}, {})
    first, second = attempt("a", december - 90000.0, 2, 7200.0), attempt("b", december - 70000.0, 2, 60.0)
    never = attempt("c", december - 60000.0, 99, 60.0)
    outcome = replayed(trace_of(first, second, never), quotas=named)
    assert times(outcome)["b"][0] == december
    assert [each.task_id for each, _ in outcome.unserved] == ["c"]


def test_what_follows_what_never_ran_never_ran_either() -> None:
    """It is counted, with that reason."""
    first = attempt("first", 0.0, 99, 10.0, job="j")
    outcome = replayed(trace_of(first, attempt("next", 12.0, 1, 10.0, job="j")))
    (_, first_reason), (then, reason) = outcome.unserved
    assert "99 slots can never run here" in first_reason
    assert (then.task_id, reason) == ("next", "what it follows never ran")
