"""What every command needs: which master, as which user, and the format of its output."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Callable, Iterable, List, Optional, TypeVar

import click

if TYPE_CHECKING:
    from tenax.client.connection.session import Session

Function = TypeVar("Function", bound=Callable[..., object])
Element = TypeVar("Element")


@dataclass
class Access:
    """The options of ``tenax`` itself; owned by one command."""

    master: Optional[str] = None
    user: Optional[str] = None
    _session: Optional[Session] = field(default=None, repr=False)

    def session(self) -> Session:
        """The session with the chosen master; made when it is first needed."""
        if self._session is None:
            from tenax.client.connection.session import Session

            self._session = Session(self.master, user=self.user)
            if self._session.notice:
                from tenax.cli.console import output

                output.say(f"With {self._session.notice}.")
        return self._session


#: Hands a command its `Access`.
pass_access = click.make_pass_decorator(Access, ensure=True)


def json_option(function: Function) -> Function:
    """``--json``, which every reading command has."""
    return click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")(function)


def list_options(function: Function) -> Function:
    """``--json`` and ``--csv``, which every list has; for `tenax.cli.console.output.listing`."""
    return click.option("--csv", "as_csv", is_flag=True, help="Print the list as comma-separated values.")(
        json_option(function)
    )


def archived_option(function: Function) -> Function:
    """``--archived`` and ``--not-archived``, for lists of what can be archived."""
    return click.option(
        "--archived/--not-archived", default=None, help="Only archived ones, or only those that are not archived."
    )(function)


def name_filter(function: Function) -> Function:
    """``--name``, for lists that are short enough to be filtered here; with `named`."""
    return click.option(
        "--name", "part", default="", metavar="PART", help="Only those with this in their name, ignoring case."
    )(function)


def named(part: str, items: Iterable[Element], name: Callable[[Element], str]) -> List[Element]:
    """Those with ``part`` in their name."""
    return [item for item in items if part.lower() in name(item).lower()]
