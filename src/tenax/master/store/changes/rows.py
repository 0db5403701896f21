"""Rows of projects, models and model versions as their followers see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from asyncpg import Connection

from tenax.jsonvalue import JsonObject
from tenax.master.store.database.queries import load

Q = load("changes")
#: What can be followed, by the name of its subscription.
_QUERIES = {"projects": Q.projects, "models": Q.models, "modelversions": Q.versions}
KINDS = tuple(_QUERIES)


@dataclass(frozen=True, slots=True)
class Followed:
    """A row, and when it changed last."""

    id: int
    #: Larger after each change.
    seq: int
    fields: JsonObject


async def rows(conn: Connection, kind: str, *ids: Sequence[int] | None) -> list[Followed]:
    """The rows of a subscription, by id: those that one of its three lists names, all where there is none.

    The lists are, for projects: workspaces, projects, nothing; for models: workspaces, models, owners; for versions:
    models, versions, owners.
    """
    given = [None if names is None else list(names) for names in ids]
    records = await conn.fetch(_QUERIES[kind], *given)
    return [Followed(row["id"], row["seq"], dict(row)) for row in records]


async def newest(conn: Connection) -> int:
    """No row has a larger number."""
    number: int = await conn.fetchval(Q.newest)
    return number
