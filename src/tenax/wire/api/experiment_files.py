"""The code of experiments, file by file."""

from __future__ import annotations

from tenax.wire.api.message import Message, Timestamp


class FileNode(Message):
    """A file, or a directory with what is in it."""

    path: str
    name: str
    modified_time: Timestamp | None = None
    #: Bytes.
    content_length: int = 0
    is_dir: bool = False
    content_type: str = ""
    files: list[FileNode] = []


class GetModelDefTreeResponse(Message):
    """The code of an experiment."""

    files: list[FileNode]


class GetModelDefFileRequest(Message):
    """Which file."""

    experiment_id: int = 0
    #: Relative to the code's directory.
    path: str = ""


class GetModelDefFileResponse(Message):
    """A file in base64."""

    file: str
