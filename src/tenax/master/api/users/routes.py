"""Users: who there is, and their passwords.

Rules it keeps: anyone sees everyone; an administrator changes anyone, others their own display name and password; the
last administrator stays one; a changed password ends the user's other sessions; a blank one needs the explicit setting;
whoever comes with an access token, which is for some days, sets a password only with their own present one.
"""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from typing import Annotated

from fastapi import Body, Query, Request
from starlette.requests import HTTPConnection

from tenax.display.terminal import is_name
from tenax.errors import Forbidden, InvalidInput, NotFound, NotNow, Stale, Unsupported, UserError
from tenax.master.access.authorization import Allow, Caller
from tenax.master.access.passwords import new_as_sent
from tenax.master.api.cluster.unsupported import NO_ROLES
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.expected import check_expected
from tenax.master.api.http.paging import WindowDep
from tenax.master.api.http.requests import MAX_NAME, check_sizes
from tenax.master.api.http.routing import Routes
from tenax.master.api.users import messages
from tenax.master.api.users.login import knows_password
from tenax.master.context import Master
from tenax.master.store.database.paging import Page
from tenax.master.store.users import rows as users
from tenax.master.store.users import sessions
from tenax.master.store.users.rows import NO_LOGIN, UserFilter, UserRow

routes = Routes("Users")


_ORDERS = {
    messages.GetUsersSortBy.UNSPECIFIED: "id",
    messages.GetUsersSortBy.DISPLAY_NAME: "display_name",
    messages.GetUsersSortBy.USER_NAME: "username",
    messages.GetUsersSortBy.ADMIN: "admin",
    messages.GetUsersSortBy.ACTIVE: "active",
    messages.GetUsersSortBy.MODIFIED_TIME: "modified_at",
    messages.GetUsersSortBy.NAME: "name",
    messages.GetUsersSortBy.LAST_AUTH_TIME: "last_login_at",
    messages.GetUsersSortBy.REMOTE: "remote",
}


@routes.get("/api/v1/users", "GetUsers", allow=Allow.USER)
async def get_users(
    master: MasterDep,
    window: WindowDep,
    sort_by: Annotated[messages.GetUsersSortBy, Query()] = messages.GetUsersSortBy.UNSPECIFIED,
    active: Annotated[bool | None, Query()] = None,
    admin: Annotated[bool | None, Query()] = None,
    name: Annotated[str | None, Query()] = None,
    role_id_assigned_directly_to_user: Annotated[list[int] | None, Query()] = None,
) -> messages.GetUsersResponse:
    """The users, filtered and in order."""
    if role_id_assigned_directly_to_user:
        raise Unsupported(NO_ROLES)
    filters = UserFilter(active, admin, name, _ORDERS[sort_by], window.descending)
    async with master.db.connection() as conn:
        page, pagination = window.of(await users.count(conn, filters))
        rows = await users.page(conn, filters, page)
    return messages.GetUsersResponse(users=[messages.user_message(user) for user in rows], pagination=pagination)


@routes.get("/api/v1/users/{user_id}", "GetUser", allow=Allow.USER)
async def get_user(master: MasterDep, user_id: int) -> messages.GetUserResponse:
    """One user."""
    async with master.db.connection() as conn:
        return messages.GetUserResponse(user=messages.user_message(await users.get(conn, user_id)))


@routes.get("/api/v1/users/{username}/by-username", "GetUserByUsername", allow=Allow.USER)
async def get_user_by_username(master: MasterDep, username: str) -> messages.GetUserResponse:
    """One user, by name."""
    async with master.db.connection() as conn:
        user = await users.find(conn, username)
    if user is None:
        raise NotFound(f"user {username!r} not found")
    return messages.GetUserResponse(user=messages.user_message(user))


