"""``tenax user``: logins."""

from __future__ import annotations

import sys
from typing import Optional

import click

from tenax.cli import output
from tenax.cli.access import Access, json_option, pass_access
from tenax.cli.lazy import Group


@click.group(cls=Group, help="Log in and out.")
def group() -> None:
    pass


@group.command()
@click.argument("name", required=False)
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input, for scripts.")
@pass_access
def login(access: Access, name: Optional[str], password_stdin: bool) -> None:
    """Log in as NAME, and stay logged in on this machine.

    The password is asked for, or read with --password-stdin: arguments can be seen by everybody.
    """
    session = access.session()
    who = name or access.user or click.prompt("Name", err=True)
    if password_stdin:
        password = sys.stdin.readline().rstrip("\n")
    elif not sys.stdin.isatty():
        raise click.UsageError("There is no terminal to ask for the password: pipe it in with --password-stdin.")
    else:
        password = click.prompt(f"Password of {who}", hide_input=True, default="", show_default=False, err=True)
    session.log_in(who, password)
    output.say(f"Logged in at {session.url} as {who}.")


@group.command()
@pass_access
def logout(access: Access) -> None:
    """Log out, and forget the login on this machine."""
    from tenax.client import users
    from tenax.errors import NotAuthenticated

    session = access.session()
    remembered = session.store.get(session.url, access.user)
    try:
        name = users.whoami(session).username
        session.post("/api/v1/auth/logout")
    except NotAuthenticated:
        name = remembered[0] if remembered is not None else ""
    session.forget(name)
    output.say(f"Logged out at {session.url}." if name else f"You were not logged in at {session.url}.")


@group.command()
@json_option
@pass_access
def whoami(access: Access, as_json: bool) -> None:
    """Show who is logged in."""
    from tenax.client import users

    user = users.whoami(access.session())
    if as_json:
        output.document(user.raw)
        return
    words = [user.username]
    if user.admin:
        words.append("(admin)")
    print(*words, "at", access.session().url)
