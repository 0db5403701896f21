"""Messages about rented machines."""

from __future__ import annotations

from tenax.wire.message import Message, Timestamp


class RentedMachineView(Message):
    """A machine, from before it is asked for until nothing is left of it, and after."""

    #: Also that of its agent.
    id: str
    resource_pool: str
    #: PLANNED, ASKED, STARTING, JOINED, LEAVING, ENDING; GONE, FAILED.
    state: str
    provider: str
    region: str
    zone: str
    instance_type: str
    #: By which it was rented: ``g5.12xlarge in us-west-2``.
    offer: str
    #: What it costs per hour, as it was when it was ordered; none: nobody knows.
    price: float | None = None
    #: From where that is known: WRITTEN, ASKED, LISTED; empty: there is none, or nobody noted it.
    price_source: str = ""
    #: When it was asked, or the day of the list; none: it was written.
    priced_at: Timestamp | None = None
    #: The call that was asked, or the page of the list.
    price_where: str = ""
    #: For how long it has been paid for, and what that comes to by its price alone.
    hours: float | None = None
    cost: float | None = None
    slots: int
    #: What the provider calls it; empty: nobody knows yet.
    provider_id: str
    #: Requests that it was rented for.
    wanted_by: list[str]
    #: Why it is as it is.
    story: str
    planned_at: Timestamp
    joined_at: Timestamp | None = None
    changed_at: Timestamp
    ended_at: Timestamp | None = None
    #: How often the provider was asked for it, and to end it.
    sent: int
    end_sent: int
    #: What its cloud says of it, and when it ends for that.
    notice: str = ""
    notice_until: Timestamp | None = None


class GetMachinesResponse(Message):
    """The oldest first."""

    machines: list[RentedMachineView]


class AuditedMachineView(Message):
    """What carries the mark of this cluster at a provider, or a row of which the provider lists nothing."""

    provider: str
    region: str
    zone: str = ""
    provider_id: str
    instance_type: str = ""
    #: As it is marked.
    resource_pool: str = ""
    #: What the provider says: RUNNING, ENDED, or MISSING of what it does not list.
    sighting: str
    #: Of its row, or as it is marked; empty: neither.
    machine_id: str = ""
    #: Of its row; empty: it has none.
    state: str = ""
    #: It runs, and belongs to no row.
    stray: bool
    #: Why its row is as it is, or why there is none.
    why: str


class UnansweredPlace(Message):
    """Of this place nobody knows what there is."""

    provider: str
    region: str
    reason: str


class MachinePartView(Message):
    """What a provider has beside machines that carries the mark of this cluster."""

    provider: str
    region: str
    zone: str = ""
    #: DISK, ADDRESS, SPOT_REQUEST or OPERATION.
    kind: str
    provider_id: str
    #: For people: its size, its address, or what is done.
    detail: str = ""
    #: The provider's name of the machine that has it; empty: none has.
    holder: str = ""
    #: As it is marked; empty: it is not.
    machine_id: str = ""
    #: Of the row of that machine; empty: there is none.
    state: str = ""
    #: No machine has it, nor will.
    stray: bool
    why: str


class GetMachineAuditResponse(Message):
    """What has no row comes first, and what was left."""

    machines: list[AuditedMachineView]
    parts: list[MachinePartView]
    unanswered: list[UnansweredPlace]


class StrayMachine(Message):
    """A machine without a row, by its provider's name for it."""

    provider: str
    region: str
    provider_id: str


class EndStraysRequest(Message):
    """Those that are to end."""

    machines: list[StrayMachine]


class EndStraysResponse(Message):
    """The rows by which they are ended."""

    machines: list[RentedMachineView]


class NamedPart(Message):
    """What was left of a machine, by its provider's name for it."""

    provider: str
    region: str
    #: DISK or SPOT_REQUEST.
    kind: str
    provider_id: str


class DeleteMachinePartsRequest(Message):
    """Those that are to be deleted."""

    parts: list[NamedPart]


class DeletedPartView(NamedPart):
    """What has become of one."""

    #: Why it is there still; empty: the provider deletes it, or there is none any more.
    failure: str = ""


class DeleteMachinePartsResponse(Message):
    """In the order in which they were named."""

    parts: list[DeletedPartView]


class LaunchMachinesRequest(Message):
    """So many machines more, for a pool."""

    resource_pool: str
    count: int = 1
    #: Of this offer (``g5.12xlarge in us-west-2``); empty: of the first that may be used.
    offer: str = ""


class LaunchMachinesResponse(Message):
    """Those that are rented."""

    machines: list[RentedMachineView]


class EndMachinesRequest(Message):
    """Which machines are to end."""

    machine_ids: list[str]
    #: What runs there ends at once; else it is asked to save and leave, as at a preemption.
    now: bool = False


class EndMachinesResponse(Message):
    """As they are now, in the order in which they were named."""

    machines: list[RentedMachineView]


class GetMachineResponse(Message):
    """One machine."""

    machine: RentedMachineView


