"""Who we are at a master, and how we prove it.

The first of these that there is:

1. what was handed over: a token (SDK), or a name (``--user``), which the others below must then be of
2. the environment: ``DET_USER`` with ``DET_USER_TOKEN`` (inside a task) or ``DET_PASS``; alone it is a name, as above
3. the login at this master that ``tenax user login`` remembered
4. the automatic login among the first users of a cluster of this machine, whose passwords stand in its directory

A remembered login that the master no longer takes is over until one logs in again, or out: nobody becomes somebody else
by that. An automatic one is made anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from typing import Callable, Optional, Tuple

from tenax.client.connection.saved_logins import TokenStore
from tenax.errors import NotAuthenticated
from tenax.jsonvalue import JsonObject
from tenax.local.state_dir import StateDir, read_json, text_of, write_json

#: Put before a password before it is hashed, so that what travels is of no use elsewhere; the wire's, not ours.
_SALT = "GubPEmmotfiK9TMD6Zdw"
_PROOF = "DET_USER_TOKEN"
_AUTOMATIC = "the automatic login"

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
        self._named_by = "--user"
        #: How the token came about, for people; empty before there is one.
        self.how = ""

    def token(self, ask: AskMaster) -> str:
        """A token to try. Raises NotAuthenticated, saying what to do."""
        if self._fixed is not None:
            self.how = "a token that was given"
            return self._fixed
        if self._current is None:
            self._current = self._from_environment(ask) or self._remembered() or self._automatic(ask)
        return self._current[1]

    def refused(self) -> bool:
        """The master did not take the token: forget it; whether another attempt may help."""
        if self._fixed is not None or self._current is None:
            return False
        user, token = self._current
        self._current = None
        if self._local is not None:
            kept = text_of(read_json(self._local.session), "token")
            if kept == token:
                _unlink(self._local)
            # Another session may have made it anew.
            if kept == token or self.how.startswith(_AUTOMATIC):
                return True
        if self._store.get(self._url, user) == (user, token):
            # Whoever it was is remembered: another's login in their place would not be what they asked for.
            self._store.end(self._url, user)
            return True
        return False

    def why_refused(self) -> str:
        """What to do, for people, where the master did not take it."""
        if self._fixed is not None:
            return f"The token that was given is none of {self._url}, or not any more: make another one."
        if self.how.endswith(_PROOF):
            return f"The token in {_PROOF} is none of {self._url}, or not any more: set another one, or unset it."
        return f"Your session at {self._url} has ended: tenax user login."

    def forget(self, user: str) -> None:
        """Forget the local cluster's login if it is that user's."""
        self._current = None
        if self._local is not None and text_of(read_json(self._local.session), "user") == user:
            _unlink(self._local)

    def _from_environment(self, ask: AskMaster) -> Optional[Tuple[str, str]]:
        """DET_USER with its proof; nothing where a flag names somebody else.

        Raises NotAuthenticated for a proof of nobody: whoever set it means to be somebody else than who would be taken.
        """
        name = os.environ.get("DET_USER", "")
        alone = next((proof for proof in ("DET_PASS", _PROOF) if os.environ.get(proof)), None)
        if not name and self._user is None and alone:
            raise NotAuthenticated(f"{alone} is set and DET_USER is not: name whose it is, or unset {alone}.")
        if not name or self._user not in (None, name):
            return None
        token, password = os.environ.get(_PROOF), os.environ.get("DET_PASS")
        if token:
            self.how = f"DET_USER and {_PROOF}"
            return name, token
        if password is not None:
            self.how = "DET_USER and DET_PASS"
            return name, ask(name, hashed_password(password))
        # Somebody is named, and nobody else will do.
        self._user, self._named_by = name, "DET_USER"
        return None

    def _remembered(self) -> Optional[Tuple[str, str]]:
        stored = self._store.get(self._url, self._user)
        if stored is not None:
            self.how = "the login that tenax user login remembered" + self._by_name()
        return stored

    def _automatic(self, ask: AskMaster) -> Tuple[str, str]:
        """Among the first users of a cluster of this machine. Raises NotAuthenticated."""
        ended = self._store.active(self._url) if self._user is None else ""
        if self._local is not None:
            first = read_json(self._local.credentials)
            user = self._user or ended or text_of(first, "username")
            password = _first_password(first, user)
            if user and password is not None:
                self.how = f"{_AUTOMATIC} of the cluster in {self._local.root}{self._by_name()}"
                session = read_json(self._local.session)
                if text_of(session, "user") == user and text_of(session, "token"):
                    return user, text_of(session, "token")
                token = ask(user, hashed_password(password))
                with contextlib.suppress(OSError):
                    # Where the disk takes nothing, the next command logs in anew.
                    write_json(self._local.session, {"v": 1, "user": user, "token": token})
                return user, token
        if ended:
            raise NotAuthenticated(
                f"Your login as {ended} at {self._url} has ended: tenax user login {ended}. To go on without it: "
                "tenax user logout."
            )
        raise NotAuthenticated(
            f"You are not logged in at {self._url}{self._by_name()}: tenax user login {self._user or 'NAME'} "
            "(programs: DET_USER and DET_PASS)."
        )

    def _by_name(self) -> str:
        return f", as {self._user} whom {self._named_by} names" if self._user is not None else ""


def _unlink(local: StateDir) -> None:
    with contextlib.suppress(OSError):
        local.session.unlink(missing_ok=True)


def _first_password(first: JsonObject, user: str) -> Optional[str]:
    """What the master drew for ``user`` at its first start; None: nothing."""
    if user == text_of(first, "username"):
        return text_of(first, "password")
    users = first.get("users")
    password = users.get(user) if isinstance(users, dict) else None
    return password if isinstance(password, str) else None
