"""``tenax task``: all that runs on the cluster, and generic tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, List, Optional, Tuple, Union

import click

from tenax.cli.console import exits, output
from tenax.cli.console.layout import TableColumn
from tenax.cli.console.lazy import LazyGroup
from tenax.cli.console.options import Access, json_option, list_options, name_filter, named, pass_access
from tenax.cli.console.overrides import FILE, configuration

if TYPE_CHECKING:
    from tenax.client.commands import Command
    from tenax.client.generic_tasks import OpenTask, Task

_COLUMNS: output.Columns[OpenTask] = (
    (TableColumn("TASK"), lambda task: task.task_id),
    (TableColumn("NAME", cuts=True), lambda task: task.name),
    (TableColumn("STATE", state=True), lambda task: task.state),
    (TableColumn("SLOTS", right=True), lambda task: str(task.slots)),
    (TableColumn("AGENTS", cuts=True), lambda task: ", ".join(task.agents)),
    (TableColumn("POOL", spare=True), lambda task: task.pool),
    (TableColumn("PRIORITY", right=True, spare=True), lambda task: str(task.priority)),
    (TableColumn("SINCE", spare=True), lambda task: output.moment(task.registered)),
    (TableColumn("REASON", wraps=True), lambda task: task.reason),
)


@click.group(cls=LazyGroup, help="List what runs; create, pause and end generic tasks.")
def group() -> None:
    pass


@group.command("list")
@name_filter
@click.option("--pool", default="", metavar="NAME", help="Only tasks in this pool.")
@click.option("--waiting", is_flag=True, help="Only tasks that are waiting.")
@list_options
@pass_access
def list_(access: Access, part: str, pool: str, waiting: bool, as_json: bool, as_csv: bool) -> None:
    """List all tasks of any kind that are waiting or running, the oldest first, and why they wait."""
    from tenax.client.generic_tasks import open_tasks

    tasks = [
        task
        for task in named(part, open_tasks(access.session()), lambda task: task.name)
        if (not pool or task.pool == pool) and (task.reason or not waiting)
    ]
    output.records(_COLUMNS, tasks, as_json, as_csv)
    if not tasks:
        output.say("Nothing is waiting or running.")


@group.command()
@click.argument("task_id", metavar="TASK")
@json_option
@pass_access
def describe(access: Access, task_id: str, as_json: bool) -> None:
    """Show a task, given its id, or the start of the id of one that is running."""
    task = _task(access, task_id)
    rows = [
        ("task", task.id),
        ("kind", task.kind),
        ("description", task.description),
        ("state", output.state(task.state)),
        ("why", task.reason),
        ("owner", task.owner),
        ("parent", task.parent_id),
        ("forked from", task.forked_from),
        ("created", output.moment(task.started)),
        ("ended", output.moment(task.ended)),
    ]
    output.details(rows, task.raw, as_json)


@group.command()
@click.argument("config", type=FILE)
@click.option("-c", "--context", type=click.Path(path_type=Path), metavar="DIRECTORY", help="Send the files in it.")
@click.option(
    "-i", "--include", "includes", multiple=True, type=click.Path(path_type=Path), help="Send this file as well."
)
@click.option("--project", "--project_id", "project_id", type=int, metavar="ID", help="Put it into this project.")
@click.option("--config", "overrides", metavar="KEY=VALUE", multiple=True, help="Set a value of the configuration.")
@click.option("-f", "--follow", is_flag=True, help="Print its output until it ends.")
@click.option("--fork", default="", metavar="TASK", help="Use the code of this task.")
@click.option("-p", "--parent", default="", metavar="TASK", help="Make it the child of this task.")
@click.option("--inherit-context", "--inherit_context", is_flag=True, help="Use the code of its parent.")
@click.option("--no-pause", "--no_pause", is_flag=True, help="Do not allow it to be paused.")
@json_option
@pass_access
def create(
    access: Access,
    config: Path,
    context: Optional[Path],
    includes: Tuple[Path, ...],
    project_id: Optional[int],
    overrides: Tuple[str, ...],
    follow: bool,
    fork: str,
    parent: str,
    inherit_context: bool,
    no_pause: bool,
    as_json: bool,
) -> int:
    """Create a generic task from the YAML file CONFIG."""
    from tenax.client.generic_tasks import create_task, find_task

    session = access.session()
    task, remarks = create_task(
        session,
        configuration(config, overrides),
        context=context,
        files=includes,
        project_id=project_id,
        parent_id=find_task(session, parent).id if parent else "",
        fork=find_task(session, fork).id if fork else "",
        inherit_context=inherit_context,
        pausable=not no_pause,
    )
    return _created(task, remarks, follow, as_json)


@group.command()
@click.argument("task_id", metavar="TASK")
@click.option("--project", "--project_id", "project_id", type=int, metavar="ID", help="Put it into this project.")
@click.option("-f", "--follow", is_flag=True, help="Print its output until it ends.")
@json_option
@pass_access
def fork(access: Access, task_id: str, project_id: Optional[int], follow: bool, as_json: bool) -> int:
    """Create a task with the configuration and the code of another one."""
    from tenax.client.generic_tasks import create_task, find_task

    session = access.session()
    task, remarks = create_task(session, "", fork=find_task(session, task_id).id, project_id=project_id)
    return _created(task, remarks, follow, as_json)


def _created(task: Task, remarks: List[str], follow: bool, as_json: bool) -> int:
    for remark in remarks:
        output.warn(remark)
    if as_json:
        output.document(task.raw)
    else:
        print(f"Created task {task.id}")
    return print_output(task, "task", True, None, None, "", False) if follow else exits.OK


@group.command()
@click.argument("task_id", metavar="TASK")
@json_option
@pass_access
def config(access: Access, task_id: str, as_json: bool) -> None:
    """Print the configuration of a task that is not a trial, with every default, as YAML."""
    from tenax.cli.console import yaml12

    document = _task(access, task_id).config()
    if as_json:
        output.document(document)
    else:
        print(yaml12.dump(document, sort=True), end="")


@group.command()
@click.argument("task_id", metavar="TASK")
@click.option("-f", "--follow", is_flag=True, help="Follow the output until it has ended.")
@click.option("--head", type=click.IntRange(1), metavar="N", help="Only the first N lines.")
@click.option("--tail", type=click.IntRange(1), metavar="N", help="Only the last N lines.")
@click.option("--search", default="", help="Only lines that contain this text.")
@json_option
@pass_access
def logs(
    access: Access, task_id: str, follow: bool, head: Optional[int], tail: Optional[int], search: str, as_json: bool
) -> int:
    """Print the output of a task of any kind."""
    return print_output(_task(access, task_id), "task", follow, head, tail, search, as_json)


def print_output(
    of: Union[Task, Command],
    noun: str,
    follow: bool,
    head: Optional[int],
    tail: Optional[int],
    search: str,
    as_json: bool,
) -> int:
    """Print the output of a task or of a command; the exit code."""
    from tenax.cli.trial import show_line

    if head is not None and (follow or tail is not None):
        raise click.UsageError("--head cannot be combined with --follow or --tail.")
    try:
        for line in of.logs(follow=follow, head=head, tail=tail, search=search):
            if as_json:
                output.document({"id": line.id, "log": line.log, "level": line.level, "message": line.message})
            else:
                show_line(line)
    except KeyboardInterrupt:
        output.say(f"\nDetached: {noun} {of.id} keeps running. To see how it ends: tenax {noun} describe {of.id}")
        return exits.INTERRUPTED
    return exits.OK


@group.command()
@click.argument("task_id", metavar="TASK")
@click.option("--root", is_flag=True, help="Also end its topmost ancestor and all that ancestor's descendants.")
@pass_access
def kill(access: Access, task_id: str, root: bool) -> None:
    """End a task and all its descendants at once."""
    task = _task(access, task_id)
    task.kill(from_root=root)
    print(f"Task {task.id} is being ended")


@group.command()
@click.argument("task_id", metavar="TASK")
@pass_access
def pause(access: Access, task_id: str) -> None:
    """Pause a task and all its descendants: each saves a checkpoint and frees its slots."""
    task = _task(access, task_id)
    task.pause()
    print(f"Task {task.id} is pausing")


@group.command()
@click.argument("task_id", metavar="TASK")
@pass_access
def unpause(access: Access, task_id: str) -> None:
    """Resume a paused task and all its descendants."""
    task = _task(access, task_id)
    task.unpause()
    print(f"Task {task.id} is active")


group.alias("list", "ls")
group.alias("unpause", "activate")


def _task(access: Access, task_id: str) -> Task:
    from tenax.client.generic_tasks import find_task

    return find_task(access.session(), task_id)
