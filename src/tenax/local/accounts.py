"""Whose process the embedded PostgreSQL is: ours, or, when we are root, an existing unprivileged account's.

PostgreSQL refuses to run as root. No account is made and the mode of no existing directory is changed: a place that the
account cannot reach is refused by name. Standard library only.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tenax.errors import UserError

#: Tried in this order when none is named; the first that exists is taken.
PREFERRED = ("tenax", "postgres", "nobody")


class NoAccount(UserError):
    """PostgreSQL does not run as root, and no unprivileged account was found: name one, or start Tenax as a user."""


@dataclass(frozen=True, slots=True)
class Account:
    """An entry of the password file."""

    name: str
    uid: int
    gid: int


def account_for(data: Path, name: str | None = None) -> Account | None:
    """Who runs the server of this data directory: None for ourselves, else the account that owns it or should.

    Raises NoAccount when the named one does not exist, is root, or is not the owner of the data that is there.
    """
    if os.geteuid() != 0:
        return None
    owner = _owner(data)
    if name is None:
        return owner or _first()
    account = _named(name)
    if account is None or account.uid == 0:
        raise NoAccount(f"PostgreSQL cannot run as {name!r}: name an existing account other than root.")
    if owner is not None and owner.uid != account.uid:
        raise NoAccount(f"{data} belongs to {owner.name!r}: PostgreSQL must run as that account, not as {name!r}.")
    return account


def unreachable(account: Account, path: Path) -> Path | None:
    """The first directory on the way to ``path`` that ``account`` may not enter, or ``path`` itself; None: all well.

    The kernel is asked, as that account, so that access lists count too.
    """
    way = [*reversed(path.absolute().parents), path.absolute()]
    script = 'for place in "$@"; do test -x "$place" || { printf %s "$place"; exit 1; }; done'
    result = subprocess.run(
        ["/bin/sh", "-c", script, "sh", *map(str, way)],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        user=account.uid,
        group=account.gid,
        extra_groups=[],
    )
    return Path(result.stdout) if result.returncode != 0 else None


def _owner(data: Path) -> Account | None:
    try:
        uid = data.stat().st_uid
    except OSError:
        return None
    if uid == 0:
        return None
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        raise NoAccount(f"{data} belongs to user number {uid}, and this machine has no such account.") from None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def _first() -> Account:
    for account in _existing():
        return account
    raise NoAccount


def _existing() -> Iterator[Account]:
    for name in PREFERRED:
        account = _named(name)
        if account is not None and account.uid != 0:
            yield account


def _named(name: str) -> Account | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
