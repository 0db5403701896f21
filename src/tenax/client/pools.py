"""Resource pools as values, which workspaces they are kept for, and the machines that are rented for them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import List, Optional, Sequence

from tenax.client.connection import reading
from tenax.client.connection.reading import Answer, made, part
from tenax.client.connection.session import Session, at
from tenax.jsonvalue import Json, JsonObject

#: In one request: each is a call to its provider.
_PARTS_AT_ONCE = 10
_BINDINGS = "/api/v1/resource-pools/{}/workspace-bindings"


@dataclass(frozen=True)
class Pool(Answer):
    """A named set of agents."""

    name: str = part(reading.text, "name")
    description: str = part(reading.text, "description")
    agents: int = part(reading.integer, "numAgents")
    slots: int = part(reading.integer, "slotsAvailable")
    slots_used: int = part(reading.integer, "slotsUsed")
    #: ``cpu``, ``cuda``, ``rocm``; empty where they differ, or there is none.
    slot_kind: str = made(lambda value: _slot_kind(value))
    accelerator: str = part(reading.text, "accelerator")
    queued_jobs: int = part(reading.integer, "stats", "queuedCount")
    scheduled_jobs: int = part(reading.integer, "stats", "scheduledCount")
    default_compute: bool = part(reading.flag, "defaultComputePool")
    default_aux: bool = part(reading.flag, "defaultAuxPool")
    #: ``priority``, ``fair_share``, ``least_attained``.
    scheduler: str = made(lambda value: reading.text(value, "policy") or _policy(value))
    preemption: bool = part(reading.flag, "details", "priorityScheduler", "preemption")
    default_priority: int = part(reading.integer, "details", "priorityScheduler", "defaultPriority")
    #: It is kept for some workspaces.
    bound: bool = part(reading.flag, "bound")


def list_pools(session: Session) -> List[Pool]:
    """All pools, by name."""
    return [Pool.read(value) for value in reading.records(session.get("/api/v1/resource-pools"), "resourcePools")]


def bound_workspaces(session: Session, pool: str) -> List[int]:
    """Numbers of the workspaces that a pool is kept for; none: it is for all. Raises NotFound."""
    numbers = session.get(at(_BINDINGS, pool)).get("workspaceIds")
    return [int(number) for number in numbers if isinstance(number, (int, str))] if isinstance(numbers, list) else []


def bind_pool(session: Session, pool: str, workspaces: Sequence[str]) -> None:
    """Keep a pool for these workspaces (by name), beside those that it is kept for already."""
    session.post(at(_BINDINGS, pool), {"workspaceNames": list(workspaces)})


def unbind_pool(session: Session, pool: str, workspaces: Sequence[str]) -> None:
    """Keep a pool for these workspaces no longer."""
    session.call("DELETE", at(_BINDINGS, pool), body={"workspaceNames": list(workspaces)})


def rebind_pool(session: Session, pool: str, workspaces: Sequence[str]) -> None:
    """Keep a pool for these workspaces and no others; none: it is for all again."""
    session.call("PUT", at(_BINDINGS, pool), body={"workspaceNames": list(workspaces)})


@dataclass(frozen=True)
class Priced(Answer):
    """What costs something per hour, and from where that is known."""

    #: Of one machine per hour, of one that is there as it was when it was ordered; None: nobody knows.
    price: Optional[float] = made(lambda value: reading.real(value.get("price")))
    #: ``WRITTEN`` (by the operator), ``ASKED`` (of the provider), ``LISTED``; empty: nobody noted it.
    price_source: str = part(reading.text, "priceSource")
    #: When it was asked, or the day of the list; None: it was written.
    priced_at: Optional[datetime] = part(reading.moment, "pricedAt")
    #: The call that was asked, or the page of the list.
    price_where: str = part(reading.text, "priceWhere")

    @property
    def price_origin(self) -> str:
        """From where it is, and of when, in words; empty: nobody noted it."""
        at = self.priced_at
        if self.price_source == "WRITTEN":
            return "written in the settings"
        if self.price_source == "ASKED":
            return f"asked at {at:%Y-%m-%d %H:%M} UTC ({self.price_where})" if at is not None else ""
        return f"list price of {at:%Y-%m-%d}, {self.price_where}" if self.price_source and at is not None else ""


@dataclass(frozen=True)
class MachineInfo(Priced):
    """A machine, from before it is asked for until nothing is left of it, and after."""

    #: Also that of its agent.
    id: str = part(reading.text, "id")
    pool: str = part(reading.text, "resourcePool")
    #: ``PLANNED``, ``ASKED``, ``STARTING``, ``JOINED``, ``LEAVING``, ``ENDING``; ``GONE``, ``FAILED``.
    state: str = part(reading.text, "state")
    provider: str = part(reading.text, "provider")
    region: str = part(reading.text, "region")
    zone: str = part(reading.text, "zone")
    instance_type: str = part(reading.text, "instanceType")
    #: By which it was rented: ``g5.12xlarge in us-west-2``; empty: before there were several.
    offer: str = part(reading.text, "offer")
    #: For how long it has been paid for, and what that comes to by its price alone; None: nobody knows.
    hours: Optional[float] = made(lambda value: reading.real(value.get("hours")))
    cost: Optional[float] = made(lambda value: reading.real(value.get("cost")))
    slots: int = part(reading.integer, "slots")
    #: What the provider calls it; empty: nobody knows yet.
    provider_id: str = part(reading.text, "providerId")
    #: Requests that it was rented for.
    wanted_by: List[str] = part(reading.texts, "wantedBy")
    #: Why it is as it is.
    story: str = part(reading.text, "story")
    planned: Optional[datetime] = part(reading.moment, "plannedAt")
    joined: Optional[datetime] = part(reading.moment, "joinedAt")
    ended: Optional[datetime] = part(reading.moment, "endedAt")
    #: What its cloud says of it, and when it ends for that.
    notice: str = part(reading.text, "notice")
    notice_until: Optional[datetime] = part(reading.moment, "noticeUntil")


@dataclass(frozen=True)
class MachineAtProvider(Answer):
    """What carries the cluster's mark at a provider, or a row of which the provider lists nothing."""

    provider: str = part(reading.text, "provider")
    region: str = part(reading.text, "region")
    zone: str = part(reading.text, "zone")
    provider_id: str = part(reading.text, "providerId")
    instance_type: str = part(reading.text, "instanceType")
    #: What the provider says: ``RUNNING``, ``ENDED``, or ``MISSING`` of what it does not list.
    sighting: str = part(reading.text, "sighting")
    #: Of its row, or as it is marked; empty: neither.
    machine_id: str = part(reading.text, "machineId")
    #: Of its row; empty: it has none.
    state: str = part(reading.text, "state")
    #: It runs, and belongs to no row.
    stray: bool = made(lambda value: value.get("stray") is True)
    #: Why its row is as it is, or why there is none.
    why: str = part(reading.text, "why")


