"""Resource pools: shown to everyone; bound to workspaces by administrators."""

from __future__ import annotations

from typing import Annotated, TypedDict

from fastapi import Query, Response

from tenax.config.master import PoolSettings
from tenax.errors import Forbidden, InvalidInput, NotFound
from tenax.master.access.authorization import Allow, Caller
from tenax.master.api.agents.messages import DeviceType
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.paging import Window, WindowDep, shared_answer
from tenax.master.api.http.routing import Routes
from tenax.master.api.queue import messages
from tenax.master.api.queue.jobs import queue_stats
from tenax.master.context import Master
from tenax.master.store.queue import pools
from tenax.master.store.queue.pools import PoolSupply
from tenax.scheduler.registry import POLICIES
from tenax.wire.message import Empty

routes = Routes("Resource pools")

_BINDINGS = "/api/v1/resource-pools/{resource_pool_name}/workspace-bindings"


@routes.get(
    "/api/v1/resource-pools", "GetResourcePools", allow=Allow.USER, response_model=messages.GetResourcePoolsResponse
)
async def get_pools(master: MasterDep, window: WindowDep, unbound: Annotated[bool, Query()] = False) -> Response:
    """All pools, by name; with ``unbound`` those that every workspace may use."""
    key = ("GetResourcePools", window, unbound)
    return await shared_answer(master, key, lambda: _page(master, window, unbound))


async def _page(master: Master, window: Window, unbound: bool) -> messages.GetResourcePoolsResponse:
    settings = master.settings
    async with master.db.snapshot() as conn:
        supplies = await pools.supplies(conn)
        bound = await pools.bindings(conn)
        named = sorted(settings.pools, key=lambda pool: pool.name)
        listed = [pool for pool in named if not (unbound and pool.name in bound)]
        page, pagination = window.of(len(listed))
        shown = listed[page.offset : page.offset + (page.limit or 0)]
    stats = await queue_stats(master, settings, [pool.name for pool in shown]) if shown else {}
    listed_pools = [
        _message(master, pool, supplies.get(pool.name, PoolSupply()), stats[pool.name], pool.name in bound)
        for pool in shown
    ]
    return messages.GetResourcePoolsResponse(resource_pools=listed_pools, pagination=pagination)


@routes.get(_BINDINGS, "ListWorkspacesBoundToRP", allow=Allow.USER)
async def bound_workspaces(
    master: MasterDep, window: WindowDep, resource_pool_name: str
) -> messages.BoundWorkspacesResponse:
    """The workspaces that a pool is kept for; none: it is for all."""
    _known(master, resource_pool_name)
    async with master.db.connection() as conn:
        workspace_ids = await pools.bound_workspaces(conn, resource_pool_name)
    page, pagination = window.of(len(workspace_ids))
    shown = workspace_ids[page.offset : page.offset + (page.limit or 0)]
    return messages.BoundWorkspacesResponse(workspace_ids=shown, pagination=pagination)


@routes.get("/api/v1/workspaces/{workspace_id}/available-resource-pools", "ListRPsBoundToWorkspace", allow=Allow.USER)
async def usable_pools(master: MasterDep, window: WindowDep, workspace_id: int) -> messages.UsablePoolsResponse:
    """The pools that a workspace may use: those that are kept for it, and those that are for all."""
    async with master.db.snapshot() as conn:
        names = await pools.usable(conn, workspace_id, sorted(pool.name for pool in master.settings.pools))
    page, pagination = window.of(len(names))
    shown = names[page.offset : page.offset + (page.limit or 0)]
    return messages.UsablePoolsResponse(resource_pools=shown, pagination=pagination)


@routes.post(_BINDINGS, "BindRPToWorkspace", allow=Allow.USER)
async def bind(master: MasterDep, caller: CallerDep, resource_pool_name: str, body: messages.BindingRequest) -> Empty:
    """Keep a pool for these workspaces, beside those that it is kept for already."""
    _check_may_bind(master, caller, resource_pool_name)
    async with master.db.transaction() as conn:
        workspace_ids = await pools.workspace_ids(conn, body.workspace_ids, body.workspace_names)
        if not workspace_ids:
            raise InvalidInput("workspaceIds and workspaceNames are empty: name the workspaces to keep the pool for")
        await pools.bind(conn, resource_pool_name, workspace_ids)
    return Empty()


