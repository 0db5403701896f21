"""What holds for every pool: named properties of plans, on random pools."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from tenax.ids import AgentId, AllocationId, JobId, SlotId
from tenax.scheduler import fitting, victims
from tenax.scheduler.cluster import FreeSlots
from tenax.scheduler.devices import SlotDevice
from tenax.scheduler.reasons import WaitClass, class_of
from tenax.scheduler.registry import POLICIES, USUAL, changes_at, plan, same_until
from tenax.scheduler.snapshot import (
    DEVICE_NAME,
    AgentState,
    Constraints,
    Phase,
    PlacedMember,
    PoolAgent,
    PoolJob,
    PoolRules,
    SlotRequest,
)
from tests.kits.builders.pool import Pool, agent, request
from tests.scheduler.pools import constraints, described, pools


@given(pools())
@settings(deadline=None)
def test_no_slot_is_given_twice_and_no_gang_in_part(pool: Pool) -> None:
    """Placements take free slots of agents that take work, each once, and a request gets exactly what it asked."""
    free = {agent.id: set(agent.slots) - agent.in_use for agent in pool.agents.values()}
    aux = {agent.id: agent.aux_places - agent.aux_in_use for agent in pool.agents.values()}
    for name, members in pool.plan().placements.items():
        request = pool.requests[name]
        assert request.phase is Phase.PENDING
        assert sum(len(member.slots) for member in members) == request.slots
        assert len({member.agent_id for member in members}) == len(members) == 1 or not request.single_node
        for member in members:
            assert pool.agents[member.agent_id].state is AgentState.ENABLED
            assert member.agent_id not in request.blocked_agents
            assert set(member.slots) <= free[member.agent_id]
            free[member.agent_id] -= set(member.slots)
            aux[member.agent_id] -= 0 if request.slots else 1
            assert aux[member.agent_id] >= 0 or request.slots
        assert meets(pool, request, members)


def meets(pool: Pool, asking: SlotRequest, members: Iterable[PlacedMember]) -> bool:
    """Whether each slot is what the request asks for, and all are alike in what it wants alike."""
    if asking.constraints is None:
        return True
    alike: dict[str, set[str | None]] = {name: set() for name in asking.constraints.same}
    agents: set[AgentId] = set()
    for member in members:
        there = pool.agents[member.agent_id]
        agents.add(there.id)
        if any(there.labels.get(key) not in values for key, values in asking.constraints.labels):
            return False
        for name in alike.keys() - {DEVICE_NAME}:
            alike[name].add(there.labels.get(name))
        for slot in member.slots:
            device = there.devices.get(slot, SlotDevice())
            named = any(name.lower() in device.name.lower() for name in asking.constraints.device_name)
            if asking.constraints.device_name and not named:
                return False
            if (device.memory or 0) < 0.9 * (asking.constraints.device_memory or 0):
                return False
            if DEVICE_NAME in alike:
                alike[DEVICE_NAME].add(device.name)
    return all(
        len(values) <= 1 and (None not in values or len(agents) == 1 or name == DEVICE_NAME)
        for name, values in alike.items()
    )


@given(pools())
@settings(deadline=None)
def test_every_pending_request_is_placed_or_told_why_not(pool: Pool) -> None:
    """Placed and waiting together are all that was pending, and each reason has words."""
    decided = pool.plan()
    pending = {name for name, request in pool.requests.items() if request.phase is Phase.PENDING}
    assert set(decided.placements) | set(decided.waiting) == pending
    assert not set(decided.placements) & set(decided.waiting)
    assert all(len(reason.split()) >= 4 for reason in decided.waiting.values())


@given(pools())
@settings(deadline=None)
def test_only_preemptible_running_requests_are_asked_to_leave(pool: Pool) -> None:
    """Nobody is asked who cannot be, who does not run, or who was asked; and without preemption only for a cap."""
    decided = pool.plan()
    for name, reason in decided.preempt.items():
        request = pool.requests[name]
        assert request.preemptible
        assert request.phase is Phase.PLACED
        assert pool.rules.preemption or POLICIES[pool.rules.policy or USUAL].always_preempts or "max_slots" in reason


@given(pools())
@settings(deadline=None)
def test_nothing_new_when_nothing_changed(pool: Pool) -> None:
    """A plan that was applied leaves nothing to start and nobody to ask; what waits still waits."""
    decided = pool.plan()
    pool.apply(decided)
    again = pool.plan()
    assert not again.placements
    assert not again.preempt
    assert set(again.waiting) == set(decided.waiting)
    assert pool.plan() == again


@given(pools())
@settings(deadline=None)
def test_a_plan_does_not_depend_on_the_order_of_its_input(pool: Pool) -> None:
    """Agents and requests in another order give the same plan."""
    snapshot = pool.snapshot
    turned = replace(snapshot, agents=snapshot.agents[::-1], requests=snapshot.requests[::-1])
    from tenax.scheduler.registry import plan

    assert plan(turned) == plan(snapshot)


@given(pools())
@settings(deadline=None)
def test_max_slots_binds(pool: Pool) -> None:
    """Nothing is started that would bring a job over its cap."""
    decided = pool.plan()
    for job in pool.jobs.values():
        held = sum(request.slots for request in pool.requests.values() if request.job_id == job.id and request.members)
        new = sum(pool.requests[name].slots for name in decided.placements if pool.requests[name].job_id == job.id)
        assert new == 0 or job.max_slots is None or held + new <= job.max_slots


@given(pools())
@settings(deadline=None)
def test_limits_bind(pool: Pool) -> None:
    """Nothing is started that would bring those who share a limit over it, or that has used up its month."""
    decided = pool.plan()
    for name, limit in pool.limits.items():
        sharing = [one for one in pool.requests.values() if name in pool.jobs[one.job_id].limits]
        held = sum(one.slots for one in sharing if one.members) + limit.elsewhere
        new = sum(one.slots for one in sharing if one.allocation_id in decided.placements)
        assert new == 0 or not limit.spent
        assert new == 0 or limit.max_slots is None or held + new <= limit.max_slots


@given(pools())
@settings(deadline=None)
def test_no_one_overtakes_who_could_not_be_overtaken_back(pool: Pool) -> None:
    """A less urgent request starts before one that waits for room only where it can be preempted for it."""
    pool.rules = replace(pool.rules, policy="priority")
    decided = pool.plan()
    for name in decided.placements:
        started = pool.requests[name]
        for other, reason in decided.waiting.items():
            waits = pool.requests[other]
            more_urgent = pool.jobs[waits.job_id].priority < pool.jobs[started.job_id].priority
            holds_up = class_of(reason) is WaitClass.WAIT and "max_slots" not in reason and "quota" not in reason
            if more_urgent and (waits.slots > 0) == (started.slots > 0) and holds_up:
                gone_at = None if started.time_limit is None else pool.at + started.time_limit
                usable = FreeSlots(pool.agents.values()).narrowed(waits.constraints).agents
                beside = usable.keys().isdisjoint(member.agent_id for member in decided.placements[name])
                if not beside and (gone_at is None or gone_at > decided.starts_by.get(other, 0.0)):
                    assert pool.rules.preemption
                    assert started.preemptible


@given(pools())
@settings(deadline=None)
def test_there_is_no_preemption_loop(pool: Pool) -> None:
    """Those who were asked leave and ask again: soon nothing moves, and nobody pushed out a more urgent one."""
    for supplied in list(pool.agents.values()):
        pool.agents[supplied.id] = replace(supplied, state=AgentState.ENABLED)
    for _ in range(3 * len(pool.requests) + 3):
        decided = pool.plan()
        pool.apply(decided)
        leaving = [name for name, request in pool.requests.items() if request.phase is Phase.RELEASING]
        if not decided.placements and not leaving:
            return
        for name in leaving:
            ended = pool.end(name)
            pool.requests[name] = replace(ended, phase=Phase.PENDING, members=())
    raise AssertionError(f"still moving: {pool.placed()}")


@given(pools(), st.data())
@settings(deadline=None)
def test_what_is_promised_for_a_time_is_kept(pool: Pool, data: st.DataObject) -> None:
    """Whatever comes behind it, the request with reserved places starts by the time that was said, or earlier, if what
    has a time limit is gone when that is over; and with time what is said only becomes earlier."""
    pool.rules = replace(pool.rules, policy="priority", preemption=False, reservation=True)
    pool.limits = {}
    pool.jobs = {name: replace(job, max_slots=None, turn=0, limits=()) for name, job in pool.jobs.items()}
    for supplied in list(pool.agents.values()):
        pool.agents[supplied.id] = replace(supplied, state=AgentState.ENABLED)
    pool.job("behind", 99, 1e12)
    promised: dict[AllocationId, float] = {}
    for step in range(12):
        decided = pool.plan()
        for name, starts_at in decided.starts_by.items():
            assert starts_at <= promised.get(name, math.inf)
            promised[name] = starts_at
        assert all(pool.at <= promised.get(name, math.inf) for name in decided.placements)
        assert all(pool.at < starts_at for name, starts_at in promised.items() if name in decided.waiting)
        pool.apply(decided)
        ends = [one.ends_at for one in pool.requests.values() if one.ends_at is not None and one.members]
        if not ends:
            return
        pool.at = max(pool.at, min(ends))
        for name, held in list(pool.requests.items()):
            gone = held.phase is Phase.RELEASING or (held.ends_at is not None and held.ends_at <= pool.at)
            if held.members and gone:
                pool.end(name)
                if held.time_limit is not None and data.draw(st.booleans()):
                    # It has saved and goes on.
                    new = {"requested_at": 1e3 + pool.at, "again": True, "time_limit": held.time_limit}
                    pool.ask(f"{name}+", held.slots, held.job_id, single_node=held.single_node, **new)
        limit = data.draw(st.sampled_from([None, 5.0, 10.0, 30.0]))
        # Who comes later asks later.
        came = 1e3 + pool.at + 0.5
        pool.ask(f"late{step}", data.draw(st.integers(1, 4)), "behind", time_limit=limit, requested_at=came)


@given(pools())
@settings(deadline=None)
def test_nobody_starves_where_places_are_reserved(pool: Pool) -> None:
    """However many small requests come behind them: if what runs ends, one by one, all start that fit the pool."""
    pool.rules = replace(pool.rules, policy="priority", preemption=False, reservation=True)
    pool.agents = {name: replace(one, state=AgentState.ENABLED) for name, one in pool.agents.items()}
    pool.jobs = {
        name: replace(job, priority=42, queue_position=0.0, max_slots=None, turn=0, limits=())
        for name, job in pool.jobs.items()
    }
    pool.job("stream", 42, 1.0)
    empty = FreeSlots(replace(one, in_use=frozenset()) for one in pool.agents.values())
    waiting = {
        name
        for name, asking in pool.requests.items()
        if asking.phase is Phase.PENDING and asking.slots > 0 and fitting.find(asking, empty, pool.rules) is not None
    }
    steps = 40 * (len(pool.requests) + 1)
    for number in range(steps):
        pool.ask(f"s{number}", 1, "stream")
        pool.apply(pool.plan())
        waiting -= set(pool.placed())
        if not waiting:
            return
        running = [name for name, held in pool.requests.items() if held.members and held.slots > 0]
        if running:
            pool.end(running[0])
    raise AssertionError(f"after {steps} steps these still wait: {waiting}")


@given(pools())
@settings(deadline=None)
def test_an_index_that_changed_is_one_built_anew(pool: Pool) -> None:
    """Taking and giving leaves the index as building it from the agents would."""
    cluster = FreeSlots(pool.agents.values())
    before = cluster.values()
    placements = [member for members in pool.plan().placements.values() for member in members]
    for member in placements:
        cluster.take(member)
    pool.apply(replace(pool.plan(), preempt={}))
    assert cluster.values() == FreeSlots(pool.agents.values()).values()
    for member in placements:
        cluster.give(member)
    assert cluster.values() == before


sizes = st.lists(st.integers(0, 8), min_size=1, max_size=4)


@given(sizes, st.integers(0, 12), st.booleans(), st.booleans(), st.sets(st.integers(0, 3), max_size=2))
@settings(deadline=None)
def test_what_can_never_fit_is_what_does_not_fit_an_empty_pool(
    slots: list[int], asked: int, single: bool, uneven: bool, blocked: set[int]
) -> None:
    """A request is refused exactly when it would not fit with nothing else running."""
    pool = Pool([agent(f"a{number}", count) for number, count in enumerate(slots)], PoolRules(uneven_gangs=uneven))
    names = frozenset(AgentId(f"a{number}") for number in blocked)
    slot_request = request("r", asked, single_node=single, blocked=names)
    refusal = fitting.can_never_fit(asked, pool.snapshot, single_node=single, blocked_agents=names)
    fits = fitting.find(slot_request, FreeSlots(pool.agents.values()), pool.rules) is not None
    assert (refusal is None) == fits


@given(pools(), constraints(), st.integers(0, 8), st.booleans())
@settings(deadline=None)
def test_constraints_that_nothing_meets_are_refused(
    pool: Pool, asked_for: Constraints | None, slots: int, single: bool
) -> None:
    """A request is refused exactly when it would not fit with nothing else running, and the words end in advice."""
    pool.agents = {
        name: replace(one, in_use=frozenset(), aux_in_use=0, state=AgentState.ENABLED)
        for name, one in pool.agents.items()
    }
    refusal = fitting.can_never_fit(slots, pool.snapshot, single_node=single, constraints=asked_for)
    asking = request("r", slots, single_node=single, constraints=asked_for)
    assert (refusal is None) == (fitting.find(asking, FreeSlots(pool.agents.values()), pool.rules) is not None)
    assert refusal is None or refusal.endswith(".")


@st.composite
def contests(draw: st.DrawFn) -> tuple[FreeSlots, list[victims.Candidate], SlotRequest, PoolRules]:
    """A full pool, those who may be asked to leave in order, and a request that does not fit."""
    counts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    free = [(AgentId(f"a{number}"), slot) for number, count in enumerate(counts) for slot in range(count)]
    agents = [PoolAgent(AgentId(f"a{n}"), tuple(map(SlotId, range(count)))) for n, count in enumerate(counts)]
    narrow = draw(st.booleans())
    if narrow:
        agents = [draw(described(plain)) for plain in agents]
    cluster = FreeSlots(agents)
    pool = Pool(agents, PoolRules(uneven_gangs=draw(st.booleans())))
    candidates: list[victims.Candidate] = []
    for number in range(draw(st.integers(1, 6))):
        placed = request(f"v{number}", draw(st.integers(1, 3)), single_node=draw(st.booleans()))
        fit = fitting.find(placed, cluster, pool.rules)
        if fit is None:
            continue
        members = tuple(cluster.narrowed(fit.within).pick(name, count) for name, count in fit.parts)
        for member in members:
            cluster.take(member)
        held = replace(placed, members=members, phase=Phase.PLACED)
        if draw(st.integers(0, 5)) > 0:
            candidates.append(victims.Candidate(held, draw(st.sampled_from([50, 60, 70]))))
    candidates.sort(key=lambda candidate: -candidate.priority)
    blocked = draw(st.sets(st.sampled_from([agent.id for agent in agents]), max_size=1))
    asking = request("asking", draw(st.integers(1, len(free))), single_node=draw(st.booleans()), blocked=blocked)
    if narrow:
        asking = replace(asking, constraints=draw(constraints()))
    return cluster, candidates, asking, pool.rules


def fits_without(
    cluster: FreeSlots, leaving: tuple[victims.Candidate, ...], asking: SlotRequest, some_rules: PoolRules
) -> bool:
    """Whether a request fits once these are gone."""
    after = cluster.fork()
    for candidate in leaving:
        for member in candidate.request.members:
            after.give(member)
    return fitting.find(asking, after, some_rules) is not None


@given(contests())
@settings(deadline=None, max_examples=300)
def test_victims_are_the_smallest_set_of_the_least_important(
    contest: tuple[FreeSlots, list[victims.Candidate], SlotRequest, PoolRules],
) -> None:
    """Compared with all subsets: it helps, touches no priority it need not, and no smaller set would do.

    Only for even gangs on several agents, where the search is not exhaustive, smaller means: none could be spared.
    """
    cluster, candidates, asking, some_rules = contest
    if fitting.find(asking, cluster, some_rules) is not None:
        return
    chosen = victims.Leavers(cluster, candidates, some_rules).choose(asking, 42, 0.0)
    helping = [
        subset
        for count in range(1, len(candidates) + 1)
        for subset in combinations(candidates, count)
        if fits_without(cluster, subset, asking, some_rules)
    ]
    assert bool(chosen) == bool(helping)
    if not helping:
        return
    taken = tuple(candidate for candidate in candidates if candidate.request in chosen)
    assert taken in helping
    least = max(min(candidate.priority for candidate in subset) for subset in helping)
    assert min(candidate.priority for candidate in taken) == least
    rivals = [subset for subset in helping if min(candidate.priority for candidate in subset) >= least]
    if fitting.may_be_gang(asking) and not some_rules.uneven_gangs:
        assert not any(set(subset) < set(taken) for subset in combinations(taken, len(taken) - 1) if subset in rivals)
    else:
        assert len(taken) == min(map(len, rivals))


@given(st.integers(1, 99), st.integers(0, 6))
def test_equal_requests_go_in_order_of_asking(priority: int, count: int) -> None:
    """Of requests that differ only in when they asked, the earlier ones start."""
    pool = Pool([agent("a", 3)])
    pool.jobs[JobId("j")] = PoolJob(JobId("j"), priority)
    for number in range(count):
        pool.ask(f"r{number}", 1, "j")
    assert list(pool.plan().placements) == [f"r{number}" for number in range(min(count, 3))]


@given(pools(), st.floats(0.001, 1e7))
@settings(deadline=None)
def test_a_plan_stays_as_long_as_it_is_said_to(pool: Pool, later_s: float) -> None:
    """To the word: a pool of which nothing changes need not be planned again before."""
    snapshot = pool.snapshot
    changes = changes_at(snapshot)
    until = same_until(snapshot, changes)
    if until <= snapshot.at:
        return
    later = replace(snapshot, at=min(snapshot.at + later_s, math.nextafter(until, -math.inf)))
    assert plan(later) == plan(snapshot)
    assert changes_at(later) == changes
