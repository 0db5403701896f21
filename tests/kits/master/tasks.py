"""Commands and generic tasks: launched by their loop, placed on an agent, and ended."""

from __future__ import annotations

import uuid

from tenax.lifecycle.container import ContainerState, Ending
from tenax.master.allocations import events as allocation_events
from tenax.master.allocations.events import MemberReport
from tenax.master.loops.loop import PassContext
from tenax.master.loops.reconcile_tasks import ReconcileTasks
from tenax.master.store.allocations import containers
from tenax.master.store.allocations.containers import NewMember
from tenax.master.store.database import leases
from tenax.master.store.database.queries import load
from tenax.master.store.database.wakeups import Woken
from tests.kits.api import Api
from tests.kits.rows import add_agent


async def tended(api: Api) -> None:
    """What the loop does for all tasks."""
    async with api.master.db.transaction() as conn:
        lease = await leases.acquire(conn, "reconcile_tasks", "test", 3600.0)
    assert lease is not None
    for _ in range(3):
        await ReconcileTasks().make_pass(PassContext(api.master.db, lease), Woken(frozenset(), full=True))


async def placed(api: Api, task_id: str, run: int = 1) -> str:
    """Its attempt runs on an agent, as the scheduler and the agent would make it; the container."""
    await tended(api)
    name = str(uuid.uuid4())
    async with api.master.db.transaction() as conn:
        await add_agent(conn)
        await conn.execute(load("allocations").place, f"{task_id}.{run}")
        await containers.create(conn, f"{task_id}.{run}", [NewMember(name, 0, "a1", [])])
    async with api.master.db.transaction() as conn:
        await allocation_events.members_reported(conn, [MemberReport(name, ContainerState.RUNNING, None, "10.0.0.1")])
    return name


async def ended(api: Api, container_id: str, ending: Ending) -> None:
    async with api.master.db.transaction() as conn:
        await allocation_events.members_reported(conn, [MemberReport(container_id, ContainerState.TERMINATED, ending)])
