"""Authorization: who is calling, whether they may, and what of a configuration they see; decided here for every route.

Rules it keeps:

- a route without a declared policy is refused to everyone;
- a credential is looked up by its sha256; where a request carries several, the task's header counts before
  ``Authorization``, and the cookie only where there is neither;
- a task acts as its owner, but never as an administrator; after its end it only delivers what it has left;
- a write by cookie needs an Origin that is our own: other sites can make a browser send the cookie;
- whoever is inactive may do nothing, and a login or access token of theirs is answered with that; what runs for them
  goes on to speak for itself, and for nothing else, or days of training would be lost without a word.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit

from asyncpg import Connection
from starlette.requests import HTTPConnection

from tenax.display.secrets import without_secrets
from tenax.errors import Forbidden, NotAuthenticated
from tenax.jsonvalue import JsonObject
from tenax.master.access.task_tokens import token_hash
from tenax.master.store.users import access_tokens, sessions
from tenax.master.store.users.rows import UserRow
from tenax.master.store.users.sessions import TaskOf

COOKIE = "auth"
#: Where the edge puts the cookies of a request, as they were sent; among its headers nobody else finds and parses them.
COOKIES = "tenax.cookies"
#: First letters of the tokens that `tenax.master.access.task_tokens` derives for allocations.
ALLOCATION_PREFIX = "tnxa_"
#: Those of access tokens.
ACCESS_PREFIX = "tnxp_"
TASK_HEADER = "grpc-metadata-x-allocation-token"
_ENDED = "the task's credential has ended with its allocation"
_INACTIVE = "the task's owner is not active any more: it may report, and do nothing else in their name"
#: Where the edge puts the content type of a request, as it was sent.
CONTENT_TYPE = "tenax.content_type"
#: What the form of a page can send to another site without asking.
_FORMS = frozenset({"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"})
_READS = frozenset({"GET", "HEAD", "OPTIONS"})


class Allow(str, Enum):
    """Who may call a route; what a caller may do to one thing is decided where the thing is loaded."""

    #: Anyone, without a credential.
    PUBLIC = "public"
    #: Whoever is logged in; a task acts as its owner.
    USER = "user"
    #: A logged-in administrator; not a task of one.
    ADMIN = "admin"
    #: A task, with the token of its allocation.
    TASK = "task"
    #: A task, for its own trial; and a user, for a trial of their own that runs outside of the cluster.
    REPORTER = "reporter"
    #: An agent, with the credential it got when it joined.
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class RequestCredential:
    """What a request carried."""

    token: str
    by_cookie: bool = False

    def __repr__(self) -> str:
        return "RequestCredential(...)"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is calling. Exactly one of ``user`` and ``agent_id`` is set."""

    user: UserRow | None = None
    agent_id: str | None = None
    #: The attempt whose token it is.
    task: TaskOf | None = None
    #: The session is a task's, or the credential is an attempt's.
    is_task: bool = False
    #: sha256 of the credential.
    credential: bytes = b""
    #: Number of the access token that the credential is; None for any other.
    access_token: int | None = None

    @property
    def person(self) -> UserRow:
        """The user it acts for. Raises Forbidden for an agent."""
        if self.user is None:
            raise Forbidden("this is for users, and the credential is an agent's")
        return self.user

    @property
    def attempt(self) -> TaskOf:
        """The attempt it speaks for. Raises Forbidden for anyone else."""
        if self.task is None:
            raise Forbidden("this is for tasks: it needs the token of an allocation")
        return self.task

    @property
    def agent(self) -> str:
        """The agent it is. Raises Forbidden for anyone else."""
        if self.agent_id is None:
            raise Forbidden("this is for agents: it needs the credential of an agent")
        return self.agent_id

    @property
    def is_admin(self) -> bool:
        """Whether it may do what only administrators may."""
        return self.user is not None and self.user.admin and not self.is_task

    def may_change(self, owner_id: int | None, what: str) -> None:
        """Raises Forbidden unless the caller owns ``what`` or is an administrator."""
        if self.is_admin or (owner_id is not None and self.person.id == owner_id):
            return
        raise Forbidden(f"{what} belongs to someone else: only its owner and administrators may change it")


NOBODY = Caller()


def credential_of(connection: HTTPConnection) -> RequestCredential | None:
    """The credential that a request carries, by the rules above."""
    for header in (TASK_HEADER, "authorization"):
        value = connection.headers.get(header)
        if value is not None:
            scheme, _, token = value.partition(" ")
            return RequestCredential(token.strip()) if scheme.lower() == "bearer" and token.strip() else None
    cookie = _cookie(connection.scope.get(COOKIES, ""))
    return RequestCredential(cookie, by_cookie=True) if cookie else None


