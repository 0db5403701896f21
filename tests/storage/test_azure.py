"""Checkpoints in a container of Azure Blob Storage: the kits against Azurite, and what is special about it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from azure.storage.blob import generate_container_sas

from tenax.errors import InvalidInput
from tenax.storage import registry
from tenax.storage.azure import account_of
from tenax.storage.objects import ObjectStorage
from tenax.storage.port import StorageFailed
from tests.kits.object_kit import KeyedKit, ObjectKit, broken, printed_without
from tests.kits.object_places import ObjectPlace, azure_connection, azure_place
from tests.kits.object_server import AZURE_KEY, azure_server
from tests.kits.storage_kit import source

__all__ = ["broken", "source"]

ACCOUNT = "devstoreaccount1"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with azure_server() as url:
        yield url


@pytest.fixture
def place(server: str) -> ObjectPlace:
    return azure_place(server)


class TestAzure(KeyedKit, ObjectKit):
    def test_identity(self, place: ObjectPlace) -> None:
        """It has no secrets, and names the account however the section does."""
        plain = place.plain()
        assert place.opened().identity() == plain
        by_string = {
            "type": "azure",
            "container": plain["container"],
            "connection_string": azure_connection(place.server),
        }
        assert registry.from_config(by_string).identity() == plain
        signed = {**plain, "account_url": f"{place.server}?sig=a-secret"}
        assert registry.from_config(signed).identity() == plain


def test_ways_in(place: ObjectPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection string, a signature, and what the environment has."""
    server, container = place.server, place.section["container"].partition("/")[0]
    until = datetime.now(timezone.utc) + timedelta(hours=1)
    permission = "racwdl"
    signature = generate_container_sas(ACCOUNT, container, account_key=AZURE_KEY, permission=permission, expiry=until)
    by_url = {"type": "azure", "container": container, "account_url": server}
    registry.from_config(
        {"type": "azure", "container": container, "connection_string": azure_connection(server)}
    ).validate()
    registry.from_config({**by_url, "credential": signature}).validate()
    for name in ("AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(__import__("sys").modules, "azure.identity", None)
    with pytest.raises(StorageFailed, match=r"there are no credentials\. Set credential in checkpoint_storage"):
        registry.from_config(by_url).validate()
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", signature)
    registry.from_config(by_url).validate()
    monkeypatch.delenv("AZURE_STORAGE_SAS_TOKEN")
    monkeypatch.setenv("AZURE_STORAGE_KEY", AZURE_KEY)
    registry.from_config(by_url).validate()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"container": "not-there"}, "there is no such container. Make it, or name another"),
        ({"credential": AZURE_KEY.replace("E", "F")}, "access is denied .*Check the credentials, and let them read"),
        ({"account_url": "http://127.0.0.1:9/a"}, "cannot be reached .*Check account_url and the network"),
    ],
)
def test_what_does_not_work_says_why(
    place: ObjectPlace, more: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With where, and what to do; never with a secret."""
    monkeypatch.setattr(*place.tries)
    storage = registry.from_config({**place.at(), **more})
    assert isinstance(storage, ObjectStorage)
    storage.waits_for_s = 0.0
    with pytest.raises(StorageFailed, match=says) as caught:
        storage.validate()
    assert AZURE_KEY not in str(caught.value)
    assert (more.get("credential") or AZURE_KEY) not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"account_url": "https://a.blob.core.windows.net"}, "needs container"),
        ({"container": "c"}, "needs account_url or connection_string, or AZURE_STORAGE_CONNECTION_STRING"),
        ({"container": "c/../d", "account_url": "https://a"}, "climbs out of its bucket"),
        ({"container": "c", "connection_string": "AccountKey=a-secret"}, "names no account"),
    ],
)
def test_sections_that_are_wrong(wrong: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_CONNECTION_STRING", raising=False)
    with pytest.raises(InvalidInput, match=says) as caught:
        registry.from_config({"type": "azure", **wrong})
    assert "a-secret" not in str(caught.value)


def test_accounts() -> None:
    """As the account's page shows them."""
    text = "DefaultEndpointsProtocol=https;AccountName=team;AccountKey=k==;EndpointSuffix=core.windows.net"
    assert account_of(text) == "https://team.blob.core.windows.net"
    assert account_of("UseDevelopmentStorage=true") == "http://127.0.0.1:10000/devstoreaccount1"


def test_nothing_is_imported_before_it_is_used() -> None:
    """The master and each task know the kind, and need none of Azure's packages."""
    printed = printed_without("azure.storage", {"type": "azure", "container": "c", "account_url": "https://a"})
    assert "False" in printed.splitlines()[0]
    assert "needs azure-storage-blob in the environment that runs this: pip install 'tenax[azure]'" in printed


@pytest.mark.parametrize(
    ("url", "is_the_vendors"),
    [
        ("https://team.blob.core.windows.net", True),
        ("https://team.blob.core.windows.net/", True),
        ("https://team.blob.core.windows.net:8443", False),
        ("http://team.blob.core.windows.net", False),
        ("https://evil.com\\@x.blob.core.windows.net", False),
        ("https://x.blob.core.windows.net@evil.com", False),
        ("https://evil.com/.blob.core.windows.net", False),
        ("https://evil.com#team.blob.core.windows.net", False),
        ("https://[::1", False),
    ],
)
def test_whose_server_it_is(url: str, is_the_vendors: bool) -> None:
    """As it is written: libraries do not agree on what is the host of an odd address."""
    kind = registry.kind_of({"type": "azure"})
    assert kind is not None
    server = kind.server({"type": "azure", "container": "c", "account_url": url})
    assert (server is None) == is_the_vendors
