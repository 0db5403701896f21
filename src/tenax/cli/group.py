"""``tenax group``: groups of users."""

from __future__ import annotations

from typing import List, Optional, Sequence

import click

from tenax.cli.console import output
from tenax.cli.console.lazy import LazyGroup
from tenax.cli.console.options import Access, json_option, list_options, pass_access
from tenax.client.reading import number_or_name


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

    groups = list_groups(access.session(), of_user=username)
    columns = [
        output.TableColumn("ID", right=True),
        output.TableColumn("NAME"),
        output.TableColumn("USERS", right=True),
    ]
    rows = [[str(group.id), group.name, str(group.members)] for group in groups]
    output.listing(columns, rows, [group.raw for group in groups], as_json, as_csv)


@group.command()
@click.argument("name")
@json_option
@pass_access
def describe(access: Access, name: str, as_json: bool) -> None:
    """Show a group and its users, by its NAME or number."""
    from tenax.client.groups import get_group

    details = get_group(access.session(), number_or_name(name))
    if as_json:
        output.document(details.raw)
        return
    output.say(f"Group {details.name} ({details.id})")
    columns = [
        output.TableColumn("ID", right=True),
        output.TableColumn("NAME"),
        output.TableColumn("DISPLAY NAME", wraps=True),
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
    from tenax.client.groups import get_group

    changed = get_group(access.session(), number_or_name(name)).add(_names(users))
    print(f"{changed.name} now has {_counted(changed.users)}")


@group.command("remove-user")
@click.argument("name")
@click.argument("users", nargs=-1, required=True)
@pass_access
def remove_user(access: Access, name: str, users: List[str]) -> None:
    """Remove USERS from the group NAME."""
    from tenax.client.groups import get_group

    changed = get_group(access.session(), number_or_name(name)).remove(_names(users))
    print(f"{changed.name} now has {_counted(changed.users)}")


@group.command("change-name")
@click.argument("name")
@click.argument("new_name")
@pass_access
def change_name(access: Access, name: str, new_name: str) -> None:
    """Rename the group NAME."""
    from tenax.client.groups import get_group

    print(f"{name} is now called {get_group(access.session(), number_or_name(name)).rename(new_name).name}")


@group.command()
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@pass_access
def delete(access: Access, name: str, yes: bool) -> None:
    """Delete the group NAME; its users stay."""
    from tenax.client.groups import get_group

    target = get_group(access.session(), number_or_name(name))
    if not yes:
        click.confirm(f"Delete the group {target.name} of {_counted(target.users)}?", abort=True, err=True)
    target.delete()
    print(f"Deleted the group {target.name}")


group.alias("list", "ls")
group.alias("change-name", "rename")


def _counted(users: Sequence[object]) -> str:
    return f"{len(users)} user{'' if len(users) == 1 else 's'}"


def _names(users: List[str]) -> List[str]:
    """Also separated by commas."""
    return [name for argument in users for name in argument.split(",") if name]
