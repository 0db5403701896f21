"""Access tokens: credentials of a person that live for days."""

from __future__ import annotations

from enum import Enum

from tenax.wire.api.message import Message, Pagination, Timestamp


class TokenType(str, Enum):
    """What a token is."""

    UNSPECIFIED = "TOKEN_TYPE_UNSPECIFIED"
    USER_SESSION = "TOKEN_TYPE_USER_SESSION"
    ACCESS_TOKEN = "TOKEN_TYPE_ACCESS_TOKEN"  # noqa: S105


class TokenInfo(Message):
    """All about a token but the token."""

    id: int
    user_id: int
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
    """A token to make. ``lifespan``: ``48h``, ``30m``, ``90s`` or sums of them; ``-1``: as long as is allowed."""

    user_id: int
    lifespan: str | None = None
    description: str = ""


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


class PatchAccessTokenResponse(Message):
    """The token as it is now."""

    token_info: TokenInfo
