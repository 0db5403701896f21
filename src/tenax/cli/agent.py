"""``tenax agent``: the machines that run tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional, Tuple

import click

from tenax.cli.console import output
from tenax.cli.console.layout import TableColumn
from tenax.cli.console.options import Access, list_options, pass_access
from tenax.cli.console.servers import ServerGroup

if TYPE_CHECKING:
    from tenax.client.agents import Agent

_COLUMNS: output.Columns[Agent] = (
    (TableColumn("AGENT"), lambda agent: agent.id),
    (TableColumn("STATE", state=True), lambda agent: state_of(agent)),
    (TableColumn("POOL", cuts=True), lambda agent: ", ".join(agent.pools)),
    (TableColumn("SLOTS", right=True), lambda agent: str(len(agent.slots))),
    (TableColumn("FREE", right=True), lambda agent: str(agent.free_slots)),
    (TableColumn("TASKS", right=True), lambda agent: str(agent.container_count)),
    (
        TableColumn("DEVICES", wraps=True),
        lambda agent: ", ".join(sorted({slot.name or slot.kind for slot in agent.slots})),
    ),
    (TableColumn("ADDRESS", spare=True), lambda agent: ", ".join(agent.addresses)),
    (TableColumn("LAST SEEN", spare=True), lambda agent: output.moment(agent.last_seen or agent.registered)),
)


@click.group(
    cls=ServerGroup,
    module="tenax.agent",
    help="List agents, enable and disable them; with options of the server, run an agent in the foreground: "
    "tenax agent --master-url http://master:8080 --join-token-file FILE",
)
def group() -> None:
    pass


@group.command("list")
@click.option("-p", "--pool", help="Only those of this resource pool.")
@click.option(
    "--state", type=click.Choice(["enabled", "draining", "disabled", "away"]), help="Only those in this state."
)
@list_options
@pass_access
def list_(access: Access, pool: Optional[str], state: Optional[str], as_json: bool, as_csv: bool) -> None:
    """List the agents of the cluster."""
    from tenax.client.agents import list_agents

    agents = [
        agent
        for agent in list_agents(access.session())
        if (pool is None or pool in agent.pools) and (state is None or state_of(agent) == state)
    ]
    output.records(_COLUMNS, agents, as_json, as_csv)
    if not agents and pool is None and state is None:
        output.say("There are no agents. Start one with: tenax agent --master-url URL --join-token-file FILE")
    for agent in agents:
        if agent.foreign_count:
            output.warn(
                f"{agent.id} has {_containers(agent.foreign_count)} of another cluster, which this one will not end."
            )


@group.command()
@click.argument("agent", nargs=-1)
@click.option("--all", "everyone", is_flag=True, help="All agents.")
@pass_access
def enable(access: Access, agent: Tuple[str, ...], everyone: bool) -> None:
    """Let agents accept new work again."""
    from tenax.client.agents import enable_agent

    for name in _agent_names(access, agent, everyone):
        enable_agent(access.session(), name)
        print(f"Agent {name} is enabled")


@group.command()
@click.argument("agent", nargs=-1)
@click.option("--all", "everyone", is_flag=True, help="All agents.")
@click.option("--drain", is_flag=True, help="Let running tasks finish; without this they are ended and requeued.")
@pass_access
def disable(access: Access, agent: Tuple[str, ...], everyone: bool, drain: bool) -> None:
    """Stop agents from accepting new work.

    Running tasks are placed elsewhere without using up a restart; --drain lets them finish.
    """
    from tenax.client.agents import disable_agent

    for name in _agent_names(access, agent, everyone):
        left = disable_agent(access.session(), name, drain=drain)
        print(f"Agent {name} is {'draining' if drain else 'disabled'}")
        if left.container_count:
            what = "may still finish there" if drain else "will be ended there"
            output.say(f"{_containers(left.container_count)} {what}.")


@group.command()
@click.argument("agent")
@click.option("--force", is_flag=True, help="Give up tasks that still count as running there.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@pass_access
def remove(access: Access, agent: str, force: bool, yes: bool) -> None:
    """Forget an agent that is gone for good, with its slots.

    It must not be connected. With --force, tasks that still count as running there are given up and requeued. A machine
    that comes back under this name joins as a new agent.
    """
    from tenax.client.agents import remove_agent

    if not yes:
        click.confirm(f"Forget the agent {agent}?", abort=True, err=True)
    remove_agent(access.session(), agent, force=force)
    print(f"Agent {agent} is removed")


group.alias("list", "ls")
group.alias("remove", "rm")


def _agent_names(access: Access, names: Tuple[str, ...], everyone: bool) -> List[str]:
    from tenax.client.agents import list_agents

    if everyone == bool(names):
        raise click.UsageError("Name the agents, or all of them with --all.")
    return [agent.id for agent in list_agents(access.session())] if everyone else list(names)


def state_of(agent: Agent) -> str:
    """``away``, ``draining``, ``enabled`` or ``disabled``."""
    if not agent.connected:
        return "away"
    if agent.draining:
        return "draining"
    return "enabled" if agent.enabled else "disabled"


def _containers(count: int) -> str:
    return f"{count} container{'' if count == 1 else 's'}"
