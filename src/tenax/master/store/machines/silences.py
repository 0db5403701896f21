"""Rows of places of providers that do not answer: each master, and one that was started again, knows since when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.master.store.database.queries import load, row_as

Q = load("machines")


@dataclass(frozen=True, slots=True)
class SilentProvider:
    """A place that was asked and has not answered since."""

    provider: str
    region: str
    #: Of its API; empty: the usual one.
    endpoint: str
    since: datetime
    #: Why, as it was when it began.
    reason: str


async def all_of(conn: Connection) -> list[SilentProvider]:
    """The one that has been silent for longest first."""
    return [row_as(SilentProvider, row) for row in await conn.fetch(Q.silent_providers)]


async def begin(conn: Connection, provider: str, region: str, endpoint: str, reason: str) -> None:
    """It does not answer; nothing for one that has not before."""
    await conn.execute(Q.provider_silent, provider, region, endpoint, reason)


async def end(conn: Connection, provider: str, region: str, endpoint: str) -> None:
    """It answers, or is not asked any more."""
    await conn.execute(Q.provider_answers, provider, region, endpoint)
