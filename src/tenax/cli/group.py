"""``tenax group``: groups of users."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional, Sequence

import click

from tenax.cli.console import output
from tenax.cli.console.layout import TableColumn
from tenax.cli.console.lazy import LazyGroup
from tenax.cli.console.options import Access, json_option, list_options, pass_access
from tenax.client.connection.reading import number_or_name

if TYPE_CHECKING:
    from tenax.client.groups import Group, GroupSize

_COLUMNS: output.Columns[GroupSize] = (
    (TableColumn("ID", right=True), lambda group: str(group.id)),
    (TableColumn("NAME"), lambda group: group.name),
    (TableColumn("USERS", right=True), lambda group: str(group.members)),
)


@click.group(cls=LazyGroup, help="Manage groups of users. A group does not give its users any rights.")
def group() -> None:
    pass


@group.command("list")
@click.option("--of", "username", metavar="NAME", help="Only groups that this user is in.")
@list_options
@pass_access
def list_(access: Access, username: Optional[str], as_json: bool, as_csv: bool) -> None:
    """List the groups by name."""
    from tenax.client.groups import list_groups

    output.records(_COLUMNS, list_groups(access.session(), of_user=username), as_json, as_csv)


@group.command()
@click.argument("name")
@json_option
@pass_access
def describe(access: Access, name: str, as_json: bool) -> None:
    """Show a group and its users, by its NAME or number."""
    details = _group(access, name)
    if as_json:
        output.document(details.raw)
        return
    output.say(f"Group {details.name} ({details.id})")
    columns = [
        TableColumn("ID", right=True),
        TableColumn("NAME"),
        TableColumn("DISPLAY NAME", wraps=True),
    ]
    output.table(columns, [[str(user.id), user.username, user.display_name] for user in details.users])


@group.command()
@click.argument("name")
@click.option("--add-user", "users", multiple=True, metavar="USER", help="Add this user; may be given several times.")
@pass_access
def create(access: Access, name: str, users: List[str]) -> None:
    """Create the group NAME."""
    from tenax.client.groups import create_group

    made = create_group(access.session(), name, users)
    print(f"Created group {made.name} ({made.id}) with {_counted(made.users)}")


@group.command("add-user")
@click.argument("name")
@click.argument("users", nargs=-1, required=True)
@pass_access
def add_user(access: Access, name: str, users: List[str]) -> None:
    """Add USERS to the group NAME."""
    changed = _group(access, name).add(_names(users))
    print(f"{changed.name} now has {_counted(changed.users)}")


@group.command("remove-user")
@click.argument("name")
@click.argument("users", nargs=-1, required=True)
@pass_access
def remove_user(access: Access, name: str, users: List[str]) -> None:
    """Remove USERS from the group NAME."""
    changed = _group(access, name).remove(_names(users))
    print(f"{changed.name} now has {_counted(changed.users)}")


@group.command("change-name")
@click.argument("name")
@click.argument("new_name")
@pass_access
def change_name(access: Access, name: str, new_name: str) -> None:
    """Rename the group NAME."""
    print(f"{name} is now called {_group(access, name).rename(new_name).name}")


@group.command()
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@pass_access
def delete(access: Access, name: str, yes: bool) -> None:
    """Delete the group NAME; its users stay."""
    target = _group(access, name)
    if not yes:
        output.confirm(f"Delete the group {target.name} of {_counted(target.users)}?")
    target.delete()
    print(f"Deleted the group {target.name}")


group.alias("list", "ls")
group.alias("change-name", "rename")


def _counted(users: Sequence[object]) -> str:
    return f"{len(users)} user{'' if len(users) == 1 else 's'}"


def _names(users: List[str]) -> List[str]:
    """Also separated by commas."""
    return [name for argument in users for name in argument.split(",") if name]


def _group(access: Access, name: str) -> Group:
    from tenax.client.groups import get_group

    return get_group(access.session(), number_or_name(name))
