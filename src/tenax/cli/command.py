"""``tenax command``: a program run once on the cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Optional, Tuple

import click

from tenax.cli.console import exits, output
from tenax.cli.console.layout import TableColumn
from tenax.cli.console.lazy import LazyGroup
from tenax.cli.console.options import Access, json_option, list_options, pass_access
from tenax.cli.console.overrides import FILE, document_of, overrides_option

if TYPE_CHECKING:
    from tenax.client.commands import Command

_COLUMNS: output.Columns[Command] = (
    (TableColumn("ID"), lambda command: command.id),
    (TableColumn("DESCRIPTION", cuts=True), lambda command: command.description),
    (TableColumn("STATE", state=True), lambda command: command.state),
    (TableColumn("EXIT", right=True), lambda command: "" if command.exit_code is None else str(command.exit_code)),
    (TableColumn("OWNER", cuts=True), lambda command: command.owner),
    (TableColumn("POOL", spare=True), lambda command: command.pool),
    (TableColumn("STARTED", spare=True), lambda command: output.moment(command.started)),
    (TableColumn("TOOK", right=True, spare=True), lambda command: output.between(command.started, command.ended)),
    (TableColumn("REASON", wraps=True), lambda command: command.reason),
)


@click.group(cls=LazyGroup, help="Run programs on the cluster, once each.")
def group() -> None:
    pass


@group.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGUMENT]...")
@click.option("--slots", type=click.IntRange(0), metavar="N", help="Slots to run it on (default: 1; 0 for none).")
@overrides_option("resources.resource_pool=big")
@click.option("--config-file", type=FILE, help="A YAML file.")
@click.option(
    "-f", "--file", "-i", "--include", "files", multiple=True, type=click.Path(path_type=Path), metavar="PATH",
    help="Send this file or directory, under its own name.",
)  # fmt: skip
@click.option(
    "-c", "--context", type=click.Path(path_type=Path), metavar="DIRECTORY", help="Send what is in this directory."
)
@click.option("--template", default="", metavar="NAME", help="Merge the configuration over this template.")
@click.option("-w", "--workspace", "--workspace-name", default="", metavar="NAME", help="Put it into this workspace.")
@click.option("-d", "--detach", is_flag=True, help="Print its id and return at once.")
@pass_access
def run(
    access: Access,
    argv: Tuple[str, ...],
    slots: Optional[int],
    overrides: Tuple[str, ...],
    config_file: Optional[Path],
    files: Tuple[Path, ...],
    context: Optional[Path],
    template: str,
    workspace: str,
    detach: bool,
) -> int:
    """Run PROGRAM on the cluster, print its output and end with its exit code.

    A single argument is run by the shell: tenax cmd run 'make && ./train.sh'
    """
    from tenax.client.commands import run_command
    from tenax.client.workspaces import get_workspace

    session = access.session()
    command, remarks = run_command(
        session,
        argv,
        config=document_of(config_file, overrides),
        slots=slots,
        context=context,
        files=files,
        template=template,
        workspace_id=get_workspace(session, workspace).id if workspace else 0,
    )
    for remark in remarks:
        output.warn(remark)
    if detach:
        print(command.id)
        return exits.OK
    return _attend(command)


def _attend(command: Command) -> int:
    """Say why it waits, print what it prints, to the end; its exit code."""
    last_reason = ""

    def started(current: Command) -> bool:
        nonlocal last_reason
        if current.state == "QUEUED" and current.reason and current.reason != last_reason:
            last_reason = current.reason
            output.say(f"queued: {last_reason}")
        return current.state in ("RUNNING", "TERMINATING")

    try:
        command.wait(interval=0.2, seen=started)
        for line in command.logs(follow=True):
            if line.source in ("task", ""):
                click.echo(line.log, err=line.stream == "stderr")
            elif command.reload().has_ended:
                # The last line is the master's, on how it ended; a log that is followed stays open a little longer.
                break
        ended = command.wait(interval=0.2)
    except KeyboardInterrupt:
        output.say(
            f"\nDetached: command {command.id} keeps running.\n"
            f"  tenax command logs -f {command.id}   to watch it again\n"
            f"  tenax command kill {command.id}      to end it"
        )
        return exits.INTERRUPTED
    if ended.exit_code is None:
        output.fail(f"the command did not run to its end: {ended.reason}")
        return exits.NOT_COMPLETED
    return ended.exit_code


@group.command("list")
@click.option("-a", "--all", "everybodys", is_flag=True, help="Include those of all users.")
@click.option("-u", "--user", "users", multiple=True, metavar="NAME", help="Only those of this user.")
@click.option("-w", "--workspace", "--workspace-name", default="", metavar="NAME", help="Only those in this workspace.")
@click.option("-q", "--quiet", is_flag=True, help="Print their ids only.")
@list_options
@pass_access
def list_(
    access: Access,
    everybodys: bool,
    users: Tuple[str, ...],
    workspace: str,
    quiet: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    """List commands that run or ended within the last day, the newest first: yours, or everybody's with --all."""
    from tenax.client.commands import list_commands
    from tenax.client.users import whoami
    from tenax.client.workspaces import get_workspace

    session = access.session()
    whose = [] if everybodys else list(users) or [whoami(session).username]
    number = get_workspace(session, workspace).id if workspace else 0
    commands = list_commands(session, users=whose, workspace_id=number)
    if quiet:
        for command in commands:
            print(command.id)
        return
    output.records(_COLUMNS, commands, as_json, as_csv)
    if not commands:
        hidden = 0 if everybodys or users else len(list_commands(session, users=[], workspace_id=number))
        others = f" Other users have {hidden}: tenax command list --all shows them." if hidden else ""
        output.say(f"There are no such commands.{others} Run one with: tenax command run -- PROGRAM")


