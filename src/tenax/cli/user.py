"""``tenax user``: logins, and who there is."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Dict, List, Optional

import click

from tenax.cli.console import output
from tenax.cli.console.layout import TableColumn
from tenax.cli.console.lazy import LazyGroup
from tenax.cli.console.options import Access, json_option, list_options, pass_access
from tenax.client.connection.reading import number_or_name

if TYPE_CHECKING:
    from tenax.client.users import User

_COLUMNS: output.Columns[User] = (
    (TableColumn("ID", right=True), lambda user: str(user.id)),
    (TableColumn("NAME", cuts=True), lambda user: user.username),
    (TableColumn("DISPLAY NAME", wraps=True), lambda user: user.display_name),
    (TableColumn("ROLE"), lambda user: "admin" if user.admin else ""),
    (
        TableColumn("STATE"),
        lambda user: ("active" if user.active else "inactive") + (", remote" if user.remote else ""),
    ),
    (TableColumn("LAST LOGIN", spare=True), lambda user: output.moment(user.last_login)),
    (TableColumn("RUNS AS", spare=True), lambda user: _runs_as(user)),
)

_STDIN = "Read the password from standard input, for scripts."


@click.group(cls=LazyGroup, help="Log in and out; list, create and edit users.")
def group() -> None:
    pass


@group.command()
@click.argument("name", required=False)
@click.option("--password-stdin", is_flag=True, help=_STDIN)
@pass_access
def login(access: Access, name: Optional[str], password_stdin: bool) -> None:
    """Log in as NAME, and stay logged in on this machine.

    The password is asked for, or read with --password-stdin: everybody on this machine can see arguments.
    """
    from tenax.client.connection.address import remember

    session = access.session()
    who = name or access.user or click.prompt("Name", err=True)
    session.log_in(who, _password(f"Password of {who}", password_stdin))
    if access.master or os.environ.get("DET_MASTER"):
        remember(",".join(session.urls))
    output.say(f"Logged in at {session.url} as {who}.")
    named = os.environ.get("DET_USER")
    if named and named != who:
        output.warn(f"DET_USER is {named}, which goes before this login: unset DET_USER to act as {who}.")


@group.command()
@click.option("-a", "--all", "everyone", is_flag=True, help="Log out every user of this machine at this master.")
@pass_access
def logout(access: Access, everyone: bool) -> None:
    """Log out, and forget the login on this machine."""
    from tenax.client import users
    from tenax.client.connection.session import Session
    from tenax.errors import Forbidden, NotAuthenticated

    session = access.session()
    if everyone:
        for name, token in session.store.all(session.url).items():
            with contextlib.suppress(NotAuthenticated, Forbidden):
                Session(",".join(session.urls), token=token).post("/api/v1/auth/logout")
            session.forget(name)
            output.say(f"Logged out at {session.url} as {name}.")
        return
    remembered = access.user or session.store.active(session.url)
    try:
        name = users.whoami(session).username
        session.post("/api/v1/auth/logout")
    except (NotAuthenticated, Forbidden):
        # Forbidden: of a user who was deactivated.
        name = remembered
    session.forget(name)
    output.say(f"Logged out at {session.url}." if name else f"You were not logged in at {session.url}.")


@group.command()
@json_option
@pass_access
def whoami(access: Access, as_json: bool) -> None:
    """Show who is logged in, and how that came about."""
    from tenax.client import users

    session = access.session()
    user = users.whoami(session)
    if as_json:
        output.document({**user.raw, "master": session.url, "login": session.logged_in_by()})
        return
    shown = [user.username]
    if user.admin:
        shown.append("(admin)")
    print(*shown, "at", f"{session.url}, by", session.logged_in_by())


@group.command("list")
@click.option("-a", "--all", "everyone", is_flag=True, help="Include inactive users.")
@click.option("--admins", is_flag=True, help="Only administrators.")
@click.option("--name", metavar="PART", help="Only those whose user name or display name contains this.")
@list_options
@pass_access
def list_(access: Access, everyone: bool, admins: bool, name: Optional[str], as_json: bool, as_csv: bool) -> None:
    """List the users by name."""
    from tenax.client.users import list_users

    users = list_users(access.session(), active=None if everyone else True, admin=admins or None, name=name)
    output.records(_COLUMNS, users, as_json, as_csv)


@group.command()
@click.argument("name")
@json_option
@pass_access
def describe(access: Access, name: str, as_json: bool) -> None:
    """Show a user, by NAME or number."""
    user = _user(access, name)
    rows = [
        ("id", str(user.id)),
        ("name", user.username),
        ("display name", user.display_name),
        ("role", "admin" if user.admin else "user"),
        ("state", "active" if user.active else "inactive"),
        ("logs in", "elsewhere" if user.remote else "here"),
        ("last login", output.moment(user.last_login)),
        ("runs as", _runs_as(user)),
    ]
    output.details(rows, user.raw, as_json)


@group.command()
@click.argument("name")
@click.option("--admin", is_flag=True, help="Make them an administrator.")
@click.option("--display-name", default="", help="Their display name.")
@click.option("--remote", is_flag=True, help="They log in through another service, and have no password here.")
@click.option("--password-stdin", is_flag=True, help=_STDIN)
@pass_access
def create(access: Access, name: str, admin: bool, display_name: str, remote: bool, password_stdin: bool) -> None:
    """Create the user NAME; for administrators."""
    from tenax.client.users import create_user

    password = None if remote else _password(f"Password for {name}", password_stdin, twice=True)
    user = create_user(access.session(), name, password, admin=admin, display_name=display_name, remote=remote)
    print(f"Created user {user.username} ({user.id})")


@group.command()
@click.argument("name")
@click.option("--username", metavar="NAME", help="Their new user name.")
@click.option("--display-name", help="Their display name.")
@click.option("--admin", type=bool, metavar="true|false", help="Whether they are an administrator.")
@click.option("--active", type=bool, metavar="true|false", help="Whether they may log in.")
@click.option("--remote", type=bool, metavar="true|false", help="Whether they log in through another service.")
@pass_access
def edit(
    access: Access,
    name: str,
    username: Optional[str],
    display_name: Optional[str],
    admin: Optional[bool],
    active: Optional[bool],
    remote: Optional[bool],
) -> None:
    """Edit the user NAME."""
    changes: Dict[str, Optional[object]] = {
        "username": username,
        "display_name": display_name,
        "admin": admin,
        "active": active,
        "remote": remote,
    }
    given = [option for option, value in changes.items() if value is not None]
    if not given:
        raise click.UsageError("Give at least one change: --username, --display-name, --admin, --active or --remote.")

    user = _user(access, name)
    user.edit(username=username, display_name=display_name, admin=admin, active=active, remote=remote)
    print(f"Changed for {name}: {', '.join(option.replace('_', ' ') for option in given)}")


@group.command()
@click.argument("name")
@click.argument("new_name")
@pass_access
def rename(access: Access, name: str, new_name: str) -> None:
    """Rename the user NAME."""
    _user(access, name).edit(username=new_name)
    print(f"{name} is now called {new_name}")


@group.command()
@click.argument("names", nargs=-1, required=True)
@pass_access
def activate(access: Access, names: List[str]) -> None:
    """Reactivate users: they may log in again."""
    _set_active(access, names, True)


@group.command()
@click.argument("names", nargs=-1, required=True)
@pass_access
def deactivate(access: Access, names: List[str]) -> None:
    """Deactivate users: their sessions and tokens are refused at once."""
    _set_active(access, names, False)


@group.command("change-password")
@click.argument("name", required=False)
@click.option(
    "--with-current", is_flag=True, help="Give your present password first; needed with an access token as the login."
)
@click.option("--password-stdin", is_flag=True, help=_STDIN)
@pass_access
def change_password(access: Access, name: Optional[str], with_current: bool, password_stdin: bool) -> None:
    """Change your password, or that of the user NAME; all other sessions of that user end."""
    from tenax.client import users

    session = access.session()
    user = users.whoami(session) if name is None else users.get_user(session, number_or_name(name))
    current = _password("Your present password", password_stdin) if with_current else None
    user.change_password(_password(f"New password of {user.username}", password_stdin, twice=True), current)
    print(f"{user.username} has a new password")


@group.command("link-with-agent-user")
@click.argument("name")
@click.option("--agent-uid", type=click.IntRange(0), required=True, help="Uid on the agents.")
@click.option("--agent-user", required=True, help="User name on the agents.")
@click.option("--agent-gid", type=click.IntRange(0), required=True, help="Gid on the agents.")
@click.option("--agent-group", required=True, help="Group name on the agents.")
@pass_access
def link_with_agent_user(
    access: Access, name: str, agent_uid: int, agent_user: str, agent_gid: int, agent_group: str
) -> None:
    """Run the tasks of the user NAME as this user and group on the agents."""
    _user(access, name).link_with_agent(agent_uid, agent_user, agent_gid, agent_group)
    print(f"Tasks of {name} run as {agent_user}:{agent_group} ({agent_uid}:{agent_gid})")


group.alias("list", "ls")


def _set_active(access: Access, names: List[str], active: bool) -> None:
    from tenax.client.users import get_user

    session = access.session()
    for user in [get_user(session, number_or_name(name)) for name in names]:
        user.edit(active=active)
        print(f"{user.username} is now {'active' if active else 'inactive'}")


def _password(what: str, from_stdin: bool, twice: bool = False) -> str:
    """A password, typed without being shown, or from standard input."""
    if from_stdin:
        return sys.stdin.readline().rstrip("\n")
    if not sys.stdin.isatty():
        raise click.UsageError("There is no terminal to ask for the password: pipe it in with --password-stdin.")
    typed: str = click.prompt(
        what, hide_input=True, default="", show_default=False, err=True, confirmation_prompt=twice
    )
    return typed


def _runs_as(user: User) -> str:
    identity = user.agent_identity
    return f"{identity.user}:{identity.group} ({identity.uid}:{identity.gid})" if identity else ""


def _user(access: Access, name: str) -> User:
    from tenax.client.users import get_user

    return get_user(access.session(), number_or_name(name))
