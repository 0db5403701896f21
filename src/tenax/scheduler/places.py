"""The places of a pool during one pass: what is free now, what will be, and what is kept for whom.

Rules:
- ``later`` holds all that ``now`` holds, and what is being released besides.
- A request that does not fit now but fits later is kept its place: in slots that are being released where it can, else
  in free ones, which nobody else then takes. So what is asked to leave leaves for somebody, and nobody asks twice.
- A request that does not fit later either can have places reserved: what is or comes free there is nobody else's,
  but for those who are gone by the time at which it starts, as time limits say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Union

from tenax.ids import AgentId, SlotId
from tenax.scheduler import fitting
from tenax.scheduler.cluster import FreeSlots
from tenax.scheduler.free_times import Times
from tenax.scheduler.policy import priority_of
from tenax.scheduler.snapshot import Constraints, Phase, PlacedMember, PoolSnapshot, SlotRequest

#: `SlotRequest.kind`.
_Kind = tuple[int, bool, Union[Constraints, None]]


@dataclass(frozen=True, slots=True)
class Reservation:
    """Places that are kept for a request."""

    #: So many of them are free.
    free: int
    #: When it starts, at the latest, in seconds since 1970; None: nobody knows.
    starts_at: float | None


@dataclass(frozen=True, slots=True)
class _Meeting:
    """What meets constraints, of the agents that take work."""

    agents: frozenset[AgentId]
    slots: frozenset[tuple[AgentId, SlotId]]


class Places:
    """Free and coming places. Mutable; one pass owns one."""

    __slots__ = (
        "_at",
        "_bound",
        "_could",
        "_empty",
        "_full",
        "_hopeless",
        "_later",
        "_lent",
        "_lent_full",
        "_of_others",
        "_rules",
        "_sets",
        "_snapshot",
        "_starts_at",
        "now",
    )

    def __init__(self, snapshot: PoolSnapshot) -> None:
        self._snapshot = snapshot
        self._rules = snapshot.rules
        self._at = snapshot.at
        #: What is free, reserved places among it, for those who are gone before these are needed; and when that is.
        self._lent: FreeSlots | None = None
        self._starts_at = 0.0
        self._lent_full: set[_Kind] = set()
        #: The pool with nothing running, made when it is first needed; and which kinds of request would fit it.
        self._empty: FreeSlots | None = None
        self._could: dict[tuple[_Kind, frozenset[AgentId]], bool] = {}
        self.now = FreeSlots(snapshot.agents)
        #: None: nothing is being released or kept, and it is as ``now``.
        self._later: FreeSlots | None = None
        #: Kinds of request that did not fit now: places only go during a pass, so their like will not either.
        self._full: set[_Kind] = set()
        #: Kinds that do not fit on all agents together.
        self._hopeless: set[_Kind] = set()
        self._sets: dict[FreeSlots, _Meeting] = {}
        #: Agents that some request which waits is bound to, with the priority of the most urgent of them.
        self._bound: dict[frozenset[AgentId], int] = {}
        for request in snapshot.requests:
            if request.phase is Phase.RELEASING:
                self.give_later(request)
            elif request.constraints is not None and request.phase is Phase.PENDING:
                agents, priority = self.usable(request.constraints.of_each()), priority_of(snapshot, request)
                self._bound[agents] = min(priority, self._bound.get(agents, priority))
        self._of_others: dict[tuple[frozenset[AgentId] | None, float], frozenset[AgentId]] = {}

    @property
    def later(self) -> FreeSlots:
        """What will be free; kept up from then on."""
        if self._later is None:
            self._later = self.now.fork()
        return self._later

    def could_start(self, request: SlotRequest) -> bool:
        """Whether it would fit with nothing running, on the agents that take work now."""
        kind = request.kind, request.blocked_agents
        if kind not in self._could:
            if self._empty is None:
                self._empty = self.now.emptied()
            self._could[kind] = fitting.find(request, self._empty, self._rules) is not None
        return self._could[kind]

    def take_now(self, request: SlotRequest) -> tuple[PlacedMember, ...] | None:
        """Take places that are free now; None where the request does not fit."""
        # Rather reserved places than those that others can take who stay longer.
        borrows = self.is_gone_in_time(request)
        places, full = (self._lent, self._lent_full) if borrows and self._lent is not None else (self.now, self._full)
        if request.kind in full:
            return None
        fit = self._find_now(request, places)
        if fit is None:
            if not request.blocked_agents:
                full.add(request.kind)
            return None
        part = places.narrowed(fit.within)
        rather_not = None if places is self.now else self.now
        members = tuple(part.pick(agent, count, rather_not) for agent, count in fit.parts)
        for member in members:
            self._take(member)
        return members

    def _find_now(self, request: SlotRequest, places: FreeSlots) -> fitting.Fit | None:
        """It goes rather where nobody else who waits is bound to, on as few machines."""
        fit = fitting.find(request, places, self._rules)
        if fit is None or not self._bound:
            return fit
        # Where it is in somebody's way whatever it does, rather in the way of those who are less urgent.
        for urgency in (math.inf, priority_of(self._snapshot, request)):
            bound = self._others_are_bound_to(request, urgency)
            if bound.isdisjoint(agent for agent, _ in fit.parts):
                return fit
            elsewhere = replace(request, blocked_agents=request.blocked_agents | bound)
            beside = fitting.find(elsewhere, places, self._rules)
            if beside is not None and len(beside.parts) <= len(fit.parts):
                return beside
        return fit

    def _others_are_bound_to(self, request: SlotRequest, urgency: float) -> frozenset[AgentId]:
        """Agents that some request is bound to that is bound to others than this one, and is at least so urgent."""
        own = None if request.constraints is None else self.usable(request.constraints.of_each())
        if (own, urgency) not in self._of_others:
            urgent = (agents for agents, priority in self._bound.items() if agents != own and priority <= urgency)
            self._of_others[own, urgency] = frozenset[AgentId]().union(*urgent)
        return self._of_others[own, urgency]

    def usable(self, constraints: Constraints) -> frozenset[AgentId]:
        """Agents that take work and have a slot that meets what is asked of each."""
        return self._set_of(constraints).agents

    def slots_for(self, constraints: Constraints) -> frozenset[tuple[AgentId, SlotId]]:
        """All slots of agents that take work that meet what is asked of each."""
        return self._set_of(constraints).slots

    def _set_of(self, constraints: Constraints) -> _Meeting:
        """Made once for all constraints that are met by the same slots."""
        part = self.now.narrowed(constraints)
        if part not in self._sets:
            agents = part.agents.values()
            slots = frozenset((agent.id, slot) for agent in agents for slot in agent.slots)
            self._sets[part] = _Meeting(frozenset(part.agents), slots)
        return self._sets[part]

    def fits_now(self, request: SlotRequest) -> bool:
        """Whether it would fit in what is free; nothing is taken."""
        return request.kind not in self._full and fitting.find(request, self.now, self._rules) is not None

    def is_gone_in_time(self, request: SlotRequest) -> bool:
        """Whether places are reserved, and it would be gone before they are needed if it started now."""
        if self._lent is None or request.time_limit is None or request.slots == 0:
            return False
        return self._at + request.time_limit <= self._starts_at

    def keep_later(self, request: SlotRequest) -> bool:
        """Keep places that will be free for a request; False where it does not fit even then."""
        fit = fitting.find(request, self._later or self.now, self._rules)
        if fit is None:
            return False
        part = self.later.narrowed(fit.within)
        for agent, count in fit.parts:
            self._keep(part.pick(agent, count, rather_not=self.now))
        return True

    def reserve(self, request: SlotRequest) -> Reservation | None:
        """Keep what is and comes free where a request is to start in the end. None where it would not fit with nothing
        running."""
        if request.kind in self._hopeless:
            return None
        times = Times(self._snapshot, request)
        fit = fitting.awaited(request, self.now, self.later, self._rules, times)
        if fit is None:
            if not request.blocked_agents:
                self._hopeless.add(request.kind)
            return None
        now, later = self.now.narrowed(fit.within), self.later.narrowed(fit.within)
        starts = [times.of(agent, count, now, later) for agent, count in fit.parts]
        known = [at for at in starts if at is not None]
        starts_at = max(known) if len(known) == len(starts) else None
        if starts_at is not None:
            self._lent, self._starts_at = self.now.fork(), starts_at
        kept = 0
        for agent, count in fit.parts:
            free = sorted(now.free_slots(agent))
            coming = later.free_slots(agent) - set(free)
            if starts_at is None:
                free = free[:count]
            else:
                # What is held until then comes to it: of those that are free only what is still missing.
                held = {slot for slot, at in times.held(agent, now, later) if at <= starts_at}
                free, coming = free[: max(0, count - len(held))], coming & held
            from_coming = sorted(coming)[: count - len(free)]
            # Without slots a member is an auxiliary place.
            if free:
                self.now.take(PlacedMember(agent, tuple(free)))
            if free or from_coming:
                self.later.take(PlacedMember(agent, (*free, *from_coming)))
            kept += len(free)
        return Reservation(kept, starts_at)

    def give_later(self, request: SlotRequest) -> None:
        """Count on what a request holds: it is being released."""
        for member in request.members:
            self.later.give(member)

    def _take(self, member: PlacedMember) -> None:
        for places in (self.now, self._later, self._lent):
            if places is not None:
                places.take(member)

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
