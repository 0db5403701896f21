"""The priority policy in cases of four lines: order, gangs, preemption, caps, and the words of each reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tenax.ids import AgentId, AllocationId
from tenax.scheduler.fitting import can_never_fit
from tenax.scheduler.policy import jobs_ahead
from tenax.scheduler.reasons import WaitClass, class_of
from tenax.scheduler.registry import queue
from tenax.scheduler.snapshot import AgentState, Fitting, Phase, PlacedMember, PoolAgent, PoolRules, PoolSnapshot
from tests.kits.builders.pool import Pool, agent

PREEMPT = PoolRules(preemption=True)


def started(pool: Pool) -> list[str]:
    """What a plan starts, in order."""
    return list(pool.plan().placements)


def test_more_urgent_first() -> None:
    """Priority 1 goes before 42, an earlier queue position before a later one, an earlier asking before a later."""
    pool = Pool([agent("a", 3)]).job("late", position=9).job("early", position=1).job("urgent", 1, 99)
    pool.ask("l", 1, "late").ask("e2", 1, "early").ask("e1", 1, "early", requested_at=0.5).ask("u", 1, "urgent")
    assert started(pool) == ["u", "e1", "e2"]
    assert jobs_ahead(queue(pool.snapshot)) == {"urgent": 0, "early": 1, "late": 2}


def test_a_gang_of_unequal_members_is_placed() -> None:
    """Eight slots on agents of five and three, which is what there is."""
    pool = Pool([agent("three", 3), agent("five", 5)]).ask("r", 8)
    assert [(member.agent_id, len(member.slots)) for member in pool.plan().placements[AllocationId("r")]] == [
        ("five", 5),
        ("three", 3),
    ]


def test_a_gang_fits_beside_others() -> None:
    """Free slots of agents that are in use by others serve a gang; the largest blocks first."""
    pool = Pool([agent("a", 8, used=5), agent("b", 8, used=3)]).ask("r", 7)
    assert [(m.agent_id, len(m.slots)) for m in pool.plan().placements[AllocationId("r")]] == [("b", 5), ("a", 2)]


def test_even_gangs_only() -> None:
    """Where a pool wants even gangs, unequal ones wait, and whole agents of one size serve."""
    even = PoolRules(uneven_gangs=False)
    assert started(Pool([agent("a", 5), agent("b", 3)], even).ask("r", 8)) == []
    assert started(Pool([agent("a", 4), agent("b", 4)], even).ask("r", 8)) == ["r"]
    assert started(Pool([agent("a", 4), agent("b", 4, used=1)], even).ask("r", 8)) == []


def test_one_node_means_one_node() -> None:
    """A request for a single node is never spread."""
    pool = Pool([agent("a", 4), agent("b", 4)]).ask("r", 8, single_node=True)
    assert (
        pool.plan()
        .waiting[AllocationId("r")]
        .startswith(
            "can never start as it is: 8 slots on one node can never run here: pool default has 8 slots on 2 agents, "
            "the largest with 4."
        )
    )


@pytest.mark.parametrize(("fitting", "agent_id"), [(Fitting.BEST, "small"), (Fitting.WORST, "big")])
def test_best_and_worst_fit(fitting: Fitting, agent_id: str) -> None:
    """Best fit leaves the least behind, worst fit the most."""
    pool = Pool([agent("small", 4, used=2), agent("big", 8, used=2)], PoolRules(fitting=fitting)).ask("r", 2)
    assert pool.plan().placements[AllocationId("r")][0].agent_id == agent_id


def test_work_without_slots_leaves_idle_agents_whole() -> None:
    """A request of no slots takes an auxiliary place, where slots are in use already if there is such an agent."""
    pool = Pool([agent("idle", 4), agent("busy", 4, used=3)]).ask("r", 0)
    assert pool.plan().placements[AllocationId("r")] == (PlacedMember(AgentId("busy")),)


def test_agents_that_take_no_work_get_none() -> None:
    """Draining, disabled and unconnected agents are passed over, and the reason counts them."""
    closed = [agent(name, 4, state=AgentState(name)) for name in ("DRAINING", "DISABLED", "AWAY")]
    pool = Pool([*closed, agent("open", 2, used=1)]).ask("r", 4)
    assert pool.plan().waiting[AllocationId("r")] == (
        "cannot start before somebody acts: pool default has 4 slots for it only with agents that take no work "
        "(1 not connected, 1 draining, 1 disabled): enable them (tenax agent enable AGENT), or start them again"
    )


@pytest.mark.parametrize(
    ("agents", "slots", "options", "kind", "part"),
    [
        ([agent("a", 4, used=3)], 2, {}, WaitClass.WAIT, "largest free block 1"),
        ([agent("a", 4)], 8, {}, WaitClass.CHANGE, "8 slots can never run here: pool default has 4 slots on 1 agent"),
        ([agent("a", 4)], 8, {"blocked": ["a"]}, WaitClass.CHANGE, "pool default has 4 slots on 1 agent. Ask for"),
        ([agent("a", 4)], 4, {"blocked": ["a"]}, WaitClass.ASK, "has no agents, not counting 1 agent"),
        ([agent("a", 4, state=AgentState.DISABLED)], 4, {}, WaitClass.ASK, "has only disabled agents (1)"),
        ([agent("a", 4, state=AgentState.DISABLED)], 8, {}, WaitClass.CHANGE, "can never run here: pool default has 4"),
        ([agent("a", 4, state=AgentState.DRAINING), agent("b", 2)], 4, {}, WaitClass.ASK, "(1 draining)"),
        ([agent("a", 4, state=AgentState.AWAY)], 0, {}, WaitClass.ASK, "a place for a task without slots"),
        ([agent("a", 4, aux_places=0)], 0, {}, WaitClass.CHANGE, "takes tasks without slots"),
        ([], 1, {}, WaitClass.ASK, "has no agents: start one there"),
    ],
)
def test_a_reason_says_what_has_to_happen(
    agents: list[PoolAgent], slots: int, options: dict[str, object], kind: WaitClass, part: str
) -> None:
    """Time alone, another request, or that somebody acts: told apart by what would fit if all agents took work."""
    reason = Pool(agents).ask("r", slots, **options).plan().waiting[AllocationId("r")]
    assert part in reason
    assert class_of(reason) is kind


def test_what_is_over_its_own_cap_never_starts() -> None:
    """A request above the max_slots of its job does not wait for others of its job, not even in an empty pool."""
    for agents in ([agent("a", 8)], []):
        reason = Pool(agents).job("j", max_slots=1).ask("r", 2, "j").plan().waiting[AllocationId("r")]
        assert class_of(reason) is WaitClass.CHANGE
        assert "2 slots can never run under a max_slots of 1" in reason


def test_what_cannot_start_holds_up_nobody() -> None:
    """Neither what asks for more than there is, nor what fits only agents that take no work; each says why."""
    pool = Pool([agent("a", 4), agent("b", 6, state=AgentState.DISABLED)])
    pool.job("urgent", 1).ask("huge", 11, "urgent").ask("wide", 6, "urgent").job("later", 50).ask("small", 1, "later")
    decided = pool.plan()
    assert list(decided.placements) == ["small"]
    assert class_of(decided.waiting[AllocationId("huge")]) is WaitClass.CHANGE
    assert class_of(decided.waiting[AllocationId("wide")]) is WaitClass.ASK


def test_what_the_own_job_of_a_request_takes_is_known_before_others_wait_for_it() -> None:
    """It does not fit, smaller ones of its job fill the cap, and so nobody behind waits for it."""
    pool = Pool([agent("a", 4)]).job("urgent", 1, max_slots=4).run("other", 1, "a")
    pool.ask("large", 4, "urgent").ask("small", 1, "urgent").job("later", 50).ask("last", 1, "later")
    decided = pool.plan()
    assert set(decided.placements) == {"small", "last"}
    assert "max_slots is 4, of which 1 in use" in decided.waiting[AllocationId("large")]


def test_who_finds_room_beside_those_that_leave_starts_at_once() -> None:
    """What is kept for the first moves to the slots that come free: the free one is for the next."""
    pool = Pool([agent("a", 3)], PoolRules(preemption=True)).job("first", 1).job("second", 2).job("old", 90)
    pool.run("o1", 1, "a", "old").run("o2", 1, "a", "old").ask("two", 2, "first").ask("one", 1, "second")
    decided = pool.plan()
    assert set(decided.preempt) == {"o1", "o2"}
    assert set(decided.placements) == {"one"}


def test_thousands_of_sizes_cost_a_look_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for another number of slots each time has the agents gone through once for each."""
    looks: list[int] = []
    copies: list[object] = []

    def look(slots: int, snapshot: PoolSnapshot, **more: object) -> str | None:
        looks.append(slots)
        return can_never_fit(slots, snapshot, **more)  # type: ignore[arg-type]

    def copied(of: PoolSnapshot, **changes: object) -> PoolSnapshot:
        copies.append(of)
        return replace(of, **changes)  # type: ignore[arg-type]

    monkeypatch.setattr("tenax.scheduler.reasons.can_never_fit", look)
    monkeypatch.setattr("tenax.scheduler.reasons.replace", copied)
    pool = Pool([agent(f"a{number}", 8, used=8) for number in range(10)])
    for slots in range(1, 81):
        pool.ask(f"r{slots}", slots)
    assert len(pool.plan().waiting) == 80
    assert (sorted(looks), len(copies)) == (list(range(1, 81)), 1)


