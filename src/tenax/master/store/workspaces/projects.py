"""Rows of projects: made, changed, moved between workspaces, and found by what a configuration names.

Rules it keeps: names are unique in a workspace whatever their capitals, keys in the cluster; the immutable one never
changes but in its notes; an archived one, one whose workspace is, and one that is being deleted, takes nothing new.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from asyncpg import Connection, UniqueViolationError

from tenax.errors import AlreadyExists, NotFound, NotNow
from tenax.jsonvalue import JsonObject
from tenax.master.store.database.queries import existing, load
from tenax.master.store.database.wakeups import notify
from tenax.master.store.quotas import rows as quotas

Q = load("workspaces")

#: The project that is always there; an experiment that names none is filed here.
DEFAULT_PROJECT_ID = 1
DEFAULT_WORKSPACE_ID = 1
DEFAULT_NAME = "Uncategorized"
#: Letters of a name that begin the key made from it, and of a whole key.
_KEY_HEAD, _KEY_LENGTH = 3, 5
_TRIES = 5


@dataclass(frozen=True, slots=True)
class ProjectRow:
    """A project and its workspace."""

    id: int
    name: str
    workspace_id: int
    workspace_name: str
    #: It, or its workspace: nothing may be added.
    archived: bool


@dataclass(frozen=True, slots=True)
class HeldProject(ProjectRow):
    """A project that is locked, with what decides whether it may be changed."""

    owner_id: int | None
    workspace_owner_id: int | None
    immutable: bool
    #: Not by its workspace.
    archived_itself: bool
    #: ACTIVE, DELETING or DELETE_FAILED.
    state: str
    workspace_state: str

    @property
    def called(self) -> str:
        return f"project {self.name!r} in workspace {self.workspace_name!r}"

    def check_open(self) -> None:
        """Raises NotNow if nothing may be put into it or taken out of it."""
        if "DELETING" in (self.state, self.workspace_state):
            raise NotNow(f"{self.called} is being deleted: choose another one")
        if self.archived:
            what = "is archived" if self.archived_itself else "is archived with its workspace"
            raise NotNow(f"{self.called} {what}: unarchive it first, or choose another one")

    def check_editable(self) -> None:
        """Raises NotNow if it may not be changed."""
        if self.immutable:
            raise NotNow(f"{self.called} is immutable: make a project of your own instead")
        self.check_open()


async def create_first(conn: Connection) -> None:
    """Make the default workspace and project if there are none. In a transaction."""
    made = await conn.execute(Q.create_first_workspace)
    await conn.execute(Q.create_first_project)
    if made.endswith(" 1"):
        await conn.execute(Q.skip_first)


async def get(conn: Connection, project_id: int) -> ProjectRow:
    """Raises NotFound."""
    return ProjectRow(**await existing(conn, f"project {project_id}", Q.by_id, project_id))


async def find(conn: Connection, workspace: str, project: str) -> ProjectRow:
    """The project of that name. Raises NotFound, saying which of the two is missing."""
    row = await conn.fetchrow(Q.project_by_name, workspace, project)
    if row is not None:
        return ProjectRow(**row)
    await existing(conn, f"workspace {workspace!r}", Q.workspace_by_name, workspace)
    raise NotFound(f"project {project!r} not found in the workspace {workspace!r}: create it, or leave it out")


async def id_of_key(conn: Connection, key: str) -> int:
    """The project of that key, whatever its capitals. Raises NotFound."""
    project_id: int = (await existing(conn, f"project with the key {key!r}", Q.by_key, key))[0]
    return project_id


async def lock(conn: Connection, project_id: int) -> HeldProject:
    """It, for whoever changes it; locked until the transaction ends. Raises NotFound."""
    return await _held(conn, Q.project_lock, project_id)


async def hold(conn: Connection, project_id: int) -> HeldProject:
    """It, for whoever puts something into it; not archived, moved or deleted meanwhile. Raises NotFound, NotNow.

    Locked before any experiment: what is put into it comes after.
    """
    project = await _held(conn, Q.project_share, project_id)
    project.check_open()
    return project


async def create(
    conn: Connection, workspace_id: int, name: str, description: str, key: str | None, owner_id: int
) -> int:
    """The id of a new project in a workspace that is held; without ``key`` one is made. Raises AlreadyExists."""
    for attempt in range(_TRIES):
        # Where others take the same letters at the same time, chance finds one.
        chosen = key if key is not None else await _free_key(conn, name) if attempt == 0 else None
        new: int | None = await conn.fetchval(Q.project_create, workspace_id, name, description, chosen, owner_id)
        if new is not None:
            return new
        if await conn.fetchval(Q.name_taken, workspace_id, name, 0):
            raise AlreadyExists(_taken(name))
        if key is not None:
            break
    raise AlreadyExists(f"a project with the key {key!r} already exists: choose another key")


async def edit(
    conn: Connection, project: HeldProject, name: str | None, description: str | None, key: str | None
) -> None:
    """Change name, description or key; None leaves one as it is. Raises AlreadyExists."""
    if name is not None and await conn.fetchval(Q.name_taken, project.workspace_id, name, project.id):
        raise AlreadyExists(_taken(name))
    try:
        async with conn.transaction():
            await conn.execute(Q.edit, project.id, name, description, key)
    except UniqueViolationError as error:
        taken = (
            _taken(name or "") if "name" in str(error.constraint_name) else f"the key {key!r} is taken: choose another"
        )
        raise AlreadyExists(taken) from None


async def set_archived(conn: Connection, project_id: int, archived: bool) -> None:
    """Whether it is archived itself."""
    await conn.execute(Q.project_set_archived, project_id, archived)


async def set_notes(conn: Connection, project_id: int, notes: Sequence[JsonObject]) -> list[JsonObject]:
    """Replace all notes; they are given back."""
    stored: list[JsonObject] = await conn.fetchval(Q.set_notes, project_id, list(notes))
    return stored


async def add_note(conn: Connection, project_id: int, note: JsonObject) -> list[JsonObject]:
    """Put a note behind the others; all are given back."""
    stored: list[JsonObject] = await conn.fetchval(Q.add_note, project_id, note)
    return stored


async def move(conn: Connection, project: HeldProject, workspace_id: int) -> None:
    """Into another workspace, which is held. Raises AlreadyExists, and InvalidInput where what is filed in it is more
    urgent than quotas allow there."""
    if await conn.fetchval(Q.name_taken, workspace_id, project.name, project.id):
        raise AlreadyExists(_taken(project.name))
    await quotas.check_move(conn, workspace_id, project_id=project.id)
    try:
        async with conn.transaction():
            await conn.execute(Q.move, project.id, workspace_id)
    except UniqueViolationError:
        raise AlreadyExists(_taken(project.name)) from None
    await notify(conn, "scheduling", "")


async def _free_key(conn: Connection, name: str) -> str | None:
    """The first letters of a name, with a number where they are taken; None: let chance find one."""
    head = re.sub(r"[^A-Z0-9]", "", name.upper())[:_KEY_HEAD] or "P"
    taken = {row["key"] for row in await conn.fetch(Q.keys_like, head)}
    numbered = (f"{head}{number or ''}" for number in range(10 ** (_KEY_LENGTH - _KEY_HEAD)))
    return next((key for key in numbered if key not in taken), None)


async def _held(conn: Connection, query: str, project_id: int) -> HeldProject:
    await conn.execute(Q.share_workspace, project_id)
    return HeldProject(**await existing(conn, f"project {project_id}", query, project_id))


def _taken(name: str) -> str:
    return f"project {name!r} already exists in that workspace: choose another name"
