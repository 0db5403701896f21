"""Whether a trial whose log policies exclude machines could still run anywhere.

Rules it keeps: only what the exclusions cause is reported here; a pool that could not run it with every machine allowed
is another matter, and is waited for. Agents that are away count, for they may come back; disabled ones do not.
"""

from __future__ import annotations

from asyncpg import Connection

from tenax.ids import AgentId
from tenax.jsonvalue import JsonObject
from tenax.master.store.experiments.rows import Plan
from tenax.master.store.logs import policies as log_policies
from tenax.master.store.queue import placements
from tenax.master.store.trials.rows import Size
from tenax.scheduler.fitting import can_never_fit


async def nowhere_left(conn: Connection, trial_id: int, plan: Plan) -> str | None:
    """Why no agent that is left has room for another run, with the arithmetic; None: one has, or none is excluded."""
    excluded = await log_policies.excluded(conn, trial_id)
    if not excluded:
        return None
    # By capacity alone: how a pool spreads a gang is a matter of waiting, and explained there.
    snapshots = await placements.snapshots(conn, {}, {})
    snapshot = next((snapshot for snapshot in snapshots if snapshot.pool == plan.pool), None)
    if snapshot is None:
        return None
    size = size_of(plan.config)
    if can_never_fit(size.slots, snapshot, single_node=size.single_node) is not None:
        return None
    blocked = frozenset(AgentId(name) for name in excluded)
    why = can_never_fit(size.slots, snapshot, single_node=size.single_node, blocked_agents=blocked)
    return why and f"log policies excluded {', '.join(excluded)}, and nothing else can run it: {why}"


def size_of(config: JsonObject) -> Size:
    """What each trial of a configuration asks for."""
    resources = config.get("resources")
    section = resources if isinstance(resources, dict) else {}
    slots = section.get("slots_per_trial")
    return Size(slots if isinstance(slots, int) else 1, section.get("is_single_node") is True)