def test_a_reason_that_is_none_of_ours_has_no_class() -> None:
    """Nor has one that was not written yet."""
    assert class_of("") is class_of("no room") is None


def test_a_reason_counts_who_is_ahead() -> None:
    """What is missing, what there is, and how many stand before it."""
    pool = Pool([agent("a", 4, used=4), agent("b", 4, used=3), agent("c", 2, used=1)])
    pool.job("urgent", 1).ask("u1", 4, "urgent").ask("u2", 4, "urgent").ask("r", 4).ask("s", 4, "r")
    pool.rules = PREEMPT
    waiting = pool.plan().waiting
    assert waiting[AllocationId("r")] == (
        "waits for 4 free slots in pool default: 8 in use or promised, 2 free on 3 agents, largest free block 1; "
        "2 requests of higher priority are ahead"
    )
    assert waiting[AllocationId("s")].endswith(
        "2 requests of higher priority and 1 request of the same priority are ahead"
    )
    assert waiting[AllocationId("u1")].endswith("largest free block 1")


def test_head_of_line_without_preemption() -> None:
    """Nothing less urgent starts before a request that waits, though there is room for it."""
    pool = Pool([agent("a", 4, used=2)]).job("urgent", 1).ask("big", 4, "urgent").ask("small", 1)
    decided = pool.plan()
    assert not decided.placements
    assert decided.waiting[AllocationId("small")] == (
        "waits behind big (priority 1, needs 4 slots), which does not fit yet: "
        "less urgent requests do not start before it, since this pool does not preempt"
    )


