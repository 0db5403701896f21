"""Rows of models: made, changed, listed. Their versions are in `tenax.master.store.models.versions`.

Rules it keeps: a name is unique in the cluster, and never looks like a number, for a path names a model by either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from asyncpg import Connection, UniqueViolationError

from tenax.errors import AlreadyExists, InvalidInput, NotFound, NotNow
from tenax.jsonvalue import JsonObject
from tenax.master.store.database.paging import Page, like
from tenax.master.store.database.queries import existing, load

Q = load("models")

_NAME_LIMIT = 255


@dataclass(frozen=True, slots=True)
class ModelView:
    """One model, with how many versions it has."""

    id: int
    name: str
    description: str
    notes: str
    labels: list[str]
    metadata: JsonObject
    workspace_id: int
    owner_id: int
    username: str
    archived: bool
    created_at: datetime
    updated_at: datetime
    last_version: int
    versions: int


@dataclass(frozen=True, slots=True)
class HeldModel:
    """A model that is locked, with what decides whether it may be changed."""

    id: int
    name: str
    owner_id: int
    workspace_id: int
    archived: bool
    workspace_name: str
    #: It is archived, or being deleted.
    workspace_closed: bool

    @property
    def called(self) -> str:
        return f"model {self.name!r}"

    def check_open(self) -> None:
        """Raises NotNow if it, or its workspace, is archived."""
        if self.archived:
            raise NotNow(f"{self.called} is archived: unarchive it first")
        if self.workspace_closed:
            raise NotNow(
                f"{self.called} is in workspace {self.workspace_name!r}, which is archived: unarchive that first"
            )


@dataclass(frozen=True, slots=True)
class ModelEdit:
    """What a model is to have; None leaves it as it is."""

    name: str | None = None
    description: str | None = None
    notes: str | None = None
    labels: list[str] | None = None
    metadata: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class ModelFilter:
    """Which models to list; None: any."""

    id: int | None = None
    exact_name: str | None = None
    #: Parts of texts.
    name: str | None = None
    description: str | None = None
    #: It has all of these.
    labels: tuple[str, ...] | None = None
    archived: bool | None = None
    users: tuple[str, ...] | None = None
    user_ids: tuple[int, ...] | None = None
    #: In any of these.
    workspace_ids: tuple[int, ...] | None = None
    workspace_names: tuple[str, ...] | None = field(default=None)


#: What a list may be ordered by.
ORDERS: Mapping[str, str] = {
    "id": "m.id",
    "name": "lower(m.name)",
    "description": "lower(m.description)",
    "created_at": "m.created_at",
    "updated_at": "m.updated_at",
    "versions": "(select count(*) from model_versions v where v.model_id = m.id)",
    "workspace": "lower(w.name)",
}


def checked_name(name: str) -> str:
    """``name`` if it may name a model. Raises InvalidInput."""
    problem = next((text for wrong, text in _problems(name) if wrong), None)
    if problem is not None:
        raise InvalidInput(f"the name {name[:_NAME_LIMIT]!r} {problem}: choose another one")
    return name


async def count(conn: Connection, filters: ModelFilter) -> int:
    """How many match."""
    total: int = await conn.fetchval(f"select count(*) {Q.sources} {Q.matching}", *_parameters(filters))
    return total


async def ids(
    conn: Connection, filters: ModelFilter, window: Page, *, order: str = "id", descending: bool = False
) -> list[int]:
    """Which are on a page of those that match, in order."""
    direction = "desc" if descending else "asc"
    text = (
        f"{Q.id} {Q.sources} {Q.matching} order by {ORDERS[order]} {direction}, m.id {direction} limit $11 offset $12"
    )
    return [row["id"] for row in await conn.fetch(text, *_parameters(filters), window.limit, window.offset)]


async def views(conn: Connection, chosen: Sequence[int]) -> list[ModelView]:
    """Those of the models ``chosen`` that are there, in that order."""
    rows = await conn.fetch(f"{Q.columns} {Q.sources} {Q.of_ids}", list(chosen))
    by_id = {row["id"]: ModelView(**row) for row in rows}
    return [by_id[number] for number in chosen if number in by_id]


async def get(conn: Connection, model_id: int) -> ModelView:
    """Raises NotFound."""
    there = await views(conn, [model_id])
    if not there:
        raise NotFound(f"model {model_id} not found")
    return there[0]


async def id_of(conn: Connection, name_or_number: str) -> int:
    """The model that a path means. Raises NotFound."""
    numeric = name_or_number.isascii() and name_or_number.isdecimal()
    model_id: int | None = (
        await conn.fetchval(Q.by_id, int(name_or_number)) if numeric else await conn.fetchval(Q.by_name, name_or_number)
    )
    if model_id is None:
        raise NotFound(f"model {name_or_number if numeric else repr(name_or_number)} not found: see the list of models")
    return model_id


async def lock(conn: Connection, model_id: int) -> HeldModel:
    """It, for whoever changes it; locked until the transaction ends. Raises NotFound."""
    return HeldModel(**await existing(conn, f"model {model_id}", Q.lock, model_id))


async def create(conn: Connection, values: ModelEdit, workspace_id: int, owner_id: int) -> int:
    """The id of a new model in a workspace that is held. Raises AlreadyExists, InvalidInput."""
    name = checked_name(values.name or "")
    new: int | None = await conn.fetchval(
        Q.create,
        name,
        values.description or "",
        values.notes or "",
        values.labels or [],
        values.metadata or {},
        workspace_id,
        owner_id,
    )
    if new is None:
        raise AlreadyExists(_taken(name))
    return new


async def edit(conn: Connection, model: HeldModel, changes: ModelEdit, workspace_id: int | None = None) -> None:
    """Change what is given; ``workspace_id`` is held. Raises AlreadyExists, InvalidInput."""
    name = None if changes.name is None else checked_name(changes.name)
    try:
        async with conn.transaction():
            await conn.execute(
                Q.edit,
                model.id,
                name,
                changes.description,
                changes.notes,
                changes.labels,
                changes.metadata,
                workspace_id,
            )
    except UniqueViolationError:
        raise AlreadyExists(_taken(name or "")) from None


async def set_archived(conn: Connection, model_id: int, archived: bool) -> None:
    """Hide it from lists, or show it again."""
    await conn.execute(Q.set_archived, model_id, archived)


async def delete(conn: Connection, model_id: int) -> None:
    """It, and its versions; their checkpoints stay, and may be deleted from then on."""
    await conn.execute(Q.delete, model_id)


async def labels(conn: Connection, workspace_id: int | None) -> list[str]:
    """Labels of models, the most used first."""
    return [row["label"] for row in await conn.fetch(Q.labels, workspace_id)]


def _problems(name: str) -> list[tuple[bool, str]]:
    return [
        (not name.strip(), "is blank"),
        ("/" in name, "has a slash"),
        ("  " in name, "has two spaces in a row"),
        (name.isascii() and name.isdecimal(), "is a number, which would be taken for a model's id"),
        (len(name) > _NAME_LIMIT, f"has more than {_NAME_LIMIT} letters"),
    ]


def _taken(name: str) -> str:
    return f"model {name!r} already exists: choose another name"


def _parameters(filters: ModelFilter) -> tuple[object, ...]:
    return (
        filters.id,
        filters.exact_name,
        like(filters.name),
        like(filters.description),
        filters.labels,
        filters.archived,
        None if filters.users is None else [user.lower() for user in filters.users],
        filters.user_ids,
        filters.workspace_ids,
        None if filters.workspace_names is None else [name.lower() for name in filters.workspace_names],
    )