@dataclass(frozen=True)
class MachinePartInfo(Answer):
    """What a provider has beside machines that carries the cluster's mark: a disk, an address, a spot request."""

    provider: str = part(reading.text, "provider")
    region: str = part(reading.text, "region")
    zone: str = part(reading.text, "zone")
    #: ``DISK``, ``ADDRESS``, ``SPOT_REQUEST``, or ``OPERATION`` of what is under way.
    kind: str = part(reading.text, "kind")
    provider_id: str = part(reading.text, "providerId")
    #: For people: its size, its address, or what is done.
    detail: str = part(reading.text, "detail")
    #: As it is marked; empty: it is not.
    machine_id: str = part(reading.text, "machineId")
    #: Of the row of that machine; empty: it has none.
    state: str = part(reading.text, "state")
    #: No machine has it, nor will.
    stray: bool = made(lambda value: value.get("stray") is True)
    why: str = part(reading.text, "why")


@dataclass(frozen=True)
class MachineAudit(Answer):
    """All that there is at the providers, what has no row first."""

    machines: List[MachineAtProvider] = made(
        lambda value: [MachineAtProvider.read(it) for it in reading.records(value, "machines")]
    )
    parts: List[MachinePartInfo] = made(
        lambda value: [MachinePartInfo.read(it) for it in reading.records(value, "parts")]
    )
    #: Places that did not answer, or not for all, each with why.
    unanswered: List[str] = made(
        lambda value: [
            f"{reading.text(it, 'provider')} {reading.text(it, 'region')}: {reading.text(it, 'reason')}"
            for it in reading.records(value, "unanswered")
        ]
    )


