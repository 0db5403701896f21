"""Messages of what is submitted: experiments, commands, generic tasks, changes of the queue.

They stand here, below the routes, because checking them is what this folder is for.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

from tenax.wire.message import Document, Int64, Message


class File(Message):
    """One entry of a code directory; ``type`` is the letter of a tar archive as a number: 48 a file, 53 a directory."""

    path: str
    type: int = 48
    #: Base64.
    content: str = ""
    mtime: Int64 = 0
    mode: int = 0o644
    uid: int = 0
    gid: int = 0


#: Files and directories of a code directory: each costs more than its bytes.
MAX_FILES = 20_000


def _check_count(files: object) -> object:
    """Before any of them is read. Raises ValueError."""
    if isinstance(files, list) and len(files) > MAX_FILES:
        raise ValueError(
            f"the code directory has {len(files)} files and directories, and at most {MAX_FILES} are taken: leave "
            "out what the code does not need with a .detignore file, and keep data in shared storage"
        )
    return files


Files = Annotated[list[File], BeforeValidator(_check_count)]


class CreateExperimentRequest(Message):
    """An experiment to make."""

    #: YAML text, as typed.
    config: str = ""
    model_definition: Files = []
    activate: bool = False
    validate_only: bool = False
    project_id: int | None = None
    parent_id: int | None = None
    template: str | None = None
    unmanaged: bool = False


class LaunchCommandRequest(Message):
    """A command to run."""

    config: Document = {}
    template_name: str = ""
    files: Files = []
    #: Base64; kept beside the command's files as ``data`` in its run directory.
    data: str = ""
    workspace_id: int = 0
    #: Only say what it would be.
    preview: bool = False


class CreateGenericTaskRequest(Message):
    """A generic task to create."""

    #: YAML text, as typed; empty: that of the task that is forked.
    config: str = ""
    context_directory: Files = []
    project_id: int | None = None
    forked_from: str = ""
    parent_id: str = ""
    #: Take the code of the parent.
    inherit_context: bool = False
    no_pause: bool = False


class QueueControl(Message):
    """What changes for one job; what is absent stays."""

    job_id: str
    #: Its place: just before, or just behind, another job of its pool, with that one's priority.
    ahead_of: str | None = None
    behind_of: str | None = None
    resource_pool: str | None = None
    #: 1 (most urgent) to 99.
    priority: int | None = None
    weight: float | None = None
    #: Of its priority, weight and resource pool, what they are to be still; else nothing is changed.
    expected: Document | None = None
