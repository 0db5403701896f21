"""Access tokens: credentials of a person that live for days.

Rules it keeps: people make, describe and revoke their own, administrators everyone's; a task makes none, for it would
outlive the task; one that was made with a token ends with that token, at the latest, and so does one that was made with
a login that is not new, unless the password is given again: whoever stole a login does not keep more of it; a token is
shown once, when it is made; one that is revoked is of no use from the answer on, and stays so; none lives longer than
the master's settings allow.
"""

from __future__ import annotations

import secrets
from typing import Annotated

from fastapi import Query, Request

from tenax.config.durations import parse_duration
from tenax.errors import Forbidden, InvalidInput, NotAuthenticated, NotNow
from tenax.master.access.authorization import ACCESS_PREFIX, Allow, Caller
from tenax.master.access.task_tokens import token_hash
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.expected import check_expected
from tenax.master.api.http.paging import WindowDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.users import messages
from tenax.master.api.users.login import knows_password
from tenax.master.context import Master
from tenax.master.store.users import access_tokens, sessions
from tenax.master.store.users import rows as users
from tenax.master.store.users.access_tokens import AccessTokenRow, TokenFilter

routes = Routes("Tokens")

DAY_S = 86400.0
#: What "for ever" is: a hundred years.
FOR_EVER_S = 36500 * DAY_S
#: How long a login is new: who has just given their password needs not give it again.
FRESH_S = 900.0
#: A lifespan that asks for the longest that is allowed.
MAX_LIFESPAN = "-1"
MAX_DESCRIPTION = 1000

_ORDERS = {
    messages.TokenSortBy.UNSPECIFIED: "id",
    messages.TokenSortBy.USER_ID: "user_id",
    messages.TokenSortBy.EXPIRY: "expires_at",
    messages.TokenSortBy.CREATED_AT: "created_at",
    # All of them are of one type.
    messages.TokenSortBy.TOKEN_TYPE: "id",
    messages.TokenSortBy.REVOKED: "revoked",
    messages.TokenSortBy.DESCRIPTION: "description",
}


@routes.post("/api/v1/tokens", "PostAccessToken", allow=Allow.USER, creates=True, secret=True)
async def post_access_token(
    master: MasterDep, caller: CallerDep, request: Request, body: messages.PostAccessTokenRequest
) -> messages.PostAccessTokenResponse:
    """Make a token. This answer is the only place where it is ever shown."""
    _check_may(caller, body.user_id)
    seconds = _seconds(master, body.lifespan)
    again = await knows_password(master, caller, request, body.current_password, hashed=body.is_hashed)
    if body.current_password is not None and not again:
        raise Forbidden(f"the present password of {caller.person.username!r} (currentPassword) is wrong")
    token = ACCESS_PREFIX + secrets.token_urlsafe(32)
    async with master.db.transaction() as conn:
        user = await users.get(conn, body.user_id)
        if not user.active:
            raise NotNow(
                f"{user.username!r} is not active, so a token of theirs would be of no use: activate them first"
            )
        if caller.access_token is not None:
            left = await access_tokens.seconds_left(conn, caller.access_token)
            seconds = _within(seconds, left, body.lifespan, "this token", "log in with your password, and make it then")
        elif not again:
            age, left = await sessions.age(conn, caller.credential)
            if age > FRESH_S:
                way = "give your present password with it (tenax token create --with-current)"
                seconds = _within(seconds, left, body.lifespan, "this login", way)
        description = _checked_description(body.description)
        new = await access_tokens.create(
            conn, user.id, caller.person.id, token_hash(token), description, seconds, caller.access_token
        )
    return messages.PostAccessTokenResponse(token=token, token_id=new)


