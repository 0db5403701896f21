"""Join tokens as values: what lets an agent in. For administrators."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import List, Optional, Tuple

from tenax.client import reading
from tenax.client.connection.session import Session, at
from tenax.client.reading import Answer, part
from tenax.jsonvalue import JsonObject


@dataclass(frozen=True)
class JoinToken(Answer):
    """All about a join token but the token, which is shown when it is made and never again."""

    id: int = part(reading.integer, "id")
    description: str = part(reading.text, "description")
    #: The one agent that it is for; empty: any that has not joined yet.
    agent_id: str = part(reading.text, "agentId")
    #: -1: any number.
    uses_left: int = part(reading.integer, "usesLeft")
    created: Optional[datetime.datetime] = part(reading.moment, "createdAt")
    expires: Optional[datetime.datetime] = part(reading.moment, "expiry")
    revoked: bool = part(reading.flag, "revoked")
    #: Neither revoked nor over nor used up.
    good: bool = part(reading.flag, "good")


def create_join_token(
    session: Session, *, agent_id: Optional[str] = None, uses: int = 1, lifespan: str = "1h", description: str = ""
) -> Tuple[JoinToken, str]:
    """A new token, and the token itself, which is shown only now.

    ``agent_id``: for that agent alone, also in the place of one of that name that has joined before; ``uses``: for how
    many agents, -1 for any number; ``lifespan``: as in ``90m`` or ``7d``. Raises InvalidInput, Forbidden.
    """
    body: JsonObject = {"uses": uses, "lifespan": lifespan, "description": description, "agentId": agent_id}
    answer = session.post("/api/v1/join-tokens", reading.without_nulls(body))
    return JoinToken.read(reading.record(answer, "joinToken")), reading.text(answer, "token")


def list_join_tokens(session: Session, *, inactive: bool = False) -> List[JoinToken]:
    """Those that let agents in; ``inactive``: also those that do not any more."""
    answer = session.get("/api/v1/join-tokens", {"showInactive": inactive})
    return [JoinToken.read(token) for token in reading.records(answer, "joinTokens")]


def revoke_join_token(session: Session, number: int) -> JoinToken:
    """End it at once; agents that have joined with it stay. Raises NotFound."""
    answer = session.call("DELETE", at("/api/v1/join-tokens/{}", number))
    return JoinToken.read(reading.record(answer, "joinToken"))