@routes.post("/api/v1/users", "PostUser", allow=Allow.ADMIN, creates=True)
async def post_user(master: MasterDep, body: messages.PostUserRequest) -> messages.PostUserResponse:
    """Make a user."""
    message = body.user
    if message is None or not message.username:
        raise InvalidInput("no user name was given: a user needs one")
    _check_name(message.username)
    _check_display_name(message.username, message.display_name, admin=message.admin)
    group = message.agent_user_group
    _check_linked(group)
    user = UserRow(
        0,
        message.username,
        display_name=message.display_name,
        admin=message.admin,
        active=message.active,
        remote=message.remote,
        agent_uid=group.agent_uid if group else None,
        agent_gid=group.agent_gid if group else None,
        agent_user=group.agent_user if group else None,
        agent_group=group.agent_group if group else None,
    )
    stored = NO_LOGIN if message.remote else await _stored(master, body.password, body.is_hashed)
    async with master.db.transaction() as conn:
        new = await users.create(conn, replace(user, password_hash=stored))
        return messages.PostUserResponse(user=messages.user_message(await users.get(conn, new)))


@routes.patch("/api/v1/users/{user_id}", "PatchUser", allow=Allow.USER)
async def patch_user(
    master: MasterDep, caller: CallerDep, request: Request, user_id: int, body: messages.PatchUser
) -> messages.PatchUserResponse:
    """Change a user."""
    await check_may_set_password(master, caller, request, body)
    return messages.PatchUserResponse(user=messages.user_message(await change_user(master, caller, user_id, body)))


@routes.post("/api/v1/users/{user_id}/password", "SetUserPassword", allow=Allow.USER)
async def set_user_password(
    master: MasterDep, caller: CallerDep, request: Request, user_id: int, body: Annotated[str, Body()]
) -> messages.SetUserPasswordResponse:
    """Give a user another password; the body is that password itself, as JSON."""
    change = messages.PatchUser(password=body)
    await check_may_set_password(master, caller, request, change)
    user = await change_user(master, caller, user_id, change)
    return messages.SetUserPasswordResponse(user=messages.user_message(user))


@routes.patch("/api/v1/users", "PatchUsers", allow=Allow.ADMIN)
async def patch_users(
    master: MasterDep, caller: CallerDep, body: messages.PatchUsersRequest
) -> messages.PatchUsersResponse:
    """Activate or deactivate users, each by itself: a refusal is reported, and stops no other."""
    async with master.db.connection() as conn:
        user_ids: list[int] = list(dict.fromkeys(body.user_ids))
        if body.filters is not None and not user_ids:
            matching = UserFilter(admin=body.filters.admin, name=body.filters.name)
            user_ids = [user.id for user in await users.page(conn, matching, Page())]
    results = []
    for user_id in user_ids:
        try:
            await change_user(master, caller, user_id, messages.PatchUser(active=body.activate))
            results.append(messages.UserActionResult(id=user_id))
        except UserError as error:
            results.append(messages.UserActionResult(id=user_id, error=str(error)))
    return messages.PatchUsersResponse(results=results)


async def change_user(master: Master, caller: Caller, user_id: int, body: messages.PatchUser) -> UserRow:
    """Change a user, and let go of the logins that this ends. Raises UserError, Stale."""
    _check_may_patch(caller, user_id, body)
    async with master.db.connection() as conn:
        known = await users.get(conn, user_id)
    becomes_local = known.remote and body.remote is False
    new_password = body.password is not None or becomes_local
    stored = known.password_hash
    if new_password:
        # Takes a core for a while: before the transaction.
        stored = await _stored(master, body.password or "", body.is_hashed)
    async with master.db.transaction() as conn:
        before, another = await users.lock(conn, user_id)
        if before.remote != known.remote:
            raise Stale
        check_expected(body.expected, messages.user_message(before), f"user {before.username!r}")
        after = _patched(before, body)
        if (after.display_name, after.username, after.admin) != (before.display_name, before.username, before.admin):
            _check_display_name(after.username, after.display_name, admin=after.admin)
        if after.remote and body.password is not None:
            raise InvalidInput(f"Cannot set password of {after.username!r}: a remote user logs in elsewhere")
        if new_password or after.remote:
            after = replace(after, password_hash=NO_LOGIN if after.remote else stored)
        _check_admin_left(before, after, another)
        await users.update(conn, after)
        # While they are not active, logins stay, and are refused by that name; whoever is active again logs in anew.
        if new_password or (after.remote and not before.remote) or (after.active and not before.active):
            await sessions.delete_of_user(conn, user_id, but=caller.credential)
        changed = await users.get(conn, user_id)
    master.credentials.forget_user(user_id)
    return changed


