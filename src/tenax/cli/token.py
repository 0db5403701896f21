"""``tenax token``: access tokens, for programs that log in."""

from __future__ import annotations

import datetime
import sys
from typing import TYPE_CHECKING, List, Optional

import click

from tenax.cli.console import output
from tenax.cli.console.lazy import LazyGroup
from tenax.cli.console.options import Access, json_option, list_options, pass_access

if TYPE_CHECKING:
    from tenax.client.access_tokens import AccessToken


@click.group(cls=LazyGroup, help="Manage access tokens, with which programs log in.")
def group() -> None:
    pass


@group.command("list")
@click.argument("username", required=False)
@click.option(
    "-a", "--show-inactive", "inactive", is_flag=True, help="Include tokens that are revoked or have expired."
)
@list_options
@pass_access
def list_(access: Access, username: Optional[str], inactive: bool, as_json: bool, as_csv: bool) -> None:
    """List your tokens; administrators see everyone's, or those of USERNAME."""
    from tenax.client.access_tokens import list_tokens
    from tenax.client.users import get_user

    if username is not None:
        get_user(access.session(), username)
    _show(access, list_tokens(access.session(), username, inactive=inactive), as_json, as_csv)


@group.command()
@click.argument("numbers", type=int, nargs=-1, required=True)
@list_options
@pass_access
def describe(access: Access, numbers: List[int], as_json: bool, as_csv: bool) -> None:
    """Show tokens by their numbers, including revoked and expired ones."""
    from tenax.client.access_tokens import get_token

    _show(access, [get_token(access.session(), number) for number in numbers], as_json, as_csv)


@group.command()
@click.argument("username", required=False)
@click.option("-e", "--expiration-days", "days", type=int, help="Days until it expires; -1 for as long as allowed.")
@click.option("-d", "--description", default="", help="Its description.")
@click.option("--with-current", is_flag=True, help="Give your present password, for a token that outlives your login.")
@json_option
@pass_access
def create(
    access: Access,
    username: Optional[str],
    days: Optional[int],
    description: str,
    with_current: bool,
    as_json: bool,
) -> None:
    """Create a token for yourself, or for USERNAME. It is printed once and stored nowhere.

    In the first 15 minutes after you logged in it may end whenever you like, later not after your login does, unless
    you give your password again.

    Programs use it as DET_USER_TOKEN together with DET_USER, or through tenax token login.
    """
    from tenax.client.access_tokens import create_token

    lifespan = None if days is None else "-1" if days == -1 else f"{24 * days}h"
    current = click.prompt("Your present password", hide_input=True, err=True) if with_current else None
    number, token = create_token(
        access.session(), username, lifespan=lifespan, description=description, current_password=current
    )
    if as_json:
        output.document({"tokenId": number, "token": token})
        return
    output.say(f"Token {number}, shown only this once:")
    print(token)


@group.command()
@click.argument("number", type=int)
@click.option("-d", "--description", required=True, help="Its description.")
@pass_access
def edit(access: Access, number: int, description: str) -> None:
    """Set the description of a token."""
    from tenax.client.access_tokens import get_token

    get_token(access.session(), number).describe(description)
    print(f"Changed token {number}")


@group.command()
@click.argument("numbers", type=int, nargs=-1, required=True)
@pass_access
def revoke(access: Access, numbers: List[int]) -> None:
    """Revoke tokens, at once and for good."""
    from tenax.client.access_tokens import get_token

    for number in numbers:
        get_token(access.session(), number).revoke()
        print(f"Revoked token {number}")


@group.command()
@click.option("--token-stdin", is_flag=True, help="Read the token from standard input, for scripts.")
@pass_access
def login(access: Access, token_stdin: bool) -> None:
    """Stay logged in on this machine with a token. You are prompted for it: arguments are visible to everybody here."""
    from tenax.client.connection.session import Session
    from tenax.client.users import whoami

    if token_stdin:
        token = sys.stdin.readline().strip()
    elif not sys.stdin.isatty():
        raise click.UsageError("There is no terminal to ask for the token: pipe it in with --token-stdin.")
    else:
        token = click.prompt("Token", hide_input=True, err=True).strip()
    session = access.session()
    user = whoami(Session(",".join(session.urls), token=token))
    session.store.put(session.url, user.username, token)
    output.say(f"Logged in at {session.url} as {user.username}.")


group.alias("list", "ls")


def _show(access: Access, tokens: List[AccessToken], as_json: bool, as_csv: bool) -> None:
    columns = [
        output.TableColumn("ID", right=True),
        output.TableColumn("USER", cuts=True),
        output.TableColumn("STATE"),
        output.TableColumn("EXPIRES", spare=True),
        output.TableColumn("MADE", spare=True),
        output.TableColumn("DESCRIPTION", wraps=True),
    ]
    from tenax.client.users import list_users

    names = {user.id: user.username for user in list_users(access.session())} if tokens and not as_json else {}
    now = datetime.datetime.now(datetime.timezone.utc)
    rows = []
    for token in tokens:
        expired = token.expires is not None and token.expires <= now
        state = "revoked" if token.revoked else "expired" if expired else "good"
        moments = [output.moment(token.expires), output.moment(token.created)]
        rows.append([str(token.id), names.get(token.user_id, str(token.user_id)), state, *moments, token.description])
    output.listing(columns, rows, [token.raw for token in tokens], as_json, as_csv)
