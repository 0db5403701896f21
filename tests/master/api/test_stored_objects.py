"""Checkpoints in the operator's own bucket come through the master; those of another bucket do not."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenax.config.master import MasterSettings
from tenax.master.checkpoints.roots import sharing
from tenax.storage.manifest import StoredFiles, contents_of
from tenax.storage.registry import from_config
from tenax.wire.task_names import SHARED_FILES_IN
from tests.kits.api import Api, settings_in
from tests.kits.master.attempts import Running, running
from tests.kits.master.checkpoints import UUID, report
from tests.kits.object_places import EMULATOR, PLACES, PREFIX, ObjectPlace, new_place

FILES = {"weights/": b"", "weights/w.bin": b"data", "large.bin": bytes(range(256)) * 12_000, "empty": b""}


@pytest.fixture(scope="module", params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[ObjectPlace]:
    """The operator's bucket, with a checkpoint."""
    with new_place(request.param) as made, pytest.MonkeyPatch.context() as patch:
        if not made.setting:
            patch.setenv(EMULATOR, made.server)
        for path, data in FILES.items():
            made.objects.add(f"{PREFIX}/{UUID}/{path}", data)
        yield made


@pytest.fixture
def master_settings(tmp_path: Path, place: ObjectPlace) -> MasterSettings:
    return settings_in(tmp_path).model_copy(update={"checkpoint_storage": place.at()})


async def named(run: Running, place: dict[str, Any]) -> int:
    """The number of a storage that a task says it uses."""
    reply = await run.task.post("/api/v1/runs/start", {"runId": run.trial, "checkpointStorage": place})
    return int(reply.json()["storageId"])


async def test_files_of_the_operators_bucket_come_through_the_master(api: Api, place: ObjectPlace) -> None:
    """In each form of an archive, whoever asks; what is not there is said before anything is sent."""
    run = await running(api)
    await report(run, storageId=await named(run, place.plain()))
    for accept, mode in (("application/gzip", "r:gz"), ("application/x-tar", "r:")):
        reply = await api.user.ask("GET", f"/checkpoints/{UUID}", headers={"Accept": accept})
        assert reply.status_code == 200, reply.text
        with tarfile.open(fileobj=io.BytesIO(reply.content), mode=mode) as tar:  # type: ignore[call-overload]
            there = {member.name: member for member in tar}
            assert set(there) == {path.rstrip("/") for path in FILES}
            assert there["weights"].isdir()
            for path, data in FILES.items():
                if not path.endswith("/"):
                    assert tar.extractfile(path).read() == data
    reply = await api.user.ask("GET", f"/checkpoints/{UUID}", headers={"Accept": "application/zip"})
    with zipfile.ZipFile(io.BytesIO(reply.content)) as zipped:
        assert zipped.testzip() is None
        assert zipped.read("large.bin") == FILES["large.bin"]
    other = f"{UUID[:-1]}7"
    await report(run, other, steps=11, storageId=await named(run, place.plain()))
    assert (await api.user.get(f"/checkpoints/{other}")).status_code == 404


async def test_files_that_are_stored_once_come_through_the_master(api: Api, place: ObjectPlace, tmp_path: Path) -> None:
    """With those that are the checkpoint's own, as one archive; and no other name."""
    storage = place.opened()
    storage.share_unchanged()
    (tmp_path / "model.bin").write_bytes(b"weights" * 20_000)
    (tmp_path / "small").write_bytes(b"1")
    uuids = [f"{UUID[:-1]}{number}" for number in (8, 9)]
    storage.stage(uuids[0], str(tmp_path), ["model.bin", "small"])
    storage.commit(uuids[0])
    contents = contents_of(str(tmp_path), ["model.bin"])
    earlier = StoredFiles(uuids[0], contents, None)
    assert storage.reuse(uuids[1], str(tmp_path), earlier, earlier.shared(contents)) == {"model.bin"}
    storage.stage(uuids[1], str(tmp_path), ["small"])
    storage.commit(uuids[1])
    storage.delete(uuids[0])
    run = await running(api)
    await report(run, uuids[1], steps=31, storageId=await named(run, place.plain()))
    reply = await api.user.ask("GET", f"/checkpoints/{uuids[1]}", headers={"Accept": "application/x-tar"})
    assert reply.status_code == 200, reply.text
    with tarfile.open(fileobj=io.BytesIO(reply.content)) as tar:
        files = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    assert files == {"model.bin": b"weights" * 20_000, "small": b"1"}


def test_tasks_are_told_where_files_are_stored_once(master_settings: MasterSettings, tmp_path: Path) -> None:
    """In the operator's own bucket, if he has chosen it; elsewhere, and in a file system, nobody chooses."""
    assert sharing(master_settings) == {}
    [(name, told)] = sharing(master_settings.model_copy(update={"share_checkpoint_files": True})).items()
    section = master_settings.checkpoint_storage
    assert section is not None
    assert (name, json.loads(told)) == (SHARED_FILES_IN, from_config(section).identity())
    assert "secret" not in told
    directory = {"share_checkpoint_files": True, "checkpoint_storage": {"type": "shared_fs", "host_path": "/x"}}
    assert sharing(master_settings.model_copy(update=directory)) == {}


async def test_the_masters_credentials_are_for_its_own_bucket_alone(api: Api, place: ObjectPlace) -> None:
    """Whatever a task names, and whoever asks: the refusal says what to do; users see none of the secret."""
    run = await running(api)
    elsewhere = {
        "s3": [{"bucket": "elsewhere"}, {"prefix": "other"}, {"endpoint_url": "http://a"}],
        "gcs": [{"bucket": "elsewhere"}, {"prefix": "other"}],
        "azure": [{"container": "elsewhere"}, {"account_url": "http://a"}],
    }
    plain = place.plain()
    for number, change in enumerate(elsewhere[plain["type"]]):
        other = {**plain, **change}
        uuid = f"{UUID[:-1]}{number + 3}"
        await report(run, uuid, steps=20 + number, storageId=await named(run, other))
        refused = await api.admin.get(f"/checkpoints/{uuid}")
        assert refused.status_code == 400
        assert "touches none but its own checkpoint_storage" in refused.json()["message"]
    for path in (f"/api/v1/checkpoints/{UUID[:-1]}3", "/api/v1/experiments/1", "/api/v1/master/config"):
        shown = (await api.user.get(path)).text
        assert not [secret for secret in place.secrets if secret in shown]
