"""Quota use: adds up what everybody has used, where there are quotas, and has the queue looked at for what it changes.

Months begin, what was used counts less and less, and turns change with it, without anybody's doing.
"""

from __future__ import annotations

import time

from tenax.master.loops.loop import PassContext
from tenax.master.store.database.wakeups import Woken, notify
from tenax.master.store.queue import placements
from tenax.master.store.quotas import rows as quotas

#: What was used is added up so often: all that was held in ten half-lives is read for it.
EVERY_S = 15.0
#: And so many times what it takes lie between, at least.
_PAUSE = 50.0


class QuotaUse:
    """Keeps what everybody has used as of now."""

    name = "quota_use"
    kind = "quotas"

    def __init__(self) -> None:
        self._due_at = 0.0

    async def make_pass(self, context: PassContext, woken: Woken) -> float | None:
        """Add up, where it is due; quotas that were applied just now have done so themselves."""
        began = time.monotonic()
        if began < self._due_at:
            return self._due_at - began
        async with context.reading() as conn:
            applied = await quotas.current(conn)
        if applied is None:
            return None
        async with context.transaction() as conn:
            await quotas.add_up_use(conn, applied.quotas)
            if await placements.any_waits(conn):
                await notify(conn, "scheduling", "")
        pause_s = max(EVERY_S, _PAUSE * (time.monotonic() - began))
        self._due_at = began + pause_s
        return pause_s
