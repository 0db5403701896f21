"""The places of a pool during one pass: what is free now, what will be, and what is kept for whom.

Rules:
- ``later`` holds all that ``now`` holds, and what is being released besides.
- A request that does not fit now but fits later is kept its place: in slots that are being released where it can, else
  in free ones, which nobody else then takes. So what is asked to leave leaves for somebody, and nobody asks twice.
- A request that does not fit later either can have places reserved: what is or comes free there is nobody else's.
"""

from __future__ import annotations

from dataclasses import replace

from tenax.ids import AgentId
from tenax.scheduler import fitting
from tenax.scheduler.cluster import FreeSlots
from tenax.scheduler.snapshot import Phase, PlacedMember, PoolSnapshot, SlotRequest


class Places:
    """Free and coming places. Mutable; one pass owns one."""

    __slots__ = ("_agents", "_could", "_empty", "_full", "_hopeless", "_rules", "later", "now")

    def __init__(self, snapshot: PoolSnapshot) -> None:
        self._rules = snapshot.rules
        self._agents = snapshot.agents
        #: The pool with nothing running, made when it is first needed; and which kinds of request would fit it.
        self._empty: FreeSlots | None = None
        self._could: dict[tuple[int, bool, frozenset[AgentId]], bool] = {}
        self.now = FreeSlots(snapshot.agents)
        self.later = self.now.fork()
        #: Kinds of request that did not fit now: places only go during a pass, so their like will not either.
        self._full: set[tuple[int, bool]] = set()
        #: Kinds that do not fit on all agents together.
        self._hopeless: set[tuple[int, bool]] = set()
        for request in snapshot.requests:
            if request.phase is Phase.RELEASING:
                self.give_later(request)

    def could_start(self, request: SlotRequest) -> bool:
        """Whether it would fit with nothing running, on the agents that take work now."""
        kind = (request.slots, request.single_node, request.blocked_agents)
        if kind not in self._could:
            if self._empty is None:
                self._empty = FreeSlots(replace(agent, in_use=frozenset(), aux_in_use=0) for agent in self._agents)
            self._could[kind] = fitting.find(request, self._empty, self._rules) is not None
        return self._could[kind]

    def take_now(self, request: SlotRequest) -> tuple[PlacedMember, ...] | None:
        """Take places that are free now; None where the request does not fit."""
        kind = (request.slots, request.single_node)
        if kind in self._full:
            return None
        fit = fitting.find(request, self.now, self._rules)
        if fit is None:
            if not request.blocked_agents:
                self._full.add(kind)
            return None
        members = tuple(self.now.pick(agent, count) for agent, count in fit)
        for member in members:
            self.now.take(member)
            self.later.take(member)
        return members

    def keep_later(self, request: SlotRequest) -> bool:
        """Keep places that will be free for a request; False where it does not fit even then."""
        fit = fitting.find(request, self.later, self._rules)
        if fit is None:
            return False
        for agent, count in fit:
            self._keep(self.later.pick(agent, count, rather_not=self.now))
        return True

    def reserve(self, request: SlotRequest) -> int | None:
        """Keep what is and comes free where a request is to start in the end: how many slots that is now. None where it
        would not fit with nothing running."""
        kind = (request.slots, request.single_node)
        if kind in self._hopeless:
            return None
        fit = fitting.awaited(request, self.later, self._rules)
        if fit is None:
            if not request.blocked_agents:
                self._hopeless.add(kind)
            return None
        kept = 0
        for agent, count in fit:
            free = sorted(self.now.free_slots(agent))[:count]
            coming = sorted(self.later.free_slots(agent) - set(free))[: count - len(free)]
            # Without slots a member is an auxiliary place.
            if free:
                self.now.take(PlacedMember(agent, tuple(free)))
            if free or coming:
                self.later.take(PlacedMember(agent, (*free, *coming)))
            kept += len(free)
        return kept

    def give_later(self, request: SlotRequest) -> None:
        """Count on what a request holds: it is being released."""
        for member in request.members:
            self.later.give(member)

    def _keep(self, member: PlacedMember) -> None:
        held = self.now.free_slots(member.agent_id)
        self.later.take(member)
        if not member.slots:
            if self.now.room(member.agent_id).aux_free > self.later.room(member.agent_id).aux_free:
                self.now.take(member)
            return
        taken = tuple(slot for slot in member.slots if slot in held)
        if taken:
            self.now.take(PlacedMember(member.agent_id, taken))
