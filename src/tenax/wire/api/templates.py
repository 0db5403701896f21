"""Templates: partial configurations that lie below what a user submits."""

from __future__ import annotations

from enum import Enum

from tenax.wire.api.message import Document, Message, Pagination, Timestamp


class TemplateSortBy(str, Enum):
    """What a list of templates is ordered by."""

    UNSPECIFIED = "SORT_BY_UNSPECIFIED"
    NAME = "SORT_BY_NAME"


class Template(Message):
    """A template as it is now."""

    name: str
    config: Document
    workspace_id: int
    workspace_name: str = ""
    user_id: int | None = None
    username: str = ""
    created_at: Timestamp | None = None
    modified_at: Timestamp | None = None


class PostTemplateRequest(Message):
    """A template to make; the name stands in the path."""

    config: Document = {}
    #: 0: the default one.
    workspace_id: int = 0


class PatchTemplateNameRequest(Message):
    """Another name for a template."""

    old_name: str
    new_name: str


class TemplateResponse(Message):
    """One template."""

    template: Template


class GetTemplatesResponse(Message):
    """A page of templates."""

    templates: list[Template]
    pagination: Pagination
