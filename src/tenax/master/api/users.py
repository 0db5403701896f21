"""Users: who there is, and their passwords.

Rules it keeps: anyone sees everyone; an administrator changes anyone, others their own display name and password; the
last administrator stays one; a changed password ends the user's other sessions; a blank one needs the explicit setting.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import Query

from tenax.errors import Forbidden, InvalidInput, NotFound, NotNow
from tenax.master.api.deps import CallerDep, MasterDep
from tenax.master.api.paging import WindowDep
from tenax.master.api.routing import Allow, Routes
from tenax.master.api.shapes import user_message
from tenax.master.auth import Caller
from tenax.master.context import Master
from tenax.master.passwords import as_sent
from tenax.master.store import sessions, users
from tenax.master.store.users import NO_LOGIN, User, UserFilter
from tenax.wire.api.users import (
    GetUserResponse,
    GetUsersResponse,
    GetUsersSortBy,
    PatchUser,
    PatchUserResponse,
    PostUserRequest,
    PostUserResponse,
)

routes = Routes("Users")

_ORDERS = {
    GetUsersSortBy.UNSPECIFIED: "id",
    GetUsersSortBy.DISPLAY_NAME: "display_name",
    GetUsersSortBy.USER_NAME: "username",
    GetUsersSortBy.ADMIN: "admin",
    GetUsersSortBy.ACTIVE: "active",
    GetUsersSortBy.MODIFIED_TIME: "modified_at",
    GetUsersSortBy.NAME: "name",
    GetUsersSortBy.LAST_AUTH_TIME: "last_login_at",
    GetUsersSortBy.REMOTE: "remote",
}


@routes.get("/api/v1/users", "GetUsers", allow=Allow.USER)
async def get_users(
    master: MasterDep,
    window: WindowDep,
    sort_by: Annotated[GetUsersSortBy, Query()] = GetUsersSortBy.UNSPECIFIED,
    active: Annotated[bool | None, Query()] = None,
    admin: Annotated[bool | None, Query()] = None,
    name: Annotated[str | None, Query()] = None,
) -> GetUsersResponse:
    """The users, filtered and in order."""
    wanted = UserFilter(active, admin, name, _ORDERS[sort_by], window.descending)
    async with master.db.connection() as conn:
        page, pagination = window.of(await users.count(conn, wanted))
        found = await users.page(conn, wanted, page)
    return GetUsersResponse(users=[user_message(user) for user in found], pagination=pagination)


@routes.get("/api/v1/users/{user_id}", "GetUser", allow=Allow.USER)
async def get_user(master: MasterDep, user_id: int) -> GetUserResponse:
    """One user."""
    async with master.db.connection() as conn:
        return GetUserResponse(user=user_message(await users.get(conn, user_id)))


@routes.get("/api/v1/users/{username}/by-username", "GetUserByUsername", allow=Allow.USER)
async def get_user_by_username(master: MasterDep, username: str) -> GetUserResponse:
    """One user, by name."""
    async with master.db.connection() as conn:
        user = await users.find(conn, username)
    if user is None:
        raise NotFound(f"there is no user {username!r}")
    return GetUserResponse(user=user_message(user))


@routes.post("/api/v1/users", "PostUser", allow=Allow.ADMIN)
async def post_user(master: MasterDep, body: PostUserRequest) -> PostUserResponse:
    """Make a user."""
    told = body.user
    if told is None or not told.username:
        raise InvalidInput("no user name was given: a user needs one")
    group = told.agent_user_group
    user = User(
        0,
        told.username,
        display_name=told.display_name,
        admin=told.admin,
        active=told.active,
        remote=told.remote,
        agent_uid=group.agent_uid if group else None,
        agent_gid=group.agent_gid if group else None,
        agent_user=group.agent_user if group else None,
        agent_group=group.agent_group if group else None,
    )
    stored = NO_LOGIN if told.remote else await _stored(master, as_sent(body.password, body.is_hashed))
    async with master.db.transaction() as conn:
        new = await users.create(conn, replace(user, password_hash=stored))
        return PostUserResponse(user=user_message(await users.get(conn, new)))


@routes.patch("/api/v1/users/{user_id}", "PatchUser", allow=Allow.USER)
async def patch_user(master: MasterDep, caller: CallerDep, user_id: int, body: PatchUser) -> PatchUserResponse:
    """Change a user."""
    _check_may_patch(caller, user_id, body)
    async with master.db.connection() as conn:
        before = await users.get(conn, user_id)
    after = _patched(before, body)
    new_password = body.password is not None or (before.remote and not after.remote)
    if after.remote:
        if body.password is not None:
            raise InvalidInput(f"Cannot set password of {after.username!r}: a remote user logs in elsewhere")
        after = replace(after, password_hash=NO_LOGIN)
    elif new_password:
        after = replace(after, password_hash=await _stored(master, as_sent(body.password or "", body.is_hashed)))
    async with master.db.transaction() as conn:
        _check_admin_left(before, after, await users.another_admin(conn, user_id))
        await users.update(conn, after)
        if new_password or not after.active:
            await sessions.delete_of_user(conn, user_id, but=caller.credential)
        return PatchUserResponse(user=user_message(await users.get(conn, user_id)))


def _check_may_patch(caller: Caller, user_id: int, body: PatchUser) -> None:
    if caller.is_admin:
        return
    if caller.is_task or caller.person.id != user_id:
        raise Forbidden("only administrators may change other users")
    if any(value is not None for value in (body.username, body.admin, body.active, body.remote, body.agent_user_group)):
        raise Forbidden("only administrators may change more than a display name and a password")


def _check_admin_left(before: User, after: User, another: bool) -> None:
    if before.admin and before.active and not (after.admin and after.active) and not another:
        raise NotNow(f"{before.username!r} is the last active administrator: make another one first")


def _patched(user: User, body: PatchUser) -> User:
    if body.username is not None and not body.username:
        raise InvalidInput("a user name cannot be blank")
    group = body.agent_user_group
    changes: dict[str, object] = {
        name: value
        for name in ("username", "display_name", "admin", "active", "remote")
        if (value := getattr(body, name)) is not None
    }
    if group is not None:
        changes |= group.model_dump(by_alias=False)
    return replace(user, **changes)  # type: ignore[arg-type]


async def _stored(master: Master, sent: str) -> str | None:
    if not sent and not master.settings.security.allow_blank_passwords:
        raise InvalidInput(
            "a blank password needs the master's setting security.allow_blank_passwords: give a password"
        )
    return await master.passwords.hash(sent)
