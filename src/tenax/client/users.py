"""Users as values, and what may be done with them."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import List, Optional, Union

from tenax.client.connection import reading
from tenax.client.connection.login import hashed_password
from tenax.client.connection.reading import LiveAnswer, made, part
from tenax.client.connection.session import Session, at
from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject


@dataclass(frozen=True)
class AgentIdentity:
    """Whom a user's tasks run as on the agents."""

    uid: int
    user: str
    gid: int
    group: str


@dataclass(frozen=True)
class User(LiveAnswer):
    """A person, or a program that acts like one."""

    id: int = part(reading.integer, "id")
    username: str = part(reading.text, "username")
    display_name: str = part(reading.text, "displayName")
    admin: bool = part(reading.flag, "admin")
    active: bool = part(reading.flag, "active")
    #: Logs in elsewhere, and has no password here.
    remote: bool = part(reading.flag, "remote")
    last_login: Optional[datetime.datetime] = part(reading.moment, "lastAuthAt")
    agent_identity: Optional[AgentIdentity] = made(lambda value: _identity(reading.record(value, "agentUserGroup")))

    def reload(self) -> User:
        """The user as they are now."""
        return get_user(self.session, self.id)

    def edit(
        self,
        *,
        username: Optional[str] = None,
        display_name: Optional[str] = None,
        admin: Optional[bool] = None,
        active: Optional[bool] = None,
        remote: Optional[bool] = None,
    ) -> User:
        """Change what is given. Raises Forbidden, AlreadyExists, InvalidInput."""
        changes: JsonObject = {
            "username": username,
            "displayName": display_name,
            "admin": admin,
            "active": active,
            "remote": remote,
        }
        return self._patch(reading.without_nulls(changes))

    def change_password(self, password: str, current: Optional[str] = None) -> User:
        """Give them another password; their other logins end. Raises InvalidInput for a weak one, Forbidden.

        ``current``: the present password of whoever asks, which is needed where they come with an access token.
        """
        check_password(password)
        body: JsonObject = {"password": hashed_password(password), "isHashed": True}
        if current is not None:
            body["currentPassword"] = hashed_password(current)
        return self._patch(body)

    def link_with_agent(self, uid: int, user: str, gid: int, group: str) -> User:
        """Let their tasks run as this user and group of the agents' machines."""
        linked: JsonObject = {"agentUid": uid, "agentUser": user, "agentGid": gid, "agentGroup": group}
        return self._patch({"agentUserGroup": linked})

    def _patch(self, body: JsonObject) -> User:
        answer = self.session.call("PATCH", at("/api/v1/users/{}", self.id), body=body)
        return User.read(reading.record(answer, "user"), self.session)


def _identity(group: JsonObject) -> Optional[AgentIdentity]:
    if not group:
        return None
    return AgentIdentity(
        reading.integer(group, "agentUid"),
        reading.text(group, "agentUser"),
        reading.integer(group, "agentGid"),
        reading.text(group, "agentGroup"),
    )


def whoami(session: Session) -> User:
    """The user of this session."""
    return User.read(reading.record(session.get("/api/v1/me"), "user"), session)


def list_users(
    session: Session, *, active: Optional[bool] = None, admin: Optional[bool] = None, name: Optional[str] = None
) -> List[User]:
    """Users by name; ``name``: a part of a user name or a display name."""
    query = {"active": active, "admin": admin, "name": name or None, "sortBy": "SORT_BY_USER_NAME"}
    answer = session.get("/api/v1/users", query)
    return [User.read(user, session) for user in reading.records(answer, "users")]


def get_user(session: Session, which: Union[int, str]) -> User:
    """A user by number or name. Raises NotFound."""
    path = at("/api/v1/users/{}", which) if isinstance(which, int) else at("/api/v1/users/{}/by-username", which)
    return User.read(reading.record(session.get(path), "user"), session)


def create_user(
    session: Session,
    username: str,
    password: Optional[str] = None,
    *,
    display_name: str = "",
    admin: bool = False,
    remote: bool = False,
) -> User:
    """Make a user; one that is ``remote`` has no password. Raises InvalidInput, AlreadyExists, Forbidden."""
    if password is not None and not remote:
        check_password(password)
    user: Json = {
        "username": username,
        "displayName": display_name,
        "admin": admin,
        "active": True,
        "remote": remote,
    }
    body: JsonObject = {"user": user, "isHashed": True}
    if not remote:
        body["password"] = hashed_password(password or "")
    return User.read(reading.record(session.create("/api/v1/users", body), "user"), session)


def check_password(password: str) -> None:
    """Raises InvalidInput for a weak password, naming what it lacks. A blank one is left to the master to allow."""
    if not password:
        return
    lacks = [
        requirement
        for requirement, met in (
            ("eight characters", len(password) >= 8),
            ("a capital letter", any(character.isupper() for character in password)),
            ("a small letter", any(character.islower() for character in password)),
            ("a digit", any(character.isdigit() for character in password)),
        )
        if not met
    ]
    if lacks:
        raise InvalidInput(f"The password is too weak: it needs {', '.join(lacks)}.")
