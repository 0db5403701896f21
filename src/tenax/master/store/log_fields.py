"""What the output of a task can be filtered by."""

from __future__ import annotations

from asyncpg import Connection

from tenax.jsonvalue import Json, JsonObject
from tenax.master.ingest.log_lines import NO_RANK
from tenax.master.store.log_packing import columns_of
from tenax.master.store.logs import Place, spans
from tenax.master.store.queries import load

Q = load("log_fields")

#: Ranks are looked up in the first chunks only: every rank speaks early.
_CHUNKS_FOR_RANKS = 16


async def of_task(conn: Connection, place: Place) -> JsonObject:
    """Every value that occurs, sorted, in the shape of Determined's answer."""
    rows = await conn.fetch(Q.origins, place.month, place.task_id)
    ranks: set[int] = set()
    for span in await spans(conn, place, limit=_CHUNKS_FOR_RANKS):
        ranks.update(columns_of(span.chunk).rank.tolist())
    return {
        "allocationIds": _values(rows, "allocation_id"),
        "agentIds": _values(rows, "agent_id"),
        "containerIds": _values(rows, "container_id"),
        "rankIds": list[Json](sorted(ranks - {NO_RANK})),
        "stdtypes": _values(rows, "stdtype"),
        "sources": _values(rows, "source"),
    }


async def task_of_trial(conn: Connection, trial_id: int) -> str | None:
    """The task of a trial; None: no such trial."""
    task_id: str | None = await conn.fetchval(Q.task_of_trial, trial_id)
    return task_id


def _values(rows: list[dict[str, dict[str, str]]], name: str) -> list[Json]:
    return list[Json](sorted({value for row in rows if (value := row["origin"].get(name))}))
