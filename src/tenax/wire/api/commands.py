"""Commands: a program run once, with slots or without."""

from __future__ import annotations

from enum import Enum

from tenax.wire.api.experiments import File
from tenax.wire.api.machines import Container
from tenax.wire.api.message import Document, Message, Pagination, Timestamp
from tenax.wire.api.tasks import TaskState


class CommandSortBy(str, Enum):
    """What a list of commands, notebooks, shells or TensorBoards is ordered by."""

    UNSPECIFIED = "SORT_BY_UNSPECIFIED"
    ID = "SORT_BY_ID"
    DESCRIPTION = "SORT_BY_DESCRIPTION"
    START_TIME = "SORT_BY_START_TIME"
    WORKSPACE_ID = "SORT_BY_WORKSPACE_ID"


class Command(Message):
    """A command as it is now."""

    id: str
    description: str
    state: TaskState
    start_time: Timestamp
    container: Container | None = None
    display_name: str = ""
    user_id: int = 0
    username: str
    resource_pool: str
    #: In words, once it has ended.
    exit_status: str = ""
    job_id: str
    workspace_id: int
    end_time: Timestamp | None = None
    #: Of the program; None while it runs, and where it did not end by itself.
    exit_code: int | None = None
    priority: int | None = None
    #: In words, while it waits.
    reason: str = ""


class LaunchCommandRequest(Message):
    """A command to run."""

    config: Document = {}
    template_name: str = ""
    files: list[File] = []
    #: Base64; kept beside the command's files as ``data`` in its run directory.
    data: str = ""
    workspace_id: int = 0
    #: Only say what it would be.
    preview: bool = False


class LaunchCommandResponse(Message):
    """What was launched."""

    command: Command
    config: Document
    warnings: list[str] = []
    #: Old spellings that were translated, and why it will wait.
    notices: list[str] = []


class GetCommandsResponse(Message):
    """Commands that live or have ended within a day."""

    commands: list[Command]
    pagination: Pagination


class GetCommandResponse(Message):
    """One command."""

    command: Command
    config: Document


class KillCommandResponse(Message):
    """As it is now."""

    command: Command


class SetCommandPriorityRequest(Message):
    """1 (most urgent) to 99."""

    priority: int = 0


class SetCommandPriorityResponse(Message):
    """As it is now."""

    command: Command
