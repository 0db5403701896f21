"""Which running requests are asked to leave so that a more urgent one fits: the smallest set that helps.

Rules, in this order:
1. Nobody more important is touched than must be: only the least important priorities that suffice are considered.
2. Among those, the fewest requests.
3. Among sets of that size, those who come first in the order of leaving (least important, then newest).
Whoever is in the set is needed: without any one of them the request would not fit.

``Leavers`` is an index over those who may be asked, kept up while they leave; one planning pass owns one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from tenax.ids import AgentId, AllocationId
from tenax.scheduler import fitting
from tenax.scheduler.cluster import FreeSlots
from tenax.scheduler.snapshot import Constraints, PoolRules, SlotRequest


@dataclass(frozen=True, slots=True)
class Candidate:
    """A running request that may be asked to leave, with the rank of its job."""

    request: SlotRequest
    priority: int
    queue_position: float = 0.0
    #: By quotas: at the same priority those of the same turn alone are asked. Turns change as slots are used, and who
    #: took places by them would soon have to give them back.
    turn: int = 0


@dataclass(frozen=True, slots=True)
class _Gain:
    """What a candidate would free, on agents that take work."""

    candidate: Candidate
    by_agent: Mapping[AgentId, int]

    @property
    def total(self) -> int:
        return sum(self.by_agent.values())


class _Level:
    """The candidates of one priority, by their number in the order of leaving."""

    __slots__ = ("amounts", "gains", "on_agent")

    def __init__(self, gains: Iterable[tuple[int, _Gain]]) -> None:
        self.gains = dict(gains)
        #: How many would free how much.
        self.amounts: Counter[int] = Counter(gain.total for gain in self.gains.values())
        self.on_agent: dict[AgentId, dict[int, int]] = {}
        for order, gain in self.gains.items():
            for agent, freed in gain.by_agent.items():
                self.on_agent.setdefault(agent, {})[order] = freed

    def remove(self, order: int) -> None:
        gain = self.gains.pop(order)
        self.amounts[gain.total] -= 1
        for agent in gain.by_agent:
            del self.on_agent[agent][order]


class Leavers:
    """Those who may be asked to leave, least important first. Mutable; one pass owns one."""

    def __init__(self, cluster: FreeSlots, candidates: Sequence[Candidate], rules: PoolRules) -> None:
        """``candidates`` in the order of leaving; ``cluster`` is the pool as it will be when releases are done.

        The cluster is read at each choice: what is kept for others in the meantime is not counted twice.
        """
        self._cluster = cluster
        self._rules = rules
        #: By their number in the order of leaving.
        self._candidates = dict(enumerate(candidates))
        self._orders = {each.request.allocation_id: order for order, each in self._candidates.items()}
        #: By what narrows the slots that count.
        self._within: dict[Constraints | None, _LeaversWithin] = {}
        self._on_agent: dict[AgentId, set[int]] = {}
        for order, candidate in self._candidates.items():
            for member in candidate.request.members:
                self._on_agent.setdefault(member.agent_id, set()).add(order)

    def remove(self, request: SlotRequest) -> None:
        """A candidate was asked to leave: it is none any more."""
        order = self._orders.pop(request.allocation_id, None)
        if order is not None:
            del self._candidates[order]
            for part in self._within.values():
                part.remove(request)

    def choose(
        self, request: SlotRequest, priority: int, queue_position: float, turn: int = 0
    ) -> tuple[SlotRequest, ...]:
        """Whom to ask for a request of that place, in the order of leaving; empty where nobody's leaving would help.

        Candidates of the same priority are only those of the same turn whose jobs stand behind in the queue. Of several
        ways to meet its constraints the one that asks least is taken.
        """
        best: tuple[tuple[int, int, list[int]], tuple[SlotRequest, ...]] | None = None
        for way in fitting.ways(request, self._cluster):
            asking = replace(request, single_node=True) if way.alone else request
            chosen = self._part(way.within).choose(asking, priority, queue_position, turn)
            orders = [self._orders[each.allocation_id] for each in chosen]
            if orders:
                most_urgent = min(self._candidates[order].priority for order in orders)
                cost = (-most_urgent, len(orders), sorted(orders))
                best = (cost, chosen) if best is None or cost < best[0] else best
        return () if best is None else best[1]

    def _part(self, within: Constraints | None) -> _LeaversWithin:
        if within not in self._within:
            part = self._cluster.narrowed(within)
            there = sorted({order for agent in part.agents for order in self._on_agent.get(agent, ())})
            candidates = {order: self._candidates[order] for order in there if order in self._candidates}
            self._within[within] = _LeaversWithin(part, candidates, self._rules)
        return self._within[within]


class _LeaversWithin:
    """The same, where those slots alone count that are in an index. Mutable; one `Leavers` owns it."""

    def __init__(self, cluster: FreeSlots, candidates: Mapping[int, Candidate], rules: PoolRules) -> None:
        self._cluster = cluster
        self._rules = rules
        self._orders: dict[AllocationId, tuple[int, int]] = {}
        by_priority: dict[int, list[tuple[int, _Gain]]] = {}
        for order, candidate in candidates.items():
            gain = _Gain(candidate, _freed(candidate.request, cluster))
            if gain.by_agent:
                by_priority.setdefault(candidate.priority, []).append((order, gain))
                self._orders[candidate.request.allocation_id] = (candidate.priority, order)
        self._levels = {priority: _Level(by_priority[priority]) for priority in sorted(by_priority, reverse=True)}

    def remove(self, request: SlotRequest) -> None:
        """A candidate was asked to leave: it is none any more."""
        if request.allocation_id in self._orders:
            priority, order = self._orders.pop(request.allocation_id)
            self._levels[priority].remove(order)

    def choose(self, request: SlotRequest, priority: int, queue_position: float, turn: int) -> tuple[SlotRequest, ...]:
        """Whom to ask; see `Leavers.choose`."""
        considered: list[_Level] = []
        for their_priority, whole in self._levels.items():
            if their_priority < priority:
                break
            level = whole
            if their_priority == priority or request.blocked_agents:
                level = _Level(_allowed(whole, request, (turn, queue_position) if their_priority == priority else None))
            considered.append(level)
            chosen = self._fewest(request, considered)
            if chosen is not None:
                return tuple(
                    level.gains[order].candidate.request
                    for order in sorted(chosen)
                    for level in considered
                    if order in level.gains
                )
        return ()

    def _fewest(self, request: SlotRequest, levels: Sequence[_Level]) -> list[int] | None:
        """The smallest set of these levels that makes room; it holds one of the last level."""
        if not levels[-1].gains:
            return None
        if fitting.may_be_gang(request) and self._rules.uneven_gangs:
            free = self._cluster.free_outside(request.blocked_agents)
            amounts = sum((level.amounts for level in levels), Counter[int]())
            ordered = ((order, gain.total) for level in levels for order, gain in level.gains.items())
            return _cover(request.slots - free, ordered, amounts)
        alone = self._on_one_agent(request, levels)
        if not fitting.may_be_gang(request):
            return alone
        options = [alone] if alone is not None else []
        return min([*options, *self._on_even_agents(request, levels)], key=_rank, default=None)

    def _on_one_agent(self, request: SlotRequest, levels: Sequence[_Level]) -> list[int] | None:
        """The smallest set that makes room on one agent."""
        need, last = max(request.slots, 1), levels[-1]
        for order, gain in last.gains.items():
            if any(freed >= need - self._free(request, agent) for agent, freed in gain.by_agent.items()):
                return [order]
        covers: list[list[int]] = []
        for agent, freeing in last.on_agent.items():
            missing = need - self._free(request, agent)
            everyone = [item for level in levels[:-1] for item in level.on_agent.get(agent, {}).items()]
            everyone += freeing.items()
            if missing <= sum(freed for _, freed in everyone):
                cover = _cover(missing, everyone, Counter(freed for _, freed in everyone))
                covers += [cover] if cover is not None else []
        return min(covers, key=_rank, default=None)

    def _on_even_agents(self, request: SlotRequest, levels: Sequence[_Level]) -> Iterator[list[int]]:
        """For each size that divides the request, few candidates whose leaving empties enough agents of that size."""
        usable = [agent for agent in self._cluster.agents.values() if agent.id not in request.blocked_agents]
        for size in sorted({len(agent.slots) for agent in usable} - {0}, reverse=True):
            if request.slots % size:
                continue
            emptied: list[set[int]] = []
            for agent in usable:
                users = dict(chain.from_iterable(level.on_agent.get(agent.id, {}).items() for level in levels))
                if len(agent.slots) == size and self._free(request, agent.id) + sum(users.values()) == size:
                    emptied.append(set(users))
            chosen: set[int] = set()
            for _ in range(min(request.slots // size, len(emptied))):
                emptied.sort(key=lambda users: (len(users - chosen), sorted(users)))
                chosen |= emptied.pop(0)
                if not emptied:
                    break
            if chosen and self._makes_even_room(request, size, levels, chosen):
                yield sorted(chosen)

    def _makes_even_room(self, request: SlotRequest, size: int, levels: Sequence[_Level], chosen: set[int]) -> bool:
        """Whether enough agents of a size are empty once the chosen have left."""
        count = 0
        for agent in self._cluster.agents.values():
            if len(agent.slots) == size and agent.id not in request.blocked_agents:
                freed = sum(level.on_agent.get(agent.id, {}).get(order, 0) for level in levels for order in chosen)
                count += self._free(request, agent.id) + freed == size
        return count >= request.slots // size

    def _free(self, request: SlotRequest, agent: AgentId) -> int:
        room = self._cluster.room(agent)
        return room.free if request.slots else room.aux_free


def _freed(candidate: SlotRequest, cluster: FreeSlots) -> dict[AgentId, int]:
    """What a candidate's leaving would free on each agent that takes work: slots, or auxiliary places."""
    places: dict[AgentId, int] = {}
    for member in candidate.members:
        if member.agent_id not in cluster.agents:
            continue
        held = set(member.slots) & set(cluster.agents[member.agent_id].slots)
        freed = len(held - cluster.free_slots(member.agent_id)) if member.slots else 1
        if freed:
            places[member.agent_id] = places.get(member.agent_id, 0) + freed
    return places