@dataclass(frozen=True)
class MachineFinding(Answer):
    """What is not at a provider as the settings of a pool have it."""

    pool: str = part(reading.text, "resourcePool")
    #: Where it is written, below ``provider`` of the pool; empty: all of it.
    path: str = part(reading.text, "path")
    problem: str = part(reading.text, "problem")
    #: What to write, or to do, instead.
    instead: str = part(reading.text, "instead")


@dataclass(frozen=True)
class MachineCheck(Answer):
    """What a look at the providers has shown."""

    findings: List[MachineFinding] = made(
        lambda value: [MachineFinding.read(it) for it in reading.records(value, "findings")]
    )
    #: Those that were looked at.
    pools: List[str] = part(reading.texts, "resourcePools")


@dataclass(frozen=True)
class MachineStepInfo(Answer):
    """What a machine has said of its start."""

    #: What it does: ``install torch``.
    step: str = part(reading.text, "step")
    #: ``begun``, ``done``, ``failed``.
    state: str = part(reading.text, "state")
    #: Why it failed.
    note: str = part(reading.text, "note")
    said_at: Optional[datetime] = part(reading.moment, "saidAt")


@dataclass(frozen=True)
class MachineCost(Answer):
    """What belongs to one user, workspace, project, experiment, pool or day."""

    #: Empty: it has none.
    name: str = part(reading.text, "name")
    #: It is nobody's: machines that start and end, and slots that stand free.
    idle: bool = part(reading.flag, "idle")
    #: Of whole machines: two of four slots for an hour are half of one.
    hours: float = made(lambda value: reading.real(value.get("hours")) or 0.0)
    #: None: nothing of it has a price.
    cost: Optional[float] = made(lambda value: reading.real(value.get("cost")))
    #: Of the hours, those of machines without a price.
    unpriced_hours: float = made(lambda value: reading.real(value.get("unpricedHours")) or 0.0)


@dataclass(frozen=True)
class MachineCosts(Answer):
    """What machines cost in a time."""

    since: Optional[datetime] = part(reading.moment, "since")
    until: Optional[datetime] = part(reading.moment, "until")
    #: The dearest first, what is idle last; days in their order.
    costs: List[MachineCost] = made(lambda value: [MachineCost.read(it) for it in reading.records(value, "costs")])
    total: MachineCost = made(lambda value: MachineCost.read(reading.record(value, "total")))


@dataclass(frozen=True)
class PlannedStep(Answer):
    """What would become of a machine, and why."""

    machine_id: str = part(reading.text, "machineId")
    reason: str = part(reading.text, "reason")


@dataclass(frozen=True)
class WaitingForMachine(Answer):
    """A request that waits."""

    allocation_id: str = part(reading.text, "allocationId")
    job_id: str = part(reading.text, "jobId")
    slots: int = part(reading.integer, "slots")
    reason: str = part(reading.text, "reason")


@dataclass(frozen=True)
class PlannedOffer(Priced):
    """What would be rented of one offer."""

    offer: str = part(reading.text, "offer")
    slots: int = part(reading.integer, "slots")
    launch: int = part(reading.integer, "launch")
    #: Why, or why it is not used.
    reason: str = part(reading.text, "reason")


@dataclass(frozen=True)
class OfferForecast(PlannedOffer):
    """What would be rented of one offer, were something submitted."""

    #: So many more than without it.
    more: int = part(reading.integer, "more")


@dataclass(frozen=True)
class RequestForecast(Answer):
    """A trial, or a command, that is not submitted."""

    name: str = part(reading.text, "name")
    slots: int = part(reading.integer, "slots")
    #: It would start on what is there.
    starts: bool = part(reading.flag, "starts")
    #: Of which offer a machine would be rented for it; empty: of none.
    offer: str = part(reading.text, "offer")
    #: Why it would not start yet.
    reason: str = part(reading.text, "reason")


@dataclass(frozen=True)
class SubmissionPlan(Answer):
    """What would be rented now, were something submitted."""

    pool: str = part(reading.text, "resourcePool")
    requests: List[RequestForecast] = made(
        lambda value: [RequestForecast.read(it) for it in reading.records(value, "requests")]
    )
    offers: List[OfferForecast] = made(
        lambda value: [OfferForecast.read(it) for it in reading.records(value, "offers")]
    )
    #: Of the machines that would be rented more; None: one of them has no price.
    cost_per_hour: Optional[float] = made(lambda value: reading.real(value.get("costPerHour")))
    notices: List[str] = part(reading.texts, "notices")


