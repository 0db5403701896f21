"""What a task's log says about what cannot be stored for it: a line, once, where megabytes found no room."""

from __future__ import annotations

import structlog

from tenax.errors import TenaxError
from tenax.master.store import logs
from tenax.master.store.database import Database

log = structlog.get_logger("tenax.intake")

_KEPT = 50_000


class Notices:
    """Adds such lines. For one event loop; another master, or a later one, may say the same again."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._said: set[tuple[str, str]] = set()

    async def once(self, task_id: str, what: str, reason: str) -> None:
        """Warn in the log of a task, unless it was told that already: ``what`` becomes of it, and the reason.

        Raises nothing: where not even a line can be stored, the server's log has to do.
        """
        if (task_id, what) in self._said:
            return
        if len(self._said) >= _KEPT:
            self._said.clear()
        self._said.add((task_id, what))
        log.warning(what, task=task_id, reason=reason)
        try:
            async with self._database.transaction() as conn:
                await logs.append_system_line(conn, task_id, f"{what}: {reason}", "WARNING")
        except TenaxError as error:
            log.warning("the task's log cannot say so", task=task_id, reason=str(error))
