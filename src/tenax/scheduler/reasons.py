"""Why a request waits, and why a running one is asked to leave: sentences for people.

Rules:
- A reason says what is missing, what there is, and who is ahead; it names numbers that the reader can check.
- The same state gives the same sentence: what did not change need not be written again.
- Each begins with the words of its class, so that whoever reads one knows what has to happen: nothing but time, another
  request, or that somebody acts. `OPENINGS` is the one table of them, for writing and for reading.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from enum import Enum
from typing import Union

from tenax.display.plural import counted
from tenax.ids import AgentId
from tenax.scheduler.cluster import FreeSlots
from tenax.scheduler.constraints import described
from tenax.scheduler.fitting import can_never_fit
from tenax.scheduler.snapshot import AgentState, Constraints, PoolJob, PoolSnapshot, SlotLimit, SlotRequest

#: `SlotRequest.kind`.
_Kind = tuple[int, bool, Union[Constraints, None]]


#: Behind so many twins there are several of its priority ahead.
_FEW = 2


class WaitClass(str, Enum):
    """What has to happen before a request that waits starts."""

    #: Nothing: it starts once its turn comes and there is room.
    WAIT = "WAIT"
    #: As it is asked for, it can never start in this pool: whoever asked changes the request.
    CHANGE = "CHANGE"
    #: Somebody else has to act: a machine is closed or missing, or the platform ends it again and again.
    ASK = "ASK"


#: How a reason of each class begins: the three that are written here, and that of SQL (`cannot_start` of the trials).
_WAITS, _NEVER, _SOMEBODY = "waits ", "can never start as it is: ", "cannot start before somebody acts: "
OPENINGS: Mapping[str, WaitClass] = {
    _WAITS: WaitClass.WAIT,
    _NEVER: WaitClass.CHANGE,
    _SOMEBODY: WaitClass.ASK,
    "it cannot start: ": WaitClass.ASK,
}
#: Of every request of a pool whose plan has failed.
NOT_PLANNED = f"{_SOMEBODY}the master has a fault and cannot plan this pool; its log says which"


def class_of(reason: str) -> WaitClass | None:
    """What has to happen, by how a reason begins; None: it is not one of ours, or there is none yet."""
    return next((kind for opening, kind in OPENINGS.items() if reason.startswith(opening)), None)


@dataclass(frozen=True, slots=True)
class DoesNotFit:
    """It does not fit, and nobody can be asked to leave."""


@dataclass(frozen=True, slots=True)
class Capped:
    """Its own job holds as much as it may."""

    held: int
    cap: int


@dataclass(frozen=True, slots=True)
class BeyondLimit:
    """Those who share a quota hold so much together that there is too little left of it."""

    limit: SlotLimit
    held: int


@dataclass(frozen=True, slots=True)
class BeyondShare:
    """Its job has its share of the pool's slots, or too little of it is left."""

    share: int
    held: int
    capacity: int


@dataclass(frozen=True, slots=True)
class Behind:
    """A more urgent request does not fit, and could not take back the place that this one would take."""

    blocker: SlotRequest


@dataclass(frozen=True, slots=True)
class Releasing:
    """It fits once what is being released is free."""


@dataclass(frozen=True, slots=True)
class MakingRoom:
    """Others were asked to leave for it."""

    leaving: int


@dataclass(frozen=True, slots=True)
class Reserved:
    """Places that are kept for the first request that does not fit: ``slots`` are free already."""

    request: SlotRequest
    slots: int
    #: When it starts, at the latest, in seconds since 1970; None: nobody knows.
    starts_at: float | None = None


Cause = Union[DoesNotFit, Capped, BeyondLimit, BeyondShare, Behind, Releasing, MakingRoom]


@dataclass(frozen=True, slots=True)
class _Wording:
    """Of one request, and of its twins."""

    text: str
    #: Whether it waits for room, ahead of others; and whether it is said who is ahead of it.
    for_room: bool = False
    tells_ahead: bool = False