@dataclass(frozen=True, slots=True)
class Identified:
    """Whose a credential is, and for how long it surely is if nothing happens."""

    caller: Caller
    seconds_left: float
    #: The attempt that its end depends on.
    allocation_id: str | None = None


async def identify(conn: Connection, credential: RequestCredential, allow: Allow) -> Identified:
    """Whose a credential is. Raises NotAuthenticated, and Forbidden for that of a person who is not active."""
    hashed = token_hash(credential.token)
    if allow is Allow.AGENT:
        agent_id = await sessions.agent_of(conn, hashed)
        if agent_id is None:
            raise NotAuthenticated("the agent's credential is not known here: let it join again with the join token")
        return Identified(Caller(agent_id=agent_id, credential=hashed), math.inf)
    if credential.token.startswith(ALLOCATION_PREFIX):
        return await _task(conn, credential, hashed)
    if credential.token.startswith(ACCESS_PREFIX):
        session = await access_tokens.user_of(conn, hashed)
    else:
        session = await sessions.user_of(conn, hashed)
    if session is None:
        raise NotAuthenticated
    is_task = session.allocation_id is not None
    if is_task and not session.user.active:
        raise NotAuthenticated(_INACTIVE)
    check_active(session.user)
    caller = Caller(user=session.user, is_task=is_task, credential=hashed, access_token=session.access_token)
    return Identified(caller, session.seconds_left, session.allocation_id)


def check_active(user: UserRow) -> None:
    """Raises Forbidden for whoever was deactivated; only for who has shown that they are this user."""
    if not user.active:
        raise Forbidden(f"user is not active: {user.username} was deactivated; ask an administrator")


def check(caller: Caller, allow: Allow) -> None:
    """Whether ``caller`` is of the kind that a route allows. Raises NotAuthenticated, Forbidden."""
    if allow is Allow.PUBLIC:
        return
    if caller.user is None and caller.agent_id is None:
        raise NotAuthenticated
    if caller.task is not None and allow not in (Allow.TASK, Allow.REPORTER):
        if caller.task.ended:
            raise NotAuthenticated(_ENDED)
        if not caller.task.owner.active:
            raise NotAuthenticated(_INACTIVE)
    if allow in (Allow.USER, Allow.REPORTER):
        _ = caller.person
    elif allow is Allow.TASK:
        _ = caller.attempt
    elif allow is Allow.AGENT:
        _ = caller.agent
    elif not caller.is_admin:
        raise Forbidden("only administrators may do this: log in as one")


def check_own_page(connection: HTTPConnection) -> None:
    """Raises Forbidden for what the page of another site sent; programs say nothing of pages.

    Browsers that tell neither where a request comes from still send a form as one of a form's content types.
    """
    origin = connection.headers.get("origin")
    foreign = origin is not None and urlsplit(origin).netloc != connection.headers.get("host")
    kind = str(connection.scope.get(CONTENT_TYPE, "")).partition(";")[0].strip().lower()
    if foreign or connection.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise Forbidden("this must come from the master's own page, or from a program")
    if kind in _FORMS:
        raise Forbidden("this is no form: send JSON, with the header Content-Type: application/json")


def check_origin(connection: HTTPConnection, credential: RequestCredential) -> None:
    """Raises Forbidden for a write, or a websocket, by cookie that another site caused."""
    if not credential.by_cookie or connection.scope.get("method") in _READS:
        return
    origin = connection.headers.get("origin")
    if origin is None or urlsplit(origin).netloc != connection.headers.get("host"):
        raise Forbidden(
            "a change by cookie must come from the master's own page: send the token as Authorization instead"
        )


async def _task(conn: Connection, credential: RequestCredential, hashed: bytes) -> Identified:
    task = await sessions.task_of(conn, hashed)
    if task is None or credential.by_cookie:
        raise NotAuthenticated(_ENDED)
    caller = Caller(user=task.owner, task=task, is_task=True, credential=hashed)
    return Identified(caller, math.inf, task.allocation_id)


def _cookie(header: str) -> str | None:
    """The value of our cookie. By hand: the parsers of the standard library take quadratic time."""
    for pair in header.split(";"):
        name, _, value = pair.partition("=")
        if name.strip() == COOKIE:
            return value.strip().strip('"')
    return None


def may_see_secrets(caller: Caller, owner_id: int | None) -> bool:
    """Whether what ``owner_id`` has written is shown to ``caller`` as it is."""
    return caller.is_admin or (caller.user is not None and caller.user.id == owner_id)


def shown_config(
    config: JsonObject, caller: Caller, owner_id: int | None, *, own: JsonObject | None = None
) -> JsonObject:
    """A configuration as ``caller`` may see it: its owner sees what is ``own``, not what came from a layer below."""
    if caller.is_admin:
        return config
    return without_secrets(config, own if may_see_secrets(caller, owner_id) else None)
