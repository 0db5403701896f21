"""Checkpoints in a bucket of Google Cloud Storage: the kits against an emulator, and what is special about it."""

from __future__ import annotations

import json
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tenax.errors import InvalidInput
from tenax.storage import registry
from tenax.storage.port import StorageFailed
from tests.kits.object_kit import ObjectKit, broken, printed_without
from tests.kits.object_places import EMULATOR, ObjectPlace, gcs_place
from tests.kits.object_server import gcs_server
from tests.kits.storage_kit import source

__all__ = ["broken", "source"]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with gcs_server() as url:
        yield url


@pytest.fixture
def place(server: str, monkeypatch: pytest.MonkeyPatch) -> ObjectPlace:
    monkeypatch.setenv(EMULATOR, server)
    return gcs_place(server)


class TestGcs(ObjectKit):
    def test_identity(self, place: ObjectPlace) -> None:
        assert place.opened().identity() == place.plain()


def test_no_bucket(place: ObjectPlace) -> None:
    with pytest.raises(StorageFailed, match=r"gs://not-there cannot be written .*no such bucket. Make it"):
        registry.from_config({"type": "gcs", "bucket": "not-there"}).validate()


def test_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where there are none, or wrong ones, it is said where they may stand, and none of them is shown."""
    monkeypatch.delenv(EMULATOR, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    bucket = registry.from_config({"type": "gcs", "bucket": "b"})
    with pytest.raises(StorageFailed, match="Name a key file with GOOGLE_APPLICATION_CREDENTIALS"):
        bucket.validate()
    key = tmp_path / "key.json"
    key.write_text(json.dumps({"type": "service_account", "private_key": "a-secret"}))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key))
    with pytest.raises(StorageFailed, match="GOOGLE_APPLICATION_CREDENTIALS") as caught:
        bucket.validate()
    assert "a-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "says"), [({}, "needs bucket"), ({"bucket": "b", "prefix": "../b"}, "climbs out of its bucket")]
)
def test_sections_that_are_wrong(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        registry.from_config({"type": "gcs", **wrong})


def test_nothing_is_imported_before_it_is_used() -> None:
    """The master and each task know the kind, and need none of Google's packages."""
    printed = printed_without("google.cloud", {"type": "gcs", "bucket": "b"})
    assert "False" in printed.splitlines()[0]
    assert "needs google-cloud-storage in the environment that runs this: pip install 'tenax[gcs]'" in printed


def test_a_connection_that_says_nothing_holds_up_nobody() -> None:
    """Of the emulator, as of the real store."""
    with gcs_server() as url:
        place = urlsplit(url)
        with socket.create_connection((place.hostname or "", place.port or 0)):
            with urllib.request.urlopen(f"{url}/storage/v1/b?project=none", timeout=30) as reply:
                assert reply.status == 200
