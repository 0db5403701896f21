"""What carries the cluster's mark at its providers, beside the rows: shown to administrators, who end what has none;
and what is not there as settings have it.

A machine without a row is ended by a row: the loop that rents asks for its end until the provider says that it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import structlog
from fastapi import Query

from tenax.errors import InvalidInput, NotFound, NotNow, TryAgain
from tenax.master.access.authorization import Allow
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.machines import messages
from tenax.master.api.machines.routes import machine_view, renting_pools
from tenax.master.api.machines.steering import MAX_NAMED
from tenax.master.context import Master
from tenax.master.provision.audit import AuditedMachine, AuditedPart, PlaceLook, audited, audited_parts, look_at
from tenax.master.provision.checks import checked
from tenax.master.provision.orders import ended
from tenax.master.provision.port import OrderRefused, ProviderAway, shown
from tenax.master.provision.registry import open_provider
from tenax.master.provision.sightings import place_of_pool, rows_by_place
from tenax.master.store.machines import rows as machines

routes = Routes("Machines")
log = structlog.get_logger("tenax.machines")


@routes.get("/api/v1/machines/audit", "GetMachineAudit", allow=Allow.ADMIN)
async def get_audit(master: MasterDep) -> messages.GetMachineAuditResponse:
    """Ask each provider what there is now, and show it beside the rows."""
    audit = await _audit(master)
    return messages.GetMachineAuditResponse(
        machines=[_view(each) for each in audit.machines],
        parts=[_part_view(each) for each in audit.parts],
        unanswered=[
            messages.UnansweredPlace(provider=look.place.provider, region=look.place.region, reason=reason)
            for look in audit.answers
            for reason in ([look.away] if look.away else look.parts.unknown)
        ],
    )


@routes.get("/api/v1/machines/check", "CheckMachines", allow=Allow.ADMIN)
async def check_machines(
    master: MasterDep, resource_pool: Annotated[str, Query()] = ""
) -> messages.CheckMachinesResponse:
    """Hold the settings of pools against their providers: what is not there, and what the master may not do."""
    cluster_id = str(master.cluster.cluster_id)
    pools = renting_pools(master, resource_pool)
    per_pool = await asyncio.gather(
        *(checked(provider, open_provider(place_of_pool(pool), cluster_id)) for pool, provider in pools)
    )
    return messages.CheckMachinesResponse(
        findings=[
            messages.FindingView(resource_pool=pool.name, path=each.path, problem=each.problem, instead=each.instead)
            for (pool, _), look in zip(pools, per_pool, strict=True)
            for each in look
        ],
        resource_pools=[pool.name for pool, _ in pools],
    )


@routes.post("/api/v1/machines/audit/end", "EndStrays", allow=Allow.ADMIN)
async def end_strays(
    master: MasterDep, caller: CallerDep, body: messages.EndStraysRequest
) -> messages.EndStraysResponse:
    """End machines that have no row, all of them or none: each is looked up once more before."""
    names = list(dict.fromkeys((each.provider, each.region, each.provider_id) for each in body.machines))
    if not 1 <= len(names) <= MAX_NAMED:
        raise InvalidInput(f"name the machines that are to end (machines): 1 to {MAX_NAMED}, not {len(names)}")
    audit = await _audit(master)
    by_name = {(it.place.provider, it.place.region, it.seen.provider_id): it for it in audit.machines if it.seen}
    away = {(it.place.provider, it.place.region): it.away for it in audit.answers if it.away}
    rows = []
    for provider, region, provider_id in names:
        each = by_name.get((provider, region, provider_id))
        if each is None and (provider, region) in away:
            raise TryAgain(f"{provider} {region} does not answer: {away[provider, region]}")
        if each is None or each.seen is None:
            raise NotFound(f"machine {provider_id!r} with the mark of this cluster not found at {provider} {region}")
        if not each.stray:
            raise NotNow(f"machine {provider_id} is none without a row: {_instead(each)}")
        why = f"it carries the mark of this cluster and had no row: ended by {caller.person.username}"
        rows.append((ended(each.place, each.seen, why), each.seen))
    async with master.db.transaction() as conn:
        for row, seen in rows:
            if not await machines.adopt(conn, row, seen.provider_id, seen.zone):
                raise NotNow(f"machine {seen.provider_id} has a row by now: see tenax machine audit")
        shown = [machine_view(await machines.get(conn, row.machine_id)) for row, _ in rows]
    return messages.EndStraysResponse(machines=shown)


def _instead(each: AuditedMachine) -> str:
    if each.seen is not None and each.seen.ended:
        return "it has ended"
    return each.why if each.row is None else f"tenax machine end {each.row.machine_id}"


@routes.post("/api/v1/machines/audit/delete-parts", "DeleteMachineParts", allow=Allow.ADMIN)
async def delete_parts(
    master: MasterDep, caller: CallerDep, body: messages.DeleteMachinePartsRequest
) -> messages.DeleteMachinePartsResponse:
    """Delete what was left of machines, one by one: each is looked up once more before. Asked again it does no harm."""
    named = list(dict.fromkeys((it.provider, it.region, it.kind, it.provider_id) for it in body.parts))
    if not 1 <= len(named) <= MAX_NAMED:
        raise InvalidInput(f"name what is to be deleted (parts): 1 to {MAX_NAMED}, not {len(named)}")
    audit = await _audit(master)
    views = []
    for provider, region, kind, provider_id in named:
        failure = await _delete(master, audit, (provider, region, kind, provider_id))
        if not failure:
            log.warning(
                "a part of a machine was deleted", provider=provider, region=region, part=kind, name=provider_id,
                by=caller.person.username,
            )  # fmt: skip
        views.append(
            messages.DeletedPartView(
                provider=provider, region=region, kind=kind, provider_id=provider_id, failure=failure
            )
        )
    return messages.DeleteMachinePartsResponse(parts=views)


@dataclass(frozen=True, slots=True)
class _Audit:
    answers: Sequence[PlaceLook]
    machines: Sequence[AuditedMachine]
    parts: Sequence[AuditedPart]


async def _delete(master: Master, audit: _Audit, name: tuple[str, str, str, str]) -> str:
    """Of the provider, region and kind: one part, if it was left; why it is there still, else nothing."""
    parts = {(it.place.provider, it.place.region, it.part.kind.value, it.part.provider_id): it for it in audit.parts}
    each = parts.get(name)
    if each is None:
        here = [it for it in audit.answers if (it.place.provider, it.place.region) == name[:2]]
        unknown = [reason for it in here for reason in ([it.away] if it.away else it.parts.unknown)]
        return "; ".join(unknown) or "there is none with the mark of this cluster"
    if not each.stray:
        return each.why
    async with master.db.connection() as conn:
        # Of very many machines the audit has not read all.
        if await machines.is_known(conn, each.part.machine_id, still_there=True):
            return "its machine is there by now"
    try:
        await open_provider(each.place, str(master.cluster.cluster_id)).remove(each.part)
    except (OrderRefused, ProviderAway) as error:
        return shown(error.message)
    return ""


async def _audit(master: Master) -> _Audit:
    async with master.db.connection() as conn:
        places = rows_by_place(master.settings.pools, await machines.all_of(conn))
    cluster_id = str(master.cluster.cluster_id)
    answers = await look_at(places, lambda place: open_provider(place, cluster_id))
    async with master.db.connection() as conn:
        rows = await machines.all_of(conn, ended=True)
    return _Audit(
        answers,
        [each for look in answers for each in audited(look, rows)],
        [each for look in answers for each in audited_parts(look, rows)],
    )


def _part_view(each: AuditedPart) -> messages.MachinePartView:
    part = each.part
    return messages.MachinePartView(
        provider=each.place.provider, region=each.place.region, zone=part.zone, kind=part.kind.value,
        provider_id=part.provider_id, detail=part.detail, holder=part.holder, machine_id=part.machine_id,
        state=each.row.state.value if each.row is not None else "", stray=each.stray, why=each.why,
    )  # fmt: skip


def _view(each: AuditedMachine) -> messages.AuditedMachineView:
    seen, row = each.seen, each.row
    return messages.AuditedMachineView(
        provider=each.place.provider,
        region=each.place.region,
        zone=seen.zone if seen is not None else row.zone if row is not None else "",
        provider_id=seen.provider_id if seen is not None else row.provider_id if row is not None else "",
        instance_type=seen.instance_type if seen is not None else row.instance_type if row is not None else "",
        resource_pool=row.pool if row is not None else seen.pool if seen is not None else "",
        sighting=each.sighting.value,
        machine_id=row.machine_id if row is not None else seen.machine_id if seen is not None else "",
        state=row.state.value if row is not None else "",
        stray=each.stray,
        why=each.why,
    )
