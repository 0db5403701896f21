"""Timeouts: deadlines that passed, time limits that end, agents and unmanaged scripts that fell silent.

Each ends as any other event does.

Silence counts only while someone could listen: an agent is given up after the wait of its pool (`agent_reconnect_wait`;
the longest of all where its pool is no more), counted from when this master began to listen, or from when its database
came back. An agent whose tasks are heard has hung, or was stopped, and its machine has not: it is waited for longer,
since to give it up would end healthy tasks. They are asked, by an answer to what they always ask: whether to leave.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from asyncpg import Connection

from tenax.config.master import PoolSettings
from tenax.lifecycle import listening
from tenax.lifecycle.allocation import doubt
from tenax.lifecycle.container import Desired
from tenax.lifecycle.time_limit import asked_after_s
from tenax.master.allocations import events as allocation_events
from tenax.master.allocations.events import AT_ONCE
from tenax.master.allocations.verdicts import exit_lines
from tenax.master.loops.loop import PassContext, each
from tenax.master.store.agents import rows as agents
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.database.connection import now
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.experiments import unmanaged
from tenax.master.store.logs import rows as logs
from tenax.master.store.logs.rows import SystemLine

log = structlog.get_logger("tenax.timeouts")

#: How often agents are checked when no deadline comes first.
_CHECK_S = 5.0
#: An unmanaged script is given up after this silence; Determined's library sends a heartbeat once a minute.
UNMANAGED_WAIT_S = 300.0
#: An agent of which nothing came for so long is not connected, though nobody could write that its connection has ended.
_UNHEARD_S = 30.0


class Timeouts:
    """Ends what overstayed, and gives up what is lost."""

    name = "timeouts"
    kind = "deadline"

    def __init__(self, pools: Sequence[PoolSettings]) -> None:
        self.use_pools(pools)
        self._watch: listening.Listening | None = None

    def use_pools(self, pools: Sequence[PoolSettings]) -> None:
        """From the next pass on these are the pools."""
        self._waits_s = {pool.name: pool.agent_reconnect_wait for pool in pools}

    async def make_pass(self, context: PassContext, woken: Woken) -> float | None:
        """Check deadlines, time limits and silences."""
        async with context.transaction() as conn:
            self._watch = listening.observe(self._watch, (await now(conn)).timestamp(), anew=woken.full)
            await agents.evict_from_disabled(conn)
            # What would have ended while nobody was there may have had no one to save to.
            await allocations.give_time_anew(conn, await allocations.missed(conn, self._watch.seconds))
            overdue = await allocations.overdue(conn)
            await agents.ask_for_life(conn, listening.UNHEARD_S)
            silent_agents = await agents.silent(conn, self._waits_s)
            silent_trials = await unmanaged.silent(conn, UNMANAGED_WAIT_S, self._watch.seconds)
            limited = await allocations.limited(conn)
            deadline = await allocations.next_deadline_s(conn)
            await self._say_doubts(conn)
            # Last, as a sign of life is noted: whoever holds such a row waits for no other.
            if self._watch.seconds >= _UNHEARD_S:
                await agents.close_unheard(conn, _UNHEARD_S)
        async with context.transaction() as conn:
            rested = await agents.end_rests(conn)
        if rested:
            log.warning("agents that were taken out are tried again", agents=rested)
        for first in range(0, len(overdue), AT_ONCE):
            await self._end(context, overdue[first : first + AT_ONCE])
        left = {each.allocation_id: asked_after_s(each.time_limit_s) - each.held_s for each in limited}
        due = [each for each in limited if left[each.allocation_id] <= 0]
        for first in range(0, len(due), AT_ONCE):
            async with context.transaction() as conn:
                await allocations.end_in_time(conn, due[first : first + AT_ONCE])
        lost = {agent.agent_id: agent.wait_s for agent in silent_agents if agent.wait_s <= self._watch.seconds}
        await each(
            list(lost), lambda name: self._give_up_agent(context, name, lost[name]), loop=self.name, noun="agent"
        )
        trial_ids = [str(trial.trial_id) for trial in silent_trials]
        await each(trial_ids, lambda name: self._give_up_trial(context, int(name)), loop=self.name, noun="trial")
        next_s = [each for each in (deadline, *left.values()) if each is not None and each > 0]
        return max(0.05, min(_CHECK_S, *next_s)) if next_s else _CHECK_S

    def _wait_s(self, pool: str) -> float:
        """How long an agent of this pool is waited for; of one that is not in the settings, as long as of any."""
        return self._waits_s.get(pool, max(self._waits_s.values()))

    async def _end(self, context: PassContext, allocation_ids: list[str]) -> None:
        async with context.transaction() as conn:
            await allocation_events.end_members(conn, allocation_ids, Desired.KILL)

    async def _say_doubts(self, conn: Connection) -> None:
        """Gangs of which a member failed wait for the agents of the others: say so, once each."""
        doubts = {each.allocation_id: each for each in await allocations.in_doubt(conn, listening.UNHEARD_S, AT_ONCE)}
        texts = {
            name: doubt(each.rank, each.unheard, max(map(self._wait_s, each.pools))) for name, each in doubts.items()
        }
        noted = await allocations.note_doubts(conn, texts)
        lines = [SystemLine(doubts[name].task_id, texts[name], "WARNING", name) for name in sorted(noted)]
        await logs.append_system_lines(conn, lines)

    async def _give_up_agent(self, context: PassContext, agent_id: str, wait_s: float) -> None:
        async with context.transaction() as conn:
            members = await agents.live_containers(conn, agent_id)
        reason = f"node lost: no sign of life from agent {agent_id} for {wait_s:g} seconds"
        log.warning("agent given up", agent=agent_id, containers=len(members))
        for first in range(0, len(members), AT_ONCE):
            chunk = members[first : first + AT_ONCE]
            async with context.reading() as conn:
                lines = await exit_lines(conn, chunk)
            async with context.transaction() as conn:
                # It may be back since then: what it reports itself counts, and is waited for.
                await allocation_events.members_lost(conn, chunk, agent_id, reason, lines, wait_s=wait_s)

    async def _give_up_trial(self, context: PassContext, trial_id: int) -> None:
        reason = (
            f"lost: no sign of life from its script for {UNMANAGED_WAIT_S / 60:g} minutes; "
            "the trial goes on with the next one"
        )
        async with context.transaction() as conn:
            # It may be back since then.
            lost = await unmanaged.lose(conn, trial_id, UNMANAGED_WAIT_S, reason)
        if lost:
            log.warning("unmanaged trial given up", trial=trial_id)
