"""What carries the cluster's mark at its providers, beside the rows: shown to administrators, who end what has none;
and what is not there as settings have it.

A machine without a row is ended by a row: the loop that rents asks for its end until the provider says that it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

from fastapi import Query

from tenax.errors import InvalidInput, NotFound, NotNow, TryAgain
from tenax.master.access.authorization import Allow
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.machines import messages
from tenax.master.api.machines.routes import machine_view, renting_pools
from tenax.master.api.machines.steering import MAX_NAMED
from tenax.master.context import Master
from tenax.master.provision.audit import AuditedMachine, PlaceLook, audited, look_at
from tenax.master.provision.checks import checked
from tenax.master.provision.orders import ended
from tenax.master.provision.registry import open_provider
from tenax.master.provision.sightings import place_of_pool, rows_by_place
from tenax.master.store.machines import rows as machines

routes = Routes("Machines")


@routes.get("/api/v1/machines/audit", "GetMachineAudit", allow=Allow.ADMIN)
async def get_audit(master: MasterDep) -> messages.GetMachineAuditResponse:
    """Ask each provider what there is now, and show it beside the rows."""
    answers, listed = await _audit(master)
    return messages.GetMachineAuditResponse(
        machines=[_view(each) for each in listed],
        unanswered=[
            messages.UnansweredPlace(provider=each.place.provider, region=each.place.region, reason=each.away)
            for each in answers
            if each.away
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
    answers, listed = await _audit(master)
    by_name = {(each.place.provider, each.place.region, each.seen.provider_id): each for each in listed if each.seen}
    away = {(each.place.provider, each.place.region): each.away for each in answers if each.away}
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


async def _audit(master: Master) -> tuple[Sequence[PlaceLook], list[AuditedMachine]]:
    async with master.db.connection() as conn:
        places = rows_by_place(master.settings.pools, await machines.all_of(conn))
    cluster_id = str(master.cluster.cluster_id)
    answers = await look_at(places, lambda place: open_provider(place, cluster_id))
    async with master.db.connection() as conn:
        rows = await machines.all_of(conn, ended=True)
    return answers, [each for look in answers for each in audited(look, rows)]


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
