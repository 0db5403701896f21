"""When slots come free: what time limits promise of those that are held.

Rules:
- What is free is free at once, and what is being released once its time for that is over. What a request with a time
  limit holds is free when that is over, at the latest; of what others hold nobody knows.
- What stands before the request that waits, and asks again or for more, takes what it left: that end is no
  end for this one.
- Only what is enforced counts, and never what is likely: who lets others pass must not be put off by it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tenax.ids import AgentId, SlotId
from tenax.scheduler.cluster import FreeSlots
from tenax.scheduler.snapshot import Phase, PoolJob, PoolSnapshot, SlotRequest, place_of


class Times:
    """Of one pool at one instant, for one request that waits."""

    def __init__(self, snapshot: PoolSnapshot, waiting: SlotRequest) -> None:
        self._at = snapshot.at
        own = snapshot.jobs[waiting.job_id]
        place = (own.priority, own.turn, place_of(snapshot, waiting))
        #: Of what runs, and of what is being released.
        self._ends: dict[AgentId, dict[SlotId, float]] = {}
        self._leaves: dict[AgentId, dict[SlotId, float]] = {}
        for request in snapshot.requests:
            if request.phase is Phase.PENDING or request.ends_at is None:
                continue
            releasing = request.phase is Phase.RELEASING
            if not releasing and _asks_before(snapshot.jobs[request.job_id], place):
                continue
            times = self._leaves if releasing else self._ends
            for member in request.members:
                there = times.setdefault(member.agent_id, {})
                there.update(dict.fromkeys(member.slots, max(self._at, request.ends_at)))

    def of(self, agent_id: AgentId, count: int, now: FreeSlots, later: FreeSlots) -> float | None:
        """When an agent has so many slots free; None: nobody knows. ``later``: with what comes free of itself."""
        missing = count - len(now.free_slots(agent_id))
        if missing <= 0:
            return self._at
        ends = sorted(at for _, at in self.held(agent_id, now, later))
        return ends[missing - 1] if missing <= len(ends) else None

    def held(self, agent_id: AgentId, now: FreeSlots, later: FreeSlots) -> Iterator[tuple[SlotId, float]]:
        """The slots of an agent that are not free and not promised, with when they are free, where it is known."""
        free, coming = now.free_slots(agent_id), later.free_slots(agent_id)
        ends, leaves = self._ends.get(agent_id, {}), self._leaves.get(agent_id, {})
        for slot in later.agents[agent_id].slots:
            if slot in free:
                continue
            if slot in coming:
                yield slot, leaves.get(slot, ends.get(slot, self._at))
            elif slot in ends:
                yield slot, ends[slot]


def _asks_before(job: PoolJob, place: tuple[int, int, float]) -> bool:
    """Whether what runs of a job asks again, or for more, before a request of that priority, turn and place."""
    if (job.priority, job.turn) < place[:2]:
        return True
    return job.asks_more and (job.priority, job.turn, job.queue_position) <= place
