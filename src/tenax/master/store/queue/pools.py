"""Resource pools: which workspaces they are bound to, what their agents have, and their settings for the scheduler.

Rules: a pool that is bound can be used by its workspaces alone, one that is not by all. Pools themselves are settings
of the master; a binding of one that is not there any more has no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from asyncpg import Connection

from tenax.config.master import PoolSettings
from tenax.errors import AlreadyExists, NotFound, NotNow
from tenax.master.store.database.queries import existing, load
from tenax.scheduler.snapshot import PoolRules

Q = load("queue")


@dataclass(frozen=True, slots=True)
class PoolSupply:
    """What the connected agents of a pool have."""

    agents: int = 0
    #: That take work, or still hold some.
    slots: int = 0
    used: int = 0
    #: Of all its agents, also of those that take no work or are not connected.
    total: int = 0
    #: cpu, cuda, rocm.
    kinds: tuple[str, ...] = ()
    #: Product names.
    devices: tuple[str, ...] = ()
    #: Of every agent; None where they differ, or there is none.
    slots_per_agent: int | None = None
    #: Containers without slots.
    auxiliary: int = 0


async def supplies(conn: Connection) -> dict[str, PoolSupply]:
    """By pool; one without agents is not there."""
    auxiliary = {row["pool"]: row["running"] for row in await conn.fetch(Q.auxiliary)}
    return {
        row["pool"]: PoolSupply(
            row["agents"],
            row["slots"],
            row["used"],
            row["total"],
            tuple(row["kinds"] or ()),
            tuple(row["devices"] or ()),
            row["most_slots"] if row["most_slots"] == row["fewest_slots"] else None,
            auxiliary.get(row["pool"], 0),
        )
        for row in await conn.fetch(Q.machines)
    }


async def bindings(conn: Connection) -> dict[str, list[int]]:
    """The workspaces of each pool that is bound."""
    return {row["pool"]: row["workspaces"] for row in await conn.fetch(Q.all_bindings)}


async def bound_workspaces(conn: Connection, pool: str) -> list[int]:
    """The workspaces that a pool is kept for; none: it is for all."""
    return [row["workspace_id"] for row in await conn.fetch(Q.bound_workspaces, pool)]


async def usable(conn: Connection, workspace_id: int, pools: Sequence[str]) -> list[str]:
    """Those of ``pools`` that a workspace may use. Raises NotFound."""
    await existing(conn, f"workspace {workspace_id}", Q.workspace, workspace_id)
    bound = await bindings(conn)
    return [pool for pool in pools if pool not in bound or workspace_id in bound[pool]]


async def check_usable(conn: Connection, pool: str, workspace_id: int) -> None:
    """Raises NotNow where a pool is kept for other workspaces."""
    bound = await bound_workspaces(conn, pool)
    if bound and workspace_id not in bound:
        name = await conn.fetchval(Q.workspace, workspace_id)
        raise NotNow(
            f"the pool {pool!r} is kept for other workspaces than {name!r}: choose another pool, or ask an "
            "administrator to bind this one to the workspace"
        )


async def workspace_ids(conn: Connection, ids: Iterable[int], names: Iterable[str]) -> list[int]:
    """Workspaces by number and by name, each once. Raises NotFound, naming those that are not there."""
    requested, named = dict.fromkeys(ids), {name.lower(): name for name in names}
    rows = await conn.fetch(Q.known_workspaces, list(requested), list(named))
    numbers = {row["id"] for row in rows}
    missing = [str(number) for number in requested if number not in numbers]
    known_names = {row["name"].lower() for row in rows}
    missing += [repr(name) for key, name in named.items() if key not in known_names]
    if missing:
        raise NotFound(f"workspace {', '.join(missing)} not found")
    return sorted(numbers)


async def bind(conn: Connection, pool: str, workspaces: Sequence[int]) -> None:
    """Keep a pool for these workspaces, beside those that it is kept for already. Raises AlreadyExists."""
    await conn.execute(Q.lock_pool, pool)
    made = {row["workspace_id"] for row in await conn.fetch(Q.bind, pool, workspaces)}
    twice = [workspace_id for workspace_id in workspaces if workspace_id not in made]
    if twice:
        names = [await conn.fetchval(Q.workspace, workspace_id) for workspace_id in twice]
        raise AlreadyExists(f"binding already exists: the pool {pool!r} is bound to {', '.join(map(repr, names))}")


async def unbind(conn: Connection, pool: str, workspaces: Sequence[int]) -> None:
    """Keep a pool for these workspaces no longer; nothing for those that it was not kept for."""
    await conn.execute(Q.lock_pool, pool)
    await conn.execute(Q.unbind, pool, workspaces)


async def rebind(conn: Connection, pool: str, workspaces: Sequence[int]) -> None:
    """Keep a pool for these workspaces and no others; none: it is for all."""
    await conn.execute(Q.lock_pool, pool)
    await conn.execute(Q.unbind_others, pool, workspaces)
    await conn.fetch(Q.bind, pool, workspaces)


def rules(pool: PoolSettings) -> PoolRules:
    """A pool's settings, as the scheduler takes them."""
    return PoolRules(
        policy=pool.scheduler.type,
        preemption=pool.scheduler.preemption,
        fitting=pool.scheduler.fitting_policy,
        uneven_gangs=pool.scheduler.allow_heterogeneous_fits,
        reservation=pool.scheduler.reservation,
    )
