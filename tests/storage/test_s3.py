"""Checkpoints in a bucket of S3: the kits against a server of the protocol, and what is special about it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenax.errors import InvalidInput
from tenax.storage import registry
from tenax.storage.objects import ObjectStorage
from tenax.storage.port import Storage, StorageFailed, StorageUnusable
from tests.kits.object_kit import KeyedKit, ObjectKit, broken, printed_without
from tests.kits.object_places import PREFIX, S3_SECRET, ObjectPlace, s3_client, s3_place
from tests.kits.object_server import REFUSED, Between, s3_server
from tests.kits.storage_kit import STORAGE_ID, TWO, source

__all__ = ["broken", "source"]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3_server() as url:
        yield url


@pytest.fixture
def place(server: str) -> ObjectPlace:
    return s3_place(server)


class TestS3(KeyedKit, ObjectKit):
    def test_identity(self, place: ObjectPlace) -> None:
        """It has no secrets."""
        assert place.opened().identity() == place.plain()

    def test_parts(self, storage: Storage, tmp_path: Path, place: ObjectPlace) -> None:
        """A large file goes in several; those of one that broke off are thrown away."""
        client, bucket = s3_client(place.server), place.section["bucket"]
        (tmp_path / "model.bin").write_bytes(bytes(40 << 20))
        storage.stage(STORAGE_ID, str(tmp_path), ["model.bin"])
        head = client.head_object(Bucket=bucket, Key=f"{PREFIX}/{STORAGE_ID}/model.bin")
        assert head["ETag"].strip('"').endswith("-3")
        client.create_multipart_upload(Bucket=bucket, Key=f"{PREFIX}/{STORAGE_ID}/half.bin")
        storage.abandon(STORAGE_ID)
        assert "Uploads" not in client.list_multipart_uploads(Bucket=bucket)

    def test_names_that_lead_out(self, storage: Storage, place: ObjectPlace, tmp_path: Path) -> None:
        """Whoever may write into the bucket chooses names: they are refused, and can be deleted. Libraries of the other
        protocols send no such name."""
        place.objects.add(f"{PREFIX}/{TWO}/a/../../../../escaped", b"x")
        place.objects.add(f"{PREFIX}/{TWO}/fine", b"x")
        for attempt in (
            lambda: storage.list_files(TWO),
            lambda: storage.download(TWO, str(tmp_path / "back")),
        ):
            with pytest.raises(StorageFailed, match="not a path inside a checkpoint"):
                attempt()
        assert not list(tmp_path.rglob("*"))
        assert storage.delete(TWO) == {}
        assert place.objects.names() == []

    @pytest.mark.parametrize("names", [("a", "a/b"), ("./c",), ("d//e",), ("f" * 256,)])
    def test_names_that_no_file_has(
        self, storage: Storage, place: ObjectPlace, tmp_path: Path, names: tuple[str, ...]
    ) -> None:
        """A store has them, a file system has not: nothing is fetched; the others can be."""
        for name in (*names, "fine"):
            place.objects.add(f"{PREFIX}/{TWO}/{name}", b"x")
        with pytest.raises(StorageFailed, match="cannot be a file here: delete it there"):
            storage.download(TWO, str(tmp_path / "back"))
        assert not list(tmp_path.rglob("*"))
        storage.download(TWO, str(tmp_path / "back"), lambda path: path == "fine")
        assert [path.name for path in (tmp_path / "back").iterdir()] == ["fine"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"bucket": "not-there"}, "there is no such bucket. Make it, or name another"),
        ({"endpoint_url": "http://127.0.0.1:9"}, "cannot be reached .*Check endpoint_url and the network"),
        ({"endpoint_url": "minio:9000"}, "Check endpoint_url: it begins with http"),
    ],
)
def test_what_does_not_work_says_why(place: ObjectPlace, more: dict[str, str], says: str) -> None:
    """With where, and what to do; never with a secret."""
    storage = registry.from_config({**place.at(), **more})
    assert isinstance(storage, ObjectStorage)
    storage.waits_for_s = 0.0
    with pytest.raises(StorageFailed, match=says) as caught:
        storage.validate()
    assert S3_SECRET not in str(caught.value)
    assert "s3://" in str(caught.value)


def test_a_server_with_a_password_in_its_address_is_refused(place: ObjectPlace) -> None:
    """It is part of what everybody sees."""
    with pytest.raises(InvalidInput, match="leave them out") as caught:
        registry.from_config({**place.at(), "endpoint_url": "http://me:hush@minio:9000/"})
    assert "hush" not in str(caught.value)


def test_a_profile_that_is_not_there(place: ObjectPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said in words."""
    monkeypatch.setenv("AWS_PROFILE", "nosuch")
    with pytest.raises(StorageFailed, match="Check AWS_PROFILE"):
        registry.from_config(place.at()).validate()


def test_a_bucket_without_rights(broken: Between, place: ObjectPlace) -> None:
    """Which it lacks is what the advice says."""
    broken.fault = lambda method, _: REFUSED if method == "PUT" else None
    with pytest.raises(StorageUnusable, match=r"access is denied .*Give these credentials s3:ListBucket"):
        place.opened(broken.url).validate()


def test_without_credentials(place: ObjectPlace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Those of the environment are used, and where there are none it is said where they may stand."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    alone = place.plain()
    with pytest.raises(StorageUnusable, match=r"there are no credentials. Set AWS_ACCESS_KEY_ID"):
        registry.from_config(alone).validate()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    registry.from_config(alone).validate()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"bucket": ""}, "needs bucket"),
        ({"bucket": "b", "access_key": "x"}, "needs both access_key and secret_key, or neither"),
        ({"bucket": "b", "prefix": "a/../../b"}, "climbs out of its bucket"),
        ({"bucket": "b", "endpoint_url": 7}, "must be a string"),
    ],
)
def test_sections_that_are_wrong(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        registry.from_config({"type": "s3", **wrong})


def test_shortcuts() -> None:
    """As Determined's `core.init` takes them."""
    assert registry.from_shortcut("s3://bucket/a/b").identity() == {"type": "s3", "bucket": "bucket", "prefix": "a/b"}
    assert registry.from_shortcut("gs://bucket/a").identity() == {"type": "gcs", "bucket": "bucket", "prefix": "a"}
    assert registry.from_shortcut("file:///data/runs").identity()["container_path"] == "/data/runs"
    for wrong in ("http://bucket", "file://host/data"):
        with pytest.raises(InvalidInput, match="give a directory, s3://bucket/prefix or gs://bucket/prefix"):
            registry.from_shortcut(wrong)


def test_nothing_is_imported_before_it_is_used() -> None:
    """The master and each task know the kind, and need no boto3."""
    printed = printed_without("boto3", {"type": "s3", "bucket": "b"})
    assert "False" in printed.splitlines()[0]
    assert "needs boto3 in the environment that runs this: pip install 'tenax[s3]'" in printed
