"""Rows of workspaces: made, changed, pinned, listed as one user sees them.

Rules it keeps: names are unique whatever their capitals; the immutable one never changes; an archived one, and one that
is being deleted, takes nothing new and changes in nothing but that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from datetime import datetime

from asyncpg import Connection, UniqueViolationError

from tenax.errors import AlreadyExists, NotFound, NotNow
from tenax.jsonvalue import JsonObject
from tenax.master.store.database.paging import Page
from tenax.master.store.database.queries import existing, load

Q = load("workspaces")


@dataclass(frozen=True, slots=True)
class AgentUser:
    """Whom tasks run as; None: not set here."""

    agent_uid: int | None = None
    agent_gid: int | None = None
    agent_user: str | None = None
    agent_group: str | None = None


@dataclass(frozen=True, slots=True)
class WorkspaceDefaults:
    """What a workspace sets for the experiments in it; empty and None: nothing."""

    checkpoint_storage: JsonObject | None = None
    default_compute_pool: str = ""
    default_aux_pool: str = ""


@dataclass(frozen=True, slots=True)
class WorkspaceRow:
    """What decides whether it may be changed."""

    id: int
    name: str
    owner_id: int | None
    immutable: bool
    archived: bool
    #: ACTIVE, DELETING or DELETE_FAILED.
    state: str

    @property
    def called(self) -> str:
        return f"workspace {self.name!r}"

    def check_open(self) -> None:
        """Raises NotNow if nothing may be put into it or taken out of it."""
        if self.state == "DELETING":
            raise NotNow(f"{self.called} is being deleted: choose another one")
        if self.archived:
            raise NotNow(f"{self.called} is archived: unarchive it first, or choose another one")

    def check_takes_projects(self) -> None:
        """Raises NotNow if it has the project that it began with, and no other."""
        if self.immutable:
            raise NotNow(f"{self.called} is immutable and cannot add new projects: make a workspace of your own")

    def check_editable(self) -> None:
        """Raises NotNow if it may not be changed."""
        if self.immutable:
            raise NotNow(f"{self.called} is immutable: make a workspace of your own instead")
        self.check_open()


@dataclass(frozen=True, slots=True)
class WorkspaceView:
    """One workspace as a user sees it, with what is in it."""

    id: int
    name: str
    owner_id: int | None
    username: str
    immutable: bool
    archived: bool
    state: str
    error_message: str
    agent_uid: int | None
    agent_gid: int | None
    agent_user: str | None
    agent_group: str | None
    checkpoint_storage: JsonObject | None
    default_compute_pool: str
    default_aux_pool: str
    pinned_at: datetime | None
    projects: int
    experiments: int


@dataclass(frozen=True, slots=True)
class WorkspaceFilter:
    """Which workspaces to list; None: any."""

    #: On whose behalf: pins are a user's own.
    viewer: int
    id: int | None = None
    archived: bool | None = None
    name: str | None = None
    #: With its capitals.
    exact_name: str | None = None
    users: tuple[str, ...] | None = None
    user_ids: tuple[int, ...] | None = None
    pinned: bool | None = None


#: What a list may be ordered by.
ORDERS: Mapping[str, str] = {"id": "w.id", "name": "lower(w.name)"}


async def count(conn: Connection, filters: WorkspaceFilter) -> int:
    """How many match."""
    total: int = await conn.fetchval(f"select count(*) {Q.matching}", *_parameters(filters))
    return total


async def page(
    conn: Connection, filters: WorkspaceFilter, window: Page, *, order: str = "id", descending: bool = False
) -> list[WorkspaceView]:
    """A page of those that match."""
    direction = "desc" if descending else "asc"
    text = f"{Q.columns} {Q.matching} order by {ORDERS[order]} {direction}, w.id {direction} limit $9 offset $10"
    rows = await conn.fetch(text, *_parameters(filters), window.limit, window.offset)
    return [WorkspaceView(**row) for row in rows]


async def get(conn: Connection, workspace_id: int, viewer: int) -> WorkspaceView:
    """Raises NotFound."""
    views = await page(conn, WorkspaceFilter(viewer, id=workspace_id), Page())
    if not views:
        raise NotFound(f"workspace {workspace_id} not found")
    return views[0]


async def lock(conn: Connection, workspace_id: int) -> WorkspaceRow:
    """It, for whoever changes it; locked until the transaction ends. Raises NotFound."""
    return await _row(conn, Q.lock, workspace_id)


async def hold(conn: Connection, workspace_id: int) -> WorkspaceRow:
    """It, for whoever puts something into it; not archived or deleted meanwhile. Raises NotFound, NotNow."""
    workspace = await _row(conn, Q.share, workspace_id)
    workspace.check_open()
    return workspace


async def id_of(conn: Connection, name: str) -> int:
    """The workspace of that name, whatever its capitals. Raises NotFound."""
    what = f"workspace {name!r}: create it, or choose another one"
    workspace_id: int = (await existing(conn, what, Q.by_name, name))[0]
    return workspace_id


async def create(conn: Connection, name: str, owner_id: int, agent_user: AgentUser, defaults: WorkspaceDefaults) -> int:
    """The id of a new workspace, pinned for its owner. Raises AlreadyExists."""
    new: int | None = await conn.fetchval(Q.create, name, owner_id, *astuple(agent_user), *astuple(defaults))
    if new is None:
        raise AlreadyExists(_taken(name))
    await pin(conn, new, owner_id)
    return new


async def rename(conn: Connection, workspace_id: int, name: str) -> None:
    """Raises AlreadyExists."""
    try:
        async with conn.transaction():
            renamed = await conn.fetchval(Q.rename, workspace_id, name)
    except UniqueViolationError:
        # Taken by a transaction that was under way.
        renamed = None
    if renamed is None:
        raise AlreadyExists(_taken(name))


async def agent_uid(conn: Connection, workspace_id: int, user_id: int) -> int | None:
    """As whom tasks of a user run in a workspace; None for the agent's own user."""
    uid: int | None = await conn.fetchval(Q.agent_uid, workspace_id, user_id)
    return uid


