"""What becomes of a machine whose agent reaches no master: a rented one powers itself off, as nobody else may.

Rules: nothing is done while a container runs here, known or not, nor where that cannot be seen; an end that could not
be told keeps no machine. A master that is heard in the meantime takes it all back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import structlog

from tenax.agent.hooks import run_hook
from tenax.runtime.port import Runtime, RuntimeAway

log = structlog.get_logger("tenax.agent")

#: Seconds between two looks at what runs here.
_LOOK_S = 30.0


class MasterContact:
    """Since when no master is heard; none was when this is made."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        #: None: a connection stands.
        self._lost_at: float | None = now()

    def made(self) -> None:
        self._lost_at = None

    def lost(self) -> None:
        if self._lost_at is None:
            self._lost_at = self._now()

    def unheard_s(self) -> float:
        """Seconds without a master; 0 while one is there."""
        return 0.0 if self._lost_at is None else self._now() - self._lost_at


async def watch(contact: MasterContact, runtime: Runtime, limit_s: float, program: Sequence[str]) -> None:
    """Run the program whenever this machine is an orphan; for ever."""
    while True:
        left_s = limit_s - contact.unheard_s()
        if left_s > 0:
            await asyncio.sleep(min(left_s, _LOOK_S))
        elif await _is_busy(runtime):
            await asyncio.sleep(min(limit_s, _LOOK_S))
        else:
            log.error("no master is heard, and nothing runs here: this machine is given up", seconds=limit_s)
            await run_hook("on_orphaned", program)
            await asyncio.sleep(limit_s)


async def _is_busy(runtime: Runtime) -> bool:
    try:
        return any(container.state != "exited" for container in await runtime.find())
    except (OSError, RuntimeAway) as error:
        log.warning("cannot see what runs here", reason=str(error))
        return True