@routes.put(_BINDINGS, "OverwriteRPWorkspaceBindings", allow=Allow.USER)
async def rebind(master: MasterDep, caller: CallerDep, resource_pool_name: str, body: messages.BindingRequest) -> Empty:
    """Keep a pool for these workspaces and no others; none: it is for all again."""
    _check_may_bind(master, caller, resource_pool_name)
    async with master.db.transaction() as conn:
        workspace_ids = await pools.workspace_ids(conn, body.workspace_ids, body.workspace_names)
        await pools.rebind(conn, resource_pool_name, workspace_ids)
    return Empty()


@routes.delete(_BINDINGS, "UnbindRPFromWorkspace", allow=Allow.ADMIN)
async def unbind(master: MasterDep, resource_pool_name: str, body: messages.BindingRequest) -> Empty:
    """Keep a pool for these workspaces no longer."""
    async with master.db.transaction() as conn:
        workspace_ids = await pools.workspace_ids(conn, body.workspace_ids, body.workspace_names)
        # Also of a pool that is not there any more: what is left of it can be cleared away.
        if not await pools.bound_workspaces(conn, resource_pool_name):
            _known(master, resource_pool_name)
        await pools.unbind(conn, resource_pool_name, workspace_ids)
    return Empty()


def _known(master: Master, name: str) -> PoolSettings:
    pool = master.settings.pool(name)
    if pool is None:
        known = ", ".join(sorted(pool.name for pool in master.settings.pools))
        raise NotFound(f"resource pool {name!r} not found; the pools are {known}")
    return pool


def _check_may_bind(master: Master, caller: Caller, name: str) -> None:
    """What is wrong for everyone is said first. Raises NotFound, InvalidInput, Forbidden."""
    _known(master, name)
    if name in (master.settings.default_compute_pool, master.settings.default_aux_pool):
        raise InvalidInput(
            f"{name!r} is the cluster's default pool, which is for everyone: make another one the default first "
            "(default_compute_pool, default_aux_pool in the master's configuration)"
        )
    if not caller.is_admin:
        raise Forbidden("only administrators may keep a pool for workspaces")


def _message(
    master: Master, pool: PoolSettings, supply: PoolSupply, stats: messages.QueueStats, bound: bool
) -> messages.ResourcePool:
    settings = master.settings
    places = pool.max_aux_containers_per_agent
    policy = POLICIES[pool.scheduler.type]
    return messages.ResourcePool(
        **_rented(pool),
        name=pool.name,
        description=pool.description,
        num_agents=supply.agents,
        slots_available=supply.slots,
        slots_used=supply.used,
        slots_total=supply.total,
        slot_type=DeviceType.of(supply.kinds[0]) if len(supply.kinds) == 1 else DeviceType.UNSPECIFIED,
        slots_per_agent=-1 if supply.slots_per_agent is None or not supply.agents else supply.slots_per_agent,
        accelerator=", ".join(supply.devices) if "cpu" not in supply.kinds else "",
        aux_container_capacity=places * supply.agents,
        aux_container_capacity_per_agent=places,
        aux_containers_running=supply.auxiliary,
        default_compute_pool=pool.name == settings.default_compute_pool,
        default_aux_pool=pool.name == settings.default_aux_pool,
        scheduler_type=messages.SchedulerType.of(policy.name),
        policy=policy.name,
        scheduler_fitting_policy=messages.FittingPolicy[pool.scheduler.fitting_policy.name],
        details=messages.PoolDetail(
            priority_scheduler=messages.PrioritySchedulerDetail(
                preemption=pool.scheduler.preemption or policy.always_preempts,
                default_priority=pool.scheduler.default_priority,
            )
            if policy.in_turns
            else None
        ),
        stats=stats,
        cluster_name=master.cluster.name,
        bound=bound,
    )


class _Rented(TypedDict, total=False):
    type: messages.PoolType
    min_agents: int
    max_agents: int
    max_idle_agent_period: float
    max_agent_starting_period: float
    instance_type: str
    location: str


def _rented(pool: PoolSettings) -> _Rented:
    """What a pool says of machines that are rented for it; nothing where none are."""
    provider = pool.provider
    if provider is None:
        return {}
    return {
        "type": messages.PoolType[provider.type.upper()],
        "min_agents": provider.min_instances,
        "max_agents": provider.max_instances,
        "max_idle_agent_period": provider.max_idle_agent_period,
        "max_agent_starting_period": provider.max_agent_starting_period,
        "instance_type": ", ".join(dict.fromkeys(offer.type_name for offer in provider.each_offer())),
        "location": provider.region,
    }