@dataclass(frozen=True)
class MachineBudget(Answer):
    """What may be spent on machines this month, and what is."""

    #: Empty: it is of all pools.
    pool: str = part(reading.text, "resourcePool")
    per_month: float = made(lambda value: reading.real(value.get("perMonth")) or 0.0)
    #: Whether machines that are there are let go once it is spent.
    stops: bool = part(reading.flag, "stops")
    spent: float = made(lambda value: reading.real(value.get("spent")) or 0.0)
    #: Of one that is nearly spent, or is; empty: it is neither.
    warning: str = part(reading.text, "warning")
    #: When it is whole again.
    until: Optional[datetime] = part(reading.moment, "until")


@dataclass(frozen=True)
class MachinesInTrouble(Answer):
    """What stands in the way of machines at their provider."""

    machine_ids: List[str] = part(reading.texts, "machineIds")
    reason: str = part(reading.text, "reason")


@dataclass(frozen=True)
class MachinePlan(Answer):
    """What would be done now for one pool."""

    pool: str = part(reading.text, "resourcePool")
    #: It is only said: people rent and end machines.
    advises: bool = part(reading.flag, "advises")
    #: What is rented, of several the first: ``g5.12xlarge in us-west-2``.
    offer: str = part(reading.text, "offer")
    slots_per_machine: int = part(reading.integer, "slotsPerMachine")
    offers: List[PlannedOffer] = made(lambda value: [PlannedOffer.read(it) for it in reading.records(value, "offers")])
    budgets: List[MachineBudget] = made(
        lambda value: [MachineBudget.read(it) for it in reading.records(value, "budgets")]
    )
    min_instances: int = part(reading.integer, "minInstances")
    max_instances: int = part(reading.integer, "maxInstances")
    #: Machines that are not gone.
    machines: int = part(reading.integer, "machines")
    #: So many would be rented.
    launch: int = part(reading.integer, "launch")
    end: List[PlannedStep] = made(lambda value: [PlannedStep.read(step) for step in reading.records(value, "end")])
    drain: List[PlannedStep] = made(lambda value: [PlannedStep.read(step) for step in reading.records(value, "drain")])
    troubles: List[MachinesInTrouble] = made(
        lambda value: [MachinesInTrouble.read(it) for it in reading.records(value, "troubles")]
    )
    waiting: List[WaitingForMachine] = made(
        lambda value: [WaitingForMachine.read(each) for each in reading.records(value, "waiting")]
    )


def list_machines(session: Session, pool: Optional[str] = None, *, ended: bool = False) -> List[MachineInfo]:
    """The machines that are not gone, of one pool or all; ``ended``: the newest of those that are, too."""
    answer = session.get("/api/v1/machines", {"resourcePool": pool, "showEnded": ended or None})
    return [MachineInfo.read(value) for value in reading.records(answer, "machines")]


def get_machine(session: Session, machine_id: str) -> MachineInfo:
    """One machine, also one that is gone. Raises NotFound."""
    return MachineInfo.read(reading.record(session.get(at("/api/v1/machines/{}", machine_id)), "machine"))


def audit_machines(session: Session) -> MachineAudit:
    """Ask each provider which machines carry the cluster's mark, and show them beside their rows. Raises Forbidden."""
    return MachineAudit.read(session.get("/api/v1/machines/audit"))


def end_strays(session: Session, strays: Sequence[MachineAtProvider]) -> List[MachineInfo]:
    """End machines that have no row, all of them or none; the rows by which they are ended.

    Raises NotFound, NotNow (one has a row by now, or has ended), Forbidden.
    """
    named: List[Json] = [{"provider": it.provider, "region": it.region, "providerId": it.provider_id} for it in strays]
    answer = session.post("/api/v1/machines/audit/end", {"machines": named})
    return [MachineInfo.read(value) for value in reading.records(answer, "machines")]


