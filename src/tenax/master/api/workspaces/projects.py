"""Projects: made, changed, moved, archived, deleted, and their notes. Lists of them are a workspace's.

Rules it keeps: everyone sees every project and may make one and file experiments in it; its owner, its workspace's and
administrators change it; the immutable workspace takes no other project than its own, which changes only in its notes;
what is archived takes nothing new.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from fastapi import Query, Response

from tenax.display.terminal import is_name
from tenax.errors import InvalidInput, NotNow, Overtaken
from tenax.jsonvalue import JsonObject
from tenax.master.access.authorization import Allow, Caller
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.expected import check_expected
from tenax.master.api.http.paging import JSON, as_json, in_parts
from tenax.master.api.http.requests import check_sizes
from tenax.master.api.http.routing import Routes
from tenax.master.api.workspaces import messages
from tenax.master.api.workspaces.routes import checked_name, project_message
from tenax.master.context import Master
from tenax.master.store.users import settings as user_settings
from tenax.master.store.workspaces import lists as project_lists
from tenax.master.store.workspaces import projects
from tenax.master.store.workspaces import removal as workspace_removal
from tenax.master.store.workspaces import rows as workspaces
from tenax.master.store.workspaces.lists import ProjectView
from tenax.master.store.workspaces.projects import HeldProject
from tenax.master.store.workspaces.removal import Folder
from tenax.wire.message import Empty

routes = Routes("Projects")

#: Projects that are given when no number is asked for, and at most.
_RECENT, _MAX_RECENT = 5, 100
_KEY = re.compile(r"[A-Za-z0-9]{1,5}")


@routes.get(
    "/api/v1/user/projects/activity",
    "GetProjectsByUserActivity",
    allow=Allow.USER,
    response_model=messages.GetProjectsByUserActivityResponse,
)
async def get_recent(master: MasterDep, caller: CallerDep, limit: Annotated[int, Query()] = 0) -> Response:
    """The projects that the caller viewed last, the newest first."""
    if limit < 0:
        raise InvalidInput(f"limit is {limit}: it must not be negative")
    most = min(limit or _RECENT, _MAX_RECENT)
    async with master.db.connection() as conn:
        ids = await user_settings.recent_projects(conn, caller.person.id, most)

        async def load(part: Sequence[int]) -> list[ProjectView]:
            return await project_lists.views(conn, part)

        entries, _ = await in_parts(master, ids, load, lambda view: as_json(project_message(view)), len)
    return Response(b'{"projects":[' + b",".join(entries) + b"]}", media_type=JSON)


@routes.get("/api/v1/projects/key/{key}", "GetProjectByKey", allow=Allow.USER)
async def get_by_key(master: MasterDep, key: str) -> messages.ProjectResponse:
    """One project, by its key."""
    async with master.db.connection() as conn:
        view = await project_lists.get(conn, await projects.id_of_key(conn, key))
    return messages.ProjectResponse(project=project_message(view))


@routes.get("/api/v1/projects/{project_id}", "GetProject", allow=Allow.USER)
async def get_project(master: MasterDep, project_id: int) -> messages.ProjectResponse:
    """One project."""
    async with master.db.connection() as conn:
        view = await project_lists.get(conn, project_id)
    return messages.ProjectResponse(project=project_message(view))


@routes.post("/api/v1/workspaces/{workspace_id}/projects", "PostProject", allow=Allow.USER, creates=True)
async def post_project(
    master: MasterDep, caller: CallerDep, workspace_id: int, body: messages.PostProjectRequest
) -> messages.ProjectResponse:
    """Make a project in a workspace."""
    name = checked_name(body.name, "project")
    check_sizes(description=body.description)
    key = _key(body.key) if body.key else None
    async with master.db.transaction() as conn:
        (await workspaces.hold(conn, workspace_id)).check_takes_projects()
        new = await projects.create(conn, workspace_id, name, body.description, key, caller.person.id)
        view = await project_lists.get(conn, new)
    return messages.ProjectResponse(project=project_message(view))


@routes.patch("/api/v1/projects/{project_id}", "PatchProject", allow=Allow.USER)
async def patch_project(
    master: MasterDep, caller: CallerDep, project_id: int, body: messages.PatchProject
) -> messages.ProjectResponse:
    """Change what is given; the rest stays."""
    name = None if body.name is None else checked_name(body.name, "project")
    check_sizes(description=body.description)
    key = None if body.key is None else _key(body.key)
    async with master.db.transaction() as conn:
        project = await projects.lock(conn, project_id)
        project.check_editable()
        _check_may_change(caller, project)
        if body.expected is not None:
            check_expected(body.expected, project_message(await project_lists.get(conn, project_id)), project.called)
        await projects.edit(conn, project, name, body.description, key)
        view = await project_lists.get(conn, project_id)
    return messages.ProjectResponse(project=project_message(view))


@routes.delete("/api/v1/projects/{project_id}", "DeleteProject", allow=Allow.USER)
async def delete_project(master: MasterDep, caller: CallerDep, project_id: int) -> messages.DeleteResponse:
    """Delete it with its experiments; in the background where there are any."""
    async with master.db.transaction() as conn:
        project = await projects.lock(conn, project_id)
        if project.immutable:
            raise NotNow(f"{project.called} is immutable and cannot be deleted")
        _check_may_change(caller, project)
        completed = await workspace_removal.request(
            conn, Folder(project_id=project_id), project.called, caller.person.username
        )
    return messages.DeleteResponse(completed=completed)


@routes.post("/api/v1/projects/{project_id}/archive", "ArchiveProject", allow=Allow.USER)
async def archive(master: MasterDep, caller: CallerDep, project_id: int) -> Empty:
    """Nothing is filed in it any more, and it does not change."""
    return await _archive(master, caller, project_id, True)


@routes.post("/api/v1/projects/{project_id}/unarchive", "UnarchiveProject", allow=Allow.USER)
async def unarchive(master: MasterDep, caller: CallerDep, project_id: int) -> Empty:
    """As it was before."""
    return await _archive(master, caller, project_id, False)


@routes.post("/api/v1/projects/{project_id}/move", "MoveProject", allow=Allow.USER)
async def move(master: MasterDep, caller: CallerDep, project_id: int, body: messages.MoveProjectRequest) -> Empty:
    """Into another workspace, with all that is filed in it."""
    if not body.destination_workspace_id:
        raise InvalidInput("destinationWorkspaceId is missing: name the workspace that it is to move to")
    async with master.db.transaction() as conn:
        # Whoever deletes a workspace locks it before its projects: both ends first.
        here = (await projects.get(conn, project_id)).workspace_id
        for workspace_id in sorted({here, body.destination_workspace_id}):
            held = await workspaces.hold(conn, workspace_id)
            if workspace_id == body.destination_workspace_id != here:
                held.check_takes_projects()
        project = await projects.lock(conn, project_id)
        project.check_editable()
        _check_may_change(caller, project)
        await projects.move(conn, project, body.destination_workspace_id)
    return Empty()


@routes.post("/api/v1/projects/{project_id}/notes", "AddProjectNote", allow=Allow.USER, creates=True)
async def add_note(
    master: MasterDep, caller: CallerDep, project_id: int, body: messages.Note
) -> messages.ProjectNotesResponse:
    """Put a note behind the others."""
    async with master.db.transaction() as conn:
        await _notable(master, caller, await projects.lock(conn, project_id))
        stored = await projects.add_note(conn, project_id, _note(body))
        check_sizes(notes=stored)
    return _notes(stored)


@routes.put("/api/v1/projects/{project_id}/notes", "PutProjectNotes", allow=Allow.USER)
async def put_notes(
    master: MasterDep, caller: CallerDep, project_id: int, body: messages.PutProjectNotesRequest
) -> messages.ProjectNotesResponse:
    """Replace all notes; with ``expected`` only if these are still there, so that nobody's are lost to another's."""
    async with master.db.transaction() as conn:
        project = await projects.lock(conn, project_id)
        await _notable(master, caller, project)
        if body.expected is not None:
            present = (await project_lists.get(conn, project_id)).notes
            if present != [note.model_dump() for note in body.expected]:
                raise Overtaken(f"the notes of {project.called} were changed meanwhile: read them again, then save")
        stored = await projects.set_notes(conn, project_id, [_note(note) for note in body.notes])
        check_sizes(notes=stored)
    return _notes(stored)


async def _archive(master: Master, caller: Caller, project_id: int, archived: bool) -> Empty:
    async with master.db.transaction() as conn:
        project = await projects.lock(conn, project_id)
        if project.immutable:
            raise NotNow(f"{project.called} is immutable and cannot be archived")
        if "DELETING" in (project.state, project.workspace_state):
            raise NotNow(f"{project.called} is being deleted")
        if project.archived and not project.archived_itself:
            raise NotNow(f"{project.called} is archived with its workspace: unarchive that")
        _check_may_change(caller, project)
        await projects.set_archived(conn, project_id, archived)
    return Empty()


async def _notable(master: Master, caller: Caller, project: HeldProject) -> None:
    project.check_open()
    _check_may_change(caller, project)


def _check_may_change(caller: Caller, project: HeldProject) -> None:
    """Raises Forbidden unless the caller owns it or its workspace, or is an administrator."""
    if caller.person.id != project.workspace_owner_id:
        caller.may_change(project.owner_id, project.called)


def _key(key: str) -> str:
    if not _KEY.fullmatch(key):
        raise InvalidInput(f"the key {key!r} will not do: a key is one to five letters and digits, such as VIS or NLP2")
    return key.upper()


def _note(note: messages.Note) -> JsonObject:
    if not is_name(note.name):
        raise InvalidInput("the name of a note is one line without control characters")
    return {"name": note.name, "contents": note.contents}


def _notes(stored: list[JsonObject]) -> messages.ProjectNotesResponse:
    return messages.ProjectNotesResponse(notes=[messages.Note.model_validate(note) for note in stored])
