"""Where a request fits: one agent, else a gang of agents; and whether it could ever.

Rules, the first that fits wins:
1. One agent with enough free slots (an auxiliary place for a request of none), by score, ties by the ring of hashes.
2. A gang on wholly unused agents of one size that divides the request, the largest such size.
3. With uneven gangs: wholly unused agents, largest first, each used whole.
4. With uneven gangs: any free slots, largest blocks first, so that a gang spans few agents.
A request for one node, or for one slot, knows only the first. All members are found, or none. Only slots count that
meet the constraints of the request; where machines are to be alike, each way to be so is tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from heapq import merge
from itertools import islice

from tenax.display.plural import counted
from tenax.ids import AgentId
from tenax.scheduler.cluster import FreeSlots, Room, distance
from tenax.scheduler.constraints import alike, described, more_than, narrowed, steps
from tenax.scheduler.free_times import Times
from tenax.scheduler.snapshot import (
    DEVICE_NAME,
    AgentState,
    Constraints,
    Fitting,
    PoolAgent,
    PoolRules,
    PoolSnapshot,
    SlotRequest,
)

#: Agents with the slots taken on each, largest first.
_Parts = tuple[tuple[AgentId, int], ...]


@dataclass(frozen=True, slots=True)
class Fit:
    """Where a request goes."""

    parts: _Parts
    #: Which of their slots: those of `FreeSlots.narrowed`.
    within: Constraints | None = None


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to meet the constraints of a request."""

    within: Constraints | None
    #: By one machine.
    alone: bool = False


def find(request: SlotRequest, cluster: FreeSlots, rules: PoolRules) -> Fit | None:
    """Where the request would go; None where it does not fit. Changes nothing.

    Of several ways to meet its constraints that with the fewest machines; then, of machines, by score, and of gangs the
    one in the smallest room (under ``worst`` the largest).
    """
    constraints = request.constraints
    if constraints is None or not constraints.same:
        parts = _parts(request, cluster.narrowed(constraints), rules)
        return None if parts is None else Fit(parts, constraints)
    fits: list[tuple[tuple[int, float, int, AgentId], Fit]] = []
    for way in ways(request, cluster):
        part = cluster.narrowed(way.within)
        parts = _parts(replace(request, single_node=True) if way.alone else request, part, rules)
        if parts is not None:
            first = parts[0][0]
            rank = _rank_of(request, part, rules, parts)
            fits.append(((len(parts), rank, distance(request.allocation_id, first), first), Fit(parts, way.within)))
    return min(fits, key=lambda fit: fit[0], default=(None, None))[1]


def _rank_of(request: SlotRequest, part: FreeSlots, rules: PoolRules, parts: _Parts) -> float:
    if len(parts) == 1:
        return -score(rules.fitting, request.slots, part.room(parts[0][0]))
    free = part.free_outside(request.blocked_agents)
    return free if rules.fitting is Fitting.BEST else -free


def _parts(request: SlotRequest, cluster: FreeSlots, rules: PoolRules) -> _Parts | None:
    alone = on_one_agent(request, cluster, rules.fitting)
    if alone is not None:
        return ((alone, request.slots),)
    if not may_be_gang(request):
        return None
    even = _even_gang(request, cluster)
    if even is not None or not rules.uneven_gangs:
        return even
    return _whole_agents(request, cluster) or _free_blocks(request, cluster)


def ways(request: SlotRequest, cluster: FreeSlots) -> tuple[_Way, ...]:
    """The ways to meet its constraints: on one machine, or on several that are alike."""
    constraints = request.constraints
    if constraints is None or not constraints.same:
        return (_Way(constraints),)
    by_machine = constraints.of_one()
    groups = cluster.alike(constraints) if may_be_gang(request) else ()
    # One machine is looked at by itself, and none that has too little.
    gangs = tuple(_Way(group.within) for group in groups if group.slots >= request.slots and len(group.agents) > 1)
    if by_machine.same:
        alone = (
            group
            for group in cluster.alike(by_machine)
            if any(len(agent.slots) >= request.slots for agent in group.agents)
        )
        return (*(_Way(group.within, alone=True) for group in alone), *gangs)
    return (_Way(by_machine, alone=True), *gangs)


