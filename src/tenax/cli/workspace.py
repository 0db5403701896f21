"""``tenax workspace``: what teams keep their projects and models in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Callable, Optional, Tuple, TypeVar

import click

from tenax.cli.console import output
from tenax.cli.console.layout import TableColumn
from tenax.cli.console.lazy import LazyCommand, LazyGroup
from tenax.cli.console.options import (
    Access,
    archived_option,
    json_option,
    list_options,
    name_filter,
    named,
    pass_access,
)
from tenax.cli.console.overrides import FILE, document_of, parsed

if TYPE_CHECKING:
    from tenax.client.workspaces import Workspace
    from tenax.jsonvalue import JsonObject

Function = TypeVar("Function", bound=Callable[..., object])

_COLUMNS: output.Columns[Workspace] = (
    (TableColumn("ID", right=True), lambda workspace: str(workspace.id)),
    (TableColumn("NAME", cuts=True), lambda workspace: workspace.name),
    (TableColumn("OWNER", cuts=True), lambda workspace: workspace.owner),
    (TableColumn("PROJECTS", right=True), lambda workspace: str(workspace.projects_count)),
    (TableColumn("EXPERIMENTS", right=True), lambda workspace: str(workspace.experiments_count)),
    (TableColumn("STATE", state=True), lambda workspace: shown_state(workspace)),
)


_ENTRIES = {"list-projects": LazyCommand("tenax.cli.project:list_", "List the projects of a workspace.")}


@click.group(
    cls=LazyGroup,
    entries=_ENTRIES,
    help="Manage workspaces, which hold projects and models and set defaults for what runs in them.",
)
def group() -> None:
    pass


@group.command("list")
@name_filter
@archived_option
@click.option("--pinned", is_flag=True, help="Only those that you pinned.")
@click.option("--user", "users", multiple=True, metavar="NAME", help="Only this user's; may be given several times.")
@click.option("--sort-by", type=click.Choice(["id", "name"]), default="id", help="The order (default: id).")
@click.option("--reverse", is_flag=True, help="Reverse the order.")
@list_options
@pass_access
def list_(
    access: Access,
    part: str,
    archived: Optional[bool],
    pinned: bool,
    users: Tuple[str, ...],
    sort_by: str,
    reverse: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    """List workspaces."""
    from tenax.client.workspaces import list_workspaces

    workspaces = list_workspaces(
        access.session(),
        archived=archived,
        users=users,
        pinned=True if pinned else None,
        sort=sort_by,
        descending=reverse,
    )
    workspaces = named(part, workspaces, lambda workspace: workspace.name)
    output.records(_COLUMNS, workspaces, as_json, as_csv)


@group.command()
@click.argument("workspace", metavar="WORKSPACE")
@json_option
@pass_access
def describe(access: Access, workspace: str, as_json: bool) -> None:
    """Show a WORKSPACE, by its name or id."""
    _show(_workspace(access, workspace), as_json)


def _settings(function: Function) -> Function:
    """The settings of a workspace, for create and edit."""
    options = (
        click.option("--checkpoint-storage", "--checkpoint-storage-config", "storage", metavar="YAML",
                     help="Default checkpoint storage, as YAML or JSON; {} to use the cluster's."),
        click.option("--checkpoint-storage-file", "--checkpoint-storage-config-file", "file", metavar="FILE",
                     type=FILE,
                     help="Default checkpoint storage from a file."),
        click.option("--default-compute-pool", metavar="POOL", help="Default pool for tasks with slots."),
        click.option("--default-aux-pool", metavar="POOL", help="Default pool for tasks without slots."),
        click.option("--agent-uid", type=click.IntRange(0), help="Uid that its tasks run as."),
        click.option("--agent-gid", type=click.IntRange(0), help="Gid that its tasks run as."),
        click.option("--agent-user", metavar="NAME", help="Name of the user its tasks run as."),
        click.option("--agent-group", metavar="NAME", help="Name of the group its tasks run as."),
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


@group.command()
@click.argument("name")
@_settings
@json_option
@pass_access
def create(access: Access, /, name: str, as_json: bool, **settings: object) -> None:
    """Create the workspace NAME."""
    from tenax.client.workspaces import create_workspace

    _show(create_workspace(access.session(), name, **_given(settings)), as_json)  # type: ignore[arg-type]


@group.command()
@click.argument("workspace", metavar="WORKSPACE")
@click.option("--name", metavar="NAME", help="Its new name.")
@_settings
@json_option
@pass_access
def edit(access: Access, /, workspace: str, name: Optional[str], as_json: bool, **settings: object) -> None:
    """Edit a WORKSPACE: its name and its defaults."""
    target = _workspace(access, workspace)
    _show(target.edit(name=name, **_given(settings)), as_json)  # type: ignore[arg-type]


@group.command()
@click.argument("workspace", metavar="WORKSPACE")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--no-wait", is_flag=True, help="Do not wait until it is deleted.")
@pass_access
def delete(access: Access, workspace: str, yes: bool, no_wait: bool) -> None:
    """Delete a WORKSPACE, its projects, their experiments and everything they saved."""
    target = _workspace(access, workspace)
    if not yes:
        inside = f"{target.projects_count} projects and {target.experiments_count} experiments"
        output.confirm(f"Delete the workspace {target.name} with its {inside}, for good?")
    target.delete(wait=not no_wait, seen=_report_progress)
    print(f"The workspace {target.name} is {'being deleted' if no_wait else 'deleted'}")


def _verb(verb: str, outcome: str, help_: str) -> None:
    @group.command(verb, help=help_)
    @click.argument("workspace", metavar="WORKSPACE")
    @pass_access
    def run(access: Access, workspace: str) -> None:
        target = _workspace(access, workspace)
        getattr(target, verb)()
        print(f"The workspace {target.name} is {outcome}")


_verb("archive", "archived", "Archive a WORKSPACE: nothing in it can be changed or added.")
_verb("unarchive", "no longer archived", "Make an archived WORKSPACE usable again.")
_verb("pin", "pinned", "Pin a WORKSPACE: it comes first in your lists.")
_verb("unpin", "no longer pinned", "Unpin a WORKSPACE.")


@group.command("list-pools")
@click.argument("workspace", metavar="WORKSPACE")
@name_filter
@list_options
@pass_access
def list_pools(access: Access, workspace: str, part: str, as_json: bool, as_csv: bool) -> None:
    """List the resource pools that a WORKSPACE may use."""
    names = named(part, _workspace(access, workspace).pools(), str)
    output.listing(
        [output.TableColumn("POOL")], [[name] for name in names], [{"name": n} for n in names], as_json, as_csv
    )


@group.command("list-members")
@click.argument("workspace", metavar="WORKSPACE")
@name_filter
@list_options
@pass_access
def list_members(access: Access, workspace: str, part: str, as_json: bool, as_csv: bool) -> None:
    """List who has a role in a WORKSPACE; everybody else may use it as well."""
    members = named(part, _workspace(access, workspace).members(), lambda member: member[0])
    columns = [output.TableColumn("USER"), output.TableColumn("ROLE")]
    raw: list[JsonObject] = [{"user": user, "role": role} for user, role in members]
    output.listing(columns, members, raw, as_json, as_csv)


group.alias("list", "ls")


def shown_state(workspace: Workspace) -> str:
    """DELETING, DELETE_FAILED, archived or nothing."""
    return workspace.state if workspace.state != "ACTIVE" else "archived" if workspace.archived else ""


def _show(workspace: Workspace, as_json: bool) -> None:
    rows = [
        ("workspace", f"{workspace.name} ({workspace.id})"),
        ("state", output.state(shown_state(workspace))),
        ("error", workspace.error),
        ("owner", workspace.owner),
        ("projects", str(workspace.projects_count)),
        ("experiments", str(workspace.experiments_count)),
        ("compute pool", workspace.default_compute_pool),
        ("aux pool", workspace.default_aux_pool),
        (
            "runs as",
            ", ".join(f"{name[len('agent') :].lower()} {value}" for name, value in workspace.agent_user.items()),
        ),
        ("checkpoints", output.assignments(workspace.checkpoint_storage)),
        ("pinned", "yes" if workspace.pinned else ""),
    ]
    output.details(rows, workspace.raw, as_json)


def _report_progress(now: Workspace) -> None:
    output.say(f"{now.experiments_count} experiments left")


def _given(settings: dict[str, object]) -> dict[str, object]:
    """Options as arguments of the client."""
    group = {
        name: settings[option]
        for option, name in (
            ("agent_uid", "agentUid"),
            ("agent_gid", "agentGid"),
            ("agent_user", "agentUser"),
            ("agent_group", "agentGroup"),
        )
        if settings[option] is not None
    }
    return {
        "checkpoint_storage": _storage(settings["storage"], settings["file"]),
        "default_compute_pool": settings["default_compute_pool"],
        "default_aux_pool": settings["default_aux_pool"],
        "agent_user": group or None,
    }


def _storage(text: object, file: object) -> Optional[JsonObject]:
    if isinstance(text, str) and isinstance(file, Path):
        raise click.UsageError("Give the storage as text or as a file, not both.")
    if isinstance(file, Path):
        return document_of(file)
    return parsed(text, Path("--checkpoint-storage")) if isinstance(text, str) else None


def _workspace(access: Access, which: str) -> Workspace:
    from tenax.client.workspaces import get_workspace

    return get_workspace(access.session(), which)
