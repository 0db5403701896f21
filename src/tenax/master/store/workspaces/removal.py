"""Deletion of workspaces and projects: first what is in them, then they themselves.

Rules it keeps: one is deleted only when everything in it has ended and nothing of it is registered as a version of a
model; from the moment of the request nothing can be put into it; what cannot be deleted makes it DELETE_FAILED, with
the reason, and its deletion can be requested again.
"""

from __future__ import annotations

from dataclasses import dataclass

from asyncpg import Connection

from tenax.errors import NotNow
from tenax.lifecycle.experiment import TRANSITIONS, ExperimentEvent, ExperimentState
from tenax.master.store.database.queries import load
from tenax.master.store.database.wakeups import notify

Q = load("workspaces")

#: An experiment in one of these may be deleted.
_DELETABLE = [state.value for state, event in TRANSITIONS if event is ExperimentEvent.DELETE]
_TO_DELETE = [state for state in _DELETABLE if state != ExperimentState.DELETING.value]


@dataclass(frozen=True, slots=True)
class Folder:
    """A workspace or a project: exactly one is set."""

    workspace_id: int | None = None
    project_id: int | None = None

    @property
    def key(self) -> tuple[int | None, int | None]:
        return (self.workspace_id, self.project_id)

    @property
    def id(self) -> int:
        number = self.project_id if self.workspace_id is None else self.workspace_id
        assert number is not None
        return number


async def request(conn: Connection, folder: Folder, called: str, by: str) -> bool:
    """Delete a locked folder with all that is in it; True: it is gone already. Raises NotNow, changing nothing."""
    await check(conn, folder, called)
    await _mark(conn, folder, "DELETING", "")
    held = [row["id"] for row in await conn.fetch(Q.hold_experiments, *folder.key, _TO_DELETE)]
    await conn.execute(Q.delete_experiments, held, *folder.key, _TO_DELETE, f"deleted with {called} by {by}")
    if await delete_if_empty(conn, folder):
        return True
    await notify(conn, "deletion", f"folder-{folder.id}")
    return False


async def deleting(conn: Connection) -> list[Folder]:
    """What is being deleted; projects first, which may be in a workspace that is."""
    projects = [Folder(project_id=row["id"]) for row in await conn.fetch(Q.deleting_projects)]
    return projects + [Folder(workspace_id=row["id"]) for row in await conn.fetch(Q.deleting_workspaces)]


async def delete_if_empty(conn: Connection, folder: Folder) -> bool:
    """Delete a folder that is DELETING and empty, or note why it cannot be; True: it is gone. In a transaction."""
    lock = Q.lock_project if folder.workspace_id is None else Q.lock_workspace
    if await conn.fetchval(lock, folder.id) is None:
        return False
    left = await conn.fetchrow(Q.left, *folder.key)
    if left["stuck"] is not None:
        reason = await conn.fetchval(Q.reason, left["stuck"])
        await _mark(conn, folder, "DELETE_FAILED", f"experiment {left['stuck']} could not be deleted: {reason}")
        return False
    if left["experiments"]:
        return False
    if folder.workspace_id is None:
        await conn.execute(Q.delete_project, folder.project_id)
    else:
        await conn.execute(Q.delete_projects, folder.workspace_id)
        await conn.execute(Q.delete_workspace, folder.workspace_id)
    return True


async def check(conn: Connection, folder: Folder, called: str) -> None:
    """Whether all in it may be deleted. Raises NotNow."""
    running = await conn.fetchrow(Q.running, *folder.key, _DELETABLE)
    if running is not None:
        raise NotNow(
            f"experiment {running['id']} in {called} is {running['state'].lower()}: cancel or kill what has not ended "
            "before you delete it"
        )
    registered = await conn.fetchrow(Q.registered, *folder.key)
    if registered is not None:
        raise NotNow(
            f"checkpoint {registered['uuid']} of experiment {registered['experiment_id']} in {called} is version "
            f"{registered['version']} of model {registered['model']}: delete that version first"
        )


async def _mark(conn: Connection, folder: Folder, state: str, message: str) -> None:
    query = Q.mark_project if folder.workspace_id is None else Q.mark_workspace
    await conn.execute(query, folder.id, state, message)