@dataclass(frozen=True)
class DeletedPart(Answer):
    """What has become of a part that was left of a machine."""

    kind: str = part(reading.text, "kind")
    provider_id: str = part(reading.text, "providerId")
    #: Why it is there still; empty: it is not.
    failure: str = part(reading.text, "failure")


def delete_machine_parts(session: Session, parts: Sequence[MachinePartInfo]) -> List[DeletedPart]:
    """Delete what was left of machines, each by itself. Raises Forbidden."""
    deleted: List[DeletedPart] = []
    for begin in range(0, len(parts), _PARTS_AT_ONCE):
        named: List[Json] = [
            {"provider": it.provider, "region": it.region, "kind": it.kind, "providerId": it.provider_id}
            for it in parts[begin : begin + _PARTS_AT_ONCE]
        ]
        answer = session.post("/api/v1/machines/audit/delete-parts", {"parts": named})
        deleted += [DeletedPart.read(value) for value in reading.records(answer, "parts")]
    return deleted


def launch_machines(session: Session, pool: str, count: int = 1, offer: str = "") -> List[MachineInfo]:
    """Rent so many machines now, all of them or none; ``offer``: of this one, else of the first that may be used.

    Raises NotNow with the limit, NotFound, Forbidden.
    """
    answer = session.post("/api/v1/machines/launch", {"resourcePool": pool, "count": count, "offer": offer})
    return [MachineInfo.read(value) for value in reading.records(answer, "machines")]


def end_machines(session: Session, machine_ids: Sequence[str], *, now: bool = False) -> List[MachineInfo]:
    """Let machines go, all of them or none: each takes nothing new, and is ended once its work has saved and left.

    ``now``: what runs there ends at once. Raises NotFound, NotNow (one has ended, or is asked to already), Forbidden.
    """
    answer = session.post("/api/v1/machines/end", {"machineIds": list(machine_ids), "now": now})
    return [MachineInfo.read(value) for value in reading.records(answer, "machines")]


def machine_steps(session: Session, machine_id: str) -> List[MachineStepInfo]:
    """What a machine has said of its start, in that order. Raises NotFound."""
    answer = session.get(at("/api/v1/machines/{}/steps", machine_id))
    return [MachineStepInfo.read(value) for value in reading.records(answer, "steps")]


def machine_costs(
    session: Session, by: str, since: Optional[str] = None, until: Optional[str] = None, pool: Optional[str] = None
) -> MachineCosts:
    """What machines cost, divided among what ran on them; without ``since`` from the beginning of the month on.

    ``by``: ``user``, ``workspace``, ``project``, ``experiment``; ``pool`` and ``day`` hold whole machines.
    """
    query = {"by": by, "since": since, "until": until, "resourcePool": pool}
    return MachineCosts.read(session.get("/api/v1/machines/cost", query))


def check_machines(session: Session, pool: Optional[str] = None) -> MachineCheck:
    """Hold the settings of pools that rent, or of one, against their providers. Raises NotFound, InvalidInput."""
    return MachineCheck.read(session.get("/api/v1/machines/check", {"resourcePool": pool}))


def plan_submission(
    session: Session,
    config: str,
    *,
    command: bool = False,
    project_id: Optional[int] = None,
    template: Optional[str] = None,
) -> SubmissionPlan:
    """What would be rented for an experiment, or a ``command``, of that YAML text; nothing is made.

    Raises InvalidInput, also where no machines are rented for its pool; NotFound.
    """
    body: JsonObject = {"config": config, "isCommand": command, "projectId": project_id, "template": template}
    return SubmissionPlan.read(session.post("/api/v1/machines/plan", body))


def machine_plans(session: Session, pool: Optional[str] = None) -> List[MachinePlan]:
    """What would be done now, per pool for which machines are rented; of one alone. Raises NotFound, InvalidInput."""
    answer = session.get("/api/v1/machines/plan", {"resourcePool": pool} if pool else None)
    return [MachinePlan.read(value) for value in reading.records(answer, "plans")]


def _policy(value: JsonObject) -> str:
    """Of an older master."""
    return reading.text(value, "schedulerType").replace("SCHEDULER_TYPE_", "", 1).lower()


def _slot_kind(pool: JsonObject) -> str:
    kind = reading.text(pool, "slotType").replace("TYPE_", "", 1).lower()
    return "" if kind == "unspecified" else kind
