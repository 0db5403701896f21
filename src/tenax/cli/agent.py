"""``tenax agent``: the machines that run tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tenax.cli import output
from tenax.cli.access import Access, json_option, pass_access
from tenax.cli.servers import ServerGroup

if TYPE_CHECKING:
    from tenax.client.agents import Agent


@click.group(
    cls=ServerGroup,
    module="tenax.agent",
    help="List agents; with options of the server, run an agent in the foreground: "
    "tenax agent --master-url http://master:8080 --join-token-file FILE",
)
def group() -> None:
    pass


@group.command("list")
@json_option
@pass_access
def list_(access: Access, as_json: bool) -> None:
    """List the agents of the cluster."""
    from tenax.client.agents import list_agents

    agents = list_agents(access.session())
    if as_json:
        output.document([agent.raw for agent in agents])
        return
    columns = [
        output.Column("AGENT"),
        output.Column("STATE", state=True),
        output.Column("POOL"),
        output.Column("SLOTS", right=True),
        output.Column("FREE", right=True),
        output.Column("TASKS", right=True),
        output.Column("DEVICES", wraps=True),
        output.Column("ADDRESS"),
        output.Column("LAST SEEN"),
    ]
    output.table(columns, [_row(agent) for agent in agents])
    if not agents:
        output.say("There is no agent. Start one with: tenax agent --master-url URL --join-token-file FILE")
    for agent in agents:
        if agent.foreign_count:
            output.warn(
                f"{agent.id} holds {agent.foreign_count} containers of another cluster; nothing here ends them."
            )


group.alias("list", "ls")


def _row(agent: Agent) -> list[str]:
    devices = sorted({slot.name or slot.kind for slot in agent.slots})
    return [
        agent.id,
        state_of(agent),
        ", ".join(agent.pools),
        str(len(agent.slots)),
        str(agent.free_slots),
        str(agent.container_count),
        ", ".join(devices),
        ", ".join(agent.addresses),
        output.moment(agent.last_seen or agent.registered),
    ]


def state_of(agent: Agent) -> str:
    """In a word."""
    if not agent.connected:
        return "away"
    if agent.draining:
        return "draining"
    return "enabled" if agent.enabled else "disabled"
