"""Rows of workspaces and projects: where experiments are filed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from asyncpg import Connection

from tenax.errors import NotFound
from tenax.master.store.queries import load

Q = load("projects")

#: The project that is always there; an experiment that names none is filed here.
DEFAULT_PROJECT_ID = 1
DEFAULT_NAME = "Uncategorized"


@dataclass(frozen=True, slots=True)
class Project:
    """A project and its workspace."""

    id: int
    name: str
    workspace_id: int
    workspace_name: str
    #: It, or its workspace: nothing may be added.
    archived: bool


async def create_first(conn: Connection) -> None:
    """Make the default workspace and project if there are none. In a transaction."""
    made = await conn.execute(Q.create_first_workspace)
    await conn.execute(Q.create_first_project)
    if made.endswith(" 1"):
        await conn.execute(Q.skip_first)


async def get(conn: Connection, project_id: int) -> Project:
    """Raises NotFound."""
    row = await conn.fetchrow(Q.by_id, project_id)
    if row is None:
        raise NotFound(f"there is no project {project_id}")
    return _project(row)


async def find(conn: Connection, workspace: str, project: str) -> Project:
    """The project of that name. Raises NotFound, saying which of the two is missing."""
    row = await conn.fetchrow(Q.by_name, workspace, project)
    if row is not None:
        return _project(row)
    if await conn.fetchval(Q.workspace_by_name, workspace) is None:
        raise NotFound(f"there is no workspace {workspace!r}: create it, or leave it out for {DEFAULT_NAME}")
    raise NotFound(f"there is no project {project!r} in the workspace {workspace!r}: create it, or leave it out")


def _project(row: Mapping[str, object]) -> Project:
    return Project(**{name: row[name] for name in Project.__dataclass_fields__})  # type: ignore[arg-type]
