"""Join tokens: made, listed and revoked by administrators.

Rules it keeps: a token is shown once, when it is made; it lets in so many agents and for so long; only one that was
made for a certain agent replaces what that agent proves itself with.
"""

from __future__ import annotations

import secrets
from typing import Annotated

from fastapi import Query

from tenax.config.durations import parse_duration
from tenax.errors import InvalidInput
from tenax.master.access.authorization import Allow
from tenax.master.access.task_tokens import token_hash
from tenax.master.agents.hub import AGENT_ID
from tenax.master.api.agents import messages
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.store.agents import join_tokens
from tenax.master.store.agents.join_tokens import JoinTokenRow

routes = Routes("Agents")

PREFIX = "tnxj_"
#: Of a lifespan, in seconds: a year.
MAX_LIFESPAN_S = 365 * 86400.0
MAX_USES = 1_000_000
MAX_DESCRIPTION = 1000


@routes.post("/api/v1/join-tokens", "PostJoinToken", allow=Allow.ADMIN, creates=True, secret=True)
async def post_join_token(
    master: MasterDep, caller: CallerDep, body: messages.PostJoinTokenRequest
) -> messages.PostJoinTokenResponse:
    """Make a token. This answer is the only place where it is ever shown."""
    if body.agent_id is not None and not AGENT_ID.fullmatch(body.agent_id):
        raise InvalidInput("agentId: the name of an agent is 1 to 128 letters, digits, dots, dashes and underscores")
    if not 1 <= body.uses <= MAX_USES and body.uses != -1:
        raise InvalidInput(f"uses is {body.uses}: give 1 to {MAX_USES}, or -1 for any number")
    if len(body.description) > MAX_DESCRIPTION:
        raise InvalidInput(f"description has {len(body.description)} characters: {MAX_DESCRIPTION} are possible")
    token = PREFIX + secrets.token_urlsafe(32)
    async with master.db.transaction() as conn:
        made = await join_tokens.create(
            conn,
            token_hash(token),
            caller.person.id,
            description=body.description,
            agent_id=body.agent_id,
            uses=None if body.uses == -1 else body.uses,
            seconds=seconds_of(body.lifespan),
        )
    return messages.PostJoinTokenResponse(token=token, join_token=view_of(made))


@routes.get("/api/v1/join-tokens", "GetJoinTokens", allow=Allow.ADMIN)
async def get_join_tokens(
    master: MasterDep, show_inactive: Annotated[bool, Query()] = False
) -> messages.GetJoinTokensResponse:
    """The tokens that let agents in, and whether that of the master's file does, too."""
    async with master.db.connection() as conn:
        rows = await join_tokens.all_of(conn, inactive=show_inactive)
    by_file = master.settings.security.agent_join_by_file
    return messages.GetJoinTokensResponse(join_tokens=[view_of(row) for row in rows], join_by_file=by_file)


@routes.delete("/api/v1/join-tokens/{join_token_id}", "RevokeJoinToken", allow=Allow.ADMIN)
async def revoke_join_token(master: MasterDep, join_token_id: int) -> messages.RevokeJoinTokenResponse:
    """Revoke a token; agents that have joined with it stay."""
    async with master.db.transaction() as conn:
        return messages.RevokeJoinTokenResponse(join_token=view_of(await join_tokens.revoke(conn, join_token_id)))


def seconds_of(lifespan: str) -> float:
    """How long a token is good. Raises InvalidInput."""
    try:
        seconds = parse_duration(lifespan)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"lifespan: {error}") from None
    if not 0 < seconds <= MAX_LIFESPAN_S:
        raise InvalidInput(f"lifespan is {lifespan}: give more than none and at most {MAX_LIFESPAN_S / 86400:g}d")
    return seconds


def view_of(token: JoinTokenRow) -> messages.JoinTokenView:
    """All about a token but the token."""
    return messages.JoinTokenView(
        id=token.id,
        description=token.description,
        made_by=token.made_by,
        agent_id=token.agent_id,
        uses_left=-1 if token.uses_left is None else token.uses_left,
        created_at=token.created_at,
        expiry=token.expires_at,
        revoked=token.revoked_at is not None,
        good=token.good,
    )