def test_backfill_with_preemption() -> None:
    """Where they can be preempted again, less urgent requests use what the waiting one cannot."""
    pool = Pool([agent("a", 4, used=2)], PREEMPT).job("urgent", 1).ask("big", 4, "urgent")
    pool.ask("small", 1).ask("fixed", 1, preemptible=False)
    decided = pool.plan()
    assert list(decided.placements) == ["small"]
    assert decided.waiting[AllocationId("fixed")].endswith("since it cannot be preempted")


def test_the_same_priority_is_not_blocked() -> None:
    """A request that does not fit leaves its equals their chance."""
    assert started(Pool([agent("a", 4, used=2)]).job("j").ask("big", 4, "j").ask("small", 1, "j")) == ["small"]


def test_the_smallest_set_leaves() -> None:
    """One that frees enough is asked, not the two newer ones; the words say for whom."""
    pool = Pool([agent("a", 4)], PREEMPT).job("low", 90).job("urgent", 1)
    pool.run("two", 2, "a", "low").run("one", 1, "a", "low").run("other", 1, "a", "low").ask("r", 2, "urgent")
    decided = pool.plan()
    assert decided.preempt == {
        "two": "makes room for r, which is of priority 1, ahead of this one's 90 and needs 2 slots"
    }
    assert decided.waiting[AllocationId("r")] == (
        "waits for 2 free slots in pool default: 1 running request of less urgency was asked to save and leave"
    )


