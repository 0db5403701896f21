"""What the scheduler looks at and what it answers: one pool, as values.

Rules:
- A snapshot is one pool at one instant: its rules, its agents, the jobs and the open requests of that pool.
- A slot is in use until its container is reported gone; that is the agent's word (``PoolAgent.in_use``), and covers
  what no open request holds any more. A placed request's ``members`` say which of those slots are its own.
- A plan is advice on that snapshot: what it places fits all at once; applied and planned again, it gives nothing new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from tenax.ids import AgentId, AllocationId, JobId, PoolName, SlotId
from tenax.scheduler.devices import DeviceKind, SlotDevice


class AgentState(str, Enum):
    """Whether an agent takes new work."""

    ENABLED = "ENABLED"
    #: What runs there may end; nothing new starts.
    DRAINING = "DRAINING"
    DISABLED = "DISABLED"
    #: Not connected.
    AWAY = "AWAY"


@dataclass(frozen=True, slots=True)
class PoolAgent:
    """One agent of the pool."""

    id: AgentId
    #: Its devices, those disabled or missing left out.
    slots: tuple[SlotId, ...]
    #: Slots that a container holds, or that are not known to be free again.
    in_use: frozenset[SlotId] = frozenset()
    #: Places for requests of zero slots.
    aux_places: int = 100
    aux_in_use: int = 0
    state: AgentState = AgentState.ENABLED
    kind: DeviceKind = DeviceKind.CPU
    #: What its operator says of it.
    labels: Mapping[str, str] = field(default_factory=dict)
    #: What its slots are, as far as it says.
    devices: Mapping[SlotId, SlotDevice] = field(default_factory=dict)
    #: Of a machine that was rented, and is ended when nothing needs it.
    rented: bool = False


#: Labels of one agent.
MAX_LABELS = 64
#: Among `Constraints.same`: all slots are devices of one name.
DEVICE_NAME = "device_name"


@dataclass(frozen=True, slots=True)
class Constraints:
    """What the machines of a request must be; see `tenax.scheduler.constraints`."""

    #: Each with the values that will do.
    labels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    #: Any of them will do.
    device_name: tuple[str, ...] = ()
    #: Bytes of each device, at least.
    device_memory: int | None = None
    #: Labels, or `DEVICE_NAME`, that are alike for all of its slots.
    same: tuple[str, ...] = ()
    #: The whole name of each device: what `DEVICE_NAME` among ``same`` comes to on one machine after the other.
    of_model: str | None = None
    #: No slot that could serve one who asks for these: it is kept for them.
    beside: tuple[Constraints, ...] = ()

    def of_each(self) -> Constraints:
        """What each machine must be by itself."""
        return replace(self, same=()) if self.same else self

    def of_one(self) -> Constraints:
        """What is asked where one machine has all: its labels are alike, its devices need not be."""
        return replace(self, same=(DEVICE_NAME,) if DEVICE_NAME in self.same else ())


#: Of jobs that name none, in pools that name none.
DEFAULT_PRIORITY = 42


@dataclass(frozen=True, slots=True)
class PoolJob:
    """A line of the queue: what its requests have in common."""

    id: JobId
    #: 1 (most urgent) .. 99.
    priority: int = DEFAULT_PRIORITY
    #: Order inside a priority: lower first (microseconds of the submission, unless moved).
    queue_position: float = 0.0
    #: Most slots that all its requests together may hold; None: no cap.
    max_slots: int | None = None
    #: Share under policies that share.
    weight: float = 1.0
    #: Its owner's place by quotas, between the priority and the queue position; all alike without quotas.
    turn: int = 0
    #: Names of the limits that it shares with other jobs.
    limits: tuple[str, ...] = ()
    #: The most urgent priority that quotas allow to it.
    most_urgent: int = 1
    #: It will ask for more when something of it has ended: a search that has not made all of its trials.
    asks_more: bool = False
    #: Slot seconds that it has held so far; for policies that ask for it.
    attained: float = 0.0


@dataclass(frozen=True, slots=True)
class SlotLimit:
    """What the jobs that name it may hold together, in all pools."""

    #: For people: whose it is.
    name: str
    max_slots: int | None = None
    #: Held in other pools.
    elsewhere: int = 0
    #: Why nothing of it may start now; empty: it may.
    spent: str = ""
    #: Nothing of it may ever start.
    closed: bool = False


class Phase(str, Enum):
    """Where a request stands."""

    PENDING = "PENDING"
    PLACED = "PLACED"
    #: Asked to leave, or ending: its slots will come free without further ado.
    RELEASING = "RELEASING"


@dataclass(frozen=True, slots=True)
class PlacedMember:
    """The part of an allocation on one agent; without slots it takes one auxiliary place."""

    agent_id: AgentId
    slots: tuple[SlotId, ...] = ()


@dataclass(frozen=True, slots=True)
class SlotRequest:
    """An open allocation: it asks for slots, or holds them."""

    allocation_id: AllocationId
    job_id: JobId
    #: All or none; 0 asks for an auxiliary place.
    slots: int
    #: Orders requests of one job: earlier first. Any unit, the same for all.
    requested_at: float = 0.0
    preemptible: bool = True
    single_node: bool = False
    blocked_agents: frozenset[AgentId] = frozenset()
    #: What its machines must be; None: nothing in particular.
    constraints: Constraints | None = None
    #: Seconds that it may hold what it gets; None: as long as it takes.
    time_limit: float | None = None
    phase: Phase = Phase.PENDING
    #: Where it is, rank by rank; empty while it is PENDING.
    members: tuple[PlacedMember, ...] = ()
    #: Names of the limits that what it holds counts for; None: those of its job. A job may have been filed elsewhere
    #: since it started.
    charged: tuple[str, ...] | None = None
    #: When what it holds comes free at the latest, in seconds as ``PoolSnapshot.at``; None: nobody knows.
    ends_at: float | None = None
    #: It has had its time: it stands behind all of its priority that had asked by then.
    again: bool = False
    #: The attempt of its task before this one was asked to leave for another.
    left_before: bool = False
    #: Its task has run before.
    has_run: bool = False
    #: Where a policy gives it another than that of its job: that, and how it stands, for people.
    priority: int | None = None
    standing: str = ""
    #: Seconds that it waited before it was placed; 0 while it is PENDING.
    waited: float = 0.0

    @property
    def kind(self) -> tuple[int, bool, Constraints | None]:
        """Requests of one kind fit in the same places, but for agents that are blocked."""
        return self.slots, self.single_node, self.constraints


class Fitting(str, Enum):
    """Which of the agents that fit is taken."""

    #: The one left with the fewest free slots: keeps whole machines free for big jobs.
    BEST = "best"
    #: The one left with the most free slots: spreads load.
    WORST = "worst"


@dataclass(frozen=True, slots=True)
class PoolRules:
    """How one pool is scheduled."""

    #: The name of the rule by which requests compete; empty: the usual one.
    policy: str = ""
    #: Whether running requests may be asked to leave for more urgent ones.
    preemption: bool = False
    fitting: Fitting = Fitting.BEST
    #: Whether a gang may have members of unequal size, and share agents with others.
    uneven_gangs: bool = True
    #: Whether places are kept for the first request that does not fit, so that those behind it cannot put it off for
    #: ever; by priority with preemption nobody's are: it takes them back.
    reservation: bool = False


@dataclass(frozen=True, slots=True)
class PoolSnapshot:
    """One pool at one instant. Every request's job is in ``jobs``."""

    pool: PoolName
    agents: tuple[PoolAgent, ...]
    jobs: Mapping[JobId, PoolJob]
    requests: tuple[SlotRequest, ...]
    rules: PoolRules = field(default_factory=PoolRules)
    #: Each that a job names is there.
    limits: Mapping[str, SlotLimit] = field(default_factory=dict)
    #: The instant, in seconds since 1970.
    at: float = 0.0
    #: Agents of machines that could be rented beside those that there are. No plan uses them; they count where it is
    #: asked what could ever run.
    prospects: tuple[PoolAgent, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """What to do now, and why the rest waits."""

    #: Start these; members in order of rank, the chief first. In the order they were decided.
    placements: Mapping[AllocationId, tuple[PlacedMember, ...]] = field(default_factory=dict)
    #: Ask these to save and leave; the reason is for people.
    preempt: Mapping[AllocationId, str] = field(default_factory=dict)
    #: Every other pending request, with its reason for people.
    waiting: Mapping[AllocationId, str] = field(default_factory=dict)
    #: Of those: whose slots are being released already.
    awaited: frozenset[AllocationId] = frozenset()
    #: These, and those for whom others are asked to leave, or places are reserved.
    promised: frozenset[AllocationId] = frozenset()
    #: Those that wait for no room: for their job's cap, or a limit.
    held_back: frozenset[AllocationId] = frozenset()
    #: When those for which places are reserved start, at the latest, where time limits say so; as `PoolSnapshot.at`.
    starts_by: Mapping[AllocationId, float] = field(default_factory=dict)


def applied(snapshot: PoolSnapshot, plan: PoolPlan) -> PoolSnapshot:
    """The pool once a plan was carried out: what it places runs, what it asks to leave is being released."""
    taken: dict[AgentId, set[SlotId]] = {}
    auxiliary: Counter[AgentId] = Counter()
    requests = []
    for request in snapshot.requests:
        if request.allocation_id in plan.preempt:
            request = replace(request, phase=Phase.RELEASING)
        elif request.allocation_id in plan.placements:
            ends_at = None if request.time_limit is None else snapshot.at + request.time_limit
            members = plan.placements[request.allocation_id]
            waited = snapshot.at - request.requested_at
            request = replace(request, phase=Phase.PLACED, members=members, ends_at=ends_at, waited=waited)
            for member in request.members:
                taken.setdefault(member.agent_id, set()).update(member.slots)
                auxiliary[member.agent_id] += not member.slots
        requests.append(request)
    agents = (
        replace(agent, in_use=agent.in_use | taken[agent.id], aux_in_use=agent.aux_in_use + auxiliary[agent.id])
        if agent.id in taken
        else agent
        for agent in snapshot.agents
    )
    return replace(snapshot, agents=tuple(agents), requests=tuple(requests))


def place_of(snapshot: PoolSnapshot, request: SlotRequest) -> float:
    """Its order inside a priority and a turn: that of its job, or behind it, where its time was over."""
    place = snapshot.jobs[request.job_id].queue_position
    return max(place, request.requested_at * 1e6) if request.again else place
