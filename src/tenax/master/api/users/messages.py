"""Messages about users, logins, settings, groups and access tokens."""

from __future__ import annotations

from enum import Enum

from tenax.master.store.users import rows as user_rows
from tenax.wire.message import Document, Message, Name, Pagination, Timestamp


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


class PostPageTicketResponse(Message):
    """A ticket for the web page, for the fragment of its address: good once, and for so many seconds."""

    ticket: str
    seconds: float


class UsePageTicketRequest(Message):
    """A ticket that was made elsewhere."""

    ticket: str = ""


class UsePageTicketResponse(Message):
    """Who is logged in now. The session itself is a cookie, and no script reads it."""

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
    """What to change of a user; what is absent stays.

    ``current_password``: the caller's own, hashed if ``password`` is; needed to set a password with an access token.
    """

    username: str | None = None
    display_name: Name | None = None
    admin: bool | None = None
    active: bool | None = None
    remote: bool | None = None
    password: str | None = None
    current_password: str | None = None
    is_hashed: bool = False
    agent_user_group: AgentUserGroup | None = None
    #: What of it is to be there still, as it was shown; else nothing is changed. None: whatever is there.
    expected: Document | None = None


class PatchUserResponse(Message):
    """The user as it is now."""

    user: User


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
    """Someone viewed something."""

    activity_type: ActivityType = ActivityType.UNSPECIFIED
    entity_type: EntityType = EntityType.UNSPECIFIED
    entity_id: int


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

    name: Name = ""
    add_users: list[int] = []


class UpdateGroupRequest(Message):
    """What to change of a group."""

    name: Name | None = None
    add_users: list[int] = []
    remove_users: list[int] = []
    #: What of it is to be there still, as it was shown; else nothing is changed. None: whatever is there.
    expected: Document | None = None


class AssignMultipleGroupsRequest(Message):
    """Put users into groups, and take them out of others."""

    user_ids: list[int] = []
    add_groups: list[int] = []
    remove_groups: list[int] = []


class TokenType(str, Enum):
    """What a token is."""

    UNSPECIFIED = "TOKEN_TYPE_UNSPECIFIED"
    USER_SESSION = "TOKEN_TYPE_USER_SESSION"
    ACCESS_TOKEN = "TOKEN_TYPE_ACCESS_TOKEN"  # noqa: S105


class TokenInfo(Message):
    """All about a token but the token."""

    id: int
    user_id: int
    username: str = ""
    description: str = ""
    created_at: Timestamp
    expiry: Timestamp
    revoked: bool = False
    token_type: TokenType = TokenType.ACCESS_TOKEN


class TokenSortBy(str, Enum):
    """What a list of tokens is ordered by."""

    UNSPECIFIED = "SORT_BY_UNSPECIFIED"
    USER_ID = "SORT_BY_USER_ID"
    EXPIRY = "SORT_BY_EXPIRY"
    CREATED_AT = "SORT_BY_CREATED_AT"
    TOKEN_TYPE = "SORT_BY_TOKEN_TYPE"  # noqa: S105
    REVOKED = "SORT_BY_REVOKED"
    DESCRIPTION = "SORT_BY_DESCRIPTION"


class PostAccessTokenRequest(Message):
    """A token to make. ``lifespan``: ``48h``, ``30m``, ``90s`` or sums of them; ``-1``: as long as is allowed.

    ``current_password``: the caller's own, as it is or hashed; needed for a token that ends later than a login that is
    not new any more.
    """

    user_id: int
    lifespan: str | None = None
    description: str = ""
    current_password: str | None = None
    is_hashed: bool = False


class PostAccessTokenResponse(Message):
    """The only time that the token is shown."""

    token: str
    token_id: int


class GetAccessTokensResponse(Message):
    """A page of tokens."""

    token_info: list[TokenInfo]
    pagination: Pagination


class PatchAccessTokenRequest(Message):
    """What to change of a token; one that is revoked stays so."""

    description: str | None = None
    set_revoked: bool = False
    #: What of it is to be there still, as it was shown; else nothing is changed. None: whatever is there.
    expected: Document | None = None


class PatchAccessTokenResponse(Message):
    """The token as it is now."""

    token_info: TokenInfo


def user_message(user: user_rows.UserRow) -> User:
    """A user as clients see one; nothing of the password."""
    group = None
    if user.agent_uid is not None or user.agent_gid is not None:
        group = AgentUserGroup(
            agent_uid=user.agent_uid,
            agent_gid=user.agent_gid,
            agent_user=user.agent_user,
            agent_group=user.agent_group,
        )
    return User(
        id=user.id,
        username=user.username,
        admin=user.admin,
        active=user.active,
        display_name=user.display_name,
        agent_user_group=group,
        modified_at=user.modified_at,
        last_auth_at=user.last_login_at,
        remote=user.remote,
    )
