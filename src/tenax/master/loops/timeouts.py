"""The rescuing loop: deadlines that passed, agents and scripts that fell silent; the same path as any other event.

Silence counts only while someone could listen: an agent is given up when it was not heard for its pool's wait, counted
from when this master began to listen, or from when its database came back.
"""

from __future__ import annotations

import structlog

from tenax.lifecycle import silence
from tenax.lifecycle.container import Desired
from tenax.master.allocations import events as allocation_events
from tenax.master.loops.loop import Desk, each
from tenax.master.store.agents import rows as agents
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.database.connection import now
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.experiments import unmanaged

log = structlog.get_logger("tenax.rescuing")

#: How often agents are looked at when no deadline comes first.
_LOOK_S = 5.0
#: A script elsewhere is given up after it; Determined's library says something once a minute.
UNMANAGED_WAIT_S = 300.0


class Rescuing:
    """Ends what overstayed, and gives up what is lost."""

    name = "rescuing"
    kind = "deadline"

    def __init__(self, reconnect_wait_s: float) -> None:
        self._wait_s = reconnect_wait_s
        self._watch: silence.Listening | None = None

    async def make_pass(self, desk: Desk, woken: Woken) -> float | None:
        """Look at deadlines and silences."""
        async with desk.transaction() as conn:
            self._watch = silence.observe(self._watch, (await now(conn)).timestamp(), anew=woken.full)
            await agents.turn_out(conn)
            late = await allocations.overdue(conn)
            silent = await agents.silent(conn, self._wait_s, self._watch.seconds)
            quiet = await unmanaged.silent(conn, UNMANAGED_WAIT_S, self._watch.seconds)
            deadline = await allocations.next_deadline_s(conn)
        await each(late, lambda name: self._end(desk, name), loop=self.name)
        await each(silent, lambda name: self._give_up(desk, name), loop=self.name)
        await each([str(one.trial_id) for one in quiet], lambda name: self._lose(desk, int(name)), loop=self.name)
        return _LOOK_S if deadline is None else max(0.05, min(_LOOK_S, deadline))

    async def _end(self, desk: Desk, allocation_id: str) -> None:
        async with desk.transaction() as conn:
            await allocation_events.end_members(conn, allocation_id, Desired.KILL)

    async def _give_up(self, desk: Desk, agent_id: str) -> None:
        async with desk.transaction() as conn:
            members = await agents.live_containers(conn, agent_id)
        reason = f"node lost: the agent {agent_id} was not heard of for {self._wait_s:g} seconds"
        log.warning("agent given up", agent=agent_id, containers=len(members))
        for container_id in members:
            async with desk.transaction() as conn:
                # It may be back since the look: what it says of itself counts, and is waited for.
                if await agents.is_silent(conn, agent_id, self._wait_s):
                    await allocation_events.member_lost(conn, container_id, reason)

    async def _lose(self, desk: Desk, trial_id: int) -> None:
        reason = (
            f"lost: its script was not heard of for {UNMANAGED_WAIT_S / 60:g} minutes; "
            "the trial goes on as soon as it is heard of again"
        )
        async with desk.transaction() as conn:
            # It may be back since the look.
            lost = await unmanaged.lose(conn, trial_id, UNMANAGED_WAIT_S, reason)
        if lost:
            log.warning("unmanaged trial given up", trial=trial_id)
