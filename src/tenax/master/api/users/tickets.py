"""From a command line that is logged in to a browser that is not: tickets for the web page.

Rules it keeps: a ticket is good once and for half a minute; only the master's own page trades it, and gets a cookie for
it, no token; the session is no fresher than the login that the ticket was made with, and ends no later.
"""

from __future__ import annotations

import secrets

from fastapi import Request, Response

from tenax.errors import Forbidden
from tenax.master.access.authorization import Allow, check_active, check_own_page
from tenax.master.access.task_tokens import token_hash
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.users.login import is_local, set_session
from tenax.master.api.users.messages import (
    PostPageTicketResponse,
    UsePageTicketRequest,
    UsePageTicketResponse,
    user_message,
)
from tenax.master.observability import counters
from tenax.master.store.users import access_tokens, sessions, tickets
from tenax.master.store.users import rows as users
from tenax.master.store.users.tickets import Ticket

routes = Routes("Tickets")

#: For so long a browser may take to start.
GOOD_FOR_S = 30.0
#: A session by an access token is never fresh: who has the token need not know the password.
_STALE_S = 24 * 3600.0


@routes.post("/api/v1/auth/tickets", "PostPageTicket", allow=Allow.USER)
async def post_ticket(master: MasterDep, caller: CallerDep) -> PostPageTicketResponse:
    """A ticket with which a browser is logged in as the caller."""
    if caller.is_task:
        raise Forbidden("a task's session ends with the task: it cannot open the web page")
    text = secrets.token_urlsafe(32)
    async with master.db.transaction() as conn:
        if caller.access_token is not None:
            age, left = _STALE_S, await access_tokens.seconds_left(conn, caller.access_token)
        else:
            age, left = await sessions.age(conn, caller.credential)
        ticket = Ticket(caller.person.id, caller.access_token, age, left)
        await tickets.create(conn, token_hash(text), ticket, GOOD_FOR_S)
    return PostPageTicketResponse(ticket=text, seconds=GOOD_FOR_S)


@routes.post("/api/v1/auth/ticket", "UsePageTicket", allow=Allow.PUBLIC)
async def use_ticket(
    master: MasterDep, request: Request, response: Response, body: UsePageTicketRequest
) -> UsePageTicketResponse:
    """Trade a ticket for a session, as a cookie; for the master's own page alone."""
    check_own_page(request)
    token = "tnxs_" + secrets.token_urlsafe(32)
    async with master.db.transaction() as conn:
        ticket = await tickets.use(conn, token_hash(body.ticket))
        if ticket is None:
            counters.LOGINS.labels("refused").inc()
            raise Forbidden("this link was used already, or is older than half a minute: open another one")
        user = await users.get(conn, ticket.user_id)
        check_active(user)
        if user.password_hash is None and not is_local(request):
            raise Forbidden("a blank password works only on the master's own machine: set a password there first")
        lifetime = min(master.settings.security.session_lifetime, ticket.seconds_left)
        await tickets.create_session(conn, ticket, token_hash(token), lifetime)
        await users.logged_in(conn, user.id)
    counters.LOGINS.labels("accepted").inc()
    set_session(master, response, token, lifetime)
    return UsePageTicketResponse(user=user_message(user))
