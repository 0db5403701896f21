"""The fair-share policy: what each job gets, what is taken back, and what waits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.ids import AgentId, AllocationId, JobId
from tenax.scheduler.fair_share import Claim, divide
from tenax.scheduler.queueing import SHARED, JobStanding, lines, with_held
from tenax.scheduler.snapshot import AgentState, PoolRules
from tests.kits.builders.pool import Pool, agent


def pool(*slots: int, **more: bool) -> Pool:
    agents = [agent(f"a{number}", count, aux_places=1) for number, count in enumerate(slots)]
    return Pool(agents, PoolRules(policy="fair_share", **more))


def asks(made: Pool, job: str, slots: int, count: int, **more: object) -> None:
    """So many requests of a job."""
    for number in range(count):
        made.ask(f"{job}.{number}", slots, job, **more)


def held(made: Pool) -> dict[str, int]:
    """Slots by job."""
    sums: dict[str, int] = {}
    for asked in made.requests.values():
        if asked.members:
            sums[asked.job_id] = sums.get(asked.job_id, 0) + asked.slots
    return sums


def settled(made: Pool) -> dict[str, int]:
    """Slots by job once nothing moves: what is asked to leave does, and asks again."""
    for _ in range(50):
        decided = made.plan()
        made.apply(decided)
        if not decided.placements and not decided.preempt:
            return held(made)
        for name in decided.preempt:
            slots, job = made.requests[name].slots, made.requests[name].job_id
            made.end(name)
            made.ask(name, slots, job)
    raise AssertionError("still moving")


@pytest.mark.parametrize(
    ("capacity", "claims", "shares"),
    [
        (8, [(1, [1] * 8), (1, [1] * 8)], [4, 4]),
        (8, [(1, [1] * 8), (3, [1] * 8)], [2, 6]),
        (8, [(1, [1] * 8), (1, [1])], [7, 1]),
        (8, [(1, [4]), (1, [4]), (1, [4])], [4, 4, 0]),
        (8, [(1, [1] * 8), (1, [4]), (1, [4])], [4, 4, 0]),
        (4, [(1, [4]), (1, [4])], [4, 0]),
        (2, [(1, [1]), (1, [1]), (1, [1])], [1, 1, 0]),
        (7, [(1, [2, 2, 2]), (1, [2, 2, 2])], [4, 2]),
        (0, [(1, [1])], [0]),
        (5, [(0, [1] * 5), (0, [1] * 5)], [3, 2]),
        (4, [(1, [1] * 4), (3, [1] * 4), (1, [2])], [1, 3, 0]),
    ],
)
def test_shares(capacity: int, claims: list[tuple[float, list[int]]], shares: list[int]) -> None:
    """By weight, up to what is asked for; what is of no use to one goes to others, whose turn is earlier first."""
    made = [Claim(JobId(str(place)), weight, tuple(sizes)) for place, (weight, sizes) in enumerate(claims)]
    assert list(divide(made, capacity).values()) == shares


@given(st.lists(st.floats(0.1, 100.0), min_size=1, max_size=8), st.integers(0, 400))
def test_shares_are_as_the_weights(weights: list[float], capacity: int) -> None:
    """To a slot for each job, where everyone wants all there is; and nothing is left over."""
    made = [Claim(JobId(str(place)), weight, (1,) * capacity) for place, weight in enumerate(weights)]
    shares = divide(made, capacity)
    assert sum(shares.values()) == capacity
    for claim in made:
        assert abs(shares[claim.job] - capacity * claim.weight / sum(weights)) <= len(weights)


def test_who_has_little_weight_has_a_slot() -> None:
    """Beside the greatest that there may be."""
    assert divide([Claim(JobId("a"), 1000.0, (1,) * 8), Claim(JobId("b"), 0.001, (1,) * 8)], 8) == {"a": 7, "b": 1}


@pytest.mark.parametrize("weights", [(1e308, 1e308), (1.7e308, 1.0), (5e-324, 1.0), (1e-300, 1e300)])
def test_odd_weights_are_divided_by(weights: tuple[float, float]) -> None:
    """Nothing overflows."""
    shares = divide([Claim(JobId(str(place)), weight, (1,) * 8) for place, weight in enumerate(weights)], 8)
    assert sum(shares.values()) == 8


def test_what_nobody_else_can_use_is_also_theirs_who_keep_what_they_have() -> None:
    """Else a plan that was carried out would take back what it began."""
    claims = [
        Claim(JobId("keeps"), 1.0, (1, 2), kept=2, kept_sizes=(2,)),
        Claim(JobId("large"), 3.0, (4,)),
        Claim(JobId("capped"), 1.0, (2, 2, 2), cap=3, kept=2, kept_sizes=(2,)),
    ]
    assert divide(claims, 6) == {"keeps": 3, "large": 0, "capped": 2}


def test_very_many_that_keep_more_than_their_shares() -> None:
    """Are set apart at once, in the end."""
    claims = [Claim(JobId(str(place)), 1.0, (1, 1), kept=2) for place in range(3000)]
    assert set(divide(claims, 100).values()) == {2}


def test_what_cannot_be_taken_back_stays() -> None:
    """And the others divide the rest."""
    made = [
        Claim(JobId("stays"), 1.0, (6,), kept=6),
        Claim(JobId("b"), 1.0, (1,) * 8),
        Claim(JobId("c"), 1.0, (1,) * 8),
    ]
    assert divide(made, 8) == {"stays": 6, "b": 1, "c": 1}
    assert divide(made, 4) == {"stays": 6, "b": 0, "c": 0}


def test_a_newcomer_gets_its_share_and_gives_it_back() -> None:
    """The earliest of those above their share leave, with the reason; when the newcomer is gone all is as before."""
    made = pool(4, 4)
    asks(made, "first", 1, 8)
    assert settled(made) == {"first": 8}
    asks(made, "second", 1, 2)
    decided = made.plan()
    assert list(decided.preempt) == ["first.0", "first.1"]
    assert decided.preempt[AllocationId("first.0")] == (
        "its job holds 8 of 8 slots in pool default, and its share of them is 6 now"
    )
    assert decided.waiting[AllocationId("second.0")] == "waits for 1 free slot in pool default: they are being released"
    assert settled(made) == {"first": 6, "second": 2}
    assert set(made.plan().waiting.values()) == {
        "waits for its job's share of pool default: that is 6 of 8 slots now, of which 6 in use or promised, and this "
        "needs 1"
    }
    for number in range(2):
        made.end(f"second.{number}")
    assert settled(made) == {"first": 8}


def test_what_runs_is_not_ended_for_a_share_too_small_to_be_used() -> None:
    """Three jobs of which only two have room: the two that have it keep it."""
    made = pool(8)
    for job in ("a", "b", "c"):
        asks(made, job, 4, 2)
    assert settled(made) == {"a": 4, "b": 4}
    assert not made.plan().preempt
    made.end("b.0")
    made.end("b.1")
    assert settled(made) == {"a": 4, "c": 4}


def test_weights_are_followed_while_a_job_runs() -> None:
    """They may change at any time."""
    made = pool(8)
    asks(made, "a", 1, 8)
    asks(made, "b", 1, 8)
    assert settled(made) == {"a": 4, "b": 4}
    made.jobs[JobId("b")] = replace(made.jobs[JobId("b")], weight=3.0)
    assert settled(made) == {"a": 2, "b": 6}


def test_the_cap_of_a_job_binds() -> None:
    """What it leaves is the others'; the reason names it."""
    made = pool(8)
    made.job("a", max_slots=2)
    asks(made, "a", 1, 8)
    asks(made, "b", 1, 8)
    assert settled(made) == {"a": 2, "b": 6}
    assert "max_slots is 2, of which 2 in use" in made.plan().waiting[AllocationId("a.2")]
    made.jobs[JobId("a")] = replace(made.jobs[JobId("a")], max_slots=1)
    assert settled(made) == {"a": 1, "b": 7}