class _Line:
    """How many wait for room ahead of the request that was reached, in the order of the queue. Mutable; one writer owns
    it."""

    def __init__(self) -> None:
        self.more_urgent = 0
        #: Of its priority; and of these, of earlier turns.
        self.same = 0
        self.earlier_turns = 0
        self._priority = 0
        self._turn = 0
        #: Of the request that was reached: why it waits, and what is said of it. With the same cause, the same object,
        #: its twins wait.
        self.cause: Cause | None = None
        self.wording = _Wording("")
        #: Who is ahead of it, for people: the more urgent ones, and which those of its priority are.
        self.ahead = ("", "")

    def reach(self, job: PoolJob, priority: int) -> None:
        """Go on to a request of ``job``."""
        if priority != self._priority:
            self.more_urgent += self.same
            self._priority, self.same, self.earlier_turns = priority, 0, 0
        elif job.turn != self._turn:
            self.earlier_turns = self.same
        self._turn = job.turn


class ReasonWriter:
    """Writes the reasons of one plan; asks in the order of the queue, since it counts who was ahead.

    Without ``in_turns`` nobody is: the policy shares.
    """

    def __init__(
        self, snapshot: PoolSnapshot, now: FreeSlots, reserved: Reserved | None = None, *, in_turns: bool = True
    ) -> None:
        self._in_turns = in_turns
        self._snapshot = snapshot
        self._now = now
        self._reserved = reserved
        #: Of those with slots, and of those without.
        self._lines = {True: _Line(), False: _Line()}
        self._obstacles: dict[tuple[_Kind, frozenset[AgentId], int | None], str | None] = {}
        agents = snapshot.agents
        #: Without agents that take no work; and as if every agent took some, made when it is first needed.
        self._present = replace(snapshot, agents=tuple(agent for agent in agents if agent.state is AgentState.ENABLED))
        self._opened: PoolSnapshot | None = None
        self._closed_agents: str | None = None
        self._supplies: dict[tuple[bool, Constraints | None], str] = {}

    def of(self, request: SlotRequest, cause: Cause) -> str:
        """The reason of one waiting request. Those with the same cause, the same object, are twins, one behind the
        other."""
        line = self._lines[request.slots > 0]
        if cause is not line.cause:
            if self._in_turns:
                job = self._snapshot.jobs[request.job_id]
                line.reach(job, job.priority if request.priority is None else request.priority)
            line.cause, line.wording = cause, self._wording(request, cause)
            line.ahead = _who_is_ahead(request, line)
        wording = line.wording
        ahead = _ahead(line) if wording.tells_ahead else ""
        line.same += wording.for_room
        return wording.text + ahead

    def of_twins(self, those: Sequence[SlotRequest], cause: Cause) -> list[str]:
        """Those of twins, one behind the other, of one cause."""
        written = [self.of(request, cause) for request in those[:_FEW]]
        left = len(those) - len(written)
        if left > 0:
            line = self._lines[those[0].slots > 0]
            wording, (more, which) = line.wording, line.ahead
            if wording.tells_ahead:
                before, after = f"{wording.text}; {more}{' and ' if more else ''}", f" requests {which} are ahead"
                written += [f"{before}{count}{after}" for count in range(line.same, line.same + left)]
            else:
                written += [wording.text] * left
            line.same += left * wording.for_room
        return written

    def _wording(self, request: SlotRequest, cause: Cause) -> _Wording:
        """All but who is ahead of it."""
        what = counted(request.slots, "free slot") if request.slots else "a free place for a task without slots"
        pool = self._snapshot.pool
        match cause:
            case Releasing():
                return _Wording(f"waits for {what} in pool {pool}: they are being released", for_room=True)
            case MakingRoom(leaving):
                return _Wording(
                    f"waits for {what} in pool {pool}: {counted(leaving, 'running request')} of less urgency "
                    f"{'was' if leaving == 1 else 'were'} asked to save and leave",
                    for_room=True,
                )
            case Capped(held, cap) if request.slots <= cap:
                return _Wording(
                    f"waits for its own job: max_slots is {cap}, of which {held} in use or promised, "
                    f"and this needs {request.slots}"
                )
        # What cannot start even alone says so, whoever stands before it.
        obstacle = self._obstacle(request)
        if obstacle is not None:
            return _Wording(obstacle)
        if isinstance(cause, BeyondLimit):
            return _Wording(_beyond_limit(request, cause.limit, cause.held))
        # Only what waits for room is ahead of others.
        match cause:
            case Behind(blocker):
                return _Wording(self._behind(blocker), for_room=True)
            case BeyondShare(share, held, capacity):
                return _Wording(
                    f"waits for its job's share of pool {pool}: that is {share} of {counted(capacity, 'slot')} now, of "
                    f"which {held} in use or promised, and this needs {request.slots}",
                    for_room=True,
                )
        return _Wording(self._no_room(request, what), for_room=True, tells_ahead=self._in_turns)

    def _no_room(self, request: SlotRequest, what: str) -> str:
        limits = ""
        if request.slots > 1 and request.single_node:
            limits = "; it must run on one agent"
        if request.blocked_agents:
            limits += f"; {counted(len(request.blocked_agents), 'agent')} excluded for it"
        limits += self._kept(request)
        return f"waits for {what} in pool {self._snapshot.pool}: {self._supply(request)}{limits}"

    def _supply(self, request: SlotRequest) -> str:
        """What there is of what it needs; made once for all that need the like."""
        kind = request.slots > 0, request.constraints
        if kind not in self._supplies:
            now = self._now.narrowed(request.constraints)
            that = "that meets" if len(now.agents) == 1 else "that meet"
            meeting = f" {that} its constraints ({described(request.constraints)})" if request.constraints else ""
            self._supplies[kind] = (
                _slots_there_are(now, meeting) if request.slots else _places_there_are(now, meeting)
            ) + self._closed()
        return self._supplies[kind]

    def _kept(self, request: SlotRequest) -> str:
        """What is kept of the slots that are free, and for whom."""
        kept = self._reserved
        if kept is None or request.slots == 0:
            return ""
        own = request.allocation_id == kept.request.allocation_id
        by = "" if kept.starts_at is None else f" by {_moment(kept.starts_at)} at the latest"
        more = "unless work that is ahead of it asks for more"
        starts = f"; by the time limits of what runs it starts{by}, {more}" if own and by else ""
        if not kept.slots:
            return starts
        are = f"{counted(kept.slots, 'free slot')} {'is' if kept.slots == 1 else 'are'} kept for"
        if own:
            return f"; {are} it{starts}"
        others = f" and starts{by}: what is gone by then may use them (resources.time_limit)" if by else ""
        return f"; {are} {kept.request.allocation_id}, which needs {kept.request.slots}{others}"

    def _obstacle(self, request: SlotRequest) -> str | None:
        """Why it could not run even alone; found once for all requests of a kind."""
        cap = self._snapshot.jobs[request.job_id].max_slots
        kind = (request.kind, request.blocked_agents, cap)
        if kind not in self._obstacles:
            self._obstacles[kind] = self._find_obstacle(request, cap)
        return self._obstacles[kind]

    def _find_obstacle(self, request: SlotRequest, cap: int | None) -> str | None:
        slots, blocked = request.slots, request.blocked_agents

        def in_pool(pool: PoolSnapshot, blocked: frozenset[AgentId] = frozenset()) -> str | None:
            return can_never_fit(
                slots,
                pool,
                single_node=request.single_node,
                blocked_agents=blocked,
                max_slots=cap,
                constraints=request.constraints,
            )

        # What fits on fewer agents fits on more: most kinds need no other look, and there may be thousands of them.
        if in_pool(self._present, blocked) is None:
            return None
        if self._opened is None:
            agents = (replace(agent, state=AgentState.ENABLED) for agent in self._snapshot.agents)
            self._opened = replace(self._snapshot, agents=tuple(agents))
        beyond = in_pool(self._opened)
        if beyond is not None and (self._snapshot.agents or (cap is not None and slots > cap)):
            return f"{_NEVER}{beyond}"
        never = in_pool(self._snapshot, blocked)
        if never is not None:
            return f"{_SOMEBODY}{never}"
        need = counted(slots, "slot") if slots else "a place for a task without slots"
        return (
            f"{_SOMEBODY}pool {self._snapshot.pool} has {need} for it only with agents that take no work"
            f"{self._closed()}: enable them (tenax agent enable AGENT), or start them again"
        )

    def _behind(self, blocker: SlotRequest) -> str:
        need = counted(blocker.slots, "slot") if blocker.slots else "a place"
        rank = blocker.standing or f"priority {self._snapshot.jobs[blocker.job_id].priority}"
        why = "it cannot be preempted" if self._snapshot.rules.preemption else "this pool does not preempt"
        return (
            f"waits behind {blocker.allocation_id} ({rank}, needs {need}), which does not fit yet: less "
            f"urgent requests do not start before it, since {why}"
        )

    def _closed(self) -> str:
        """The agents that take no work, for people; counted once."""
        if self._closed_agents is None:
            self._closed_agents = self._count_closed()
        return self._closed_agents

    def _count_closed(self) -> str:
        names = {AgentState.AWAY: "not connected", AgentState.DRAINING: "draining", AgentState.DISABLED: "disabled"}
        counts = {state: sum(1 for agent in self._snapshot.agents if agent.state is state) for state in names}
        parts = [f"{count} {names[state]}" for state, count in counts.items() if count]
        return f" ({', '.join(parts)})" if parts else ""


