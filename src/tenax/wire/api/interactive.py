"""Notebooks, shells and TensorBoards: lists of them, which are empty as long as none can be started."""

from __future__ import annotations

from tenax.wire.api.message import Document, Message, Pagination


class NotebooksResponse(Message):
    """A page of notebooks."""

    notebooks: list[Document]
    pagination: Pagination


class ShellsResponse(Message):
    """A page of shells."""

    shells: list[Document]
    pagination: Pagination


class TensorboardsResponse(Message):
    """A page of TensorBoards."""

    tensorboards: list[Document]
    pagination: Pagination
