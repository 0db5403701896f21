"""How a machine becomes an agent: the master's own wheel for it.

Rules it keeps: the wheel goes to whoever could join (a join token, also that of the operator's file or of a rented
machine, in the body), and using it for that uses nothing up.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio.to_thread
from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from tenax.errors import Forbidden, TryAgain
from tenax.master.access.authorization import Allow
from tenax.master.access.bootstrap import join_token
from tenax.master.agents.admission import check_may_prepare
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.provision.wheel import AgentWheel, own_wheel

routes = Routes("Agents")

#: Bytes that are sent at a time.
_PIECE = 1 << 18


@routes.post("/agents/wheel", "GetAgentWheel", allow=Allow.PUBLIC, response_class=Response)
async def get_wheel(master: MasterDep, request: Request) -> Response:
    """The master's own tenax, as a wheel. A line each: a join token; a rented machine's id, or nothing; its SHA-256.

    Without the SHA-256 whatever this master has is sent, with it in the header ``X-SHA256``; 503: this one has another.
    """
    token, machine_id, sha256 = ((await request.body()).decode(errors="replace").split("\n") + [""] * 3)[:3]
    if not token:
        raise Forbidden("a join token has to come with it: tenax agent join-token create makes one")
    file_token = join_token(master.settings) if master.settings.security.agent_join_by_file else None
    async with master.db.connection() as conn:
        await check_may_prepare(conn, token, machine_id, master.cluster.secret, file_token)
    wheel = await _wheel()
    if sha256.strip() not in ("", wheel.sha256):
        raise TryAgain("this master's tenax is not the one that the script was made for: make a new script")
    headers = {
        "Content-Length": str(len(wheel.content)),
        "Content-Disposition": f'attachment; filename="{wheel.name}"',
        "X-SHA256": wheel.sha256,
    }
    return StreamingResponse(_pieces(wheel), media_type="application/octet-stream", headers=headers)


async def _wheel() -> AgentWheel:
    return await anyio.to_thread.run_sync(own_wheel)


async def _pieces(wheel: AgentWheel) -> AsyncIterator[bytes]:
    # In pieces: what a slow line has not taken yet is held once, for all.
    view = memoryview(wheel.content)
    for offset in range(0, len(view), _PIECE):
        yield bytes(view[offset : offset + _PIECE])
