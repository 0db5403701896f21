"""Projects: where experiments are filed, in one workspace each."""

from __future__ import annotations

from enum import Enum

from tenax.wire.api.message import Message, Pagination, Timestamp
from tenax.wire.api.workspaces import WorkspaceState


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

    name: str = ""
    description: str = ""
    key: str | None = None


class PatchProject(Message):
    """What to change; what is absent stays."""

    name: str | None = None
    description: str | None = None
    key: str | None = None


class ProjectResponse(Message):
    """One project."""

    project: Project


class GetProjectsResponse(Message):
    """A page of projects."""

    projects: list[Project]
    pagination: Pagination


class GetProjectsByUserActivityResponse(Message):
    """The projects that the caller looked at last, the newest first."""

    projects: list[Project]


class PutProjectNotesRequest(Message):
    """All notes of a project."""

    notes: list[Note] = []


class ProjectNotesResponse(Message):
    """All notes of a project."""

    notes: list[Note]


class MoveProjectRequest(Message):
    """Where a project goes."""

    destination_workspace_id: int = 0
