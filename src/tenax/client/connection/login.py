"""Who we are at a master, and how we prove it.

The first of these that there is: a token that was handed over; ``DET_USER_TOKEN`` (inside a task); a remembered login;
``DET_USER`` with ``DET_PASS``; the first users of a cluster of this machine, whose passwords stand in its directory.
A token that the master no longer takes is forgotten and the next of them is tried.
"""

from __future__ import annotations

import hashlib
import os
from typing import Callable, Optional, Tuple

from tenax.client.connection.saved_logins import TokenStore
from tenax.errors import NotAuthenticated
from tenax.jsonvalue import JsonObject
from tenax.local.state_dir import StateDir, read_json, text_of, write_json

#: Put before a password before it is hashed, so that what travels is of no use elsewhere; the wire's, not ours.
_SALT = "GubPEmmotfiK9TMD6Zdw"

#: (user, hashed password) -> token. Raises NotAuthenticated.
AskMaster = Callable[[str, str], str]


def hashed_password(password: str) -> str:
    """What is sent for a password; a blank one stays blank."""
    return hashlib.sha512((_SALT + password).encode()).hexdigest() if password else ""


class SessionLogin:
    """The login of one session.

    ``user``: None for whoever logged in last. ``token``: used as it is, and never replaced.
    """

    def __init__(
        self,
        url: str,
        *,
        user: Optional[str] = None,
        token: Optional[str] = None,
        store: Optional[TokenStore] = None,
        local: Optional[StateDir],
    ) -> None:
        self._url = url
        self._user = user
        self._fixed = token
        self._store = store if store is not None else TokenStore()
        self._local = local
        self._current: Optional[Tuple[str, str]] = None

    def token(self, ask: AskMaster) -> str:
        """A token to try. Raises NotAuthenticated, saying what to do."""
        if self._fixed is not None:
            return self._fixed
        if self._current is None:
            self._current = self._remembered() or self._log_in(ask)
        return self._current[1]

    def refused(self) -> bool:
        """The master did not take the token: forget it; whether another attempt may help."""
        if self._fixed is not None or self._current is None:
            return False
        user, token = self._current
        self._current = None
        if self._local is not None and text_of(read_json(self._local.session), "token") == token:
            self._local.session.unlink(missing_ok=True)
            return True
        if self._store.get(self._url, user) == (user, token):
            self._store.drop(self._url, user)
            return True
        return False

    def forget(self, user: str) -> None:
        """Forget the local cluster's login if it is that user's."""
        self._current = None
        if self._local is not None and text_of(read_json(self._local.session), "user") == user:
            self._local.session.unlink(missing_ok=True)

    def _remembered(self) -> Optional[Tuple[str, str]]:
        name = os.environ.get("DET_USER", "")
        inside = os.environ.get("DET_USER_TOKEN")
        if inside and name and self._user in (None, name):
            return name, inside
        stored = self._store.get(self._url, self._user)
        if stored is not None:
            return stored
        if self._local is not None:
            session = read_json(self._local.session)
            user, token = text_of(session, "user"), text_of(session, "token")
            if token and self._user in (None, user):
                return user, token
        return None

    def _log_in(self, ask: AskMaster) -> Tuple[str, str]:
        name, password = os.environ.get("DET_USER", ""), os.environ.get("DET_PASS")
        if name and password is not None and self._user in (None, name):
            return name, ask(name, hashed_password(password))
        if self._local is not None:
            first = read_json(self._local.credentials)
            user, password = self._user or text_of(first, "username"), _first_password(first, self._user)
            if user and password is not None:
                token = ask(user, hashed_password(password))
                write_json(self._local.session, {"v": 1, "user": user, "token": token})
                return user, token
        raise NotAuthenticated(
            f"You are not logged in at {self._url}: tenax user login {self._user or 'NAME'} "
            "(programs: DET_USER and DET_PASS)."
        )


def _first_password(first: JsonObject, user: Optional[str]) -> Optional[str]:
    """What the master drew for ``user`` (None: the administrator) at its first start; None: nothing."""
    if user in (None, text_of(first, "username")):
        return text_of(first, "password")
    users = first.get("users")
    password = users.get(user) if isinstance(users, dict) and user is not None else None
    return password if isinstance(password, str) else None
