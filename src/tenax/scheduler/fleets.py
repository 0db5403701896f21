"""Which machines to rent of several offers: the planner is asked with machines that are not there yet.

Rules:
- The most urgent of what waits is served first, in the order in which the planner decides; of the offers that serve it
  the first listed is taken, or the one that costs least. New machines for one request are of one offer.
- As few as serve, and none that the planner would not use. What was chosen, planned again, asks for nothing more.
- Where cost decides, sets of machines that serve the same are looked through from the cheapest on; in a large pool only
  so many as can be planned in a moment.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile

from tenax.ids import AgentId, AllocationId
from tenax.scheduler.offers import MachineOffer, most_machines
from tenax.scheduler.registry import placer
from tenax.scheduler.snapshot import AgentState, PoolAgent, PoolPlan, PoolSnapshot

_ENABLED = AgentState.ENABLED
#: How many machines there are of each offer.
Fleet = tuple[int, ...]
#: Numbers of machines of one offer begin at a multiple of it.
_APART = 10_000
#: Sets that are looked at where cost decides, and about so many requests and agents in all of their plans.
_MAX_SETS, _MAX_PLANNED = 3_000, 40_000


class Course:
    """What the planner makes of the pool with so many machines of each offer more. Mutable; one call owns it."""

    def __init__(
        self,
        snapshot: PoolSnapshot,
        offers: Sequence[MachineOffer],
        coming: Fleet,
        usable: Sequence[int],
        room: int,
        money: float | None = None,
    ) -> None:
        """``usable``: places of the offers that may be rented; ``room``, ``money``: what may be added to ``coming``."""
        self.snapshot = snapshot
        self.coming = coming
        self.usable = tuple(usable)
        self.none: Fleet = (0,) * len(offers)
        self.offers = tuple(offers)
        self._room = room
        self._money = money
        #: What is chosen so far.
        self._base = coming
        self._placer = placer(snapshot)
        self._plans: dict[Fleet, PoolPlan] = {}
        self._placed: dict[Fleet, frozenset[AllocationId]] = {}
        self._new: list[tuple[PoolAgent, ...]] = [()] * len(offers)
        self._free = sum(len(each.slots) - len(each.in_use) for each in snapshot.agents if each.state is _ENABLED)
        self._requests = {each.allocation_id: each for each in snapshot.requests}

    @property
    def leaving(self) -> Mapping[AllocationId, str]:
        """Whom the planner asks to leave with nothing added; the reason is for people."""
        return self._plan(self.none).preempt

    def placed(self, fleet: Fleet) -> frozenset[AllocationId]:
        """What could start with these machines."""
        if fleet not in self._placed:
            self._placed[fleet] = frozenset(self._plan(fleet).placements)
        return self._placed[fleet]

    def needed(self, fleet: Fleet) -> frozenset[AgentId]:
        """Agents on which something is placed with these machines."""
        return frozenset(each.agent_id for members in self._plan(fleet).placements.values() for each in members)

    def places(self, fleet: Fleet, beside: Fleet) -> Mapping[AllocationId, int]:
        """Of what could start with these machines: of which offer the first is that it starts on, of those not beside.

        What starts elsewhere, since others find room on new ones, waits for the first of these all the same.
        """
        new = [index for index, count in enumerate(fleet) if count > beside[index]]
        owner = {each.id: index for index in new for each in self._agents(index, fleet[index])}
        return {
            name: next((owner[each.agent_id] for each in members if each.agent_id in owner), new[0])
            for name, members in self._plan(fleet).placements.items()
            if new
        }

    def most(self, fleet: Fleet, index: int) -> int:
        """How many more of an offer there may be beside these."""
        added = sum(fleet) - sum(self.coming)
        money = None if self._money is None else self._money - self._cost(fleet)
        return most_machines(self.offers[index], self._room - added, money)

    def chosen(self, least: Fleet, *, cheapest: bool) -> Fleet:
        """At least these, and what is to be rented beside them."""
        self._base = least
        while (best := self._best(cheapest=cheapest)) != self._base:
            self._base = best
        return best

    def _best(self, *, cheapest: bool) -> Fleet:
        """The best next to those chosen so far: where somebody is left, what serves more urgent ones with less room.

        So a larger limit changes nothing to the worse: what somewhat smaller ones would have made is looked at, too.
        """
        best = self._extended(cheapest=cheapest)
        order = self._waiting(self._base)
        if self.placed(best).issuperset(order) or len(self.usable) < 2:
            return best
        whole = self._room
        begun = sum(self._base) - sum(self.coming)
        for room in range(whole - 1, max(begun, whole - min(16, self._affordable() // 10) - 1), -1):
            self._room = room
            best = max(
                best, self._extended(cheapest=cheapest), key=lambda it: [name in self.placed(it) for name in order]
            )
        self._room = whole
        return best

    def _extended(self, *, cheapest: bool) -> Fleet:
        fleet, seen = self._base, set[Fleet]()
        while fleet not in seen:
            seen.add(fleet)
            while (more := self._grown(fleet, cheapest=cheapest)) is not None:
                fleet = more
            if cheapest:
                fleet = self._cheaper(fleet)
            fleet = self._used(fleet)
        return fleet

    def _grown(self, fleet: Fleet, *, cheapest: bool) -> Fleet | None:
        """With machines for the most urgent that an offer serves, and for those behind it that it serves as well."""
        full = {index: self.placed(_more(fleet, index, self.most(fleet, index))) for index in self.usable}
        waiting = self._waiting(fleet)
        tried = set()
        for place, name in enumerate(waiting):
            kind = self._requests[name].kind
            serving = [index for index in self.usable if name in full[index]]
            if kind in tried or not serving:
                tried.add(kind)
                continue
            index = min(serving, key=lambda it: self._cost_of(fleet, it, name)) if cheapest else serving[0]
            earlier = [] if cheapest else [full[it] for it in self.usable[: self.usable.index(index)]]
            goal = _served(waiting[place:], full[index], earlier)
            return self._fewest(fleet, index, goal)
        return None

    def _waiting(self, fleet: Fleet) -> list[AllocationId]:
        """What could start with all that may be rented and cannot with these, the most urgent first.

        Of all offers together there would be more than may be: what only they serve hides others that one offer serves.
        """
        now = self.placed(fleet)
        alone = (_more(fleet, index, self.most(fleet, index)) for index in self.usable)
        names = dict.fromkeys(name for each in (self._abundance(fleet), *alone) for name in self._plan(each).placements)
        return [name for name in names if name not in now]

    def _abundance(self, fleet: Fleet) -> Fleet:
        """As many more of each offer as there might be of it alone."""
        return tuple(
            count + (self.most(fleet, index) if index in self.usable else 0) for index, count in enumerate(fleet)
        )

    def _affordable(self) -> int:
        """How many plans can be made in a moment."""
        return max(20, _MAX_PLANNED // (1 + len(self._requests) + len(self.snapshot.agents)))

    def _fewest(self, fleet: Fleet, index: int, goal: frozenset[AllocationId]) -> Fleet:
        """With the fewest more of an offer that serve all of these."""
        low, high = 0, self.most(fleet, index)
        slots = sum(self._requests[name].slots for name in goal)
        while high - low > 1:
            middle = (low + high) // 2
            more = _more(fleet, index, middle)
            # What has more slots than there would be needs no plan.
            low, high = (low, middle) if self._slots(more) >= slots and goal <= self.placed(more) else (middle, high)
        return _more(fleet, index, high)

    def _cost_of(self, fleet: Fleet, index: int, name: AllocationId) -> float:
        return self._cost(self._fewest(fleet, index, frozenset({name})))

    def _cost(self, fleet: Fleet) -> float:
        """Of those beside what comes, per hour."""
        added = zip(fleet, self.coming, self.offers, strict=True)
        return sum((count - there) * (offer.price or 0.0) for count, there, offer in added)

    def _cheaper(self, fleet: Fleet) -> Fleet:
        """The machines that cost least of those that serve what these serve."""
        goal, cost = self.placed(fleet), self._cost(fleet)
        slots = sum(self._requests[name].slots for name in goal)
        plans = self._affordable()
        heap = [(self._cost(self._base), self._base[::-1])]
        seen = {self._base}
        for _ in range(_MAX_SETS):
            if not heap or plans == 0:
                break
            its_cost, reverse = heapq.heappop(heap)
            candidate = reverse[::-1]
            if its_cost >= cost - 1e-9:
                break
            if self._slots(candidate) >= slots:
                plans -= 1
                if goal <= self.placed(candidate):
                    return candidate
            for index in self.usable:
                larger = _more(candidate, index, 1)
                if larger not in seen and self.most(candidate, index):
                    seen.add(larger)
                    heapq.heappush(heap, (self._cost(larger), larger[::-1]))
        return fleet

    def _slots(self, fleet: Fleet) -> int:
        """Free ones, with these machines."""
        return self._free + sum(count * offer.slots for count, offer in zip(fleet, self.offers, strict=True))

    def _used(self, fleet: Fleet) -> Fleet:
        """Without those on which nothing would be placed."""
        while True:
            used = Counter[int]()
            needed = self.needed(fleet)
            for index, count in enumerate(fleet):
                used[index] = sum(each.id in needed for each in self._agents(index, count))
            left = tuple(max(there, used[index]) for index, there in enumerate(self._base))
            if left == fleet:
                return fleet
            fleet = left

    def _agents(self, index: int, count: int) -> tuple[PoolAgent, ...]:
        if len(self._new[index]) < count:
            self._new[index] = self.offers[index].agents(count, index * _APART)
        return self._new[index][:count]

    def _plan(self, fleet: Fleet) -> PoolPlan:
        if fleet not in self._plans:
            new = (each for index, count in enumerate(fleet) for each in self._agents(index, count))
            self._plans[fleet] = self._placer((*self.snapshot.agents, *new))
        return self._plans[fleet]


def _served(
    waiting: Sequence[AllocationId], served: frozenset[AllocationId], earlier: Sequence[frozenset[AllocationId]]
) -> frozenset[AllocationId]:
    """The first, and those behind it in a row that an offer serves and none that is to be taken before it."""
    behind = takewhile(lambda name: name in served and not any(name in each for each in earlier), waiting)
    return frozenset({waiting[0], *behind})


def _more(fleet: Fleet, index: int, count: int) -> Fleet:
    return (*fleet[:index], fleet[index] + count, *fleet[index + 1 :])