def _allowed(level: _Level, request: SlotRequest, behind: tuple[int, float] | None) -> Iterator[tuple[int, _Gain]]:
    """The candidates of a level behind a place in the queue, with what they free where the request may go."""
    for order, gain in level.gains.items():
        if behind is not None and (gain.candidate.turn != behind[0] or gain.candidate.queue_position <= behind[1]):
            continue
        where = {agent: freed for agent, freed in gain.by_agent.items() if agent not in request.blocked_agents}
        if where:
            yield order, _Gain(gain.candidate, where)


def _rank(chosen: list[int]) -> tuple[int, list[int]]:
    return (len(chosen), chosen)


def _cover(missing: int, freeing: Iterable[tuple[int, int]], amounts: Counter[int]) -> list[int] | None:
    """The fewest of ``freeing`` (order of leaving, amount) that amount to ``missing``; of these the first to leave.

    ``freeing`` stands in the order of leaving; ``amounts`` counts how many free how much, and is used up. None where
    all of them do not suffice. With the largest first, the fewest are known; then each is taken in the order of leaving
    if the largest of the rest can still complete the number.
    """
    fewest = _fewest_of_largest(missing, amounts)
    if fewest is None:
        return None
    chosen: list[int] = []
    for order, amount in freeing:
        left = fewest - len(chosen) - 1
        if left < 0:
            break
        amounts[amount] -= 1
        if amount + _largest(amounts, left) >= missing:
            chosen.append(order)
            missing -= amount
    return chosen


def _fewest_of_largest(missing: int, amounts: Mapping[int, int]) -> int | None:
    """How many of the largest amounts it takes; None where all of them do not suffice."""
    count = 0
    for amount in sorted(amounts, reverse=True):
        if missing <= 0:
            break
        taken = min(amounts[amount], -(-missing // amount))
        missing -= taken * amount
        count += taken
    return count if missing <= 0 else None


def _largest(amounts: Mapping[int, int], count: int) -> int:
    """The sum of the ``count`` largest amounts."""
    total = 0
    for amount in sorted(amounts, reverse=True):
        if count <= 0:
            break
        taken = min(amounts[amount], count)
        total += taken * amount
        count -= taken
    return total
