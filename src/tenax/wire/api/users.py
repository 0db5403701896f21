"""Users and logins."""

from __future__ import annotations

import hashlib
from enum import Enum

from tenax.wire.api.message import Message, Pagination, Timestamp

#: Put before a password before it is hashed by the client, so that what travels is of no use elsewhere.
PASSWORD_SALT = "GubPEmmotfiK9TMD6Zdw"  # noqa: S105


def hashed_password(password: str) -> str:
    """What a client sends for ``password``: hex of a salted SHA-512; a blank password stays blank."""
    return hashlib.sha512((PASSWORD_SALT + password).encode()).hexdigest() if password else ""


class AgentUserGroup(Message):
    """Whom a user's tasks run as on the agents."""

    agent_uid: int | None = None
    agent_gid: int | None = None
    agent_user: str | None = None
    agent_group: str | None = None


class User(Message):
    """A person, or a program that acts like one."""

    id: int = 0
    username: str
    admin: bool = False
    active: bool = True
    display_name: str = ""
    agent_user_group: AgentUserGroup | None = None
    modified_at: Timestamp | None = None
    last_auth_at: Timestamp | None = None
    remote: bool = False


class LoginRequest(Message):
    """Name and password; ``is_hashed``: the password is already `hashed_password`."""

    username: str = ""
    password: str = ""
    is_hashed: bool = False


class LoginResponse(Message):
    """The token for ``Authorization: Bearer``."""

    token: str
    user: User


class GetMeResponse(Message):
    """Who is asking."""

    user: User


class GetUserResponse(Message):
    """One user."""

    user: User


class GetUsersResponse(Message):
    """A page of users."""

    users: list[User]
    pagination: Pagination


class PostUserRequest(Message):
    """A user to make."""

    user: User | None = None
    password: str = ""
    is_hashed: bool = False


class PostUserResponse(Message):
    """The user that was made."""

    user: User


class PatchUser(Message):
    """What to change of a user; what is absent stays."""

    username: str | None = None
    display_name: str | None = None
    admin: bool | None = None
    active: bool | None = None
    remote: bool | None = None
    password: str | None = None
    is_hashed: bool = False
    agent_user_group: AgentUserGroup | None = None


class PatchUserResponse(Message):
    """The user as it is now."""

    user: User


class SetUserPasswordRequest(Message):
    """A new password, hashed as at login."""

    password: str = ""


class GetUsersSortBy(str, Enum):
    """What a list of users is ordered by."""

    UNSPECIFIED = "SORT_BY_UNSPECIFIED"
    DISPLAY_NAME = "SORT_BY_DISPLAY_NAME"
    USER_NAME = "SORT_BY_USER_NAME"
    ADMIN = "SORT_BY_ADMIN"
    ACTIVE = "SORT_BY_ACTIVE"
    MODIFIED_TIME = "SORT_BY_MODIFIED_TIME"
    NAME = "SORT_BY_NAME"
    LAST_AUTH_TIME = "SORT_BY_LAST_AUTH_TIME"
    REMOTE = "SORT_BY_REMOTE"


class SetUserPasswordResponse(Message):
    """The user whose password it is."""

    user: User


class UserFilters(Message):
    """Which users are meant, where no ids are given."""

    name: str | None = None
    admin: bool | None = None


class PatchUsersRequest(Message):
    """Users to activate, or to deactivate: by ids, or all that the filters match."""

    user_ids: list[int] = []
    activate: bool
    filters: UserFilters | None = None


class UserActionResult(Message):
    """What became of one of them; no ``error``: done."""

    id: int
    error: str = ""


class PatchUsersResponse(Message):
    """What became of each."""

    results: list[UserActionResult]


class UserWebSetting(Message):
    """One thing that the page remembers for a person."""

    key: str
    value: str = ""
    storage_path: str = ""


class GetUserSettingResponse(Message):
    """All of them."""

    settings: list[UserWebSetting]


class PostUserSettingRequest(Message):
    """Settings to keep; what is there under the same path and key is replaced."""

    settings: list[UserWebSetting] = []


class ActivityType(str, Enum):
    """What a person did."""

    UNSPECIFIED = "ACTIVITY_TYPE_UNSPECIFIED"
    GET = "ACTIVITY_TYPE_GET"


class EntityType(str, Enum):
    """What they did it to."""

    UNSPECIFIED = "ENTITY_TYPE_UNSPECIFIED"
    PROJECT = "ENTITY_TYPE_PROJECT"


class PostUserActivityRequest(Message):
    """A person has looked at something."""

    activity_type: ActivityType = ActivityType.UNSPECIFIED
    entity_type: EntityType = EntityType.UNSPECIFIED
    entity_id: int
