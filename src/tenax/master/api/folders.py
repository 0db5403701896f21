"""Workspaces and projects as messages, and what their routes share."""

from __future__ import annotations

from typing import cast

from tenax.config.workspace import shown_storage
from tenax.errors import InvalidInput
from tenax.master.store.listings_projects import ProjectView
from tenax.master.store.workspaces import WorkspaceView
from tenax.wire.api.message import Document
from tenax.wire.api.projects import Note, Project
from tenax.wire.api.users import AgentUserGroup
from tenax.wire.api.workspaces import Workspace, WorkspaceState

#: Letters of a name; more are no name.
NAME_LIMIT = 80

_STATES = {
    "ACTIVE": WorkspaceState.UNSPECIFIED,
    "DELETING": WorkspaceState.DELETING,
    "DELETE_FAILED": WorkspaceState.DELETE_FAILED,
}


def checked_name(name: str, what: str) -> str:
    """``name`` if it may name a workspace or a project. Raises InvalidInput."""
    if not name.strip():
        raise InvalidInput(f"the name of a {what} cannot be blank: choose one")
    if name != name.strip():
        raise InvalidInput(f"the name {name!r} begins or ends with a space: leave it out")
    if len(name) > NAME_LIMIT:
        raise InvalidInput(f"a name of a {what} has at most {NAME_LIMIT} letters, and this one has {len(name)}")
    return name


def workspace_message(view: WorkspaceView) -> Workspace:
    """A workspace as its caller sees it; secrets of its storage are stars for everyone."""
    group = AgentUserGroup(
        agent_uid=view.agent_uid,
        agent_gid=view.agent_gid,
        agent_user=view.agent_user,
        agent_group=view.agent_group,
    )
    return Workspace(
        id=view.id,
        name=view.name,
        archived=view.archived,
        username=view.username,
        immutable=view.immutable,
        num_projects=view.projects,
        num_experiments=view.experiments,
        pinned=view.pinned_at is not None,
        pinned_at=view.pinned_at,
        user_id=view.owner_id or 0,
        state=_STATES[view.state],
        error_message=view.error_message,
        agent_user_group=group if group != AgentUserGroup() else None,
        checkpoint_storage_config=cast("Document | None", shown_storage(view.checkpoint_storage)),
        default_compute_pool=view.default_compute_pool,
        default_aux_pool=view.default_aux_pool,
    )


def project_message(view: ProjectView) -> Project:
    """A project as anyone sees it."""
    return Project(
        id=view.id,
        name=view.name,
        description=view.description,
        key=view.key,
        notes=[Note.model_validate(note) for note in view.notes],
        workspace_id=view.workspace_id,
        workspace_name=view.workspace_name,
        user_id=view.owner_id or 0,
        username=view.username,
        immutable=view.immutable,
        archived=view.archived,
        state=_STATES[view.state],
        error_message=view.error_message,
        last_experiment_started_at=view.last_at,
        num_experiments=view.experiments,
        num_active_experiments=view.active,
        num_runs=view.runs,
    )
