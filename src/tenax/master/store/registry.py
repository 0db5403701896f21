"""Which checkpoints are registered as versions of a model: those are neither deleted nor collected."""

from __future__ import annotations

from collections.abc import Collection

from asyncpg import Connection

from tenax.errors import InvalidInput
from tenax.master.store.queries import load

Q = load("registry")


async def registered(conn: Connection, uuids: Collection[str]) -> dict[str, str]:
    """Those of ``uuids`` that are registered: uuid -> ``version 3 of model bert``."""
    rows = await conn.fetch(Q.registered, list(uuids))
    return {row["uuid"]: f"version {row['version']} of model {row['model']}" for row in rows}


async def check_none(conn: Connection, uuids: Collection[str]) -> None:
    """Raises InvalidInput, naming the first, if any of ``uuids`` is registered."""
    for uuid, where in (await registered(conn, uuids)).items():
        raise InvalidInput(f"checkpoint {uuid} is {where}, so it cannot be deleted: delete that version first")


async def kept_of(conn: Connection, experiment_id: int) -> str | None:
    """Which checkpoint of an experiment is registered, and as what, with what to do; None: none is."""
    row = await conn.fetchrow(Q.registered_of_experiment, experiment_id)
    if row is None:
        return None
    return (
        f"its checkpoint {row['uuid']} is version {row['version']} of model {row['model']}: delete that version first"
    )
