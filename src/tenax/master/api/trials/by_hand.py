"""What runs by hand send: the spools and the output of unmanaged trials, as agents send those of tasks.

Rules it keeps: only the owner of a trial, or an administrator, speaks for it; the run is named in the address, and one
that is not the newest changes no state; lines go by their numbers and output by its offsets, so that all of it may be
sent again, by any process and after the end of the trial.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import msgspec
from asyncpg import Connection
from fastapi import Query, Request, Response
from fastapi.responses import JSONResponse

from tenax.errors import Forbidden, NotFound
from tenax.master.access.authorization import Allow, Caller
from tenax.master.api.http import callers
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.ingest.budget import NoRoom
from tenax.master.store.database.faults import DatabaseFull
from tenax.master.store.users.sessions import TaskOf

routes = Routes("ByHand")

_RUN = "/api/v1/trials/{trial_id}/runs/{run_id}"
#: A year: what is older is dated as of then.
_OLDEST_MS = 366 * 24 * 3600 * 1000
_MAX_HOST = 255


@routes.post(f"{_RUN}/spool", "ShipTrialSpool", allow=Allow.USER, often=True, response_class=Response)
async def ship_spool(
    master: MasterDep, caller: CallerDep, request: Request, trial_id: int, run_id: int, stream: str
) -> Response:
    """Store lines of a spool; the body is the lines as they stand in the file. 200 means that it is durable."""
    body = await request.body()
    async with master.db.connection() as conn:
        run = await _run(conn, caller, trial_id, run_id)
    reply = await master.intake.spool.take(run, f"trial-{trial_id}", stream, body)
    return Response(msgspec.json.encode(reply), media_type="application/json")


@routes.post(f"{_RUN}/output", "ShipTrialOutput", allow=Allow.USER, often=True, response_class=Response)
async def ship_output(
    master: MasterDep,
    caller: CallerDep,
    request: Request,
    trial_id: int,
    run_id: int,
    stream: str,
    offset: Annotated[int, Query(ge=0)],
    host: str = "",
    final: bool = False,
    age_ms: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """Store output, zlib-compressed, from a byte of its stream on; 507 when there is no room for it."""
    body = await request.body()
    async with master.db.connection() as conn:
        run = await _run(conn, caller, trial_id, run_id)
    name = f"trial-{trial_id}-run-{run_id}"
    age_us = min(age_ms, _OLDEST_MS) * 1000
    try:
        following = await master.intake.logs.output_elsewhere(
            run.task_id, name, host[:_MAX_HOST], stream, offset, body, final, age_us
        )
    except (NoRoom, DatabaseFull) as error:
        return JSONResponse({"message": str(error)}, status_code=507)
    return JSONResponse({"next": following})


async def _run(conn: Connection, caller: Caller, trial_id: int, run_id: int) -> TaskOf:
    """The run as the one that speaks. Raises Forbidden, NotFound."""
    newest = await callers.for_trial(conn, caller, trial_id)
    if newest.allocation_id:
        raise Forbidden("this is for what runs elsewhere: a task of this cluster has the spool of its allocation")
    if not 1 <= run_id <= newest.run_id:
        raise NotFound(f"run {run_id} of trial {trial_id} not found: it was not started")
    return replace(newest, run_id=run_id)
