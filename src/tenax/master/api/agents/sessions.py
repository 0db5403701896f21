"""How agents come in: the join token traded for a credential, and the websocket on which they report."""

from __future__ import annotations

import contextlib

import msgspec
from fastapi import Request, Response
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from tenax.errors import InvalidInput
from tenax.master.access.authorization import Allow
from tenax.master.access.bootstrap import join_token
from tenax.master.api.http.callers import AgentDep, MasterDep
from tenax.master.api.http.routing import Routes
from tenax.wire.agents import JoinReply, JoinRequest

routes = Routes("agent sessions")


@routes.post("/agents/join", "JoinAgent", allow=Allow.PUBLIC, response_class=Response)
async def join(master: MasterDep, request: Request) -> Response:
    """Trade the join token for a credential bound to the agent's id. The token is in the body."""
    try:
        join_request = msgspec.json.decode(await request.body(), type=JoinRequest)
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"the body is not a join request: {error}") from None
    by_file = join_token(master.settings) if master.settings.security.agent_join_by_file else None
    reply: JoinReply = await master.hub.join(join_request, by_file)
    return Response(msgspec.json.encode(reply), media_type="application/json")


@routes.websocket("/agents/session", "AgentSession", allow=Allow.AGENT)
async def session(websocket: WebSocket, master: MasterDep, agent_id: AgentDep) -> None:
    """One connection of an agent, until either side ends it."""
    await websocket.accept()
    address = websocket.client.host if websocket.client is not None else ""
    with contextlib.suppress(ConnectionError):
        await master.hub.serve(_Channel(websocket), agent_id, address, master.shutdown)
    if websocket.application_state is WebSocketState.CONNECTED:
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):
            await websocket.close(1012 if master.shutdown.is_set() else 1000)


class _Channel:
    """A websocket, as the hub sees it."""

    def __init__(self, websocket: WebSocket) -> None:
        self._websocket = websocket

    async def send(self, frame: str) -> None:
        try:
            await self._websocket.send_text(frame)
        except (WebSocketDisconnect, RuntimeError) as error:
            raise ConnectionError("the agent has gone") from error

    async def receive(self) -> str:
        try:
            return await self._websocket.receive_text()
        except (WebSocketDisconnect, RuntimeError) as error:
            raise ConnectionError("the agent has gone") from error