@group.command()
@click.argument("command_id", metavar="COMMAND")
@json_option
@pass_access
def describe(access: Access, command_id: str, as_json: bool) -> None:
    """Show a command, given its id, the start of its id, or its description."""
    command = _command(access, command_id)
    entrypoint = command.config.get("entrypoint")
    rows = [
        ("command", command.id),
        ("description", command.description),
        ("state", output.state(command.state)),
        ("exit code", "" if command.exit_code is None else str(command.exit_code)),
        ("why", command.reason),
        ("program", " ".join(str(argument) for argument in entrypoint) if isinstance(entrypoint, list) else ""),
        ("owner", command.owner),
        ("pool", command.pool),
        ("priority", str(command.priority)),
        ("started", output.moment(command.started)),
        ("ended", output.moment(command.ended)),
        ("took", output.between(command.started, command.ended)),
    ]
    output.details(rows, command.raw, as_json)


@group.command()
@click.argument("command_id", metavar="COMMAND")
@pass_access
def config(access: Access, command_id: str) -> None:
    """Print the configuration of a command, with every default, as YAML."""
    from tenax.cli.console import yaml12

    print(yaml12.dump(_command(access, command_id).config, sort=True), end="")


@group.command()
@click.argument("command_id", metavar="COMMAND")
@click.option("-f", "--follow", is_flag=True, help="Follow the output until it has ended.")
@click.option("--head", type=click.IntRange(1), metavar="N", help="Only the first N lines.")
@click.option("--tail", type=click.IntRange(1), metavar="N", help="Only the last N lines.")
@click.option("--search", default="", help="Only lines that contain this text.")
@json_option
@pass_access
def logs(
    access: Access,
    command_id: str,
    follow: bool,
    head: Optional[int],
    tail: Optional[int],
    search: str,
    as_json: bool,
) -> int:
    """Print the output of a command."""
    from tenax.cli.task import print_output

    command = _command(access, command_id)
    return print_output(command, "command", follow, head, tail, search, as_json)


@group.command()
@click.argument("ids", metavar="COMMAND...", nargs=-1, required=True)
@click.option("-f", "--force", is_flag=True, help="Continue after one that cannot be ended, and exit with 0.")
@pass_access
def kill(access: Access, ids: Tuple[str, ...], force: bool) -> int:
    """End commands at once."""
    from tenax.errors import UserError

    code = exits.OK
    for name in ids:
        try:
            command = _command(access, name)
            command.kill()
        except UserError as error:
            output.fail(str(error))
            code = code if force else exits.code_of(error)
        else:
            print(f"Command {command.id} is being ended")
    return code


@click.group(cls=LazyGroup, help="Change a command that is waiting or running.")
def set_() -> None:
    pass


@set_.command("priority")
@click.argument("command_id", metavar="COMMAND")
@click.argument("priority", type=click.IntRange(1, 99))
@pass_access
def set_priority(access: Access, command_id: str, priority: int) -> None:
    """Set the priority of a command: 1 is the most urgent, 99 the least."""
    command = _command(access, command_id)
    command.set_priority(priority)
    print(f"Command {command.id} has priority {priority}")


group.add_command(set_, "set")
group.alias("list", "ls")


def _command(access: Access, name: str) -> Command:
    from tenax.client.commands import find_command

    return find_command(access.session(), name)