def test_what_can_never_start_takes_no_share() -> None:
    """And says so."""
    made = pool(4, 4)
    asks(made, "wide", 8, 1, single_node=True)
    asks(made, "small", 1, 8)
    assert settled(made) == {"small": 8}
    assert made.plan().waiting[AllocationId("wide.0")].startswith("can never start as it is: ")


def test_slots_of_agents_that_take_no_work_count_while_they_are_held() -> None:
    """Nothing leaves because its agent is being drained, and nothing of that agent is dealt out."""
    made = pool(4, 4)
    asks(made, "a", 4, 2)
    made.apply(made.plan())
    made.agents[AgentId("a0")] = replace(made.agents[AgentId("a0")], state=AgentState.DRAINING)
    assert not made.plan().preempt
    asks(made, "b", 1, 4)
    decided = made.plan()
    assert len(decided.preempt) == 1
    assert not decided.placements


def test_requests_without_slots_stand_apart() -> None:
    """They start in order, as far as there are places."""
    made = pool(0)
    asks(made, "a", 0, 1)
    asks(made, "b", 0, 1)
    decided = made.plan()
    assert list(decided.placements) == ["a.0"]
    assert decided.waiting[AllocationId("b.0")].startswith("waits for a free place for a task without slots")


def test_places_are_reserved_within_a_share() -> None:
    """Three agents with a free slot each: one is kept for the large request, and small ones go elsewhere."""
    made = pool(2, 2, 2, reservation=True)
    for number, (job, where) in enumerate((("s", "a0"), ("t", "a1"), ("t", "a2"))):
        made.run(f"{job}.{number}", 1, where, job)
    asks(made, "large", 2, 1, single_node=True)
    made.ask("s.more", 1, "s")
    decided = made.plan()
    assert decided.waiting[AllocationId("large.0")].endswith("it must run on one agent; 1 free slot is kept for it")
    assert AllocationId("s.more") in decided.placements
    made.apply(decided)
    # Whatever else ends, the place that is kept is not given away, and what it lacks comes to it.
    for _ in range(6):
        if "large.0" in made.placed():
            break
        others = [name for name, asked in made.requests.items() if asked.members and asked.job_id in ("s", "t")]
        made.end(others[0])
        made.ask(f"{others[0]}.again", 1, others[0][0])
        made.apply(made.plan())
    assert held(made)["large"] == 2


def test_the_queue_of_a_pool_that_shares() -> None:
    """Nobody is ahead of anybody, and nothing was backfilled."""
    made = pool(4, preemption=True)
    made.job("a", 90)
    made.job("b", 10)
    asks(made, "a", 1, 4)
    asks(made, "b", 1, 4)
    made.apply(made.plan())
    shown = with_held(lines(made.snapshot), {JobId("c"): 1}, in_turns=False)
    assert [(line.job_id, line.ahead, line.standing) for line in shown] == [
        ("a", SHARED, JobStanding.SCHEDULED),
        ("b", SHARED, JobStanding.SCHEDULED),
        ("c", SHARED, JobStanding.QUEUED),
    ]
