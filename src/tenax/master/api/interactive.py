"""Notebooks, shells and TensorBoards: not offered yet, which each answer says; the lists say that there are none."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from tenax.errors import Unsupported
from tenax.master.api.deps import MasterDep
from tenax.master.api.paging import WindowDep
from tenax.master.api.routing import Allow, Routes
from tenax.wire.api.commands import CommandSortBy
from tenax.wire.api.interactive import NotebooksResponse, ShellsResponse, TensorboardsResponse
from tenax.wire.api.message import Empty

routes = Routes("Interactive")


@routes.get("/api/v1/notebooks", "GetNotebooks", allow=Allow.USER)
async def get_notebooks(
    master: MasterDep,
    window: WindowDep,
    sort_by: Annotated[CommandSortBy, Query()] = CommandSortBy.UNSPECIFIED,
) -> NotebooksResponse:
    """None, as none can be started."""
    return NotebooksResponse(notebooks=[], pagination=window.of(0)[1])


@routes.get("/api/v1/shells", "GetShells", allow=Allow.USER)
async def get_shells(
    master: MasterDep,
    window: WindowDep,
    sort_by: Annotated[CommandSortBy, Query()] = CommandSortBy.UNSPECIFIED,
) -> ShellsResponse:
    """None, as none can be started."""
    return ShellsResponse(shells=[], pagination=window.of(0)[1])


@routes.get("/api/v1/tensorboards", "GetTensorboards", allow=Allow.USER)
async def get_tensorboards(
    master: MasterDep,
    window: WindowDep,
    sort_by: Annotated[CommandSortBy, Query()] = CommandSortBy.UNSPECIFIED,
) -> TensorboardsResponse:
    """None, as none can be started."""
    return TensorboardsResponse(tensorboards=[], pagination=window.of(0)[1])


#: Noun in paths -> (operation's noun, what it is called, what to do instead).
_NOUNS = {
    "notebooks": ("Notebook", "notebooks", "run a script as a command (`cmd run`), or a notebook on your own machine"),
    "shells": ("Shell", "shells", "run a program as a command (`cmd run`)"),
    "tensorboards": ("Tensorboard", "TensorBoards", "point one of your own at the checkpoint storage"),
}
_VERBS = (
    ("POST", "", "Launch{}"),
    ("GET", "/{{{}_id}}", "Get{}"),
    ("POST", "/{{{}_id}}/kill", "Kill{}"),
    ("POST", "/{{{}_id}}/set_priority", "Set{}Priority"),
)


def _declare(path: str, method: str, operation: str, message: str) -> None:
    async def refuse() -> Empty:
        raise Unsupported(message)

    refuse.__doc__ = f"Refused: {message}."
    declare = {"GET": routes.get, "POST": routes.post, "PUT": routes.put}[method]
    declare(path, operation, allow=Allow.USER)(refuse)


#: What a notebook tells of itself; there is none.
_declare("/api/v1/notebooks/{notebook_id}/report_idle", "PUT", "IdleNotebook", "notebooks are not offered yet")

for _noun, (_name, _words, _instead) in _NOUNS.items():
    for _method, _rest, _operation in _VERBS:
        _declare(
            f"/api/v1/{_noun}" + _rest.format(_name.lower()),
            _method,
            _operation.format(_name),
            f"{_words} are not offered yet: {_instead}",
        )