def awaited(request: SlotRequest, now: FreeSlots, coming: FreeSlots, rules: PoolRules, times: Times) -> Fit | None:
    """Where a request that does not fit is to wait for its slots; None where it would not fit with nothing running.

    Of the agents that can take it whole the one that has the slots first, by what time limits say; where they say it of
    none, the one with the most slots that are or come free, so that what is kept there only grows. Else the even gang
    that is free first, by time limits; else the gang that it would be on the empty pool.
    """
    everywhere = ways(request, coming)
    able: list[tuple[tuple[float, int, int, str], Fit]] = []
    for way in everywhere:
        free, later = now.narrowed(way.within), coming.narrowed(way.within)
        for agent in later.agents.values():
            if len(agent.slots) >= request.slots and agent.id not in request.blocked_agents:
                at = times.of(agent.id, request.slots, free, later)
                # Where the time is known, what others take beside it changes nothing.
                first = (math.inf, -len(later.free_slots(agent.id))) if at is None else (at, 0)
                key = (*first, distance(request.allocation_id, agent.id), agent.id)
                able.append((key, Fit(((agent.id, request.slots),), way.within)))
    if able:
        return min(able, key=lambda option: option[0])[1]
    if not may_be_gang(request):
        return None
    gangs = [
        _first_even_gang(request, now.narrowed(way.within), coming.narrowed(way.within), times, way.within)
        for way in everywhere
        if not way.alone
    ]
    first_gang = min((gang for gang in gangs if gang is not None), key=lambda gang: gang[0], default=None)
    if first_gang is not None:
        return first_gang[1]
    empty = FreeSlots(replace(agent, in_use=frozenset()) for agent in coming.agents.values())
    return find(request, empty, rules)


def _first_even_gang(
    request: SlotRequest, now: FreeSlots, coming: FreeSlots, times: Times, within: Constraints | None
) -> tuple[tuple[float, int], Fit] | None:
    """Of whole agents of one size, with when it is free; None where time limits say that of none.

    Which of those that are free in time does not depend on when each is: what runs there until then changes nothing.
    """
    best: tuple[tuple[float, int], Fit] | None = None
    free_at: dict[int, list[tuple[float, AgentId]]] = {}
    for agent in coming.agents.values():
        size = len(agent.slots)
        if size and request.slots % size == 0 and agent.id not in request.blocked_agents:
            at = times.of(agent.id, size, now, coming)
            if at is not None:
                free_at.setdefault(size, []).append((at, agent.id))
    for size, agents in free_at.items():
        count = request.slots // size
        if len(agents) < count:
            continue
        by = sorted(at for at, _ in agents)[count - 1]
        if best is None or (by, -size) < best[0]:
            able = sorted((distance(request.allocation_id, agent), agent) for at, agent in agents if at <= by)
            best = (by, -size), Fit(tuple((agent, size) for _, agent in able[:count]), within)
    return best


def may_be_gang(request: SlotRequest) -> bool:
    """Whether several agents may share the request."""
    return request.slots > 1 and not request.single_node


def viable(slots: int, room: Room) -> bool:
    """Whether an agent with this room can take the whole of a request."""
    return room.free >= slots if slots > 0 else room.aux_free > 0


def score(fitting: Fitting, slots: int, room: Room) -> float:
    """How well a request fits an agent, in [0, 1]; higher is taken first.

    A request of no slots is scored by slots on an agent where some are used, else by auxiliary places: so that it
    leaves idle agents whole.
    """
    by_slots = slots > 0 or room.free < room.slots
    free, places = (room.free, room.slots) if by_slots else (room.aux_free, room.aux_places)
    if places == 0:
        return 0.0
    return 1 / (1 + free) if fitting is Fitting.BEST else free / places


def on_one_agent(request: SlotRequest, cluster: FreeSlots, fitting: Fitting) -> AgentId | None:
    """The agent that takes the whole request best."""
    ranked = sorted(
        ((score(fitting, request.slots, room), room) for room in cluster.rooms() if viable(request.slots, room)),
        reverse=True,
    )
    nearest: AgentId | None = None
    best = -1.0
    for value, room in ranked:
        if nearest is not None and value < best:
            break
        agent = next(cluster.nearest(room, request.allocation_id, request.blocked_agents), None)
        if agent is not None and (nearest is None or _nearer(request, agent, nearest)):
            nearest, best = agent, value
    return nearest


