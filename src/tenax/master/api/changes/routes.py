"""The websocket ``/stream``: projects, models and model versions, as they are and as they change.

A client subscribes with what it knows (``known``: ids, ``since``: the largest number of a change), and is sent what is
new to it and what is gone between two messages that name its ``sync_id``; after that, each change. Another subscription
takes the place of the one before. Behind the feature switch ``streaming_updates``.

Rules: rows are looked at once in a period for as long as there is a subscription, so that nothing waits for a wake-up;
who may look no more is sent nothing more.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass, field

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from tenax.config.master import FeatureSwitch
from tenax.errors import InvalidInput, NotFound, UserError
from tenax.jsonvalue import Json, JsonObject
from tenax.master.access.authorization import Allow
from tenax.master.api.changes import key_ranges
from tenax.master.api.changes.key_ranges import Ranges
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.context import Master
from tenax.master.store.changes import rows as changes

routes = Routes("Changes")

#: Between two looks at what is followed.
_PERIOD_S = 1.0
#: Characters of a subscription, and ids of one of its lists.
_MAX_TEXT, _MAX_IDS = 1 << 20, 10_000
#: Of each kind: its record's name in a message, and the three lists of its subscription.
_KINDS = {
    "projects": ("project", ("workspace_ids", "project_ids", "")),
    "models": ("model", ("workspace_ids", "model_ids", "user_ids")),
    "modelversions": ("modelversion", ("model_ids", "model_version_ids", "user_ids")),
}


@dataclass(slots=True)
class _Followed:
    """One kind of a subscription, and what its client has of it."""

    lists: list[list[int] | None]
    #: Ids that it says it knows, until they were looked at for the first time.
    known: Ranges
    since: int
    #: Number of the change that it has of each id.
    sent: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Subscription:
    sync_id: Json
    kinds: dict[str, _Followed]


@routes.websocket("/stream", "Stream", allow=Allow.USER)
async def stream(websocket: WebSocket, master: MasterDep) -> None:
    """One connection of a follower, until either side ends it."""
    if FeatureSwitch.STREAMING_UPDATES not in master.settings.feature_switches:
        raise NotFound("stream not found: it needs 'streaming_updates' among the master's feature_switches")
    await websocket.accept()
    code = 1000
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        try:
            await _serve(websocket, master)
            code = 1012
        except UserError as error:
            await websocket.send_text(json.dumps({"error": error.message}))
            code = 1008
    if websocket.application_state is WebSocketState.CONNECTED:
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):
            await websocket.close(code)


async def _serve(websocket: WebSocket, master: Master) -> None:
    """Until the master ends. Raises UserError, WebSocketDisconnect."""
    subscription: _Subscription | None = None
    received = asyncio.create_task(websocket.receive_text())
    ending = asyncio.create_task(master.shutdown.wait())
    try:
        while True:
            period = None if subscription is None else _PERIOD_S
            await asyncio.wait({received, ending}, timeout=period, return_when=asyncio.FIRST_COMPLETED)
            if ending.done():
                return
            # A logout, or another end of the credential, is the end of this, too.
            await websocket.state.identified()
            if received.done():
                subscription = _subscription(received.result())
                received = asyncio.create_task(websocket.receive_text())
                await _send(websocket, {"sync_id": subscription.sync_id, "complete": False})
                await _push(websocket, master, subscription)
                await _send(websocket, {"sync_id": subscription.sync_id, "complete": True})
            elif subscription is not None:
                await _push(websocket, master, subscription)
    finally:
        received.cancel()
        ending.cancel()
        await asyncio.gather(received, ending, return_exceptions=True)


async def _push(websocket: WebSocket, master: Master, subscription: _Subscription) -> None:
    """Send what is new to the client, and what is gone."""
    for kind, followed in subscription.kinds.items():
        async with master.db.snapshot() as conn:
            rows = await changes.rows(conn, kind, *followed.lists)
            newest = await changes.newest(conn)
        ids = [row.id for row in rows]
        if followed.known:
            since = followed.since if followed.since <= newest else 0
            has = key_ranges.holds(followed.known, ids)
            followed.sent |= {row.id: row.seq for row in rows if row.id in has and row.seq <= since}
        gone = key_ranges.without(followed.known, ids) or key_ranges.of(followed.sent.keys() - set(ids))
        followed.known = []
        record = _KINDS[kind][0]
        if gone:
            await _send(websocket, {f"{record}s_deleted": key_ranges.text(gone)})
        news = [row for row in rows if followed.sent.get(row.id) != row.seq]
        followed.sent = {row.id: row.seq for row in rows}
        for row in news:
            await _send(websocket, {record: row.fields})


async def _send(websocket: WebSocket, message: JsonObject) -> None:
    await websocket.send_text(json.dumps(message))


def _subscription(text: str) -> _Subscription:
    """Raises InvalidInput."""
    if len(text) > _MAX_TEXT:
        raise InvalidInput(f"a subscription has at most {_MAX_TEXT} characters")
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput("a subscription is a JSON object") from None
    if not isinstance(message, dict):
        raise InvalidInput("a subscription is a JSON object")
    specs, known = message.get("subscribe") or {}, message.get("known") or {}
    if not isinstance(specs, dict) or not isinstance(known, dict):
        raise InvalidInput("subscribe and known are objects, by what is followed")
    kinds = {kind: _followed(kind, specs[kind], known.get(kind)) for kind in _KINDS if specs.get(kind) is not None}
    return _Subscription(message.get("sync_id"), kinds)


def _followed(kind: str, spec: Json, known: Json) -> _Followed:
    if not isinstance(spec, dict):
        raise InvalidInput(f"subscribe.{kind} is an object")
    since = spec.get("since") or 0
    if not isinstance(since, int) or not _is_id(since):
        raise InvalidInput(f"subscribe.{kind}.since is a number")
    lists = [_ids(kind, name, spec.get(name)) if name else None for name in _KINDS[kind][1]]
    return _Followed(lists, key_ranges.parse(str(known or "")), since)


def _ids(kind: str, name: str, value: Json) -> list[int] | None:
    if value is None or value == []:
        return None
    if not isinstance(value, list) or len(value) > _MAX_IDS or not all(map(_is_id, value)):
        raise InvalidInput(f"subscribe.{kind}.{name} is a list of at most {_MAX_IDS} ids")
    return [number for number in value if isinstance(number, int)]


def _is_id(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
