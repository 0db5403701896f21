"""``tenax project``: where experiments are filed.

A project is named by its workspace and its name, or by one argument: its id, its key, or WORKSPACE/PROJECT.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Callable, Optional, Sequence, Tuple, TypeVar

import click

from tenax.cli.console import output
from tenax.cli.console.layout import TableColumn
from tenax.cli.console.lazy import LazyGroup
from tenax.cli.console.options import (
    Access,
    archived_option,
    json_option,
    list_options,
    name_filter,
    named,
    pass_access,
)
from tenax.cli.experiment.selection import local_filter_options

if TYPE_CHECKING:
    from tenax.client.projects import Project

Function = TypeVar("Function", bound=Callable[..., object])

_COLUMNS: output.Columns[Project] = (
    (TableColumn("ID", right=True), lambda project: str(project.id)),
    (TableColumn("KEY"), lambda project: project.key),
    (TableColumn("NAME", cuts=True), lambda project: project.name),
    (TableColumn("WORKSPACE", cuts=True), lambda project: project.workspace),
    (TableColumn("EXPERIMENTS", right=True, spare=True), lambda project: str(project.experiments_count)),
    (TableColumn("ACTIVE", right=True, spare=True), lambda project: str(project.active_count)),
    (TableColumn("OWNER", spare=True), lambda project: project.owner),
    (TableColumn("STATE", state=True), lambda project: _state(project)),
    (TableColumn("DESCRIPTION", wraps=True), lambda project: project.description),
)
_ORDERS = ("id", "name", "description", "creation_time", "last_experiment_start_time")


@click.group(
    cls=LazyGroup,
    help="Organise experiments in projects. Name a project by WORKSPACE PROJECT, by its id or by its key.",
)
def group() -> None:
    pass


def _named(function: Function) -> Function:
    """The one or two arguments that name a project."""
    last = click.argument("project", metavar="PROJECT", required=False)(function)
    return click.argument("which", metavar="[WORKSPACE]")(last)


@group.command("list")
@click.argument("workspace", required=False, metavar="[WORKSPACE]")
@name_filter
@archived_option
@click.option("--user", "users", multiple=True, metavar="NAME", help="Only this user's; may be given several times.")
@click.option("--sort-by", type=click.Choice(_ORDERS), default="id", help="The order (default: id).")
@click.option("--reverse", is_flag=True, help="Reverse the order.")
@list_options
@pass_access
def list_(
    access: Access,
    workspace: Optional[str],
    part: str,
    archived: Optional[bool],
    users: Sequence[str],
    sort_by: str,
    reverse: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    """List the projects of a WORKSPACE, or of all workspaces."""
    from tenax.client.projects import list_projects

    projects = list_projects(
        access.session(), workspace or 0, archived=archived, users=users, sort=sort_by, descending=reverse
    )
    show_list(named(part, projects, lambda project: project.name), as_json, as_csv)


def show_list(projects: Sequence[Project], as_json: bool, as_csv: bool) -> None:
    """Print a list of projects."""
    output.records(_COLUMNS, projects, as_json, as_csv)
    if not projects:
        output.say("There are no such projects. Create one with: tenax project create WORKSPACE NAME")


@group.command()
@_named
@json_option
@pass_access
def describe(access: Access, which: str, project: Optional[str], as_json: bool) -> None:
    """Show a project and its notes."""
    _show(_project(access, which, project), as_json)


@group.command("list-experiments")
@_named
@click.option("-a", "--all", "everybodys", is_flag=True, help="Include other users' experiments and archived ones.")
@local_filter_options
@list_options
@pass_access
def list_experiments(
    access: Access,
    which: str,
    project: Optional[str],
    everybodys: bool,
    name: str,
    labels: Tuple[str, ...],
    states: Tuple[str, ...],
    as_json: bool,
    as_csv: bool,
) -> None:
    """List the experiments of a project, the newest first: yours, or with --all everybody's."""
    from tenax.cli.experiment.view import show_list
    from tenax.client.users import whoami

    experiments = _project(access, which, project).experiments(
        users=[] if everybodys else [whoami(access.session()).username],
        archived=None if everybodys else False,
        name=name,
        labels=labels,
        states=states,
    )
    show_list(experiments, as_json, as_csv)


