"""What the queue was given and what became of it: for whoever asks what other rules would have made of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Annotated

from fastapi import Query

from tenax.errors import InvalidInput, NotFound
from tenax.master.access.authorization import Allow
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.queue import messages
from tenax.master.api.queue.usage import Text, window
from tenax.master.context import Master
from tenax.master.store.agents import lists
from tenax.master.store.agents.lists import Machines
from tenax.master.store.queue import usage
from tenax.master.store.queue.pools import rules
from tenax.master.store.queue.usage import PastAttempt
from tenax.master.store.users import groups
from tenax.scheduler.registry import USUAL

routes = Routes("Job queue")

#: An answer is in one piece.
_MAX_ATTEMPTS = 200_000


@routes.get("/api/v1/job-queues/trace", "GetQueueTrace", allow=Allow.USER)
async def get_trace(
    master: MasterDep, timestamp_after: Text, timestamp_before: Text, resource_pool: Annotated[str, Query()] = ""
) -> messages.QueueTrace:
    """What held slots in a time and has ended, of a pool or of all; and the rules, machines and groups of now."""
    if resource_pool and master.settings.pool(resource_pool) is None:
        raise NotFound(f"resource pool {resource_pool!r} not found")
    attempts: list[messages.QueueTraceAttempt] = []
    async for part in usage.trace(master.db, window(timestamp_after, timestamp_before), resource_pool or None):
        attempts += await master.readers.run(_attempts, part)
        if len(attempts) > _MAX_ATTEMPTS:
            raise InvalidInput(f"there are more than {_MAX_ATTEMPTS} attempts in this time: ask for a shorter one")
    async with master.db.snapshot() as conn:
        machines = await lists.machines(conn)
        members = await groups.usernames(conn)
    return messages.QueueTrace(
        pools=[each for each in _pools(master) if resource_pool in ("", each.name)],
        agents=[each for each in _agents(machines) if resource_pool in ("", each.resource_pool)],
        groups=[messages.QueueTraceGroup(name=name, usernames=usernames) for name, usernames in members.items()],
        attempts=attempts,
    )


def _pools(master: Master) -> list[messages.QueueTracePool]:
    return [
        messages.QueueTracePool(
            name=pool.name,
            policy=its.policy or USUAL,
            preemption=its.preemption,
            fitting=its.fitting.value,
            reservation=its.reservation,
            uneven_gangs=its.uneven_gangs,
        )
        for pool, its in ((pool, rules(pool)) for pool in master.settings.pools)
    ]


def _agents(machines: Machines) -> list[messages.QueueTraceAgent]:
    """Those that are there and not disabled."""
    makes: dict[str, Counter[tuple[str, int | None]]] = defaultdict(Counter)
    for slot in machines.slots:
        if slot.enabled:
            makes[slot.agent_id][slot.name, slot.memory] += 1
    kinds = {slot.agent_id: slot.kind for slot in machines.slots}
    return [
        messages.QueueTraceAgent(
            id=agent.agent_id,
            resource_pool=agent.pool,
            slots=makes[agent.agent_id].total(),
            kind=kinds.get(agent.agent_id, "cpu"),
            labels=agent.labels,
            devices=[
                messages.QueueTraceDevice(name=name, memory=memory, slots=count)
                for (name, memory), count in makes[agent.agent_id].items()
            ],
        )
        for agent in machines.agents
        if agent.connected and agent.state != "DISABLED"
    ]


def _attempts(rows: list[PastAttempt]) -> list[messages.QueueTraceAttempt]:
    return [_attempt(row) for row in rows]


def _attempt(row: PastAttempt) -> messages.QueueTraceAttempt:
    return messages.QueueTraceAttempt(
        task_id=row.task_id,
        job=row.job,
        username=row.username,
        workspace_name=row.workspace_name,
        resource_pool=row.pool,
        slots=row.slots,
        requested_at=row.requested_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        priority=row.priority,
        weight=row.weight,
        max_slots=row.max_slots,
        single_node=row.single_node,
        preemptible=row.preemptible,
        time_limit_s=row.time_limit_s,
        constraints=row.constraints,
    )
