"""``tenax agent``: the machines that run tasks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, List, Optional, Tuple

import click

from tenax.cli.console import output
from tenax.cli.console.layout import TableColumn
from tenax.cli.console.lazy import LazyGroup
from tenax.cli.console.options import Access, json_option, list_options, pass_access
from tenax.cli.console.servers import ServerGroup
from tenax.display.plural import counted

if TYPE_CHECKING:
    from tenax.client.agents import Agent, JoinToken

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
    (
        TableColumn("LABELS", spare=True, wraps=True),
        lambda agent: ", ".join(f"{key}={value}" for key, value in sorted(agent.labels.items())),
    ),
    (TableColumn("ADDRESS", spare=True), lambda agent: ", ".join(agent.addresses)),
    (TableColumn("LAST SEEN", spare=True), lambda agent: output.moment(agent.last_seen or agent.registered)),
)

_TOKEN_COLUMNS: output.Columns[JoinToken] = (
    (TableColumn("ID", right=True), lambda token: str(token.id)),
    (TableColumn("STATE"), lambda token: _token_state(token)),
    (TableColumn("USES LEFT", right=True), lambda token: "any" if token.uses_left == -1 else str(token.uses_left)),
    (TableColumn("EXPIRES"), lambda token: output.moment(token.expires)),
    (TableColumn("AGENT", cuts=True), lambda token: token.agent_id),
    (TableColumn("MADE", spare=True), lambda token: output.moment(token.created)),
    (TableColumn("DESCRIPTION", wraps=True), lambda token: token.description),
)


#: Bytes of a file of certificates that are looked at.
_MAX_PEM = 1 << 20


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
        output.say(
            "There are no agents. Make one of another machine with: tenax agent bootstrap | ssh MACHINE sh "
            "(by hand: tenax agent --master-url URL --join-token-file FILE)"
        )
    for agent in agents:
        if agent.notice:
            when = f", at the latest by {output.moment(agent.notice_until)}" if agent.notice_until else ""
            output.warn(f"{agent.id} is going to end{when}: {agent.notice}.")
        elif agent.reason:
            output.warn(f"{agent.id} was taken out: {agent.reason}. Once it is well: tenax agent enable {agent.id}")
        broken = [slot for slot in agent.slots if slot.fault]
        if broken:
            output.warn(f"{agent.id} has {counted(len(broken), 'broken device')}: tenax slot list --state broken")
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
        output.confirm(f"Forget the agent {agent}?")
    remove_agent(access.session(), agent, force=force)
    print(f"Agent {agent} is removed")


@group.command()
@click.option("-p", "--pool", help="Resource pool of the agent; without it the default one.")
@click.option("--agent", help="Its name; without it the machine's own.")
@click.option("--master-url", help="Where the machine reaches the master, if not at the address that is used here.")
@click.option("--same-machine", is_flag=True, help="The machine is the master's own: 127.0.0.1 and its like are meant.")
@click.option("-e", "--expires-in", default="1h", show_default=True, help="How long the script is good, as in 90m.")
@click.option("--python", help="Its Python, 3.11 or newer, whose packages tasks have, too (python3).")
@click.option("--index-url", help="Package index for what tenax needs; without it as pip is configured there.")
@click.option("--wheelhouse", help="Directory there, or page, with wheels of that; no index is asked then.")
@pass_access
def bootstrap(
    access: Access,
    pool: Optional[str],
    agent: Optional[str],
    master_url: Optional[str],
    same_machine: bool,
    expires_in: str,
    python: Optional[str],
    index_url: Optional[str],
    wheelhouse: Optional[str],
) -> None:
    """Print a script that makes an agent of the machine that runs it.

    \b
    tenax agent bootstrap | ssh machine sh

    It installs the master's own version of tenax in a directory of its own, and starts the agent. The script holds a
    secret, with which one agent joins.
    """
    from tenax.client import agents

    session = access.session()
    token, script = agents.bootstrap_script(
        session,
        master_url or ",".join(session.urls),
        own_address=same_machine,
        certificate=_certificate(session.certificate),
        pool=pool,
        agent_id=agent,
        lifespan=expires_in,
        python=python,
        index_url=index_url,
        wheelhouse=wheelhouse,
    )
    print(script, end="")
    output.say(
        f"This script holds a secret: until {output.moment(token.expires)} one agent joins with it. If it got into "
        f"other hands: tenax agent join-token revoke {token.id}"
    )


@click.group("join-token", cls=LazyGroup, help="Make, list and revoke tokens with which agents join.")
def join_token() -> None:
    pass


@join_token.command("create")
@click.option("--agent", help="For this agent alone, even if one of that name has joined before.")
@click.option(
    "--uses", type=int, default=1, show_default=True, help="How many agents may join with it; -1: any number."
)
@click.option("-e", "--expires-in", default="1h", show_default=True, help="How long it is good, as in 90m or 7d.")
@click.option("-d", "--description", default="", help="Its description.")
@json_option
@pass_access
def create_join_token(
    access: Access, agent: Optional[str], uses: int, expires_in: str, description: str, as_json: bool
) -> None:
    """Make a token that lets an agent join. It is printed once and stored nowhere.

    Write it to a file on the new machine and name that with --join-token-file.
    """
    from tenax.client import agents

    token, text = agents.create_join_token(
        access.session(), agent_id=agent, uses=uses, lifespan=expires_in, description=description
    )
    if as_json:
        output.document({"token": text, "joinToken": token.raw})
        return
    output.say(f"Join token {token.id}, good until {output.moment(token.expires)}, shown only this once:")
    print(text)


@join_token.command("list")
@click.option(
    "-a", "--show-inactive", "inactive", is_flag=True, help="Include tokens that are revoked, used up or have expired."
)
@list_options
@pass_access
def list_join_tokens(access: Access, inactive: bool, as_json: bool, as_csv: bool) -> None:
    """List the tokens with which agents may join."""
    from tenax.client import agents

    tokens = agents.list_join_tokens(access.session(), inactive=inactive)
    output.records(_TOKEN_COLUMNS, tokens, as_json, as_csv)


@join_token.command("revoke")
@click.argument("numbers", type=int, nargs=-1, required=True)
@pass_access
def revoke_join_tokens(access: Access, numbers: List[int]) -> None:
    """Revoke join tokens, at once and for good. Agents that have joined with them stay."""
    from tenax.client import agents

    for number in numbers:
        agents.revoke_join_token(access.session(), number)
        print(f"Revoked join token {number}")


group.add_command(join_token)
group.alias("list", "ls")
group.alias("remove", "rm")
join_token.alias("list", "ls")


def _certificate(file: str) -> str:
    """The certificates of a PEM file, and nothing else of it; empty where the system's are trusted."""
    from tenax.errors import InvalidInput

    if not file or file == "noverify":
        return ""
    try:
        with open(file, encoding="ascii", errors="replace") as opened:
            text = opened.read(_MAX_PEM)
    except OSError as error:
        raise InvalidInput(f"The certificate file {file} cannot be read: {error.strerror}.") from None
    blocks = re.findall(r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----", text)
    return "".join(f"{block}\n" for block in blocks)


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


def _token_state(token: JoinToken) -> str:
    if token.good:
        return "good"
    return "revoked" if token.revoked else "used up" if token.uses_left == 0 else "expired"
