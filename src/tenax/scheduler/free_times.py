"""When slots come free: what time limits promise of those that are held.

Rules:
- What is free, or being released, is free at once. What a request with a time limit holds is free when that is over, at
  the latest; of what others hold nobody knows.
- Only what is enforced counts, and never what is likely: who lets others pass must not be put off by it.
"""

from __future__ import annotations

from collections.abc import Iterable

from tenax.ids import AgentId, SlotId
from tenax.scheduler.cluster import FreeSlots
from tenax.scheduler.snapshot import Phase, PoolSnapshot


class Times:
    """Of one pool at one instant."""

    def __init__(self, snapshot: PoolSnapshot) -> None:
        self._at = snapshot.at
        self._ends: dict[AgentId, dict[SlotId, float]] = {}
        for request in snapshot.requests:
            if request.phase is Phase.PLACED and request.ends_at is not None:
                for member in request.members:
                    there = self._ends.setdefault(member.agent_id, {})
                    there.update(dict.fromkeys(member.slots, max(self._at, request.ends_at)))

    def of(self, agent_id: AgentId, count: int, coming: FreeSlots) -> float | None:
        """When an agent has so many slots free; None: nobody knows. ``coming``: what is or comes free of itself."""
        known = len(coming.free_slots(agent_id))
        if known >= count:
            return self._at
        ends = sorted(at for slot, at in self._held(agent_id, coming))
        missing = count - known
        return ends[missing - 1] if missing <= len(ends) else None

    def count(self, agent_id: AgentId, by: float, coming: FreeSlots) -> int:
        """How many slots of an agent are held and come free by then."""
        return sum(at <= by for _, at in self._held(agent_id, coming))

    def _held(self, agent_id: AgentId, coming: FreeSlots) -> Iterable[tuple[SlotId, float]]:
        free = coming.free_slots(agent_id)
        there = frozenset(coming.agents[agent_id].slots)
        return ((slot, at) for slot, at in self._ends.get(agent_id, {}).items() if slot in there and slot not in free)
