"""Buckets on servers of the protocols that checkpoints can lie in, one new bucket a test."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from tenax.storage import registry
from tenax.storage.port import Storage
from tests.kits.object_server import (
    AZURE_KEY,
    AZURE_REFUSAL,
    GCS_REFUSAL,
    S3_REFUSAL,
    Refusal,
    azure_server,
    gcs_server,
    s3_server,
)

#: What all names of the tests begin with.
PREFIX = "team/runs"
EMULATOR = "STORAGE_EMULATOR_HOST"
S3_SECRET = "a-secret-of-the-tests"


class Objects(Protocol):
    """What is in a bucket, past Tenax."""

    def names(self) -> list[str]: ...

    def add(self, name: str, data: bytes) -> None: ...


@dataclass(frozen=True)
class ObjectPlace:
    """A new bucket. ``section``: without server and credentials."""

    server: str
    section: Mapping[str, Any]
    objects: Objects
    refusal: Refusal
    credentials: Mapping[str, str] = field(default_factory=dict)
    #: The setting that names the server; none: the variable `EMULATOR` does.
    setting: str = ""
    #: Variables with which a person gets in who has no section.
    variables: Mapping[str, str] = field(default_factory=dict)
    #: How many times, or how long, the library of the protocol tries by itself: a name of ours, the least it can be.
    tries: tuple[str, float] = ("", 0)

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(value for name, value in self.credentials.items() if name != "access_key")

    def plain(self, server: str = "") -> dict[str, Any]:
        """As a task reports it: without credentials."""
        return {**self.section, **({self.setting: server or self.server} if self.setting else {})}

    def at(self, server: str = "") -> dict[str, Any]:
        """The section for ``server``; none: its own."""
        return {**self.plain(server), **self.credentials}

    def opened(self, server: str = "") -> Storage:
        return registry.from_config(self.at(server))


def new_name() -> str:
    return f"b-{uuid.uuid4().hex}"


class _S3:
    def __init__(self, client: Any, bucket: str) -> None:
        self.client = client
        self._bucket = bucket

    def names(self) -> list[str]:
        return [entry["Key"] for entry in self.client.list_objects_v2(Bucket=self._bucket).get("Contents", ())]

    def add(self, name: str, data: bytes) -> None:
        self.client.put_object(Bucket=self._bucket, Key=name, Body=data)


def s3_client(server: str) -> Any:
    import boto3

    credentials = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
    return boto3.client("s3", endpoint_url=server, region_name="us-east-1", **credentials)  # type: ignore[call-overload]


def s3_place(server: str) -> ObjectPlace:
    """A new bucket on an `s3_server`."""
    name, client = new_name(), s3_client(server)
    client.create_bucket(Bucket=name)
    return ObjectPlace(
        server,
        {"type": "s3", "bucket": name, "prefix": PREFIX},
        _S3(client, name),
        S3_REFUSAL,
        credentials={"access_key": "AKIATEST", "secret_key": S3_SECRET},
        setting="endpoint_url",
        variables={"AWS_ACCESS_KEY_ID": "mine", "AWS_SECRET_ACCESS_KEY": "mine"},
        tries=("tenax.storage.s3._TRIES", 1),
    )


class _Gcs:
    def __init__(self, bucket: Any) -> None:
        self._bucket = bucket

    def names(self) -> list[str]:
        return sorted(blob.name for blob in self._bucket.list_blobs())

    def add(self, name: str, data: bytes) -> None:
        self._bucket.blob(name).upload_from_string(data)


def gcs_place(server: str) -> ObjectPlace:
    """A new bucket on a `gcs_server`."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    options = {"api_endpoint": server}
    client = storage.Client(project="none", credentials=AnonymousCredentials(), client_options=options)
    bucket = client.create_bucket(new_name())
    return ObjectPlace(
        server,
        {"type": "gcs", "bucket": bucket.name, "prefix": PREFIX},
        _Gcs(bucket),
        GCS_REFUSAL,
        variables={EMULATOR: server},
        tries=("tenax.storage.gcs._TRIES_FOR_S", 0.1),
    )


class _Azure:
    def __init__(self, client: Any) -> None:
        self._client = client

    def names(self) -> list[str]:
        return [blob.name for blob in self._client.list_blobs()]

    def add(self, name: str, data: bytes) -> None:
        self._client.upload_blob(name, data)


def azure_connection(server: str) -> str:
    """A connection string, as the account's page shows them."""
    name = server.rpartition("/")[2]
    return f"DefaultEndpointsProtocol=http;AccountName={name};AccountKey={AZURE_KEY};BlobEndpoint={server};"


def azure_place(server: str) -> ObjectPlace:
    """A new container on an `azure_server`."""
    from azure.storage.blob import BlobServiceClient

    name = new_name()
    client = BlobServiceClient(server, AZURE_KEY).create_container(name)
    return ObjectPlace(
        server,
        {"type": "azure", "container": f"{name}/{PREFIX}"},
        _Azure(client),
        AZURE_REFUSAL,
        credentials={"credential": AZURE_KEY},
        setting="account_url",
        variables={"AZURE_STORAGE_CONNECTION_STRING": azure_connection(server)},
        tries=("tenax.storage.azure._TRIES", 0),
    )


#: By the type of a section: its server, and a new bucket on one.
PLACES: Mapping[str, tuple[Callable[[], AbstractContextManager[str]], Callable[[str], ObjectPlace]]] = {
    "s3": (s3_server, s3_place),
    "gcs": (gcs_server, gcs_place),
    "azure": (azure_server, azure_place),
}


@contextmanager
def new_place(kind: str) -> Iterator[ObjectPlace]:
    """A new bucket on a server of its own."""
    serve, make = PLACES[kind]
    with serve() as server:
        yield make(server)
