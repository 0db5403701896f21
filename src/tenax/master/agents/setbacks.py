"""Setbacks of one agent, as its connection hears of them: noted with what ended there, judged when that is committed.

Whoever is taken out has its row changed, which is locked last of all: in a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from asyncpg import Connection

from tenax.lifecycle.agent import ends_the_row, is_setback
from tenax.master.store.agents import setbacks
from tenax.master.store.allocations.containers import MemberChange
from tenax.master.store.database.connection import Database

log = structlog.get_logger("tenax.hub")


class Setbacks:
    """Owned by one connection; nobody else writes the agent's setbacks while it is the newest."""

    def __init__(self, agent_id: str) -> None:
        self._agent_id = agent_id
        #: Whether there may be a row of them, as far as is committed; and with what the open transaction writes.
        self._may_be = self._will_be = True
        self._is_new = False

    async def note(self, conn: Connection, changes: Sequence[MemberChange]) -> None:
        """Within the transaction that writes these ends."""
        ended = [(each.before.container, each.after) for each in changes]
        self._will_be, self._is_new = self._may_be, False
        # What needs no device says nothing of them.
        started = any(each.before.slots and ends_the_row(each.before.container, each.after) for each in changes)
        if self._may_be and started:
            await setbacks.forget(conn, self._agent_id)
            self._will_be = False
        reasons = {
            after.container_id: after.ending.reason
            for before, after in ended
            if after.ending is not None and is_setback(before, after)
        }
        if reasons:
            await setbacks.note(conn, self._agent_id, reasons)
            self._will_be = self._is_new = True

    async def judge(self, database: Database) -> None:
        """Once that is committed: let the agent drain, if its setbacks say so."""
        self._may_be = self._will_be
        if not self._is_new:
            return
        async with database.transaction() as conn:
            reason = await setbacks.take_out(conn, self._agent_id)
        if reason:
            log.error("agent taken out: it drains", agent=self._agent_id, reason=reason)
