"""Logins that are remembered: one file per person, readable by its owner alone. Standard library only.

``~/.config/tenax/auth.json``: ``{"v": 1, "masters": {<address>: {"user": <who>, "tokens": {<user>: <token>}}}}``.
Two programs that log in at the same time may lose one of the two logins, never the file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Dict, Optional, Tuple

from tenax.errors import InvalidInput
from tenax.jsonvalue import JsonObject
from tenax.local.state_dir import read_json, text_of, write_json


def config_directory() -> Path:
    """Below ``XDG_CONFIG_HOME`` or ``~/.config``."""
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "tenax"


def default_path() -> Path:
    """Where logins are remembered."""
    return config_directory() / "auth.json"


class TokenStore:
    """The file; every method reads it anew."""

    def __init__(self, path: Optional[Path] = None) -> None:
        self._path = path if path is not None else default_path()

    def get(self, url: str, user: Optional[str] = None) -> Optional[Tuple[str, str]]:
        """(user, token) at that master: of ``user``, or of whoever logged in last."""
        entry = self._entry(url)
        name = user or text_of(entry, "user")
        token = self._tokens(entry).get(name)
        return (name, token) if name and token else None

    def active(self, url: str) -> str:
        """Who logged in last at that master and has not logged out, whether or not the login still holds."""
        return text_of(self._entry(url), "user")

    def end(self, url: str, user: str) -> None:
        """The master does not take this login any more: only who it was is remembered."""
        entry = self._entry(url)
        tokens = self._tokens(entry)
        if tokens.pop(user, None) is not None:
            self._write(url, text_of(entry, "user"), tokens)

    def all(self, url: str) -> Dict[str, str]:
        """Every login at that master: user -> token."""
        return self._tokens(self._entry(url))

    def put(self, url: str, user: str, token: str) -> None:
        """Remember a login, which becomes the one that is used; of a file that is damaged nothing else is left."""
        entry = self._entry(url, read_json(self._path))
        self._write(url, user, {**self._tokens(entry), user: token})

    def drop(self, url: str, user: str) -> None:
        """Forget a login, or that there was one; nothing if it is not there."""
        entry = self._entry(url)
        tokens = self._tokens(entry)
        active = text_of(entry, "user")
        if tokens.pop(user, None) is not None or active == user:
            self._write(url, active if active in tokens else next(iter(tokens), ""), tokens)

    def _document(self) -> JsonObject:
        """Empty where nobody ever logged in.

        Raises InvalidInput for one that is damaged: it may name somebody else than who would be meant without it.
        """
        document = read_json(self._path)
        if not document and self._is_there():
            raise InvalidInput(
                f"{self._path}, where logins are remembered, cannot be read: mend it, or log in again "
                "(tenax user login), which writes it anew."
            )
        return document

    def _is_there(self) -> bool:
        try:
            return self._path.stat().st_size > 0
        except OSError:
            return False

    def _entry(self, url: str, document: Optional[JsonObject] = None) -> JsonObject:
        masters = (self._document() if document is None else document).get("masters")
        entry = masters.get(url) if isinstance(masters, dict) else None
        return entry if isinstance(entry, dict) else {}

    @staticmethod
    def _tokens(entry: JsonObject) -> Dict[str, str]:
        tokens = entry.get("tokens")
        pairs = tokens.items() if isinstance(tokens, dict) else ()
        return {name: token for name, token in pairs if isinstance(token, str)}

    def _write(self, url: str, user: str, tokens: Dict[str, str]) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        document = read_json(self._path)
        known = document.get("masters")
        masters: JsonObject = dict(known) if isinstance(known, dict) else {}
        masters[url] = {"user": user, "tokens": dict(tokens)}
        if not user:
            del masters[url]
        write_json(self._path, {"v": 1, "masters": masters})