@group.command()
@click.argument("workspace")
@click.argument("name")
@click.option("--description", default="", metavar="TEXT", help="Its description.")
@click.option("--key", metavar="KEY", help="One to five letters and digits (default: made from its name).")
@json_option
@pass_access
def create(access: Access, workspace: str, name: str, description: str, key: Optional[str], as_json: bool) -> None:
    """Create the project NAME in a WORKSPACE."""
    from tenax.client.projects import create_project

    _show(create_project(access.session(), workspace, name, description=description, key=key), as_json)


@group.command()
@_named
@click.option("--name", "--new_name", metavar="NAME", help="Its new name.")
@click.option("--description", metavar="TEXT", help="Its description.")
@click.option("--key", metavar="KEY", help="One to five letters and digits.")
@json_option
@pass_access
def edit(
    access: Access,
    which: str,
    project: Optional[str],
    name: Optional[str],
    description: Optional[str],
    key: Optional[str],
    as_json: bool,
) -> None:
    """Edit a project: its name, description or key."""
    _show(_project(access, which, project).edit(name=name, description=description, key=key), as_json)


@group.command()
@_named
@click.option("--to", "goal", required=True, metavar="WORKSPACE", help="The workspace to move it to.")
@pass_access
def move(access: Access, which: str, project: Optional[str], goal: str) -> None:
    """Move a project and its experiments to another workspace."""
    target = _project(access, which, project)
    target.move(goal)
    print(f"The project {target.name} is in the workspace {target.reload().workspace}")


@group.command("add-note")
@_named
@click.option("--name", required=True, metavar="NAME", help="Its title.")
@click.option("--contents", required=True, metavar="TEXT", help="Markdown; - for standard input.")
@pass_access
def add_note(access: Access, which: str, project: Optional[str], name: str, contents: str) -> None:
    """Add a note to a project."""
    text = sys.stdin.read() if contents == "-" else contents
    print(f"The project has {len(_project(access, which, project).add_note(name, text))} notes")


@group.command("remove-note")
@_named
@click.option("--name", required=True, metavar="NAME", help="Its title.")
@pass_access
def remove_note(access: Access, which: str, project: Optional[str], name: str) -> None:
    """Remove a note from a project by its title."""
    from tenax.errors import NotFound

    target = _project(access, which, project)
    rest = [note for note in target.notes if note.name != name]
    if len(rest) == len(target.notes):
        raise NotFound(f"The project {target.name} has no note {name!r}.")
    print(f"The project has {len(target.set_notes(rest))} notes")


@group.command()
@_named
@pass_access
def archive(access: Access, which: str, project: Optional[str]) -> None:
    """Archive a project: no experiments can be added to it."""
    target = _project(access, which, project)
    target.archive()
    print(f"The project {target.name} is archived")


@group.command()
@_named
@pass_access
def unarchive(access: Access, which: str, project: Optional[str]) -> None:
    """Make an archived project usable again."""
    target = _project(access, which, project)
    target.unarchive()
    print(f"The project {target.name} is no longer archived")


@group.command()
@_named
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--no-wait", is_flag=True, help="Do not wait until it is deleted.")
@pass_access
def delete(access: Access, which: str, project: Optional[str], yes: bool, no_wait: bool) -> None:
    """Delete a project, its experiments and everything they saved."""
    target = _project(access, which, project)
    if not yes:
        inside = f"{target.experiments_count} experiments"
        output.confirm(f"Delete the project {target.name} with its {inside}, for good?")
    target.delete(wait=not no_wait, seen=_report_progress)
    print(f"The project {target.name} is {'being deleted' if no_wait else 'deleted'}")


group.alias("list", "ls")


def _project(access: Access, which: str, project: Optional[str]) -> Project:
    from tenax.client.projects import get_project

    if project is None:
        return get_project(access.session(), which)
    return get_project(access.session(), project, which)


def _state(project: Project) -> str:
    return project.state if project.state != "ACTIVE" else "archived" if project.archived else ""


def _report_progress(now: Project) -> None:
    output.say(f"{now.experiments_count} experiments left")


def _show(project: Project, as_json: bool) -> None:
    rows = [
        ("project", f"{project.name} ({project.id})"),
        ("key", project.key),
        ("description", project.description),
        ("workspace", project.workspace),
        ("state", output.state(_state(project))),
        ("error", project.error),
        ("owner", project.owner),
        ("experiments", f"{project.experiments_count} ({project.active_count} active)"),
        ("runs", str(project.runs_count)),
        ("newest", output.moment(project.last_experiment)),
        *((f"note {note.name}", note.contents) for note in project.notes),
    ]
    output.details(rows, project.raw, as_json)
