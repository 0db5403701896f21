"""``tenax slot``: the devices that tasks get."""

from __future__ import annotations

import click

from tenax.cli import output
from tenax.cli.access import Access, json_option, pass_access
from tenax.cli.lazy import Group
from tenax.jsonvalue import Json


@click.group(cls=Group, help="List slots: the devices that tasks get.")
def group() -> None:
    pass


@group.command("list")
@json_option
@pass_access
def list_(access: Access, as_json: bool) -> None:
    """List the slots of all agents."""
    from tenax.client.agents import list_agents

    slots = [slot for agent in list_agents(access.session()) for slot in agent.slots]
    if as_json:
        listed: list[Json] = [
            {
                "agentId": slot.agent_id,
                "slotId": slot.id,
                "type": slot.kind,
                "name": slot.name,
                "enabled": slot.enabled,
                "draining": slot.draining,
                "containerId": slot.container_id,
            }
            for slot in slots
        ]
        output.document(listed)
        return
    columns = [
        output.Column("AGENT"),
        output.Column("SLOT", right=True),
        output.Column("TYPE"),
        output.Column("STATE"),
        output.Column("CONTAINER"),
        output.Column("DEVICE", wraps=True),
    ]
    rows = []
    for slot in slots:
        word = ("draining" if slot.draining else "disabled") if not slot.enabled or slot.draining else "free"
        used = slot.container_id
        rows.append([slot.agent_id, slot.id, slot.kind, "in use" if used and word == "free" else word, used, slot.name])
    output.table(columns, rows)


group.alias("list", "ls")
