"""The code of experiments, as a tree and file by file."""

from __future__ import annotations

import base64
import io
import tarfile

from tests.kits.api import Api
from tests.kits.master.experiments import create, file


async def test_the_tree_has_every_file_once(api: Api) -> None:
    """Directories first, also those that were not sent themselves; sizes and kinds as they are."""
    files = [file("b.py", "x = 1\n"), file("a/c/deep.json", "{}"), file("a/n.txt", "n"), file("late", mtime=str(2**62))]
    experiment = (await create(api, modelDefinition=files))["experiment"]["id"]
    tree = (await api.user.get(f"/api/v1/experiments/{experiment}/file_tree")).json()["files"]
    assert [(node["path"], node["isDir"], node["contentLength"]) for node in tree] == [
        ("a", True, 0), ("b.py", False, 6), ("late", False, 15),
    ]  # fmt: skip
    inside = tree[0]["files"]
    assert [(node["path"], node["name"], node["isDir"]) for node in inside] == [
        ("a/c", "c", True), ("a/n.txt", "n.txt", False),
    ]  # fmt: skip
    assert inside[0]["files"][0]["contentType"] == "application/json"
    assert tree[1]["modifiedTime"].startswith("2026-11")


async def test_a_file_is_given_as_it_was_sent(api: Api) -> None:
    """By its path, in JSON and as a download; nothing else can be reached."""
    experiment = (await create(api, modelDefinition=[file("sub/ü.py", "print('ü')\n")]))["experiment"]["id"]
    reply = await api.user.post(
        f"/api/v1/experiments/{experiment}/file", {"experimentId": experiment, "path": "sub/ü.py"}
    )
    assert base64.b64decode(reply.json()["file"]).decode() == "print('ü')\n"
    raw = await api.user.ask("GET", f"/experiments/{experiment}/file/download", params={"path": "sub/ü.py"})
    assert raw.content.decode() == "print('ü')\n"
    assert raw.headers["content-disposition"] == "attachment; filename*=UTF-8''%C3%BC.py"
    for wrong in ("", "sub", "/etc/passwd", "../x", "sub/../sub/ü.py"):
        reply = await api.user.post(f"/api/v1/experiments/{experiment}/file", {"path": wrong})
        assert reply.status_code == 404, wrong
    assert (await api.user.ask("GET", "/experiments/77/file/download", params={"path": "x"})).status_code == 404


async def test_the_code_can_be_downloaded_whole(api: Api) -> None:
    """An archive with all files; 404 where there is no code."""
    experiment = (await create(api, modelDefinition=[file("train.py")]))["experiment"]["id"]
    raw = await api.user.get(f"/experiments/{experiment}/model_def")
    with tarfile.open(fileobj=io.BytesIO(raw.content)) as tar:
        assert tar.getnames() == ["train.py"]
    empty = (await create(api))["experiment"]["id"]
    assert (await api.user.get(f"/experiments/{empty}/model_def")).status_code == 404
    assert (await api.user.get(f"/api/v1/experiments/{empty}/file_tree")).json() == {"files": []}
    assert (await api.user.get(f"/api/v1/experiments/{empty}/model_def")).json() == {"b64Tgz": ""}


async def test_too_deep_a_path_is_refused(api: Api) -> None:
    """Nobody could unpack it."""
    body = {"config": "entrypoint: x", "modelDefinition": [file("a/" * 200 + "x")]}
    reply = await api.user.post("/api/v1/experiments", body)
    assert reply.status_code == 400
    assert "deep" in reply.json()["error"]["error"]
