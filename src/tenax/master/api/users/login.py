"""Logging in and out.

Rules it keeps: a known name and an unknown one take the same way; where a login comes from is what the socket says, or
a proxy that the operator trusts; another site's page logs nobody in: whoever came from there would work, and leave what
is theirs, in an account that is not.
"""

from __future__ import annotations

import ipaddress
import secrets

import structlog
from fastapi import Request, Response
from starlette.requests import HTTPConnection

from tenax.errors import Forbidden, InvalidInput, NotAuthenticated
from tenax.master.access.authorization import COOKIE, Allow, Caller, check_active, check_own_page
from tenax.master.access.client_address import client_address
from tenax.master.access.passwords import as_sent
from tenax.master.access.task_tokens import token_hash
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.users.messages import GetMeResponse, LoginRequest, LoginResponse, user_message
from tenax.master.context import Master
from tenax.master.observability import counters
from tenax.master.store.users import rows as users
from tenax.master.store.users import sessions
from tenax.master.store.users.rows import NO_LOGIN, UserRow
from tenax.wire.message import Empty

routes = Routes("Authentication")
log = structlog.get_logger("tenax.auth")


@routes.post("/api/v1/auth/login", "Login", allow=Allow.PUBLIC)
async def login(master: MasterDep, request: Request, response: Response, body: LoginRequest) -> LoginResponse:
    """A token for a name and a password."""
    if not body.username:
        raise InvalidInput("no user name was given: say who you are")
    check_own_page(request)
    address = client_address(request, master.settings.security.trusted_proxies)
    user = await _verified(master, body, address)
    if user is None:
        counters.LOGINS.labels("refused").inc()
        log.warning("login refused", address=address)
        raise NotAuthenticated("the user name or the password is wrong")
    check_active(user)
    if user.password_hash is None and not is_local(request):
        raise Forbidden("a blank password works only on the master's own machine: set a password there first")
    counters.LOGINS.labels("accepted").inc()
    token = "tnxs_" + secrets.token_urlsafe(32)
    lifetime = master.settings.security.session_lifetime
    async with master.db.transaction() as conn:
        await sessions.delete_expired(conn)
        await sessions.create(conn, user.id, token_hash(token), lifetime)
        await users.logged_in(conn, user.id)
    set_session(master, response, token, lifetime)
    return LoginResponse(token=token, user=user_message(user))


@routes.post("/api/v1/auth/logout", "Logout", allow=Allow.USER)
async def logout(master: MasterDep, caller: CallerDep, response: Response) -> Empty:
    """End this session. An access token stays good: it is ended by revoking it."""
    if caller.is_task:
        raise InvalidInput("a task's session ends with the task: it cannot log out")
    async with master.db.transaction() as conn:
        await sessions.delete(conn, caller.credential)
    master.credentials.forget_token(caller.credential)
    response.delete_cookie(COOKIE, path="/")
    return Empty()


@routes.get("/api/v1/me", "GetMe", allow=Allow.USER)
async def me(caller: CallerDep) -> GetMeResponse:
    """Who is asking."""
    return GetMeResponse(user=user_message(caller.person))


@routes.get("/api/v1/auth/user", "CurrentUser", allow=Allow.USER)
async def current_user(caller: CallerDep) -> GetMeResponse:
    """Who is asking, under an older name."""
    return GetMeResponse(user=user_message(caller.person))


def set_session(master: Master, response: Response, token: str, lifetime_s: float) -> None:
    """The cookie of a browser's login."""
    secure = master.settings.tls is not None
    response.set_cookie(COOKIE, token, max_age=int(lifetime_s), path="/", httponly=True, samesite="lax", secure=secure)


def is_local(request: Request) -> bool:
    """Whether the client is on the master's own machine, as far as can be told; behind a proxy it is not."""
    if request.client is None or any(name in request.headers for name in ("x-forwarded-for", "forwarded", "x-real-ip")):
        return False
    try:
        address = ipaddress.ip_address(request.client.host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


async def _verified(master: Master, body: LoginRequest, address: str) -> UserRow | None:
    """The user whose password it is; None, after the same time, for a wrong name or password. Raises TooOften."""
    async with master.db.connection() as conn:
        user = await users.find(conn, body.username)
    name = body.username if user is None else user.username
    stored = NO_LOGIN if user is None or user.remote else user.password_hash
    sent = as_sent(body.password, body.is_hashed)
    return user if await master.logins.is_right(name, address, stored, sent) else None


async def knows_password(
    master: Master, caller: Caller, request: HTTPConnection, password: str | None, *, hashed: bool
) -> bool:
    """Whether the caller gave their own present password. A wrong one counts as a failed login. Raises TooOften."""
    if password is None:
        return False
    address = client_address(request, master.settings.security.trusted_proxies)
    person = caller.person
    stored = NO_LOGIN if person.remote else person.password_hash
    return await master.logins.is_right(person.username, address, stored, as_sent(password, hashed))