def test_the_least_important_leave_first() -> None:
    """A more important request stays when less important ones suffice, though they are more."""
    pool = Pool([agent("a", 4)], PREEMPT).job("high", 50).job("low", 90).job("urgent", 1)
    pool.run("h", 2, "a", "high").run("l1", 1, "a", "low").run("l2", 1, "a", "low").ask("r", 2, "urgent")
    assert set(pool.plan().preempt) == {"l1", "l2"}


def test_nobody_leaves_for_nothing() -> None:
    """Where leaving would not make room, nobody is asked."""
    pool = Pool([agent("a", 4)], PREEMPT).job("low", 90).job("urgent", 1)
    pool.run("fixed", 3, "a", "low", preemptible=False).run("soft", 1, "a", "low").ask("r", 4, "urgent")
    assert not pool.plan().preempt


def test_equals_leave_only_for_those_ahead_in_the_queue() -> None:
    """Of the same priority only a job behind in the queue gives way."""
    pool = Pool([agent("a", 2)], PREEMPT).job("first", position=1).job("second", position=2).job("third", position=3)
    pool.run("x", 2, "a", "second")
    pool.ask("t", 2, "third")
    assert not pool.plan().preempt
    pool.ask("f", 2, "first")
    assert pool.plan().preempt == {"x": "makes room for f, which is earlier in the queue and needs 2 slots"}


def test_releases_under_way_are_waited_for() -> None:
    """Nobody new is asked when what is being released makes room, and the room is kept for who waits for it."""
    pool = Pool([agent("a", 4)], PREEMPT).job("low", 90).job("urgent", 1)
    pool.run("gone", 2, "a", "low").run("stays", 1, "a", "low").ask("r", 3, "urgent").ask("small", 1, "low")
    pool.requests[AllocationId("gone")] = replace(pool.requests[AllocationId("gone")], phase=Phase.RELEASING)
    decided = pool.plan()
    assert not decided.preempt
    assert not decided.placements
    assert decided.waiting[AllocationId("r")] == "waits for 3 free slots in pool default: they are being released"
    pool.end("gone")
    assert started(pool) == ["r"]


def test_what_is_free_beside_a_reservation_is_used() -> None:
    """Slots that are not kept for the request ahead go to others at once."""
    pool = Pool([agent("a", 2), agent("b", 2)], PREEMPT).job("low", 90).job("urgent", 1)
    pool.run("x", 2, "a", "low").ask("r", 2, "urgent", single_node=True, blocked=["b"]).ask("small", 2, "low")
    decided = pool.plan()
    assert list(decided.preempt) == ["x"]
    assert decided.placements == {"small": (PlacedMember(AgentId("b"), pool.agents[AgentId("b")].slots),)}


def test_a_cap_binds_and_blocks_nobody() -> None:
    """What exceeds the job's max_slots waits for its own job; others go on."""
    pool = Pool([agent("a", 8)]).job("capped", 1, max_slots=3).job("other", 50)
    pool.run("c1", 2, "a", "capped").ask("c2", 2, "capped").ask("c3", 1, "capped").ask("o", 2, "other")
    decided = pool.plan()
    assert list(decided.placements) == ["c3", "o"]
    assert decided.waiting[AllocationId("c2")] == (
        "waits for its own job: max_slots is 3, of which 2 in use or promised, and this needs 2"
    )


def test_a_lowered_cap_is_kept_to() -> None:
    """The newest requests of a job that holds too much are asked to leave, once, whatever the pool's preemption."""
    pool = Pool([agent("a", 8)]).job("j", max_slots=4)
    for name in ("r1", "r2", "r3"):
        pool.run(name, 2, "a", "j")
    decided = pool.plan()
    assert decided.preempt == {"r3": "its job holds more slots than its max_slots of 4"}
    pool.apply(decided)
    assert not pool.plan().preempt


RESERVES = PoolRules(reservation=True)


