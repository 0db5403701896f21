"""Groups of users as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import List, Optional, Sequence, Tuple, Union

from tenax.client.connection import reading
from tenax.client.connection.reading import LiveAnswer, made_live, part
from tenax.client.connection.session import Session, at
from tenax.client.users import User, get_user
from tenax.errors import NotFound
from tenax.jsonvalue import JsonObject


@dataclass(frozen=True)
class Group(LiveAnswer):
    """A named set of users. It gives nobody a right."""

    id: int = part(reading.integer, "groupId")
    name: str = part(reading.text, "name")
    users: Tuple[User, ...] = made_live(
        lambda value, session: tuple(User.read(user, session) for user in reading.records(value, "users"))
    )

    def rename(self, name: str) -> Group:
        """Raises AlreadyExists, Forbidden."""
        return self._update({"name": name})

    def add(self, usernames: Sequence[str]) -> Group:
        """Put users in. Raises NotFound, Forbidden."""
        return self._update({"addUsers": [*user_ids(self.session, usernames)]})

    def remove(self, usernames: Sequence[str]) -> Group:
        """Take users out. Raises NotFound, Forbidden."""
        return self._update({"removeUsers": [*user_ids(self.session, usernames)]})

    def delete(self) -> None:
        """Delete the group; its users stay. Raises Forbidden."""
        self.session.call("DELETE", at("/api/v1/groups/{}", self.id))

    def _update(self, body: JsonObject) -> Group:
        answer = self.session.call("PUT", at("/api/v1/groups/{}", self.id), body={"groupId": self.id, **body})
        return Group.read(reading.record(answer, "group"), self.session)


@dataclass(frozen=True)
class GroupSize:
    """A group in a list."""

    id: int
    name: str
    members: int
    #: The whole answer.
    raw: JsonObject = field(repr=False, compare=False)


def list_groups(session: Session, *, of_user: Optional[str] = None) -> List[GroupSize]:
    """Groups by name; ``of_user``: those that this user is in. Raises NotFound."""
    body: JsonObject = {"limit": 0}
    if of_user is not None:
        body["userId"] = get_user(session, of_user).id
    groups = reading.records(session.post("/api/v1/groups/search", body), "groups")
    return [_size(group) for group in groups]


def get_group(session: Session, which: Union[int, str]) -> Group:
    """A group by number or name. Raises NotFound."""
    number = which if isinstance(which, int) else _number(session, which)
    answer = session.get(at("/api/v1/groups/{}", number))
    return Group.read(reading.record(answer, "group"), session)


def create_group(session: Session, name: str, usernames: Sequence[str] = ()) -> Group:
    """Make a group with these users. Raises AlreadyExists, NotFound, Forbidden."""
    body: JsonObject = {"name": name, "addUsers": [*user_ids(session, usernames)]}
    return Group.read(reading.record(session.create("/api/v1/groups", body), "group"), session)


def user_ids(session: Session, usernames: Sequence[str]) -> List[int]:
    """The numbers of users. Raises NotFound."""
    return [get_user(session, name).id for name in usernames]


def _number(session: Session, name: str) -> int:
    groups = [
        _size(entry) for entry in reading.records(session.post("/api/v1/groups/search", {"name": name}), "groups")
    ]
    number = next((group.id for group in groups if group.name == name), None)
    if number is None:
        raise NotFound(f"There is no group {name!r}.")
    return number


def _size(value: JsonObject) -> GroupSize:
    group = reading.record(value, "group")
    members = reading.integer(value, "numMembers")
    return GroupSize(reading.integer(group, "groupId"), reading.text(group, "name"), members, value)
