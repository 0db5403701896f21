"""Groups of users."""

from __future__ import annotations

from tenax.wire.api.message import Message, Pagination
from tenax.wire.api.users import User


class Group(Message):
    """A named set of users."""

    group_id: int
    name: str


class GroupSearchResult(Message):
    """A group in a list."""

    group: Group
    num_members: int


class GetGroupsRequest(Message):
    """Which groups to list; ``name``: exactly that one; ``user_id``: those that the user is in."""

    name: str | None = None
    user_id: int | None = None
    offset: int = 0
    limit: int = 0


class GetGroupsResponse(Message):
    """A page of groups."""

    groups: list[GroupSearchResult]
    pagination: Pagination


class GroupDetails(Message):
    """A group with its members."""

    group_id: int
    name: str
    users: list[User]


class GroupResponse(Message):
    """One group."""

    group: GroupDetails


class CreateGroupRequest(Message):
    """A group to make, with these users in it."""

    name: str = ""
    add_users: list[int] = []


class UpdateGroupRequest(Message):
    """What to change of a group."""

    name: str | None = None
    add_users: list[int] = []
    remove_users: list[int] = []


class AssignMultipleGroupsRequest(Message):
    """Put users into groups, and take them out of others."""

    user_ids: list[int] = []
    add_groups: list[int] = []
    remove_groups: list[int] = []