def _who_is_ahead(request: SlotRequest, line: _Line) -> tuple[str, str]:
    """The more urgent ones, and which those of its priority are."""
    more = ""
    if line.more_urgent:
        what = "of higher priority, or that held less so far" if request.standing else "of higher priority"
        more = f"{counted(line.more_urgent, 'request')} {what}"
    turns = f" ({line.earlier_turns} by the turns that quotas give)" if line.earlier_turns else ""
    what = "of the same priority that held about as much" if request.standing else "of the same priority"
    return more, f"{what}{turns}"


def _ahead(line: _Line) -> str:
    """Who waits for room ahead of the request that was reached."""
    count = line.more_urgent + line.same
    if not count:
        return ""
    more, which = line.ahead
    same = f"{counted(line.same, 'request')} {which}" if line.same else ""
    return f"; {more}{' and ' if more and same else ''}{same} {'is' if count == 1 else 'are'} ahead"


def _slots_there_are(now: FreeSlots, meeting: str) -> str:
    free = [len(now.free_slots(agent)) for agent in now.agents]
    total = sum(len(agent.slots) for agent in now.agents.values())
    return (
        f"{total - sum(free)} in use or promised, {sum(free)} free on {counted(len(free), 'agent')}{meeting}, "
        f"largest free block {max(free, default=0)}"
    )


