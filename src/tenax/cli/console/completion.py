"""Completion of the command line in a shell: commands, options, and the ids and names of what is at the master.

``tenax completion bash`` prints the script for the shell. What completes an argument or an option is decided here
alone, by its name, and by the noun of the command for names that mean different things; commands themselves know
nothing of it, and a test finds arguments that nothing completes. While the shell completes, requests are retried for
a second at most, and an error completes nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Callable, Dict, Iterator, List, Optional, Tuple

import click

from tenax.cli.console.lazy import StrictCommand

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from tenax.client.connection.session import Query, Session
    from tenax.jsonvalue import JsonObject

#: Set by the shell while it completes.
VARIABLE = "_TENAX_COMPLETE"
_RETRY_FOR_S = 1.0
_MAX_OFFERED = 200
#: Checkpoints are completed from so many of the newest experiments that have any.
_WITH_CHECKPOINTS = 5

#: What to write on the command line, and its description.
Named = Tuple[str, str]
Lister = Callable[["Session", click.Context], Iterator[Named]]
Completer = Callable[[click.Context, click.Parameter, str], List["CompletionItem"]]

#: Names of arguments and options -> what they mean wherever they stand.
BY_NAME = {
    "experiment": "experiment", "uuid": "checkpoint", "uuids": "checkpoint", "checkpoint": "checkpoint",
    "command_id": "command", "task_id": "task", "fork": "task", "parent": "task", "template": "template",
    "workspace": "workspace", "workspaces": "workspace", "workspace_id": "workspace id", "project": "project",
    "project_id": "project id", "source_id": "project id", "target_id": "project id", "model": "model", "job": "job",
    "other": "job", "agent": "agent", "slot": "slot", "pool": "pool", "pools": "pool", "default_compute_pool": "pool",
    "default_aux_pool": "pool", "username": "user", "users": "user", "owner": "user", "user": "user", "trial": "trial",
    "machine": "machine", "machines": "machine", "offer": "offer",
}  # fmt: skip
#: Names that mean what their noun says.
BY_NOUN = {
    "experiment": {"number": "experiment", "numbers": "experiment", "which": "workspace"},
    "trial": {"number": "trial", "numbers": "trial"},
    "run": {"number": "trial", "numbers": "trial"},
    "command": {"ids": "command"},
    "template": {"name": "template", "names": "template"},
    "project": {"which": "project"},
    "user": {"name": "user", "names": "user"},
    "group": {"name": "group"},
    "token": {"number": "token", "numbers": "token"},
    "webhook": {"name": "webhook"},
}
#: Of these commands the name is that of something new, or no name at all.
NEW = {("user", "create"), ("user", "login"), ("group", "create"), ("webhook", "create"), ("template", "create")}


@click.command("completion", cls=StrictCommand)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), required=False)
def completion(shell: Optional[str]) -> None:
    """Print the script that completes commands, options, ids and names in a shell.

    \b
    bash:  echo 'eval "$(tenax completion bash)"' >> ~/.bashrc
    zsh:   echo 'eval "$(tenax completion zsh)"' >> ~/.zshrc
    fish:  tenax completion fish > ~/.config/fish/completions/tenax.fish

    Without an argument, the shell is taken from SHELL.
    """
    from click.shell_completion import get_completion_class

    from tenax.errors import InvalidInput

    root = click.get_current_context().find_root()
    name = shell or os.path.basename(os.environ.get("SHELL", ""))
    shell_class = get_completion_class(name)
    if shell_class is None:
        raise InvalidInput(f"there is no completion for the shell {name!r}: name one of bash, zsh and fish")
    click.echo(shell_class(root.command, {}, "tenax", VARIABLE).source())


def teach(noun: str, name: str, command: click.Command) -> None:
    """Complete the arguments and options of a command of ``noun``."""
    for parameter in command.params:
        kind = kind_of(noun, name, parameter)
        if kind is not None:
            parameter._custom_shell_complete = _completer(kind)


def kind_of(noun: str, command: str, parameter: click.Parameter) -> Optional[str]:
    """What a parameter names; None where it names nothing that is at the master."""
    called = parameter.name or ""
    if isinstance(parameter, click.Option):
        takes = parameter.type.name in ("text", "integer") and not parameter.is_flag
        return BY_NAME.get(called) if takes else None
    if (noun, command) in NEW and called == "name":
        return None
    return BY_NOUN.get(noun, {}).get(called) or BY_NAME.get(called)


def _completer(kind: str) -> Completer:
    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> List[CompletionItem]:
        from click.shell_completion import CompletionItem

        given = context.params.get(parameter.name or "") or ()
        before = {str(value) for value in given} if isinstance(given, (tuple, list)) else set()
        return [
            CompletionItem(name, help=about or None)
            for name, about in _candidates(context, kind)
            if name.startswith(incomplete) and name not in before
        ]

    return complete


def _candidates(context: click.Context, kind: str) -> List[Named]:
    """Names and descriptions; nothing where they cannot be had."""
    from tenax.client.connection.session import Session
    from tenax.errors import TenaxError

    options = context.find_root().params
    try:
        with Session(options.get("master"), user=options.get("user"), retry_for_s=_RETRY_FOR_S) as session:
            return list(LISTERS[kind](session, context))
    except (TenaxError, OSError):
        return []


def _plain(path: str, listed: str, name: str, *about: str, query: Optional[Query] = None, number: str = "") -> Lister:
    """What one request lists. ``number``: the field to write for names with blanks, which shells would split."""

    def list_names(session: Session, _: click.Context) -> Iterator[Named]:
        entries = session.get(path, query).get(listed)
        for entry in entries.values() if isinstance(entries, dict) else entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                yield from _named(entry, name, about, number)

    return list_names


def _named(entry: JsonObject, name: str, about: Tuple[str, ...], number: str = "") -> Iterator[Named]:
    called = str(entry.get(name) or "")
    descriptions = [str(entry[field]).replace("STATE_", "") for field in about if entry.get(field)]
    descriptions = [
        description.lower() if field == "state" else description for field, description in zip(about, descriptions)
    ]
    if len(called.split()) == 1:
        yield called, " ".join(descriptions)
    elif called and number:
        yield str(entry.get(number)), " ".join([called, *descriptions])


def _groups(session: Session, _: click.Context) -> Iterator[Named]:
    from tenax.client.groups import list_groups

    for group in list_groups(session):
        yield from _named({"id": group.id, "name": group.name}, "name", (), "id")


def _trials(session: Session, _: click.Context) -> Iterator[Named]:
    from tenax.client.runs import search_runs

    for run in search_runs(session, limit=_MAX_OFFERED):
        yield str(run.id), f"{run.experiment_name} {run.state.lower()}"


def _checkpoints(session: Session, _: click.Context) -> Iterator[Named]:
    from tenax.client.connection import reading
    from tenax.client.experiments import get_experiment

    listed = reading.records(session.get("/api/v1/experiments", _NEWEST), "experiments")
    having = [
        reading.integer(experiment, "id") for experiment in listed if reading.integer(experiment, "checkpointCount")
    ]
    for number in having[:_WITH_CHECKPOINTS]:
        for checkpoint in get_experiment(session, number).checkpoints():
            yield checkpoint.uuid, f"experiment {number} {checkpoint.state.lower()}"


def _slots(session: Session, context: click.Context) -> Iterator[Named]:
    from tenax.client.agents import list_agents

    for agent in list_agents(session):
        if agent.id == context.params.get("agent"):
            yield from ((slot.id, slot.name) for slot in agent.slots)


def _offers(session: Session, context: click.Context) -> Iterator[Named]:
    from tenax.client.pools import machine_plans

    for plan in machine_plans(session, context.params.get("pool")):
        yield from ((offer.offer, plan.pool) for offer in plan.offers)


_NEWEST: Query = {"sortBy": "SORT_BY_ID", "orderBy": "ORDER_BY_DESC", "limit": _MAX_OFFERED}
_SOME: Query = {"limit": _MAX_OFFERED}
_PROJECTS = "/api/v1/workspaces/0/projects"
LISTERS: Dict[str, Lister] = {
    "experiment": _plain("/api/v1/experiments", "experiments", "id", "name", "state", query=_NEWEST),
    "trial": _trials,
    "checkpoint": _checkpoints,
    "agent": _plain("/api/v1/agents", "agents", "id", "resourcePool"),
    "slot": _slots,
    "machine": _plain("/api/v1/machines", "machines", "id", "resourcePool", "state"),
    "offer": _offers,
    "job": _plain("/api/v1/job-queues", "jobs", "jobId", "name", "entityId"),
    "pool": _plain("/api/v1/resource-pools", "resourcePools", "name", "description"),
    "user": _plain("/api/v1/users", "users", "username", "displayName", query=_SOME),
    "group": _groups,
    "webhook": _plain("/api/v1/webhooks", "webhooks", "name", "url", number="id"),
    "token": _plain("/api/v1/tokens", "tokenInfo", "id", "description", query=_SOME),
    "model": _plain("/api/v1/models", "models", "name", "description", query=_SOME, number="id"),
    "project": _plain(_PROJECTS, "projects", "key", "name", "workspaceName", query=_SOME, number="id"),
    "project id": _plain(_PROJECTS, "projects", "id", "name", "workspaceName", query=_SOME),
    "workspace": _plain("/api/v1/workspaces", "workspaces", "name", query=_SOME, number="id"),
    "workspace id": _plain("/api/v1/workspaces", "workspaces", "id", "name", query=_SOME),
    "template": _plain("/api/v1/templates", "templates", "name", query=_SOME),
    "command": _plain("/api/v1/commands", "commands", "id", "description", "state", query=_SOME),
    "task": _plain("/api/v1/tasks", "allocationIdToSummary", "taskId", "name"),
}
