"""Access tokens as values: credentials of a person that live for days."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple

from tenax.client.connection import reading
from tenax.client.connection.reading import LiveAnswer, part
from tenax.client.connection.session import Session, at
from tenax.client.users import get_user, whoami
from tenax.errors import NotFound
from tenax.jsonvalue import JsonObject


@dataclass(frozen=True)
class AccessToken(LiveAnswer):
    """All about a token but the token, which is shown when it is made and never again."""

    id: int = part(reading.integer, "id")
    user_id: int = part(reading.integer, "userId")
    description: str = part(reading.text, "description")
    created: Optional[datetime.datetime] = part(reading.moment, "createdAt")
    expires: Optional[datetime.datetime] = part(reading.moment, "expiry")
    revoked: bool = part(reading.flag, "revoked")

    def describe(self, description: str) -> AccessToken:
        """Say what it is for. Raises Forbidden."""
        return self._patch({"description": description})

    def revoke(self) -> AccessToken:
        """End it, at once and for good. Raises Forbidden."""
        return self._patch({"setRevoked": True})

    def _patch(self, body: JsonObject) -> AccessToken:
        answer = self.session.call("PATCH", at("/api/v1/tokens/{}", self.id), body={"tokenId": self.id, **body})
        return AccessToken.read(reading.record(answer, "tokenInfo"), self.session)


def create_token(
    session: Session,
    username: Optional[str] = None,
    *,
    lifespan: Optional[str] = None,
    description: str = "",
    current_password: Optional[str] = None,
) -> Tuple[int, str]:
    """The number of a new token, and the token itself, which is shown only now.

    ``username``: None for oneself; ``lifespan``: as in ``48h`` or ``1h30m``, ``-1`` for as long as is allowed;
    ``current_password``: one's own, for a token that ends later than a login that is not new. Raises InvalidInput,
    NotFound, Forbidden.
    """
    user = whoami(session) if username is None else get_user(session, username)
    body: JsonObject = {"userId": user.id, "lifespan": lifespan, "description": description}
    if current_password is not None:
        body["currentPassword"] = current_password
    answer = session.create("/api/v1/tokens", body)
    return reading.integer(answer, "tokenId"), reading.text(answer, "token")


def list_tokens(
    session: Session, username: Optional[str] = None, *, inactive: bool = False, numbers: Sequence[int] = ()
) -> List[AccessToken]:
    """One's own tokens, and everyone's for an administrator; ``inactive``: also those that have ended."""
    query = {"username": username, "showInactive": inactive, "tokenIds": list(numbers)}
    tokens = reading.records(session.get("/api/v1/tokens", query), "tokenInfo")
    return [AccessToken.read(token, session) for token in tokens]


def get_token(session: Session, number: int) -> AccessToken:
    """The token of that number. Raises NotFound for one that is not there, or not yours to see."""
    tokens = list_tokens(session, numbers=[number])
    if not tokens:
        raise NotFound(f"There is no token {number}.")
    return tokens[0]