def can_never_fit(
    slots: int,
    snapshot: PoolSnapshot,
    *,
    single_node: bool = False,
    blocked_agents: frozenset[AgentId] = frozenset(),
    max_slots: int | None = None,
    constraints: Constraints | None = None,
) -> str | None:
    """Why a request could not run in this pool even if it were empty, with the arithmetic; None when it could.

    Asked in this order: the cap of its job, agents at all, those that it must not run on, its constraints, and at last
    how many slots there are. Agents that are away or draining count: they may come back. Disabled ones do not. Machines
    that could be rented count as if they were there, those of one size at a time: there cannot be the most of each.
    """
    why = partial(_never_fits, slots, single_node, blocked_agents, max_slots, constraints)
    sizes = sorted({len(each.slots) for each in snapshot.prospects})
    reasons = [why(_with_size(snapshot, size)) for size in sizes] or [why(snapshot)]
    return None if None in reasons else reasons[-1]


def _never_fits(
    slots: int,
    single_node: bool,
    blocked_agents: frozenset[AgentId],
    max_slots: int | None,
    constraints: Constraints | None,
    snapshot: PoolSnapshot,
) -> str | None:
    """Of what could be rented as much as there is here counts."""
    pool = snapshot.pool
    if max_slots is not None and slots > max_slots:
        return (
            f"{_slots(slots)} can never run under a max_slots of {max_slots}: "
            f"ask for at most {max_slots} slots per trial, or raise max_slots."
        )
    agents = [agent for agent in snapshot.agents if agent.state is not AgentState.DISABLED] + list(snapshot.prospects)
    usable = [agent for agent in agents if agent.id not in blocked_agents]
    if not usable:
        disabled = len(snapshot.agents) - (len(agents) - len(snapshot.prospects))
        if disabled and not agents:
            return (
                f"Pool {pool} has only disabled agents ({disabled}): enable one (tenax agent enable AGENT), start "
                "another there, or choose another pool."
            )
        return f"Pool {pool} has no agents{_excluded(agents, usable)}: start one there, or choose another pool."
    excluded = _excluded(agents, usable)
    met: list[str] = []
    for constraint in steps(constraints) if constraints is not None else ():
        meeting = [each for agent in usable if (each := narrowed(agent, [constraint])) is not None]
        if not meeting:
            of = f", of the agents with {'; '.join(met)}," if met else ""
            return f"Pool {pool}{of} {constraint.unmet(usable)}{excluded}: {_instead(snapshot, constraints)}."
        usable = meeting
        met.append(constraint.described())
    if slots == 0:
        if any(agent.aux_places > 0 for agent in usable):
            return None
        return f"No agent of pool {pool} takes tasks without slots: choose another pool."
    has = f"pool {snapshot.pool} has {_slots(sum(len(agent.slots) for agent in usable))} on {_agents(len(usable))}"
    if snapshot.prospects:
        has += f", counting {counted(len(snapshot.prospects), 'machine')} that could be rented"
    if constraints is None:
        return _too_many_slots(slots, snapshot, single_node, usable, f"{has}{excluded}")
    has += f" that {'meets' if len(usable) == 1 else 'meet'} its constraints ({described(constraints)}){excluded}"
    if not constraints.same:
        return _too_many_slots(slots, snapshot, single_node, usable, has)
    return _too_many_alike(slots, snapshot, single_node, constraints, usable, has)


def _with_size(snapshot: PoolSnapshot, size: int) -> PoolSnapshot:
    return replace(snapshot, prospects=tuple(each for each in snapshot.prospects if len(each.slots) == size))


def _instead(snapshot: PoolSnapshot, constraints: Constraints | None) -> str:
    """What to do where no agent that counts meets constraints."""
    disabled = [agent for agent in snapshot.agents if agent.state is AgentState.DISABLED]
    if constraints is not None and any(narrowed(agent, steps(constraints)) is not None for agent in disabled):
        return "a disabled agent would do: enable it (tenax agent enable AGENT), or change resources.constraints"
    return "change resources.constraints, or add agents"


def _has(agent: PoolAgent, name: str) -> bool:
    return name == DEVICE_NAME or name in agent.labels


def _too_many_alike(
    slots: int, snapshot: PoolSnapshot, single_node: bool, constraints: Constraints, usable: list[PoolAgent], has: str
) -> str | None:
    """Of those that meet all else; None: some of them are alike and enough."""
    gangs = alike(constraints, usable) if slots > 1 and not single_node else ()
    why = ""
    for group, alone in [
        *((each, True) for each in alike(constraints.of_one(), usable)),
        *((each, False) for each in gangs),
    ]:
        if group.slots < slots:
            continue
        those = [each for agent in group.agents if (each := narrowed(agent, steps(group.within))) is not None]
        too_many = _too_many_slots(slots, snapshot, alone, those, has)
        if too_many is None:
            return None
        why = too_many if not alone else why
    if why:
        return why
    missing = [name for name in constraints.same if not any(_has(agent, name) for agent in usable)]
    if missing:
        return (
            f"Pool {snapshot.pool} has no agent with a label {missing[0]}: change resources.constraints, or add agents."
        )
    most = max(gangs, key=lambda group: group.slots, default=None)
    largest = (
        f", the largest group of them with {most.slots} ({described(more_than(most.within, constraints))})"
        if most
        else ""
    )
    return (
        f"{_slots(slots)} on machines that are alike ({described(Constraints(same=constraints.same))}) "
        f"can never run here: {has}{largest}. Ask for fewer slots, or change resources.constraints.same."
    )


