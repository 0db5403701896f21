"""Users as values."""

from __future__ import annotations

from dataclasses import dataclass, field

from tenax.client import reading
from tenax.client.session import Session
from tenax.jsonvalue import JsonObject


@dataclass(frozen=True)
class User:
    """A person, or a program that acts like one."""

    id: int
    username: str
    display_name: str
    admin: bool
    active: bool
    #: The whole answer.
    raw: JsonObject = field(repr=False, compare=False)

    @staticmethod
    def read(value: JsonObject) -> User:
        """From an answer of the master."""
        return User(
            id=reading.integer(value, "id"),
            username=reading.text(value, "username"),
            display_name=reading.text(value, "displayName"),
            admin=reading.flag(value, "admin"),
            active=reading.flag(value, "active"),
            raw=value,
        )


def whoami(session: Session) -> User:
    """The user of this session."""
    return User.read(reading.record(session.get("/api/v1/me"), "user"))
