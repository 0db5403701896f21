"""Workspaces: what teams keep their projects and models in, with defaults for what runs there."""

from __future__ import annotations

from enum import Enum

from tenax.wire.api.groups import GroupDetails
from tenax.wire.api.message import Document, Message, Pagination, Timestamp
from tenax.wire.api.users import AgentUserGroup, User


class WorkspaceState(str, Enum):
    """Whether it is on its way out; projects have the same."""

    UNSPECIFIED = "WORKSPACE_STATE_UNSPECIFIED"
    DELETING = "WORKSPACE_STATE_DELETING"
    DELETE_FAILED = "WORKSPACE_STATE_DELETE_FAILED"
    DELETED = "WORKSPACE_STATE_DELETED"


class WorkspaceSortBy(str, Enum):
    """What a list of workspaces is ordered by."""

    UNSPECIFIED = "SORT_BY_UNSPECIFIED"
    ID = "SORT_BY_ID"
    NAME = "SORT_BY_NAME"


class Workspace(Message):
    """A workspace as its caller sees it."""

    id: int
    name: str
    archived: bool
    username: str
    immutable: bool
    num_projects: int
    num_experiments: int
    #: By the caller.
    pinned: bool
    pinned_at: Timestamp | None = None
    user_id: int
    state: WorkspaceState
    #: Why it could not be deleted.
    error_message: str = ""
    agent_user_group: AgentUserGroup | None = None
    #: Its secrets are stars.
    checkpoint_storage_config: Document | None = None
    default_compute_pool: str = ""
    default_aux_pool: str = ""


class WorkspaceSettings(Message):
    """What may be given when one is made, and changed later; absent: as it is."""

    name: str | None = None
    #: All of it: a name or number that is absent is not set any more.
    agent_user_group: AgentUserGroup | None = None
    #: ``{}``: none.
    checkpoint_storage_config: Document | None = None
    default_compute_pool: str | None = None
    default_aux_pool: str | None = None
    # The same two under the names of a later release.
    default_compute_resource_pool: str | None = None
    default_aux_resource_pool: str | None = None
    #: Of Kubernetes.
    cluster_namespace_meta: Document | None = None
    cluster_quota_pairs: Document | None = None


class GetWorkspaceResponse(Message):
    """One workspace."""

    workspace: Workspace


class GetWorkspacesResponse(Message):
    """A page of workspaces."""

    workspaces: list[Workspace]
    pagination: Pagination


class ChangedWorkspaceResponse(Message):
    """A workspace that was made or changed; clients iterate over the bindings, which only Kubernetes has."""

    workspace: Workspace
    namespace_bindings: Document = {}


class DeleteResponse(Message):
    """Whether it is gone, or going."""

    completed: bool


class GetWorkspaceMembersResponse(Message):
    """Who has a role in a workspace. Roles come with role-based access, without which everyone may use it."""

    groups: list[GroupDetails] = []
    users_assigned_directly: list[User] = []
    assignments: list[Document] = []