def test_places_are_kept_for_the_first_that_does_not_fit() -> None:
    """On the agent that is nearest to having them; beside it small ones start, on it none does; who waits reads why."""
    pool = Pool([agent("a", 4, used=2), agent("b", 4, used=3), agent("c", 2, used=1)], RESERVES).job("j")
    pool.ask("big", 4, "j", single_node=True).ask("small", 2, "j", single_node=True)
    decided = pool.ask("one", 1, "j").ask("two", 1, "j").ask("three", 1, "j").plan()
    assert set(decided.placements) == {"one", "two"}
    assert {members[0].agent_id for members in decided.placements.values()} == {"b", "c"}
    assert decided.waiting[AllocationId("big")].endswith("2 free slots are kept for it")
    assert "2 free slots are kept for big, which needs 4" in decided.waiting[AllocationId("small")]
    assert "2 free slots are kept for big, which needs 4" in decided.waiting[AllocationId("three")]


def test_nothing_is_kept_for_what_cannot_start() -> None:
    """Nor for a second one, nor where places are taken back, nor from those without slots."""
    pool = Pool([agent("a", 4, used=2, aux_places=1)], RESERVES).job("j").ask("huge", 8, "j").ask("small", 1, "j")
    assert started(pool) == ["small"]
    pool = Pool([agent("a", 4, used=2)], PoolRules(preemption=True, reservation=True)).job("j")
    assert started(pool.ask("big", 4, "j").ask("small", 1, "j")) == ["small"]
    pool = Pool([agent("a", 2, used=1, aux_places=1)], RESERVES).ask("big", 2).ask("aux", 0)
    assert started(pool) == ["aux"]


@pytest.mark.parametrize("slots", [4, 8])
def test_a_stream_of_small_requests_does_not_starve_a_large_one(slots: int) -> None:
    """On one agent, and as a gang of two: it starts once what ran before it has ended; without it, never."""
    for rules, starts in ((RESERVES, True), (PoolRules(), False)):
        pool = Pool([agent("a", 4), agent("b", 4)], rules).job("j")
        for number in range(8):
            pool.ask(f"s{number}", 1, "j")
        pool.apply(pool.plan())
        pool.ask("big", slots, "j")
        for number in range(8, 60):
            pool.ask(f"s{number}", 1, "j")
            pool.end(min(pool.placed(), key=lambda name: int(name[1:])))
            pool.apply(pool.plan())
            if "big" in pool.placed():
                break
        assert ("big" in pool.placed()) is starts


def test_requests_without_slots_compete_apart() -> None:
    """A blocked request with slots does not hold up one without, nor the other way round."""
    pool = Pool([agent("a", 1, used=1, aux_places=1)]).job("urgent", 1)
    pool.ask("big", 1, "urgent").ask("aux", 0).ask("aux2", 0)
    decided = pool.plan()
    assert list(decided.placements) == ["aux"]
    assert decided.waiting[AllocationId("aux2")] == (
        "waits for a free place for a task without slots in pool default: all 1 on 1 agent are taken"
    )


@pytest.mark.parametrize(
    ("slots", "options", "message"),
    [
        (9, {}, "9 slots can never run here: pool default has 8 slots on 2 agents. Ask for at most 8 slots"),
        (9, {"max_slots": 4}, "9 slots can never run under a max_slots of 4: ask for at most 4 slots per trial"),
        (
            5,
            {"blocked_agents": frozenset({"b"})},
            "4 slots on 1 agent, not counting 1 agent that this request must not",
        ),
        (1, {"blocked_agents": frozenset({"a", "b"})}, "Pool default has no agents, not counting 2 agents"),
        (8, {}, None),
        (0, {}, None),
    ],
)
def test_what_can_never_fit_is_told_with_the_arithmetic(
    slots: int, options: dict[str, object], message: str | None
) -> None:
    """The refusal names what was asked, what there is, and what to do."""
    pool = Pool([agent("a", 4), agent("b", 4, state=AgentState.AWAY), agent("c", 8, state=AgentState.DISABLED)])
    refusal = can_never_fit(slots, pool.snapshot, **options)  # type: ignore[arg-type]
    assert refusal is None if message is None else message in str(refusal)


def test_a_pool_without_agents_says_so() -> None:
    """Nothing can run before there is an agent, and the message says what to do."""
    assert can_never_fit(1, Pool([]).snapshot) == (
        "Pool default has no agents: start one there, or choose another pool."
    )
    closed = Pool([agent("a", 4, state=AgentState.DISABLED)])
    assert "has only disabled agents (1): enable one" in str(can_never_fit(1, closed.snapshot))