def _too_many_slots(
    slots: int, snapshot: PoolSnapshot, single_node: bool, usable: list[PoolAgent], has: str
) -> str | None:
    sizes = sorted((len(agent.slots) for agent in usable), reverse=True)
    total, largest = sum(sizes), sizes[0]
    if slots <= largest:
        return None
    if slots > total:
        return f"{_slots(slots)} can never run here: {has}. Ask for at most {_slots(total)}, or add agents."
    if single_node:
        return (
            f"{_slots(slots)} on one node can never run here: {has}, the largest with {largest}. "
            f"Ask for at most {_slots(largest)}, or allow several nodes."
        )
    if snapshot.rules.uneven_gangs or any(
        size and slots % size == 0 and slots // size <= sizes.count(size) for size in sizes
    ):
        return None
    return (
        f"{_slots(slots)} cannot be spread evenly over whole agents: {has}, in sizes {', '.join(map(str, sizes[:9]))}, "
        "and this pool allows even gangs only. Ask for a multiple of an agent's slots, or allow uneven gangs."
    )


def _even_gang(request: SlotRequest, cluster: FreeSlots) -> _Parts | None:
    """Whole agents of one size, none of whose slots is used."""
    sizes = {room.slots for room in cluster.rooms() if room.free == room.slots > 0 and request.slots % room.slots == 0}
    for size in sorted(sizes, reverse=True):
        rooms = [room for room in cluster.rooms() if room.free == room.slots == size]
        count = request.slots // size
        if sum(cluster.count(room) for room in rooms) < count:
            continue
        agents = list(islice(_by_nearness(request, cluster, rooms), count))
        if len(agents) == count:
            return tuple((agent, size) for agent in agents)
    return None


def _whole_agents(request: SlotRequest, cluster: FreeSlots) -> _Parts | None:
    """Unused agents, each used whole, largest first, that meet the request exactly."""
    rooms = [room for room in cluster.rooms() if room.free == room.slots > 0]
    parts: list[tuple[AgentId, int]] = []
    missing = request.slots
    for size in sorted({room.slots for room in rooms}, reverse=True):
        if size > missing:
            continue
        ring = _by_nearness(request, cluster, [room for room in rooms if room.slots == size])
        agents = list(islice(ring, missing // size))
        parts += [(agent, size) for agent in agents]
        missing -= size * len(agents)
    return tuple(parts) if missing == 0 else None


def _free_blocks(request: SlotRequest, cluster: FreeSlots) -> _Parts | None:
    """Free slots from the largest blocks down until the request is met; the last block is used in part."""
    parts: list[tuple[AgentId, int]] = []
    missing = request.slots
    for free in sorted({room.free for room in cluster.rooms()} - {0}, reverse=True):
        for agent in _by_nearness(request, cluster, [room for room in cluster.rooms() if room.free == free]):
            parts.append((agent, min(free, missing)))
            missing -= parts[-1][1]
            if missing == 0:
                return tuple(parts)
    return None


def _by_nearness(request: SlotRequest, cluster: FreeSlots, rooms: Iterable[Room]) -> Iterator[AgentId]:
    """The agents of several groups, nearest first, without the blocked ones."""
    rings = [cluster.nearest(room, request.allocation_id, request.blocked_agents) for room in rooms]
    return merge(*rings, key=lambda agent: (distance(request.allocation_id, agent), agent))


def _nearer(request: SlotRequest, agent: AgentId, other: AgentId) -> bool:
    return (distance(request.allocation_id, agent), agent) < (distance(request.allocation_id, other), other)


def _slots(count: int) -> str:
    return counted(count, "slot")


def _agents(count: int) -> str:
    return counted(count, "agent")


def _excluded(agents: list[PoolAgent], usable: list[PoolAgent]) -> str:
    excluded = len(agents) - len(usable)
    return f", not counting {_agents(excluded)} that this request must not run on" if excluded else ""
