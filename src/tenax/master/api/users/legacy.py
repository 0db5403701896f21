"""Logins and users as the oldest scripts ask for them, outside of ``/api/v1``: the same rules, plainer bodies."""

from __future__ import annotations

from fastapi import Request, Response

from tenax.errors import NotFound
from tenax.master.access.authorization import Allow
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.users import login as auth
from tenax.master.api.users import routes as users
from tenax.master.api.users.messages import AgentUserGroup, LoginRequest, PatchUser, PostUserRequest, user_message
from tenax.master.api.users.messages import User as UserMessage
from tenax.master.store.database.paging import Page
from tenax.master.store.users import rows as user_rows
from tenax.master.store.users.rows import UserFilter, UserRow
from tenax.wire.message import Document, Empty

routes = Routes("Authentication")


class LegacyUser(PatchUser):
    """A user to make or to change; all at one level."""


@routes.post("/login", "LegacyLogin", allow=Allow.PUBLIC)
async def login(master: MasterDep, request: Request, response: Response, body: LoginRequest) -> Document:
    """A token for a name and a password, which is not hashed unless it says so."""
    made = await auth.login(master, request, response, body)
    return {"token": made.token}


@routes.post("/logout", "LegacyLogout", allow=Allow.USER)
async def logout(master: MasterDep, caller: CallerDep, response: Response) -> Empty:
    """End this session."""
    return await auth.logout(master, caller, response)


@routes.get("/users", "LegacyGetUsers", allow=Allow.USER)
async def get_users(master: MasterDep) -> list[Document]:
    """Everyone."""
    async with master.db.connection() as conn:
        return [_document(user) for user in await user_rows.page(conn, UserFilter(), Page())]


@routes.get("/users/me", "LegacyGetMe", allow=Allow.USER)
async def me(caller: CallerDep) -> Document:
    """Who is asking."""
    return _document(caller.person)


@routes.post("/users", "LegacyPostUser", allow=Allow.ADMIN, creates=True)
async def post_user(master: MasterDep, body: LegacyUser) -> Document:
    """Make a user."""
    user = UserMessage(
        username=body.username or "",
        display_name=body.display_name or "",
        admin=body.admin or False,
        active=body.active is not False,
        remote=body.remote or False,
        agent_user_group=body.agent_user_group,
    )
    request = PostUserRequest(user=user, password=body.password or "", is_hashed=body.is_hashed)
    made = await users.post_user(master, request)
    async with master.db.connection() as conn:
        return _document(await user_rows.get(conn, made.user.id))


@routes.patch("/users/{username}", "LegacyPatchUser", allow=Allow.USER)
async def patch_user(
    master: MasterDep, caller: CallerDep, request: Request, username: str, body: LegacyUser
) -> Document:
    """Change a user."""
    await users.check_may_set_password(master, caller, request, body)
    async with master.db.connection() as conn:
        user = await user_rows.find(conn, username)
    if user is None:
        raise NotFound(f"user {username!r} not found")
    return _document(await users.change_user(master, caller, user.id, body))


def _document(user: UserRow) -> Document:
    shown: Document = user_message(user).model_dump(by_alias=False, mode="json", exclude={"agent_user_group"})
    group = AgentUserGroup(
        agent_uid=user.agent_uid,
        agent_gid=user.agent_gid,
        agent_user=user.agent_user,
        agent_group=user.agent_group,
    )
    return shown | {"agent_user_group": None if user.agent_uid is None else group.model_dump(by_alias=False)}
