"""``tenax slot``: the devices that tasks get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

import click

from tenax.cli.console import output
from tenax.cli.console.layout import TableColumn
from tenax.cli.console.lazy import LazyGroup
from tenax.cli.console.options import Access, list_options, pass_access
from tenax.jsonvalue import JsonObject

if TYPE_CHECKING:
    from tenax.client.agents import Slot

_COLUMNS: output.Columns[Slot] = (
    (TableColumn("AGENT"), lambda slot: slot.agent_id),
    (TableColumn("SLOT", right=True), lambda slot: slot.id),
    (TableColumn("TYPE", spare=True), lambda slot: slot.kind),
    (TableColumn("STATE", state=True), lambda slot: _state(slot)),
    (TableColumn("CONTAINER"), lambda slot: slot.container_id),
    (
        TableColumn("MEMORY", right=True, spare=True),
        lambda slot: "" if slot.memory is None else output.size(slot.memory),
    ),
    (TableColumn("DEVICE", wraps=True), lambda slot: slot.name),
)


@click.group(cls=LazyGroup, help="List slots, the devices that tasks run on; enable and disable them.")
def group() -> None:
    pass


@group.command("list")
@click.option("-a", "--agent", help="Only those of this agent.")
@click.option(
    "--state", type=click.Choice(["free", "in use", "draining", "disabled", "broken"]), help="Only those in this state."
)
@list_options
@pass_access
def list_(access: Access, agent: Optional[str], state: Optional[str], as_json: bool, as_csv: bool) -> None:
    """List the slots of all agents, and what runs on them."""
    from tenax.client.agents import list_agents

    slots = [slot for listed in list_agents(access.session()) if agent in (None, listed.id) for slot in listed.slots]
    shown = [slot for slot in slots if state is None or _state(slot) == state]
    output.listing(*output.cells(_COLUMNS, shown), [_document(slot) for slot in shown], as_json, as_csv)
    for slot in shown:
        if slot.fault:
            output.warn(f"Slot {slot.id} of {slot.agent_id} takes no new work: {slot.fault}.")


@group.command()
@click.argument("agent")
@click.argument("slot", type=int)
@pass_access
def enable(access: Access, agent: str, slot: int) -> None:
    """Enable SLOT of AGENT: new work may use it again."""
    from tenax.client.agents import enable_slot

    enable_slot(access.session(), agent, slot)
    print(f"Slot {slot} of agent {agent} is enabled")


@group.command()
@click.argument("agent")
@click.argument("slot", type=int)
@click.option("--drain", is_flag=True, help="Let running tasks finish; without this they are ended and requeued.")
@pass_access
def disable(access: Access, agent: str, slot: int, drain: bool) -> None:
    """Stop SLOT of AGENT from accepting new work."""
    from tenax.client.agents import disable_slot

    disable_slot(access.session(), agent, slot, drain=drain)
    print(f"Slot {slot} of agent {agent} is {'draining' if drain else 'disabled'}")


group.alias("list", "ls")


def _state(slot: Slot) -> str:
    if slot.fault:
        return "broken"
    if slot.enabled and not slot.draining:
        return "in use" if slot.container_id else "free"
    return "draining" if slot.draining else "disabled"


def _document(slot: Slot) -> JsonObject:
    return {
        "agentId": slot.agent_id,
        "slotId": slot.id,
        "type": slot.kind,
        "name": slot.name,
        "memory": slot.memory,
        "enabled": slot.enabled,
        "draining": slot.draining,
        "fault": slot.fault,
        "containerId": slot.container_id,
    }
