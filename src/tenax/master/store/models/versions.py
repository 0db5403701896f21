"""Rows of versions of models: registered checkpoints, numbered 1, 2, ... in each model, and which trials used them.

Rules it keeps: a version is of a COMPLETED checkpoint, which stays for as long as the version does; numbers are given
without gaps and never again, so that a number always means the same files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.errors import NotFound, NotNow
from tenax.jsonvalue import JsonObject
from tenax.master.store.checkpoints import gc
from tenax.master.store.database.paging import Page
from tenax.master.store.database.queries import existing, load

Q = load("models")


@dataclass(frozen=True, slots=True)
class VersionView:
    """One version."""

    id: int
    model_id: int
    version: int
    checkpoint_uuid: str
    name: str
    comment: str
    notes: str
    labels: list[str]
    metadata: JsonObject
    owner_id: int
    username: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ModelVersionEdit:
    """What a version is to have; None leaves it as it is."""

    name: str | None = None
    comment: str | None = None
    notes: str | None = None
    labels: list[str] | None = None
    metadata: JsonObject | None = None


#: What a list may be ordered by.
ORDERS: Mapping[str, str] = {"version": "v.version", "created_at": "v.created_at"}


async def count(conn: Connection, model_id: int) -> int:
    """How many versions a model has."""
    total: int = await conn.fetchval(Q.count, model_id)
    return total


async def numbers(
    conn: Connection, model_id: int, window: Page, *, order: str = "version", descending: bool = False
) -> list[int]:
    """Which of a model's versions are on a page, in order."""
    direction = "desc" if descending else "asc"
    text = f"{Q.version_numbers} order by {ORDERS[order]} {direction}, v.version {direction} limit $2 offset $3"
    return [row["version"] for row in await conn.fetch(text, model_id, window.limit, window.offset)]


async def views(conn: Connection, model_id: int, chosen: Sequence[int]) -> list[VersionView]:
    """Those of the versions ``chosen`` that are there, in that order."""
    rows = await conn.fetch(f"{Q.version_columns} {Q.of_numbers}", model_id, list(chosen))
    by_number = {row["version"]: VersionView(**row) for row in rows}
    return [by_number[number] for number in chosen if number in by_number]


async def get(conn: Connection, model_id: int, version: int) -> VersionView:
    """Raises NotFound."""
    row = await conn.fetchrow(f"{Q.version_columns} where v.model_id = $1 and v.version = $2", model_id, version)
    if row is None:
        raise NotFound(f"version {version} of model {model_id} not found")
    return VersionView(**row)


async def register(
    conn: Connection, model_id: int, checkpoint_uuid: str, values: ModelVersionEdit, owner_id: int
) -> int:
    """The number of a new version of a model that is locked. Raises NotFound, NotNow."""
    await conn.execute(Q.lock_experiment, checkpoint_uuid)
    checkpoint = await existing(conn, f"checkpoint {checkpoint_uuid}", Q.checkpoint, checkpoint_uuid)
    if checkpoint["state"] != "COMPLETED":
        raise NotNow(
            f"checkpoint {checkpoint_uuid} is {checkpoint['state'].lower().replace('_', ' ')}: only one that is "
            "completed can be registered"
        )
    if checkpoint["removal_requested"]:
        # Whether its files are still there is known to nobody but whoever deletes them.
        raise NotNow(f"the files of checkpoint {checkpoint_uuid} are being deleted: it can no longer be registered")
    if checkpoint["experiment_state"] == "DELETING":
        raise NotNow(f"experiment {checkpoint['experiment_id']} is being deleted with checkpoint {checkpoint_uuid}")
    number: int = await conn.fetchval(Q.next_number, model_id)
    await conn.execute(
        Q.version_create,
        model_id,
        number,
        checkpoint_uuid,
        values.name or "",
        values.comment or "",
        values.notes or "",
        values.labels or [],
        values.metadata or {},
        owner_id,
    )
    return number


async def edit(conn: Connection, model_id: int, version: int, changes: ModelVersionEdit) -> None:
    """Change what is given of a version that is there."""
    await conn.execute(
        Q.version_edit,
        model_id,
        version,
        changes.name,
        changes.comment,
        changes.notes,
        changes.labels,
        changes.metadata,
    )
    await conn.execute(Q.touch, model_id)


async def delete(conn: Connection, model_id: int, version: int) -> None:
    """It; its checkpoint stays, and may be deleted from then on."""
    experiment_id = await conn.fetchval(Q.version_delete, model_id, version)
    await conn.execute(Q.touch, model_id)
    if experiment_id is not None:
        await gc.mark(conn, experiment_id)


async def trials_of(conn: Connection, model_id: int, version: int, kind: str | None) -> list[int]:
    """Trials that reported to use it, for inference or for fine-tuning; None: for either."""
    return [row["trial_id"] for row in await conn.fetch(Q.trials, model_id, version, kind)]