class MachineStepView(Message):
    """What a machine has said of its start."""

    #: What it does: ``install torch``.
    step: str
    #: ``begun``, ``done``, ``failed``.
    state: str
    #: Why it failed.
    note: str
    said_at: Timestamp


class GetMachineStepsResponse(Message):
    """In the order in which it was said."""

    steps: list[MachineStepView]


class MachineCostView(Message):
    """What belongs to one of those by which costs are divided."""

    #: Of a user, a workspace, a pool...; ``workspace/project``; a day as ``2026-11-21``; empty: it has none.
    name: str = ""
    #: It is nobody's: machines that start and end, and slots that stand free.
    idle: bool = False
    #: Of whole machines: two of four slots for an hour are half of one.
    hours: float
    #: By the prices of settings, in cents; none: nothing of it has a price.
    cost: float | None = None
    #: Of the hours, those of machines without a price.
    unpriced_hours: float = 0.0


class GetMachineCostResponse(Message):
    """The dearest first, what is idle last; days in their order."""

    since: Timestamp
    until: Timestamp
    costs: list[MachineCostView]
    #: Rounded to cents, the sum of all.
    total: MachineCostView


class PlannedMachineStep(Message):
    """What would become of a machine, and why."""

    machine_id: str
    reason: str


class MachineWait(Message):
    """A request that waits, with what machines have to do with it."""

    allocation_id: str
    job_id: str
    slots: int
    reason: str


class OfferPlan(Message):
    """What would be rented of one offer, and why, or why it is not used."""

    offer: str
    slots: int
    #: Of one machine per hour; none: nobody knows.
    price: float | None = None
    #: As of a machine.
    price_source: str = ""
    priced_at: Timestamp | None = None
    price_where: str = ""
    launch: int
    reason: str


class MachineBudgetView(Message):
    """What may be spent on machines this month, and what is."""

    #: Empty: it is of all pools.
    resource_pool: str = ""
    per_month: float
    #: Whether machines that are there are let go once it is spent.
    stops: bool
    spent: float
    #: Hours of machines without a price: they are not counted.
    unpriced_hours: float
    #: WITHIN, NEARLY, USED_UP.
    stage: str
    #: Of one that is nearly spent, or is.
    warning: str = ""
    #: When it is whole again.
    until: Timestamp


class MachineTrouble(Message):
    """What stands in the way of machines at their provider."""

    machine_ids: list[str]
    reason: str


class PoolMachinePlan(Message):
    """What would be done now for one pool."""

    resource_pool: str
    #: It is only said: people rent and end machines (``scaling: advise``).
    advises: bool = False
    #: What is rented, of several the first: ``g5.12xlarge in us-west-2``.
    offer: str
    slots_per_machine: int
    #: All, in their order.
    offers: list[OfferPlan]
    min_instances: int
    max_instances: int
    max_cost_per_hour: float | None = None
    #: That hold for this pool.
    budgets: list[MachineBudgetView] = []
    #: Machines that are not gone, those on their way among them.
    machines: int
    #: So many would be rented.
    launch: int
    end: list[PlannedMachineStep] = []
    #: These would take nothing new, and be ended once they are idle.
    drain: list[PlannedMachineStep] = []
    #: Of machines that are not gone.
    troubles: list[MachineTrouble] = []
    waiting: list[MachineWait] = []


class GetMachinePlanResponse(Message):
    """Of each pool for which machines are rented."""

    plans: list[PoolMachinePlan]


class PlanSubmissionRequest(Message):
    """What is not submitted yet."""

    #: YAML text, as typed.
    config: str
    #: It is that of a command; else of an experiment.
    is_command: bool = False
    #: Of an experiment.
    project_id: int | None = None
    #: Of a command; 0: the usual one.
    workspace_id: int = 0
    template: str | None = None


class PlannedRequest(Message):
    """One of those that it would ask for in the beginning: a trial, or the command."""

    name: str
    slots: int
    #: It starts on what is there.
    starts: bool
    #: Of which offer a machine would be rented for it; empty: of none.
    offer: str = ""
    #: Why it does not start yet.
    reason: str = ""


class SubmissionOffer(OfferPlan):
    """What would be rented of one offer with it."""

    #: So many more than without it.
    more: int


class PlanSubmissionResponse(Message):
    """What would be rented now, were it submitted."""

    resource_pool: str
    requests: list[PlannedRequest]
    offers: list[SubmissionOffer]
    #: Of the machines that would be rented more; none: one of them has no price.
    cost_per_hour: float | None = None
    #: As beside a submission.
    notices: list[str] = []


class FindingView(Message):
    """What is not at a provider as the settings of a pool have it."""

    resource_pool: str
    #: Where it is written, below ``provider`` of the pool: ``offers[1].instance_type``; empty: all of it.
    path: str
    problem: str
    #: What to write, or to do, instead.
    instead: str


class CheckMachinesResponse(Message):
    """Pool by pool; none: nothing was found."""

    findings: list[FindingView]
    #: Those that were looked at.
    resource_pools: list[str]
