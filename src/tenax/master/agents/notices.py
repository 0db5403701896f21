"""What an agent hears from its cloud about its machine's end: its agent is closed, and what runs there asked to leave.

Rules: the agent is closed first, so that nothing is placed there after those are asked who are there; asking again
changes nothing but a time that is shorter now. What was asked to leave leaves, also where the notice is taken back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from tenax.errors import TryAgain
from tenax.lifecycle.notice import CloudNotice, Heeded, NoticePlan, Rebalance, heeded, log_text
from tenax.master.store.agents import notices as rows
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.allocations.rows import LeaveRequest
from tenax.master.store.database.connection import Database
from tenax.master.store.logs import rows as logs
from tenax.master.store.logs.rows import SystemLine
from tenax.wire.agents import MachineNotices

log = structlog.get_logger("tenax.hub")

#: Of one message, and characters of each.
_MAX_NOTICES, _MAX_TEXT = 16, 300
#: Allocations in one transaction.
_AT_ONCE = 100


class Forewarned:
    """Owned by one connection of an agent."""

    def __init__(self, agent_id: str, session: int) -> None:
        self._agent_id = agent_id
        self._session = session
        self._message: MachineNotices | None = None
        self._news = asyncio.Event()

    def hear(self, message: MachineNotices) -> None:
        """What is said now takes the place of what was said before."""
        self._message = message
        self._news.set()

    async def run(self, database: Database, rebalance_of: Callable[[str], Rebalance]) -> None:
        """Act on what is heard, for ever; ``rebalance_of``: what a pool makes of advice. Raises TryAgain."""
        while True:
            await self._news.wait()
            self._news.clear()
            assert self._message is not None
            await self._act(database, self._message, rebalance_of)

    async def _act(self, database: Database, message: MachineNotices, rebalance_of: Callable[[str], Rebalance]) -> None:
        received = [
            CloudNotice(each.kind, _text(each.reason), each.within_s) for each in message.notices[:_MAX_NOTICES]
        ]
        async with database.transaction() as conn:
            notice = heeded(received, rebalance_of(await rows.pool_of(conn, self._agent_id)))
            if not await rows.put(conn, self._agent_id, self._session, notice):
                raise TryAgain("a newer connection of this agent is open")
        if notice is None:
            return
        log.warning("a machine is going to end", agent=self._agent_id, plan=notice.plan.value, reason=notice.reason)
        if notice.plan is NoticePlan.LEAVE:
            await self._ask_to_leave(database, notice)

    async def _ask_to_leave(self, database: Database, notice: Heeded) -> None:
        async with database.connection() as conn:
            attempts = await rows.attempts_on(conn, self._agent_id)
        within_s = notice.to_save_s
        for first in range(0, len(attempts), _AT_ONCE):
            chunk = attempts[first : first + _AT_ONCE]
            # What has not come up has nothing to save.
            requests = [
                LeaveRequest(each.allocation_id, notice.reason, within_s if each.ready else 0.0) for each in chunk
            ]
            lines = [
                SystemLine(each.task_id, log_text(notice, each.saved_in_s), "WARNING", each.allocation_id)
                for each in chunk
                if each.ready and each.is_new
            ]
            async with database.transaction() as conn:
                await allocations.ask_to_leave(conn, requests)
                await logs.append_system_lines(conn, lines)


def _text(given: str) -> str:
    return given.replace("\0", "")[:_MAX_TEXT] or "its cloud says that this machine ends"
