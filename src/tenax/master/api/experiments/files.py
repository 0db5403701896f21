"""The code of experiments: whole, as a tree, file by file.

Unpacking happens in a thread; what is asked for by path is a name in the archive, never one of a disk.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import IO, Annotated
from urllib.parse import quote

from fastapi import Query, Response
from fastapi.responses import StreamingResponse

from tenax.errors import NotFound
from tenax.master.access.authorization import Allow
from tenax.master.api.experiments import messages
from tenax.master.api.http.archives import archive_document, archive_size, document, inside, pieces, read
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.paging import JSON, as_json
from tenax.master.api.http.routing import Routes
from tenax.master.context import Master
from tenax.master.store.tasks import contexts
from tenax.master.submission.code import CodeEntry, extract_file, tree_of

routes = Routes("Experiments")


@routes.get(
    "/api/v1/experiments/{experiment_id}/model_def",
    "GetModelDef",
    allow=Allow.USER,
    response_model=messages.GetModelDefResponse,
)
async def get_model_def(master: MasterDep, experiment_id: int) -> Response:
    """The code that came with it; empty for none."""
    return await archive_document(master, await _hash(master, experiment_id), "b64Tgz")


@routes.get(
    "/api/v1/experiments/{experiment_id}/file_tree",
    "GetModelDefTree",
    allow=Allow.USER,
    response_model=messages.GetModelDefTreeResponse,
)
async def get_tree(master: MasterDep, experiment_id: int) -> Response:
    """Its files and directories, by name, directories first."""
    return Response(await inside(master, await _hash(master, experiment_id), _tree), media_type=JSON)


@routes.post(
    "/api/v1/experiments/{experiment_id}/file",
    "GetModelDefFile",
    allow=Allow.USER,
    response_model=messages.GetModelDefFileResponse,
)
async def get_file(master: MasterDep, experiment_id: int, body: messages.GetModelDefFileRequest) -> Response:
    """One file, in base64."""
    file, size = await _file(master, experiment_id, body.path)
    return document("file", read(file), size)


@routes.get("/experiments/{experiment_id}/model_def", "DownloadModelDef", allow=Allow.USER, response_class=Response)
async def download_model_def(master: MasterDep, experiment_id: int) -> Response:
    """The code that came with it as a file: a gzip-compressed tar archive."""
    hashed = await _hash(master, experiment_id)
    if hashed is None:
        raise NotFound(f"code not found: experiment {experiment_id} came without any")
    size = await archive_size(master, hashed)
    name = f"exp{experiment_id}_model_def.tar.gz"
    return _download(pieces(master, hashed, size), size, name, "application/x-gtar")


@routes.get(
    "/experiments/{experiment_id}/file/download", "DownloadModelDefFile", allow=Allow.USER, response_class=Response
)
async def download_file(master: MasterDep, experiment_id: int, path: Annotated[str, Query()] = "") -> Response:
    """One file as it is."""
    file, size = await _file(master, experiment_id, path)
    return _download(read(file), size, path.rpartition("/")[2], "application/octet-stream")


async def _hash(master: Master, experiment_id: int) -> str | None:
    async with master.db.connection() as conn:
        return await contexts.of_experiment(conn, experiment_id)


async def _file(master: Master, experiment_id: int, path: str) -> tuple[IO[bytes], int]:
    """A copy of one file of its code, and its size. Raises NotFound."""
    hashed = await _hash(master, experiment_id)
    return await inside(master, hashed, lambda archive: extract_file(archive, path, master.settings.uploads))


def _tree(archive: IO[bytes]) -> bytes:
    return as_json(messages.GetModelDefTreeResponse(files=[_node(entry) for entry in tree_of(archive)]))


def _node(entry: CodeEntry) -> messages.FileNode:
    return messages.FileNode(
        path=entry.path,
        name=entry.path.rpartition("/")[2],
        modified_time=entry.modified,
        content_length=entry.size,
        is_dir=entry.is_directory,
        content_type=entry.content_type,
        files=[_node(inner) for inner in entry.entries],
    )


def _download(parts: AsyncIterator[bytes], size: int, name: str, media_type: str) -> Response:
    # A browser saves it, and never shows it as a page of ours.
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "Content-Length": str(size),
    }
    return StreamingResponse(parts, media_type=media_type, headers=headers)