@routes.get("/api/v1/tokens", "GetAccessTokens", allow=Allow.USER)
async def get_access_tokens(
    master: MasterDep,
    caller: CallerDep,
    window: WindowDep,
    token_ids: Annotated[list[int] | None, Query()] = None,
    username: Annotated[str | None, Query()] = None,
    show_inactive: Annotated[bool, Query()] = False,
    sort_by: Annotated[messages.TokenSortBy, Query()] = messages.TokenSortBy.UNSPECIFIED,
) -> messages.GetAccessTokensResponse:
    """The caller's tokens, and everyone's for an administrator. Those that were named are shown in any case."""
    filters = TokenFilter(
        user_id=None if caller.is_admin else caller.person.id,
        username=username or None,
        ids=tuple(token_ids) if token_ids else None,
        inactive=show_inactive or bool(token_ids),
    )
    async with master.db.snapshot() as conn:
        page, pagination = window.of(await access_tokens.count(conn, filters))
        order = _ORDERS[sort_by]
        rows = await access_tokens.page(conn, filters, page, order=order, descending=window.descending)
    return messages.GetAccessTokensResponse(token_info=[_info(token) for token in rows], pagination=pagination)


@routes.patch("/api/v1/tokens/{token_id}", "PatchAccessToken", allow=Allow.USER)
async def patch_access_token(
    master: MasterDep, caller: CallerDep, token_id: int, body: messages.PatchAccessTokenRequest
) -> messages.PatchAccessTokenResponse:
    """Say what a token is for, or revoke it."""
    async with master.db.transaction() as conn:
        token = await access_tokens.lock(conn, token_id)
        _check_may(caller, token.user_id)
        check_expected(body.expected, _info(token), f"token {token_id}")
        if body.description is not None:
            await access_tokens.describe(conn, token_id, _checked_description(body.description))
        ended = await access_tokens.revoke(conn, token_id) if body.set_revoked else set()
        changed = await access_tokens.lock(conn, token_id)
    # By their users, for the tokens themselves are not known any more.
    for user_id in ended:
        master.credentials.forget_user(user_id)
    return messages.PatchAccessTokenResponse(token_info=_info(changed))


def _check_may(caller: Caller, user_id: int) -> None:
    if caller.is_task:
        raise Forbidden("a task cannot make or change access tokens: they would outlive it")
    caller.may_change(user_id, "that token")


def _seconds(master: Master, lifespan: str | None) -> float:
    """How long a new token lives. Raises InvalidInput."""
    settings = master.settings.security.token
    most = FOR_EVER_S if settings.max_lifespan_days == -1 else settings.max_lifespan_days * DAY_S
    if lifespan == MAX_LIFESPAN:
        return most
    if lifespan is None or lifespan == "":
        usual = settings.default_lifespan_days
        return most if usual == -1 else usual * DAY_S
    try:
        seconds = parse_duration(lifespan)
    except ValueError as error:
        raise InvalidInput(f"lifespan: {error}; or -1") from None
    if not 0 < seconds <= most:
        raise InvalidInput(
            f"lifespan is {seconds / DAY_S:g} days: give more than none and at most {most / DAY_S:g} "
            "(security.token.max_lifespan_days of the master's settings)"
        )
    return seconds


def _within(seconds: float, left: float, lifespan: str | None, what: str, way: str) -> float:
    """How long a token lives that is made with ``what`` has ``left`` seconds. Raises NotAuthenticated, Forbidden.

    ``way``: to have one that lives longer.
    """
    if left <= 0:
        raise NotAuthenticated
    if seconds > left and lifespan not in (None, "", MAX_LIFESPAN):
        raise Forbidden(f"{what} ends in {left / 3600:.1f} hours and makes none that ends later: {way}")
    return min(seconds, left)


def _checked_description(description: str) -> str:
    if len(description) > MAX_DESCRIPTION:
        raise InvalidInput(f"description has {len(description)} characters: {MAX_DESCRIPTION} are possible")
    return description


def _info(token: AccessTokenRow) -> messages.TokenInfo:
    return messages.TokenInfo(
        id=token.id,
        user_id=token.user_id,
        username=token.username,
        description=token.description,
        created_at=token.created_at,
        expiry=token.expires_at,
        revoked=token.revoked_at is not None,
    )
