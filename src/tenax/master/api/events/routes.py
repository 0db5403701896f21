"""The live stream of the web page: one for all that a page shows, by topics; what changed, never the whole of it.

Another set of topics is another request with the position of the one before (``cursor``), which ends once the new one
has said hello: nothing is missed, since what was followed a moment ago is still remembered. So a stream is nothing that
a second request would have to find again, at this master or, behind a balancer, at another one.
"""

from __future__ import annotations

from typing import Annotated

import anyio.to_thread
from fastapi import Header, Query, Request

from tenax import __version__
from tenax.master.access.authorization import Allow
from tenax.master.api.events.stream import EventStream, Following
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.openapi import digest
from tenax.master.api.http.routing import Routes
from tenax.master.reading.events.topics import MAX_TOPICS, parse

routes = Routes("Events")

#: Characters of a position.
MAX_CURSOR = 64


@routes.stream("/api/v1/events", "FollowEvents", allow=Allow.USER)
async def follow_events(
    master: MasterDep,
    caller: CallerDep,
    request: Request,
    topic: Annotated[list[str], Query(max_length=MAX_TOPICS)],
    cursor: Annotated[str, Query(max_length=MAX_CURSOR)] = "",
    last_event_id: Annotated[str, Header(max_length=MAX_CURSOR)] = "",
) -> EventStream:
    """What changes of some topics, until the client leaves: server-sent events (docs/internals.md).

    `Last-Event-ID`, which browsers send by themselves, counts before `cursor`.
    """
    topics = parse(topic)
    schema = await anyio.to_thread.run_sync(digest, request.app)
    greeting = {"version": __version__, "schema": schema, "masterId": master.master_id}
    identified = request.state.identified
    return EventStream(Following(master, caller, identified, topics, last_event_id or cursor, greeting))
