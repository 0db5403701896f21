"""Signs of life of all agents that are connected here: those that come together are noted in one statement.

Rules:

- However many agents there are and however far away the database is, their signs of life take one connection. Each in a
  transaction of its own, fifty agents kept every connection busy where a round trip takes 100 ms, and were given up.
- A row that somebody else holds is waited for by its own agent alone; so is what could not be noted together.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from tenax.errors import TryAgain
from tenax.master.store.agents import rows as agents
from tenax.master.store.database.connection import Database


@dataclass(slots=True, eq=False)
class _Sign:
    agent_id: str
    session: int
    #: Whether it was among others that were to be noted together.
    was_tried: bool = False
    #: Whether it came over the agent's newest connection; None: nothing was noted.
    is_current: bool | None = None


class SignsOfLife:
    """Of one hub."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._waiting: set[_Sign] = set()
        self._turn = asyncio.Lock()

    async def note(self, agent_id: str, session: int) -> bool:
        """Note that the agent was heard; False, and nothing noted, if it has a newer connection. Raises TryAgain."""
        sign = _Sign(agent_id, session)
        self._waiting.add(sign)
        try:
            # Whoever is first in turn notes what came meanwhile, for all.
            async with self._turn:
                if not sign.was_tried:
                    await self._note_all()
        finally:
            self._waiting.discard(sign)
        return await self._note_alone(sign) if sign.is_current is None else sign.is_current

    async def _note_all(self) -> None:
        together, self._waiting = self._waiting, set()
        try:
            async with self._db.connection() as conn:
                current = await agents.heartbeats(conn, {(each.agent_id, each.session) for each in together})
            for each in together:
                each.is_current = current.get((each.agent_id, each.session))
        except TryAgain:
            pass
        except asyncio.CancelledError:
            self._waiting |= together
            raise
        for each in together:
            each.was_tried = True

    async def _note_alone(self, sign: _Sign) -> bool:
        async with self._db.transaction() as conn:
            return await agents.heartbeat(conn, sign.agent_id, sign.session)
