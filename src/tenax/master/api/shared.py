"""Answers that are the same for everyone who may ask: made once for all who ask at once (`tenax.master.looks`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable

from fastapi import Response

from tenax.master.context import Master
from tenax.wire.api.message import Message

JSON = "application/json"


async def shared_answer(master: Master, key: Hashable, make: Callable[[], Awaitable[Message]]) -> Response:
    """What ``make`` answers, as JSON. ``key``: the operation and what was asked; nothing may depend on who asks."""

    async def look() -> bytes:
        return (await make()).model_dump_json(by_alias=True).encode()

    return Response(await master.looks.share(key, look), media_type=JSON)