async def set_agent_user(conn: Connection, workspace_id: int, agent_user: AgentUser) -> None:
    """Whom its tasks run as from now on."""
    await conn.execute(Q.set_agent_user, workspace_id, *astuple(agent_user))


async def set_storage(conn: Connection, workspace_id: int, storage: JsonObject | None) -> None:
    """What lies below ``checkpoint_storage`` of experiments that are made from now on."""
    await conn.execute(Q.set_storage, workspace_id, storage)


async def set_pools(conn: Connection, workspace_id: int, compute: str | None, aux: str | None) -> None:
    """The pools of what names none; None leaves one as it is, empty is the cluster's."""
    await conn.execute(Q.set_pools, workspace_id, compute, aux)


async def set_archived(conn: Connection, workspace_id: int, archived: bool) -> None:
    """Everything in it counts as archived with it."""
    await conn.execute(Q.set_archived, workspace_id, archived)


async def pin(conn: Connection, workspace_id: int, user_id: int) -> None:
    """For that user; nothing if it is so."""
    await conn.execute(Q.pin, workspace_id, user_id)


async def unpin(conn: Connection, workspace_id: int, user_id: int) -> None:
    """For that user; nothing if it is not."""
    await conn.execute(Q.unpin, workspace_id, user_id)


async def defaults_of(conn: Connection, workspace_id: int) -> WorkspaceDefaults:
    """What it sets for the experiments in it, with secrets. Raises NotFound."""
    return WorkspaceDefaults(**await existing(conn, f"workspace {workspace_id}", Q.defaults, workspace_id))


async def a_model(conn: Connection, workspace_id: int) -> str | None:
    """The name of a model in it; None: there is none."""
    name: str | None = await conn.fetchval(Q.models, workspace_id)
    return name


async def _row(conn: Connection, query: str, workspace_id: int) -> WorkspaceRow:
    return WorkspaceRow(**await existing(conn, f"workspace {workspace_id}", query, workspace_id))


def _taken(name: str) -> str:
    return f"workspace {name!r} already exists: choose another name"


def _parameters(filters: WorkspaceFilter) -> tuple[object, ...]:
    return (
        filters.viewer,
        filters.id,
        filters.archived,
        filters.name or None,
        filters.exact_name or None,
        None if filters.users is None else [user.lower() for user in filters.users],
        filters.user_ids,
        filters.pinned,
    )
