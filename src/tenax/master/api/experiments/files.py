"""The code of experiments: whole, as a tree, file by file.

Unpacking happens in a thread; what is asked for by path is looked up in the archive, never on a disk.
"""

from __future__ import annotations

import base64
from typing import Annotated
from urllib.parse import quote

import anyio.to_thread
from fastapi import Query, Response

from tenax.errors import NotFound
from tenax.master.access.authorization import Allow
from tenax.master.api.experiments import messages
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.context import Master
from tenax.master.store.tasks import contexts
from tenax.master.submission.code import CodeEntry, read_file, tree_of

routes = Routes("Experiments")


@routes.get("/api/v1/experiments/{experiment_id}/model_def", "GetModelDef", allow=Allow.USER)
async def get_model_def(master: MasterDep, experiment_id: int) -> messages.GetModelDefResponse:
    """The code that came with it; empty for none."""
    encoded = await anyio.to_thread.run_sync(base64.b64encode, await _archive(master, experiment_id))
    return messages.GetModelDefResponse(b64_tgz=encoded.decode())


@routes.get("/api/v1/experiments/{experiment_id}/file_tree", "GetModelDefTree", allow=Allow.USER)
async def get_tree(master: MasterDep, experiment_id: int) -> messages.GetModelDefTreeResponse:
    """Its files and directories, by name, directories first."""
    entries = await anyio.to_thread.run_sync(tree_of, await _archive(master, experiment_id))
    return messages.GetModelDefTreeResponse(files=[_node(entry) for entry in entries])


@routes.post("/api/v1/experiments/{experiment_id}/file", "GetModelDefFile", allow=Allow.USER)
async def get_file(
    master: MasterDep, experiment_id: int, body: messages.GetModelDefFileRequest
) -> messages.GetModelDefFileResponse:
    """One file, in base64."""
    content = await anyio.to_thread.run_sync(read_file, await _archive(master, experiment_id), body.path)
    return messages.GetModelDefFileResponse(file=base64.b64encode(content).decode())


@routes.get("/experiments/{experiment_id}/model_def", "DownloadModelDef", allow=Allow.USER, response_class=Response)
async def download_model_def(master: MasterDep, experiment_id: int) -> Response:
    """The code that came with it as a file: a gzip-compressed tar archive."""
    archive = await _archive(master, experiment_id)
    if not archive:
        raise NotFound(f"experiment {experiment_id} came without code")
    return _download(archive, f"exp{experiment_id}_model_def.tar.gz", "application/x-gtar")


@routes.get(
    "/experiments/{experiment_id}/file/download", "DownloadModelDefFile", allow=Allow.USER, response_class=Response
)
async def download_file(master: MasterDep, experiment_id: int, path: Annotated[str, Query()] = "") -> Response:
    """One file as it is."""
    content = await anyio.to_thread.run_sync(read_file, await _archive(master, experiment_id), path)
    return _download(content, path.rpartition("/")[2], "application/octet-stream")


async def _archive(master: Master, experiment_id: int) -> bytes:
    async with master.db.connection() as conn:
        hashed = await contexts.of_experiment(conn, experiment_id)
        return b"" if hashed is None else await contexts.get(conn, hashed)


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


def _download(content: bytes, name: str, media_type: str) -> Response:
    # A browser saves it, and never shows it as a page of ours.
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}
    return Response(content, media_type=media_type, headers=headers)