async def check_may_set_password(
    master: Master, caller: Caller, request: HTTPConnection, body: messages.PatchUser
) -> None:
    """Raises Forbidden where the caller must give their own present password, and did not; TooOften."""
    changes = body.password is not None or body.remote is False
    if not changes or (caller.access_token is None and body.current_password is None):
        return
    person = caller.person
    if not await knows_password(master, caller, request, body.current_password, hashed=body.is_hashed):
        raise Forbidden(
            f"the present password of {person.username!r} (currentPassword) is missing or wrong: with an access token "
            "a password is set only together with it"
        )


def _check_may_patch(caller: Caller, user_id: int, body: messages.PatchUser) -> None:
    if caller.is_admin:
        return
    if caller.is_task or caller.person.id != user_id:
        raise Forbidden("only administrators may change other users")
    if any(value is not None for value in (body.username, body.admin, body.active, body.remote, body.agent_user_group)):
        raise Forbidden("only administrators may change more than a display name and a password")


def _check_admin_left(before: UserRow, after: UserRow, another: bool) -> None:
    if before.admin and before.active and not (after.admin and after.active) and not another:
        raise NotNow(f"{before.username!r} is the last active administrator: make another one first")


def _patched(user: UserRow, body: messages.PatchUser) -> UserRow:
    if body.username is not None:
        _check_name(body.username)
    group = body.agent_user_group
    _check_linked(group)
    changes: dict[str, object] = {
        name: value
        for name in ("username", "display_name", "admin", "active", "remote")
        if (value := getattr(body, name)) is not None
    }
    if group is not None:
        changes |= group.model_dump(by_alias=False)
    return replace(user, **changes)  # type: ignore[arg-type]


def _check_name(name: str) -> None:
    if not name.strip() or name != name.strip() or len(name) > MAX_NAME or not name.isprintable():
        raise InvalidInput(
            f"{name[:MAX_NAME]!r} cannot be a user name: give 1 to {MAX_NAME} characters that can be printed, "
            "without blanks around them"
        )


def _check_display_name(username: str, shown: str, *, admin: bool) -> None:
    """Nobody is taken for one of the first users. Raises InvalidInput."""
    check_sizes(displayName=shown)
    if not is_name(shown):
        raise InvalidInput("displayName is one line without control characters")
    # What cannot be seen, or is a letter in another width, makes no other name of it.
    seen = (sign for sign in unicodedata.normalize("NFKD", shown) if unicodedata.category(sign) not in ("Cf", "Mn"))
    named = "".join(seen).strip().casefold()
    if (named == "admin" and not admin) or (named == "determined" and username != "determined"):
        raise InvalidInput(f"displayName: {shown!r} is another user's name: choose another one")


def _check_linked(group: messages.AgentUserGroup | None) -> None:
    """Raises InvalidInput unless a user is linked with an account as a whole, or not at all."""
    if group is None or group == messages.AgentUserGroup():
        return
    missing = [name for name, value in group.model_dump(by_alias=True).items() if value is None or value == ""]
    if missing:
        raise InvalidInput(f"agentUserGroup lacks {', '.join(missing)}: give all four of a user's account")


async def _stored(master: Master, password: str, is_hashed: bool) -> str | None:
    sent = new_as_sent(password, is_hashed)
    if not sent and not master.settings.security.allow_blank_passwords:
        raise InvalidInput(
            "a blank password needs the master's setting security.allow_blank_passwords: give a password"
        )
    return await master.passwords.hash(sent)
