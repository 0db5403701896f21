"""Where tasks and agents ship spools (`tenax.wire.spool`)."""

from __future__ import annotations

import msgspec
from fastapi import Request, Response

from tenax.errors import Forbidden
from tenax.master.api.deps import MasterDep, TaskDep
from tenax.master.api.routing import Allow, Routes

routes = Routes("spools")


@routes.post("/api/v1/allocations/{allocation_id}/spool", "ShipSpool", allow=Allow.TASK, response_class=Response)
async def ship_spool(
    master: MasterDep, task: TaskDep, request: Request, allocation_id: str, container_id: str, stream: str
) -> Response:
    """Store lines of a spool; the body is the lines as they stand in the file. 200 means that it is durable."""
    if task.allocation_id != allocation_id:
        raise Forbidden(f"the token is not that of allocation {allocation_id}")
    reply = await master.intake.spool.take(task, container_id, stream, await request.body())
    return Response(msgspec.json.encode(reply), media_type="application/json")
