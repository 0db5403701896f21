"""Quotas: shown to everyone, applied and removed by administrators. What is not valid changes nothing."""

from __future__ import annotations

from tenax.config.problems import ConfigError
from tenax.config.quotas import parse_quotas
from tenax.errors import NotFound, TooLarge
from tenax.master.access.authorization import Allow
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.quotas import messages
from tenax.master.api.quotas.messages import QuotaKind
from tenax.master.store.database.wakeups import notify
from tenax.master.store.quotas import rows
from tenax.master.submission.quotas import QuotaStanding, changes, lines_of, not_there, resolved
from tenax.scheduler.quotas import Quotas
from tenax.wire.message import Empty

routes = Routes("Quotas")

#: Characters of a quota file.
_MAX_SOURCE = 500_000
_HOUR_S = 3600.0


class _OnlyLooked(Exception):
    """Nothing is to be kept of a transaction."""


@routes.get("/api/v1/quotas", "GetQuotas", allow=Allow.USER)
async def get_quotas(master: MasterDep) -> messages.GetQuotasResponse:
    """What everybody may have, has used, and whose turn it is."""
    async with master.db.snapshot() as conn:
        applied = await rows.current(conn)
        if applied is None:
            return messages.GetQuotasResponse()
        lines = await lines_of(conn, master.readers, applied.quotas)
        try:
            file, _ = await master.readers.run(parse_quotas, applied.source)
            missing = await not_there(conn, file, applied.quotas)
        except ConfigError:
            # It was legal when it was applied, and its quotas hold.
            missing = []
    return messages.GetQuotasResponse(
        applied=True,
        source=applied.source,
        applied_by=applied.applied_by,
        applied_at=applied.applied_at,
        half_life_hours=applied.quotas.half_life_s / _HOUR_S,
        not_there=missing,
        lines=[_message(line) for line in lines],
    )


@routes.put("/api/v1/quotas", "PutQuotas", allow=Allow.ADMIN)
async def put_quotas(
    master: MasterDep, caller: CallerDep, body: messages.PutQuotasRequest
) -> messages.PutQuotasResponse:
    """Apply a quota file in the place of what held before; who gains and who loses."""
    if len(body.source) > _MAX_SOURCE:
        raise TooLarge(f"the quota file has {len(body.source)} characters, and at most {_MAX_SOURCE} are taken")
    file, places = await master.examiners.run(parse_quotas, body.source)
    before: list[QuotaStanding] = []
    after: list[QuotaStanding] = []
    try:
        async with master.db.transaction() as conn:
            quotas = await resolved(conn, file, places)
            held = await rows.current(conn)
            before = await lines_of(conn, master.readers, held.quotas if held is not None else Quotas())
            await rows.apply(conn, quotas, body.source, caller.person.id)
            after = await lines_of(conn, master.readers, quotas)
            if body.dry_run:
                raise _OnlyLooked
            await notify(conn, "scheduling", "")
    except _OnlyLooked:
        pass
    return messages.PutQuotasResponse(changes=changes(before, after), lines=[_message(line) for line in after])


@routes.delete("/api/v1/quotas", "DeleteQuotas", allow=Allow.ADMIN)
async def delete_quotas(master: MasterDep, caller: CallerDep) -> Empty:
    """From now on none holds: nobody is limited, and the queue is in the order of priority and place alone."""
    async with master.db.transaction() as conn:
        if await rows.current(conn) is None:
            raise NotFound("quotas not found: there are none")
        await rows.apply(conn, None, "", caller.person.id)
        await notify(conn, "scheduling", "")
    return Empty()


def _message(line: QuotaStanding) -> messages.QuotaLine:
    return messages.QuotaLine(
        kind=QuotaKind(line.key[0]),
        name=line.name,
        id=line.key[1],
        workspace_id=line.key[2] if line.key[0] == "association" else None,
        weight=line.quota.weight or 1.0,
        max_slots=line.quota.max_slots,
        priority=line.quota.priority,
        slot_hours=line.quota.slot_hours,
        held_slots=line.held,
        used_slot_hours=line.used.this_month / _HOUR_S,
        recent_slot_hours=line.used.recent / _HOUR_S,
        share=line.share,
        used_share=line.used_share,
        turn=line.turn,
    )
