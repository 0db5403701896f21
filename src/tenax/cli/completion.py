"""Completion of the command line in a shell: commands, options, and the ids of what is at the master.

``tenax completion bash`` prints what the shell has to read. What an argument may be is said here once, by the noun of
its command and its name: commands themselves know nothing of it. While the shell completes, a master is asked once,
with little patience, and whatever goes wrong completes nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

#: Set by the shell while it completes.
VARIABLE = "_TENAX_COMPLETE"
_PATIENCE_S = 1.0
_MOST = "200"


class Source(NamedTuple):
    """Where the things of a noun are listed, and which of their fields name and describe them."""

    path: str
    listed: str
    field: str
    about: Tuple[str, ...]
    query: Mapping[str, str] = {}


_NEWEST = {"sortBy": "SORT_BY_ID", "orderBy": "ORDER_BY_DESC", "limit": _MOST}
_NAMES = {"limit": _MOST}
SOURCES: Dict[str, Source] = {
    "experiment": Source("/api/v1/experiments", "experiments", "id", ("name", "state"), _NEWEST),
    "agent": Source("/api/v1/agents", "agents", "id", ("resourcePool",)),
    "slot": Source("/api/v1/agents", "agents", "id", ("resourcePool",)),
    "queue": Source("/api/v1/job-queues", "jobs", "jobId", ("name", "entityId")),
    "pool": Source("/api/v1/resource-pools", "resourcePools", "name", ("description",)),
    "user": Source("/api/v1/users", "users", "username", ("displayName",), _NAMES),
    "webhook": Source("/api/v1/webhooks", "webhooks", "name", ("url",)),
    "token": Source("/api/v1/tokens", "tokenInfo", "id", ("description",), _NAMES),
    "model": Source("/api/v1/models", "models", "name", ("description",), _NAMES),
    "project": Source("/api/v1/workspaces/0/projects", "projects", "key", ("name", "workspaceName"), _NAMES),
    "workspace": Source("/api/v1/workspaces", "workspaces", "name", (), _NAMES),
    "template": Source("/api/v1/templates", "templates", "name", (), _NAMES),
    "command": Source("/api/v1/commands", "commands", "id", ("description", "state"), _NAMES),
    "task": Source("/api/v1/tasks", "allocationIdToSummary", "taskId", ("name",)),
}
#: Of each noun: the arguments of its commands that name one of its things.
ARGUMENTS = frozenset({"number", "numbers", "experiment", "uuid", "name", "names", "agent", "agent_id", "model", "ids",
                       "user", "username", "usernames", "workspace", "template", "task", "task_id", "command_id",
                       "pool", "id", "which", "job", "other"})  # fmt: skip
#: Commands whose argument is the name of something new.
_MAKE = frozenset({"create", "login"})

Completer = Callable[[click.Context, click.Parameter, str], List["CompletionItem"]]


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), required=False)
def completion(shell: Optional[str]) -> None:
    """Print what a shell reads to complete commands, options and ids.

    \b
    bash:  echo 'eval "$(tenax completion bash)"' >> ~/.bashrc
    zsh:   echo 'eval "$(tenax completion zsh)"' >> ~/.zshrc
    fish:  tenax completion fish > ~/.config/fish/completions/tenax.fish

    Without a name the shell is the one in SHELL.
    """
    from click.shell_completion import get_completion_class

    from tenax.errors import InvalidInput

    root = click.get_current_context().find_root()
    name = shell or os.path.basename(os.environ.get("SHELL", ""))
    found = get_completion_class(name)
    if found is None:
        raise InvalidInput(f"there is no completion for the shell {name!r}: name one of bash, zsh and fish")
    click.echo(found(root.command, {}, "tenax", VARIABLE).source())


def completing() -> bool:
    """Whether a shell asks."""
    return VARIABLE in os.environ


def teach(noun: str, name: str, command: click.Command) -> None:
    """Let the arguments of a command of ``noun`` be completed with what there is."""
    source = SOURCES.get(noun)
    if source is None or name in _MAKE:
        return
    for parameter in command.params:
        if isinstance(parameter, click.Argument) and parameter.name in ARGUMENTS:
            parameter._custom_shell_complete = _completer(source)


def _completer(source: Source) -> Completer:
    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> List[CompletionItem]:
        from click.shell_completion import CompletionItem

        given = context.params.get(parameter.name or "") or ()
        before = {str(value) for value in given} if isinstance(given, (tuple, list)) else set()
        return [
            CompletionItem(name, help=about or None)
            for name, about in _asked(context, source)
            if name.startswith(incomplete) and name not in before
        ]

    return complete


def _asked(context: click.Context, source: Source) -> List[Tuple[str, str]]:
    """Names and descriptions; nothing where they cannot be had."""
    from tenax.client.session import Session
    from tenax.errors import TenaxError

    options = context.find_root().params
    try:
        with Session(options.get("master"), user=options.get("user"), patience=_PATIENCE_S) as session:
            listed = session.call("GET", source.path, query=dict(source.query)).get(source.listed)
    except (TenaxError, OSError):
        return []
    things = list(listed.values()) if isinstance(listed, dict) else listed
    found = []
    for thing in things if isinstance(things, list) else ():
        if isinstance(thing, dict) and thing.get(source.field) not in (None, ""):
            about = " ".join(str(thing[field]).replace("STATE_", "").lower() if field == "state" else str(thing[field])
                             for field in source.about if thing.get(field))  # fmt: skip
            found.append((str(thing[source.field]), about))
    return found
