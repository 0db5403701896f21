"""What people wrote about runs: a document, replaced as a whole, and its leaves to find it by, in one transaction."""

from __future__ import annotations

from asyncpg import Connection

from tenax.jsonvalue import JsonObject
from tenax.master.metadata import flatten
from tenax.master.store.queries import load

Q = load("run_metadata")

_COLUMNS = (
    "trial_id",
    "flat_key",
    "is_array_element",
    "integer_value",
    "float_value",
    "boolean_value",
    "string_value",
    "timestamp_value",
)
#: Values of one key that are listed at most.
_MOST_VALUES = 10_000


async def get(conn: Connection, trial_id: int) -> JsonObject:
    """Empty where nothing was written."""
    found: JsonObject | None = await conn.fetchval(Q.get, trial_id)
    return found or {}


async def replace(conn: Connection, trial_id: int, metadata: JsonObject) -> None:
    """Write it, instead of what was there. In a transaction; the trial exists. Raises InvalidInput beyond a limit."""
    leaves = flatten(metadata)
    # Locks the row: of two that write at once the index is that of the document which stays.
    await conn.execute(Q.replace, trial_id, metadata)
    await conn.execute(Q.drop_index, trial_id)
    records = [
        (
            trial_id,
            leaf.flat_key,
            leaf.is_array_element,
            leaf.integer_value,
            leaf.float_value,
            leaf.boolean_value,
            leaf.string_value,
            leaf.timestamp_value,
        )
        for leaf in leaves
    ]
    await conn.copy_records_to_table("run_metadata_index", records=records, columns=_COLUMNS)


async def values(conn: Connection, project_id: int, key: str) -> list[str]:
    """The texts that runs of a project have under ``key``, sorted, each once."""
    return [row["string_value"] for row in await conn.fetch(Q.values_of, project_id, key, _MOST_VALUES)]
