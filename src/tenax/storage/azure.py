"""``azure``: a container of Azure Blob Storage. Needs azure-storage-blob; Python 3.9.

``connection_string`` (else ``AZURE_STORAGE_CONNECTION_STRING`` where this runs), or ``account_url`` with ``credential``
(a key of the account, or a signature). Without a credential it is one of ``AZURE_STORAGE_KEY`` and
``AZURE_STORAGE_SAS_TOKEN``, or what azure-identity finds. What follows a slash in ``container`` begins all names in it.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager

from tenax.errors import InvalidInput
from tenax.storage.kind import StorageKind, text
from tenax.storage.objects import PARALLEL, BucketFailed, ObjectGone, ObjectStorage, PerProcess, at_once, checked_prefix
from tenax.storage.port import StorageUnusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, Optional

    from tenax.jsonvalue import Json, JsonObject
    from tenax.storage.port import Storage

#: Accounts have names below it.
_VENDORS = re.compile(r"https://[a-z0-9]{3,24}\.blob\.core\.windows\.net/?", re.IGNORECASE)
_MIB = 1024 * 1024
#: A file from this size on is sent and fetched in parts.
_IN_PARTS = 32 * _MIB
_PART = 16 * _MIB
#: Tries of the library itself after the first.
_TRIES = 2
#: Names in an answer, at most.
_PAGE = 5000
_BUSY = (408, 429, 500, 502, 503, 504)


class AzureKind(StorageKind):
    """See `tenax.storage.kind.StorageKind`."""

    name = "azure"
    reachable_by_agents = True

    def open(self, config: Mapping[str, Json], mount: str) -> Storage:
        """Nothing is asked of the container yet."""
        keys = ("container", "connection_string", "account_url", "credential")
        values = {key: text(config, key) for key in keys}
        container, _, prefix = (values["container"] or "").partition("/")
        if not container:
            raise InvalidInput("checkpoint_storage of type azure needs container")
        connection = values["connection_string"]
        url, _, signature = (values["account_url"] or "").partition("?")
        if not connection and not url:
            # What shows a section to others leaves its connection string out.
            connection = os.environ.get("AZURE_STORAGE_CONNECTION_STRING")
        if not connection and not url:
            raise InvalidInput(
                "checkpoint_storage of type azure needs account_url or connection_string, or "
                "AZURE_STORAGE_CONNECTION_STRING where this runs"
            )
        if connection:
            url = account_of(connection)
        identity: JsonObject = {"type": self.name, "container": values["container"], "account_url": url}
        return ObjectStorage(
            AzureContainer(container, url, connection, values["credential"] or signature or None),
            checked_prefix(prefix),
            identity=identity,
            label=f"{url.rstrip('/')}/{values['container']}",
        )

    def server(self, config: Mapping[str, Json]) -> Optional[str]:
        """See `tenax.storage.kind.StorageKind`."""
        url = text(config, "account_url") or ""
        return url if url and not _VENDORS.fullmatch(url.partition("?")[0]) else None


def account_of(connection: str) -> str:
    """The address of the account that a connection string is for. Raises InvalidInput, which does not show it."""
    parts = dict(part.partition("=")[::2] for part in connection.split(";") if part)
    if parts.get("BlobEndpoint"):
        return parts["BlobEndpoint"].partition("?")[0]
    if parts.get("UseDevelopmentStorage", "").lower() == "true":
        return "http://127.0.0.1:10000/devstoreaccount1"
    if not parts.get("AccountName"):
        raise InvalidInput(
            "checkpoint_storage.connection_string names no account: it is AccountName=...;AccountKey=..., as the "
            "account's page shows it"
        )
    protocol, suffix = parts.get("DefaultEndpointsProtocol", "https"), parts.get("EndpointSuffix", "core.windows.net")
    return f"{protocol}://{parts['AccountName']}.blob.{suffix}"


class AzureContainer:
    """See `tenax.storage.objects.Bucket`."""

    patient = True

    def __init__(self, name: str, url: str, connection: Optional[str], credential: Optional[str]) -> None:
        self._name = name
        self._url = url
        self._secrets = connection, credential
        self._client = PerProcess(self._made)

    def write(self, key: str, data: bytes) -> None:
        with self._connection() as client:
            client.upload_blob(key, data, overwrite=True)

    def read(self, key: str) -> Optional[bytes]:
        try:
            with self._connection() as client:
                return bytes(client.download_blob(key).readall())
        except ObjectGone:
            return None

    def upload(self, key: str, path: str) -> None:
        with self._connection() as client, open(path, "rb") as file:
            client.upload_blob(key, file, overwrite=True, max_concurrency=PARALLEL)

    def download(self, key: str, path: str) -> None:
        with self._connection() as client, open(path, "wb") as file:
            client.download_blob(key, max_concurrency=PARALLEL).readinto(file)

    def read_part(self, key: str, start: int, size: int) -> bytes:
        with self._connection() as client:
            return bytes(client.download_blob(key, offset=start, length=size).readall())

    def entries(self, prefix: str, limit: Optional[int] = None) -> Iterable[tuple[str, int]]:
        with self._connection() as client:
            pages = client.list_blobs(name_starts_with=prefix, results_per_page=limit and min(limit, _PAGE)).by_page()
            listed: list[tuple[str, int]] = []
            for page in pages:
                listed += [(blob.name, int(blob.size)) for blob in page]
                if limit is not None and len(listed) >= limit:
                    break
            return listed

    def delete(self, keys: Sequence[str]) -> None:
        at_once(self._delete, keys)

    def forget_uploads(self, prefix: str) -> None:
        """The store does: parts that nobody has put together are no blob, and are thrown away after a week."""

    def _delete(self, key: str) -> None:
        try:
            with self._connection() as client:
                client.delete_blob(key)
        except ObjectGone:
            return

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """The client. Raises BucketFailed for what it raises."""
        client = self._client.get()
        from azure.core.exceptions import AzureError, HttpResponseError

        try:
            yield client
        except HttpResponseError as error:
            message = str(error.message or error).splitlines()[0]
            code = getattr(error, "error_code", None)
            raise _failed(int(error.status_code or 0), str(getattr(code, "value", code) or ""), message) from error
        except AzureError as error:
            advice = "Check account_url and the network."
            raise BucketFailed(f"it cannot be reached ({error.message})", advice, passing=True) from error

    def _made(self) -> Any:
        try:
            from azure.storage.blob import ContainerClient, ExponentialRetry
        except ImportError as error:
            raise StorageUnusable(
                "checkpoint storage of type azure needs azure-storage-blob in the environment that runs this: "
                f"pip install 'tenax[azure]', or azure-storage-blob ({error})"
            ) from None
        connection, credential = self._secrets
        settings: dict[str, Any] = {
            "retry_policy": ExponentialRetry(
                initial_backoff=1, increment_base=2, retry_total=_TRIES if self.patient else 1, random_jitter_range=1
            ),
            "connection_timeout": 10 if self.patient else 5,
            "read_timeout": 20,
            "max_single_put_size": _IN_PARTS,
            "max_block_size": _PART,
            "max_single_get_size": _IN_PARTS,
            "max_chunk_get_size": _PART,
        }
        try:
            if connection:
                return ContainerClient.from_connection_string(connection, self._name, **settings)
            return ContainerClient(self._url, self._name, credential=credential or _found_here(), **settings)
        except ValueError:
            # Its text may hold the key.
            reason = "connection_string is not one" if connection else f"{self._url} or its credential is not one"
            raise BucketFailed(reason, "Copy it from the account's page.") from None


def _found_here() -> Any:
    """A credential from the environment."""
    for name in ("AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"):
        if os.environ.get(name):
            return os.environ[name]
    try:
        from azure.identity import DefaultAzureCredential
    except ImportError:
        raise BucketFailed(
            "there are no credentials",
            "Set credential in checkpoint_storage, or AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN (of a task: under "
            "environment.environment_variables), or install azure-identity for the identity of the machine.",
        ) from None
    return DefaultAzureCredential()


def _failed(status: int, code: str, message: str) -> BucketFailed:
    """What is wrong, by the code or the status of an answer."""
    if code == "ContainerNotFound":
        return BucketFailed("there is no such container", "Make it, or name another one in checkpoint_storage.")
    if status == 404:
        return ObjectGone("a file is not there any more", "Go on from another checkpoint.")
    if code == "AuthenticationFailed" or status == 401:
        return BucketFailed(
            f"the credentials are refused ({code or status})",
            "Check credential or connection_string of checkpoint_storage, or the credentials where this runs.",
        )
    if status == 403:
        return BucketFailed(
            f"access is denied ({code or message})",
            "Check the credentials, and let them read, write, list and delete there (the role Storage Blob Data "
            "Contributor).",
        )
    if status == 0:
        return BucketFailed(f"it cannot be reached ({message})", "Check account_url and the network.", passing=True)
    advice = "Check checkpoint_storage, and that the store works."
    return BucketFailed(f"{code or status}: {message}", advice, passing=status in _BUSY)
