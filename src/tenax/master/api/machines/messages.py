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
    #: What it costs per hour; none: nobody knows.
    price: float | None = None
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
    #: Of one machine per hour.
    price: float | None = None
    launch: int
    reason: str


class PoolMachinePlan(Message):
    """What would be done now for one pool."""

    resource_pool: str
    #: What is rented, of several the first: ``g5.12xlarge in us-west-2``.
    offer: str
    slots_per_machine: int
    #: All, in their order.
    offers: list[OfferPlan]
    min_instances: int
    max_instances: int
    max_cost_per_hour: float | None = None
    #: Machines that are not gone, those on their way among them.
    machines: int
    #: So many would be rented.
    launch: int
    end: list[PlannedMachineStep] = []
    #: These would take nothing new, and be ended once they are idle.
    drain: list[PlannedMachineStep] = []
    waiting: list[MachineWait] = []


class GetMachinePlanResponse(Message):
    """Of each pool for which machines are rented."""

    plans: list[PoolMachinePlan]
