"""Which running requests are asked to leave so that a more urgent one fits: the smallest set that helps.

Rules, in this order:
1. Nobody more important is touched than must be: only the least important priorities that suffice are considered.
2. Among those, the fewest requests.
3. Among sets of that size, those who come first in the order of leaving (least important, then newest).
Whoever is in the set is needed: without any one of them the request would not fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tenax.ids import AgentId
from tenax.scheduler import fitting
from tenax.scheduler.cluster import Cluster
from tenax.scheduler.snapshot import PoolRules, Request


@dataclass(frozen=True, slots=True)
class Candidate:
    """A running request that may be asked to leave."""

    request: Request
    priority: int


@dataclass(frozen=True, slots=True)
class _Gain:
    """What it would free, on agents that the asking request may use."""

    #: Number of the candidate in the order of leaving.
    order: int
    by_agent: Mapping[AgentId, int]

    @property
    def total(self) -> int:
        return sum(self.by_agent.values())


def choose(
    request: Request, cluster: Cluster, candidates: Sequence[Candidate], rules: PoolRules
) -> tuple[Request, ...]:
    """The requests to ask, in the order of leaving; empty where even all of them would not make room.

    ``cluster`` is the pool as it will be when what is being released is free; ``candidates`` stand in the order of
    leaving, least important first.
    """
    gains = [gain for order, candidate in enumerate(candidates) for gain in _gain(order, candidate, request, cluster)]
    for upto in _levels(candidates, gains):
        chosen = _fewest(request, cluster, gains[:upto], rules)
        if chosen is not None:
            return tuple(candidates[order].request for order in sorted(chosen))
    return ()


def _levels(candidates: Sequence[Candidate], gains: Sequence[_Gain]) -> Iterator[int]:
    """Lengths of the prefixes of ``gains`` that end where the next priority begins."""
    for number, gain in enumerate(gains):
        priority = candidates[gain.order].priority
        if number + 1 == len(gains) or candidates[gains[number + 1].order].priority != priority:
            yield number + 1


def _gain(order: int, candidate: Candidate, request: Request, cluster: Cluster) -> Iterator[_Gain]:
    found: dict[AgentId, int] = {}
    for member in candidate.request.members:
        if member.agent_id not in cluster.agents or member.agent_id in request.blocked_agents:
            continue
        if request.slots == 0:
            freed = 0 if member.slots else 1
        else:
            held = set(member.slots) & set(cluster.agents[member.agent_id].slots)
            freed = len(held - cluster.free_slots(member.agent_id))
        if freed:
            found[member.agent_id] = found.get(member.agent_id, 0) + freed
    if found:
        yield _Gain(order, found)


def _fewest(request: Request, cluster: Cluster, gains: Sequence[_Gain], rules: PoolRules) -> list[int] | None:
    """The smallest set that makes room, as numbers in the order of leaving."""
    if fitting.may_be_gang(request) and rules.uneven_gangs:
        free = sum(_free(request, cluster, agent) for agent in cluster.agents if agent not in request.blocked_agents)
        return _cover(request.slots - free, [(gain.order, gain.total) for gain in gains])
    on_agent: dict[AgentId, list[tuple[int, int]]] = {}
    for gain in gains:
        for agent, freed in gain.by_agent.items():
            on_agent.setdefault(agent, []).append((gain.order, freed))
    options = list(_on_one_agent(request, cluster, on_agent))
    if fitting.may_be_gang(request):
        options += _on_even_agents(request, cluster, on_agent)
    return min(options, key=lambda option: (len(option), option), default=None)


#: Who could free how much on which agent: (number in the order of leaving, slots or places).
_OnAgent = Mapping[AgentId, list[tuple[int, int]]]


def _on_one_agent(request: Request, cluster: Cluster, on_agent: _OnAgent) -> Iterator[list[int]]:
    """For each agent, the smallest set that makes room there."""
    for agent, freeing in on_agent.items():
        cover = _cover(max(request.slots, 1) - _free(request, cluster, agent), freeing)
        if cover is not None:
            yield cover


def _on_even_agents(request: Request, cluster: Cluster, on_agent: _OnAgent) -> Iterator[list[int]]:
    """For each size that divides the request, few candidates whose leaving empties enough agents of that size."""
    for size in sorted({len(agent.slots) for agent in cluster.agents.values()} - {0}, reverse=True):
        if request.slots % size:
            continue
        emptied = [
            {order for order, _ in on_agent.get(agent.id, [])}
            for agent in cluster.agents.values()
            if len(agent.slots) == size
            and agent.id not in request.blocked_agents
            and _free(request, cluster, agent.id) + sum(freed for _, freed in on_agent.get(agent.id, [])) == size
        ]
        chosen: set[int] = set()
        for _ in range(request.slots // size):
            if not emptied:
                break
            emptied.sort(key=lambda users: (len(users - chosen), sorted(users)))
            chosen |= emptied.pop(0)
        else:
            yield sorted(chosen)


def _cover(missing: int, freeing: Sequence[tuple[int, int]]) -> list[int] | None:
    """The fewest of ``freeing`` (order of leaving, amount) that amount to ``missing``; of these the first to leave.

    None where all of them do not. With the largest first, the fewest are known; then each is taken in the order of
    leaving if the largest of the rest can still complete the number.
    """
    amounts = Counter(amount for _, amount in freeing)
    fewest = next((count for count in range(len(freeing) + 1) if _largest(amounts, count) >= missing), None)
    if fewest is None:
        return None
    chosen: list[int] = []
    for order, amount in sorted(freeing):
        left = fewest - len(chosen) - 1
        if left < 0:
            break
        amounts[amount] -= 1
        if amount + _largest(amounts, left) >= missing:
            chosen.append(order)
            missing -= amount
    return chosen


def _largest(amounts: Mapping[int, int], count: int) -> int:
    """The sum of the ``count`` largest amounts, of which there are so many each."""
    total = 0
    for amount in sorted(amounts, reverse=True):
        taken = min(amounts[amount], count)
        total += taken * amount
        count -= taken
    return total


def _free(request: Request, cluster: Cluster, agent: AgentId) -> int:
    room = cluster.room(agent)
    return room.free if request.slots else room.aux_free
