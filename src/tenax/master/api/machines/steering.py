"""Rented machines, steered by administrators: which are to come, and which to end.

What is asked for is written here, and done by the loop that rents: whoever is killed in between, it is done.
"""

from __future__ import annotations

from tenax.errors import InvalidInput
from tenax.lifecycle.machine import Dismissal, dismissed
from tenax.master.access.authorization import Allow
from tenax.master.access.task_tokens import machine_token, token_hash
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.machines import messages
from tenax.master.api.machines.routes import machine_view, renting_pools
from tenax.master.provision.budgets import budget_states
from tenax.master.provision.offers import rented_by_hand
from tenax.master.provision.orders import ordered
from tenax.master.store.agents import rows as agents
from tenax.master.store.database.connection import now
from tenax.master.store.machines import rows as machines
from tenax.master.store.machines.rows import RentedPool

routes = Routes("Machines")
#: Machines of one request.
MAX_NAMED = 100


@routes.post("/api/v1/machines/launch", "LaunchMachines", allow=Allow.ADMIN, creates=True)
async def launch_machines(
    master: MasterDep, caller: CallerDep, body: messages.LaunchMachinesRequest
) -> messages.LaunchMachinesResponse:
    """Rent machines now, all of them or none, within the limits of their pool; each then lives as any other."""
    if not 1 <= body.count <= MAX_NAMED:
        raise InvalidInput(f"count is how many machines to rent: 1 to {MAX_NAMED}")
    if not body.resource_pool:
        raise InvalidInput("name the pool for which machines are rented (resource_pool)")
    [(pool, provider)] = renting_pools(master, body.resource_pool)
    settings, secret = master.settings, master.cluster.secret
    async with master.db.transaction() as conn:
        # From here on nobody else rents for it: what is counted now holds.
        await machines.hold_pool(conn, pool.name)
        there = (await machines.of_pools(conn)).get(pool.name, RentedPool())
        budgets = (await budget_states(conn, settings.pools, settings.renting)).get(pool.name, ())
        at = (await now(conn)).timestamp()
        launch = rented_by_hand(pool, provider, there, budgets, at, body.count, body.offer)
        why = f"rented by {caller.person.username}"
        new = ordered(pool, launch, there.facts, why, lambda name: token_hash(machine_token(secret, name)))
        await machines.plan(conn, new)
        rows = [await machines.get(conn, each.machine_id) for each in new]
    return messages.LaunchMachinesResponse(machines=[machine_view(row) for row in rows])


@routes.post("/api/v1/machines/end", "EndMachines", allow=Allow.ADMIN)
async def end_machines(
    master: MasterDep, caller: CallerDep, body: messages.EndMachinesRequest
) -> messages.EndMachinesResponse:
    """Let machines go: each takes nothing new, and is ended once its work has left; all of them, or none."""
    names = list(dict.fromkeys(body.machine_ids))
    if not 1 <= len(names) <= MAX_NAMED:
        raise InvalidInput(f"name the machines that are to end (machine_ids): 1 to {MAX_NAMED}, not {len(names)}")
    dismissal = Dismissal.NOW if body.now else Dismissal.LEAVE
    story = f"ended by {caller.person.username}" + (" at once" if body.now else "")
    async with master.db.transaction() as conn:
        rows = [await machines.get(conn, name) for name in sorted(names)]
        for row in rows:
            dismissed(row.machine_id, row.state, row.dismissal, dismissal, row.story)
        # In the order of locks: agents, then machines.
        for row in rows:
            await agents.set_state_if_there(conn, row.machine_id, "DISABLED" if body.now else "DRAINING", story)
        for row in rows:
            await machines.dismiss(conn, row, dismissal, story)
    for name in names if body.now else ():
        async with master.db.transaction() as conn:
            await agents.evict_from_disabled(conn, name)
    async with master.db.connection() as conn:
        return messages.EndMachinesResponse(machines=[machine_view(await machines.get(conn, name)) for name in names])
