"""Rows of tickets, with which a login elsewhere becomes one of the web page.

Rules: only the sha256 of a ticket is stored; it is used once; its session is as old as the login that it
was made with, and ends no later.
"""

from __future__ import annotations

from dataclasses import dataclass

from asyncpg import Connection

from tenax.master.store.database.queries import load

Q = load("users")


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a ticket is good for."""

    user_id: int
    #: The access token that it was made with; None: a login.
    access_token: int | None
    #: Seconds since that login, and until the session must end.
    age_s: float
    seconds_left: float


async def create(conn: Connection, ticket_hash: bytes, ticket: Ticket, good_for_s: float) -> None:
    """Keep a ticket for ``good_for_s`` seconds; those that nobody used in time are forgotten."""
    await conn.execute(Q.ticket_delete_expired)
    values = (ticket.user_id, ticket.access_token, good_for_s, ticket.age_s, ticket.seconds_left)
    await conn.execute(Q.ticket_create, ticket_hash, *values)


async def use(conn: Connection, ticket_hash: bytes) -> Ticket | None:
    """Use a ticket up; None for one that is not there, was used, or is too old."""
    row = await conn.fetchrow(Q.ticket_use, ticket_hash)
    return None if row is None else Ticket(**row)


async def create_session(conn: Connection, ticket: Ticket, token_hash: bytes, lifetime_s: float) -> None:
    """The login that a used ticket becomes."""
    await conn.execute(Q.ticket_session, ticket.user_id, token_hash, lifetime_s, ticket.age_s, ticket.access_token)
