"""Agents and slots: shown to everyone; enabled, disabled, drained and removed by administrators.

Rules it keeps: a disabled agent or slot takes nothing new; unless it is only drained, what runs there is ended and goes
back into the queue, which costs no trial a restart. The loop `timeouts` goes over what was disabled once more, so that
nothing is missed between two transactions.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Annotated

from fastapi import Query, Response

from tenax.errors import NotFound, NotNow
from tenax.master.access.authorization import Allow
from tenax.master.allocations import events as allocation_events
from tenax.master.allocations.events import AT_ONCE
from tenax.master.api.agents import messages
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.paging import JSON, WindowDep, as_json
from tenax.master.api.http.routing import Routes
from tenax.master.context import Master
from tenax.master.store.agents import lists as agent_lists
from tenax.master.store.agents import rows as agents
from tenax.master.store.agents.lists import AgentView, ContainerView, Machines, SlotView
from tenax.wire.message import Empty

routes = Routes("Agents")


@routes.get("/api/v1/agents", "GetAgents", allow=Allow.USER, response_model=messages.GetAgentsResponse)
async def get_agents(
    master: MasterDep,
    window: WindowDep,
    sort_by: Annotated[messages.AgentSortBy, Query()] = messages.AgentSortBy.UNSPECIFIED,
    exclude_slots: Annotated[bool, Query()] = False,
    exclude_containers: Annotated[bool, Query()] = False,
) -> Response:
    """All agents that ever joined and were not removed."""

    def made(machines: Machines) -> bytes:
        listed = agent_messages(machines)
        if sort_by is messages.AgentSortBy.TIME:
            listed.sort(key=lambda agent: (agent.registered_time is None, agent.registered_time, agent.id))
        else:
            listed.sort(key=lambda agent: agent.id)
        if window.descending:
            listed.reverse()
        page, pagination = window.of(len(listed))
        shown = listed[page.offset : page.offset + (page.limit or 0)]
        for agent in shown:
            if exclude_slots:
                agent.slots = {}
            if exclude_containers:
                agent.containers = {}
        return as_json(messages.GetAgentsResponse(agents=shown, pagination=pagination))

    async def look() -> bytes:
        async with master.db.connection() as conn:
            machines = await agent_lists.machines(conn)
        # Thousands of slots are too many for the event loop.
        return await master.readers.run(made, machines)

    key = ("GetAgents", window, sort_by, exclude_slots, exclude_containers)
    return Response(await master.single_flight.share(key, look), media_type=JSON)


@routes.get("/api/v1/agents/{agent_id}", "GetAgent", allow=Allow.USER)
async def get_agent(master: MasterDep, agent_id: str) -> messages.GetAgentResponse:
    """One agent."""
    return messages.GetAgentResponse(agent=await _agent(master, agent_id))


@routes.get("/api/v1/agents/{agent_id}/slots", "GetSlots", allow=Allow.USER)
async def get_slots(master: MasterDep, agent_id: str) -> messages.GetSlotsResponse:
    """The slots of an agent."""
    return messages.GetSlotsResponse(slots=list((await _agent(master, agent_id)).slots.values()))


@routes.get("/api/v1/agents/{agent_id}/slots/{slot_id}", "GetSlot", allow=Allow.USER)
async def get_slot(master: MasterDep, agent_id: str, slot_id: int) -> messages.GetSlotResponse:
    """One slot."""
    return messages.GetSlotResponse(slot=await _slot(master, agent_id, slot_id))


@routes.post("/api/v1/agents/{agent_id}/enable", "EnableAgent", allow=Allow.ADMIN)
async def enable_agent(master: MasterDep, agent_id: str) -> messages.GetAgentResponse:
    """Enable it: it takes work again."""
    async with master.db.transaction() as conn:
        await agents.set_agent(conn, agent_id, "ENABLED")
    return messages.GetAgentResponse(agent=await _agent(master, agent_id))


@routes.post("/api/v1/agents/{agent_id}/disable", "DisableAgent", allow=Allow.ADMIN)
async def disable_agent(master: MasterDep, agent_id: str, body: messages.DisableRequest) -> messages.GetAgentResponse:
    """Disable it: it takes nothing new. What runs there is placed elsewhere, or with ``drain`` may finish."""
    async with master.db.transaction() as conn:
        await agents.set_agent(conn, agent_id, "DRAINING" if body.drain else "DISABLED")
    async with master.db.transaction() as conn:
        await agents.evict_from_disabled(conn, agent_id)
    return messages.GetAgentResponse(agent=await _agent(master, agent_id))


@routes.post("/api/v1/agents/{agent_id}/slots/{slot_id}/enable", "EnableSlot", allow=Allow.ADMIN)
async def enable_slot(master: MasterDep, agent_id: str, slot_id: int) -> messages.GetSlotResponse:
    """Enable it: new work may use it again."""
    async with master.db.transaction() as conn:
        await agents.set_slot(conn, agent_id, slot_id, enabled=True)
    return messages.GetSlotResponse(slot=await _slot(master, agent_id, slot_id))


@routes.post("/api/v1/agents/{agent_id}/slots/{slot_id}/disable", "DisableSlot", allow=Allow.ADMIN)
async def disable_slot(
    master: MasterDep, agent_id: str, slot_id: int, body: messages.DisableRequest
) -> messages.GetSlotResponse:
    """Disable it: no new work uses it. What runs on it is placed elsewhere, or with ``drain`` may finish."""
    async with master.db.transaction() as conn:
        await agents.set_slot(conn, agent_id, slot_id, enabled=False, draining=body.drain)
    async with master.db.transaction() as conn:
        await agents.evict_from_disabled(conn, agent_id)
    return messages.GetSlotResponse(slot=await _slot(master, agent_id, slot_id))


@routes.delete("/api/v1/agents/{agent_id}", "RemoveAgent", allow=Allow.ADMIN)
async def remove_agent(master: MasterDep, agent_id: str, force: Annotated[bool, Query()] = False) -> Empty:
    """Remove an agent that is gone for good, with its slots; with ``force`` what still counts as running is lost."""
    async with master.db.connection() as conn:
        now = await agents.presence(conn, agent_id)
        running = await agents.live_containers(conn, agent_id)
    if now.connected:
        raise NotNow(f"agent {agent_id!r} is connected: stop it on its machine first, then remove it")
    if running and not force:
        raise NotNow(
            f"{len(running)} containers may still run on agent {agent_id!r}: wait until they are given up, or give "
            "them up now with force"
        )
    reason = f"node lost: the agent {agent_id} was removed"
    for first in range(0, len(running), AT_ONCE):
        async with master.db.transaction() as conn:
            await allocation_events.members_lost(conn, running[first : first + AT_ONCE], agent_id, reason)
    async with master.db.transaction() as conn:
        await agents.remove(conn, agent_id)
    return Empty()


def agent_messages(machines: Machines) -> list[messages.Agent]:
    """Agents with their slots and containers, as clients see them."""
    slots: dict[str, list[SlotView]] = defaultdict(list)
    containers: dict[str, list[ContainerView]] = defaultdict(list)
    for slot in machines.slots:
        slots[slot.agent_id].append(slot)
    for container in machines.containers:
        containers[container.agent_id].append(container)
    return [_message(agent, slots[agent.agent_id], containers[agent.agent_id]) for agent in machines.agents]


def slot_stats(slots: list[messages.Slot]) -> messages.SlotStats:
    """How many slots there are, by type and by brand, and what they do."""
    stats = messages.SlotStats()
    for slot in slots:
        for groups, name in ((stats.type_stats, slot.device.type.value), (stats.brand_stats, slot.device.brand)):
            group = groups.setdefault(name, messages.DeviceStats())
            group.total += 1
            group.disabled += not slot.enabled
            group.draining += slot.draining
            # As Determined has it: what they do is told by type alone.
            if slot.container is not None and groups is stats.type_stats:
                group.states[slot.container.state] = group.states.get(slot.container.state, 0) + 1
    return stats


async def _agent(master: Master, agent_id: str) -> messages.Agent:
    async with master.db.connection() as conn:
        return agent_messages(await agent_lists.machines(conn, agent_id))[0]


async def _slot(master: Master, agent_id: str, slot_id: int) -> messages.Slot:
    agent = await _agent(master, agent_id)
    slot = next((slot for slot in agent.slots.values() if slot.device.id == slot_id), None)
    if slot is None:
        raise NotFound(f"slot {slot_id} of agent {agent_id!r} not found")
    return slot


def _message(agent: AgentView, slots: list[SlotView], containers: list[ContainerView]) -> messages.Agent:
    devices = {slot.slot_id: _device(slot) for slot in slots}
    held = {container.container_id: _container(container, devices) for container in containers}
    draining = agent.state == "DRAINING"
    shown = [
        messages.Slot(
            id=str(slot.slot_id),
            device=devices[slot.slot_id],
            enabled=slot.enabled and agent.state == "ENABLED" and not slot.fault,
            draining=draining or slot.draining,
            fault=slot.fault,
            container=None if slot.container_id is None else held.get(slot.container_id),
        )
        for slot in slots
    ]
    return messages.Agent(
        id=agent.agent_id,
        registered_time=agent.created_at,
        # Names that sort as the numbers do.
        slots={f"{slot.device.id:03d}": slot for slot in shown},
        containers=held,
        addresses=[agent.address] if agent.address else [],
        enabled=agent.state == "ENABLED" and agent.connected,
        draining=draining,
        reason=agent.reason,
        connected=agent.connected,
        last_seen_time=agent.last_seen_at,
        runtime=agent.runtime,
        tenax_version=agent.agent_version,
        resource_pools=[agent.pool],
        slot_stats=slot_stats(shown),
        foreign_containers=[
            {key: str(value) for key, value in foreign.items()} for foreign in agent.foreign_containers
        ],
        labels=agent.labels,
        notice=agent.notice,
        notice_until=agent.notice_until,
    )


def _device(slot: SlotView) -> messages.Device:
    kind = messages.DeviceType.of(slot.kind)
    return messages.Device(id=slot.slot_id, brand=slot.name, uuid=slot.uuid, type=kind, memory=slot.memory)


def _container(view: ContainerView, devices: dict[int, messages.Device]) -> messages.Container:
    return messages.Container(
        id=view.container_id,
        parent=view.allocation_id,
        devices=[devices[slot] for slot in view.slots if slot in devices],
        state=f"STATE_{view.state}",
        username=view.username,
        task_id=view.task_id,
        trial_id=view.trial_id,
        experiment_id=view.experiment_id,
        description=view.description,
    )
