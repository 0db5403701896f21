"""Messages about workspaces, with the defaults for what runs there, and about the projects in them."""

from __future__ import annotations

from enum import Enum

from tenax.master.api.users.messages import AgentUserGroup, GroupDetails, User
from tenax.wire.message import Document, Message, Name, Pagination, Timestamp


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

    name: Name | None = None
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


class PatchWorkspace(WorkspaceSettings):
    """What to change; what is absent stays."""

    #: What of it is to be there still, as it was shown; else nothing is changed. None: whatever is there.
    expected: Document | None = None


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


class ProjectSortBy(str, Enum):
    """What a list of projects is ordered by."""

    UNSPECIFIED = "SORT_BY_UNSPECIFIED"
    CREATION_TIME = "SORT_BY_CREATION_TIME"
    LAST_EXPERIMENT_START_TIME = "SORT_BY_LAST_EXPERIMENT_START_TIME"
    NAME = "SORT_BY_NAME"
    DESCRIPTION = "SORT_BY_DESCRIPTION"
    ID = "SORT_BY_ID"


class Note(Message):
    """A page of a project's notes; names need not be unique."""

    name: str = ""
    contents: str = ""


class Project(Message):
    """A project as it is now."""

    id: int
    name: str
    description: str = ""
    #: Begins the short names of what is in it.
    key: str
    notes: list[Note] = []
    workspace_id: int
    workspace_name: str
    user_id: int
    username: str
    immutable: bool
    #: It, or its workspace.
    archived: bool
    state: WorkspaceState
    #: Why it could not be deleted.
    error_message: str = ""
    last_experiment_started_at: Timestamp | None = None
    num_experiments: int
    num_active_experiments: int
    #: Trials.
    num_runs: int


class PostProjectRequest(Message):
    """A project to make; without a key one is made from the name."""

    name: Name = ""
    description: str = ""
    key: Name | None = None


class PatchProject(Message):
    """What to change; what is absent stays."""

    name: Name | None = None
    description: str | None = None
    key: Name | None = None
    #: What of it is to be there still, as it was shown; else nothing is changed. None: whatever is there.
    expected: Document | None = None


class ProjectResponse(Message):
    """One project."""

    project: Project


class GetProjectsResponse(Message):
    """A page of projects."""

    projects: list[Project]
    pagination: Pagination


class GetProjectsByUserActivityResponse(Message):
    """The projects that the caller viewed last, the newest first."""

    projects: list[Project]


class PutProjectNotesRequest(Message):
    """All notes of a project."""

    notes: list[Note] = []
    #: What they replace: where others are there by now, nothing is changed. None: whatever is there.
    expected: list[Note] | None = None


class ProjectNotesResponse(Message):
    """All notes of a project."""

    notes: list[Note]


class MoveProjectRequest(Message):
    """Where a project goes."""

    destination_workspace_id: int = 0