def _places_there_are(now: FreeSlots, meeting: str) -> str:
    places = [agent.aux_places for agent in now.agents.values()]
    return f"all {sum(places)} on {counted(len(places), 'agent')}{meeting} are taken"


#: How the reason of what leaves for another begins.
_MAKES_ROOM = "makes room for "


def why_preempted(snapshot: PoolSnapshot, victim: SlotRequest, request: SlotRequest) -> str:
    """The reason for a request that is asked to leave for another."""
    mine, theirs = snapshot.jobs[victim.job_id], snapshot.jobs[request.job_id]
    need = counted(request.slots, "slot") if request.slots else "a place"
    rank = "earlier in the queue"
    if request.standing:
        rank = f"ahead of it ({request.standing}; this one: {victim.standing})"
    elif theirs.priority < mine.priority:
        rank = f"of priority {theirs.priority}, ahead of this one's {mine.priority}"
    return f"{_MAKES_ROOM}{request.allocation_id}, which is {rank} and needs {need}"


def is_for_another(reason: str) -> bool:
    """Whether something was asked to leave so that another one has its place."""
    return reason.startswith(_MAKES_ROOM)


def why_taken_back(snapshot: PoolSnapshot, share: int, held: int, capacity: int) -> str:
    """The reason for a request that is asked to leave because its job holds more than its share."""
    slots = counted(capacity, "slot")
    return f"its job holds {held} of {slots} in pool {snapshot.pool}, and its share of them is {share} now"


def _beyond_limit(request: SlotRequest, limit: SlotLimit, held: int) -> str:
    if limit.closed:
        return f"{_NEVER}the quota of {limit.name} gives no slot hours"
    if limit.spent:
        return f"waits for the next month: by the quota of {limit.name}, {limit.spent}"
    needs = f"this needs {request.slots}"
    if limit.max_slots is not None and request.slots > limit.max_slots:
        return f"{_NEVER}the quota of {limit.name} is {counted(limit.max_slots, 'slot')}, and {needs}"
    slots = f"{counted(limit.max_slots or 0, 'slot')}, of which {held} in use or promised"
    return f"waits for the quota of {limit.name}: {slots}, and {needs}"


def _moment(at: float) -> str:
    """Up to the next full minute: to the same state belong the same words."""
    return datetime.fromtimestamp(math.ceil(at / 60) * 60, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
