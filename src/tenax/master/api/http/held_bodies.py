"""How much of bodies is held in memory at a time, over all requests and for one caller.

Rules it keeps:

- a body up to `FREE_BYTES` is held without asking: connections are counted elsewhere;
- a larger one has its place before more of it is read, and keeps it until the request is answered; who does not get one
  in `WAIT_S` is told to come again;
- one caller has at most `MAX_BODY_BYTES`, so that who sends slowly keeps places from nobody else;
- bodies with code are not held: they go to files (`tenax.master.submission.uploads`).
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque

from starlette.exceptions import HTTPException

from tenax.master.access.authorization import Caller
from tenax.wire.spool_names import MAX_LINE_BYTES

FREE_BYTES = 256 * 1024
#: The largest body that is held: reports are the largest that clients send at once, and what stands around them.
MAX_BODY_BYTES = MAX_LINE_BYTES + (1 << 20)
MAX_HELD_BYTES = 96 << 20
WAIT_S = 30.0


class HeldBodies:
    """Counts them. Owned by the event loop."""

    def __init__(self) -> None:
        self._held: Counter[object] = Counter()
        self._waiting: deque[asyncio.Event] = deque()

    async def take(self, caller: Caller, size: int) -> HeldBody:
        """A place for ``size`` bytes, `MAX_BODY_BYTES` at most. Raises HTTPException 503 where there is none."""
        whose = caller.agent_id or (caller.user.id if caller.user else None)
        try:
            async with asyncio.timeout(WAIT_S):
                while self._held.total() + size > MAX_HELD_BYTES or self._held[whose] + size > MAX_BODY_BYTES:
                    freed = asyncio.Event()
                    self._waiting.append(freed)
                    await freed.wait()
        except TimeoutError:
            reason = "too many large requests are under way: try again in a moment"
            raise HTTPException(503, reason, {"Retry-After": "5", "Connection": "close"}) from None
        self._held[whose] += size
        return HeldBody(self, whose, size)

    def leave(self, whose: object, size: int) -> None:
        """A request is answered."""
        self._held[whose] -= size
        if not self._held[whose]:
            del self._held[whose]
        while self._waiting:
            self._waiting.popleft().set()


class HeldBody:
    """What one body may take."""

    def __init__(self, of: HeldBodies, whose: object, size: int) -> None:
        self._of, self._whose, self._size = of, whose, size

    def leave(self) -> None:
        self._of.leave(self._whose, self._size)
