"""``gcs``: a bucket of Google Cloud Storage. Needs google-cloud-storage; Python 3.9.

Credentials are those that Google's library finds where it runs: ``GOOGLE_APPLICATION_CREDENTIALS``, what ``gcloud``
has left, the account of the machine. ``STORAGE_EMULATOR_HOST`` names a server of the protocol that asks for none.
"""

from __future__ import annotations

import os
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

#: Seconds for which the library itself tries again.
_TRIES_FOR_S = 30.0
#: Bytes: a larger file goes in pieces, and on from the last.
_PIECE = 16 * 1024 * 1024
#: Seconds to a connection, and to each answer.
_TIMEOUTS = (10.0, 20.0)
_BUSY = (408, 429, 500, 502, 503, 504)
_NO_BUCKET = ("there is no such bucket", "Make it, or name another one in checkpoint_storage.")


class GcsKind(StorageKind):
    """See `tenax.storage.kind.StorageKind`."""

    name = "gcs"
    reachable_by_agents = True

    def open(self, config: Mapping[str, Json], mount: str) -> Storage:
        """Nothing is asked of the bucket yet."""
        bucket, prefix = text(config, "bucket"), checked_prefix(text(config, "prefix"))
        if not bucket:
            raise InvalidInput("checkpoint_storage of type gcs needs bucket")
        identity: JsonObject = {"type": self.name, "bucket": bucket}
        if prefix:
            identity["prefix"] = prefix
        place = f"gs://{bucket}/{prefix or ''}".rstrip("/")
        return ObjectStorage(GcsBucket(bucket), prefix, identity=identity, label=place)


class GcsBucket:
    """See `tenax.storage.objects.Bucket`."""

    patient = True

    def __init__(self, name: str) -> None:
        self._name = name
        self._bucket = PerProcess(self._made)
        self._retry: Any = None

    def write(self, key: str, data: bytes) -> None:
        with self._connection() as bucket:
            bucket.blob(key).upload_from_string(data, retry=self._retry, timeout=_TIMEOUTS)

    def read(self, key: str) -> Optional[bytes]:
        try:
            with self._connection(of_object=True) as bucket:
                return bytes(bucket.blob(key).download_as_bytes(retry=self._retry, timeout=_TIMEOUTS))
        except ObjectGone:
            return None

    def upload(self, key: str, path: str) -> None:
        with self._connection() as bucket:
            blob = bucket.blob(key, chunk_size=_PIECE)
            blob.upload_from_filename(path, retry=self._retry, timeout=_TIMEOUTS)

    def download(self, key: str, path: str) -> None:
        with self._connection(of_object=True) as bucket:
            bucket.blob(key).download_to_filename(path, retry=self._retry, timeout=_TIMEOUTS)

    def read_part(self, key: str, start: int, size: int) -> bytes:
        with self._connection(of_object=True) as bucket:
            blob = bucket.blob(key)
            # The end is the last byte that is wanted; a checksum is of a whole object.
            part = blob.download_as_bytes(
                start=start, end=start + size - 1, checksum=None, retry=self._retry, timeout=_TIMEOUTS
            )
            return bytes(part)

    def entries(self, prefix: str, limit: Optional[int] = None) -> Iterable[tuple[str, int]]:
        with self._connection() as bucket:
            listed = bucket.list_blobs(prefix=prefix, max_results=limit, retry=self._retry, timeout=_TIMEOUTS)
            return [(blob.name, int(blob.size or 0)) for blob in listed]

    def delete(self, keys: Sequence[str]) -> None:
        at_once(self._delete, keys)

    def forget_uploads(self, prefix: str) -> None:
        """The store does: what was sent of a file is no object before its end."""

    def _delete(self, key: str) -> None:
        try:
            with self._connection(of_object=True) as bucket:
                bucket.blob(key).delete(retry=self._retry, timeout=_TIMEOUTS)
        except ObjectGone:
            return

    @contextmanager
    def _connection(self, *, of_object: bool = False) -> Iterator[Any]:
        """The bucket; ``of_object``: what is not there is an object, not it. Raises BucketFailed."""
        bucket = self._bucket.get()
        from google.api_core.exceptions import GoogleAPICallError, RetryError
        from google.auth.exceptions import GoogleAuthError
        from google.cloud.storage.exceptions import DataCorruption
        from requests.exceptions import RequestException

        try:
            yield bucket
        except GoogleAPICallError as error:
            raise _failed(int(error.code or 0), str(error.message), of_object=of_object) from error
        except GoogleAuthError as error:
            raise _refused(error) from error
        except (RetryError, RequestException, ConnectionError, DataCorruption) as error:
            advice = "Check the network, and STORAGE_EMULATOR_HOST where it is set."
            raise BucketFailed(f"it cannot be reached ({error})", advice, passing=True) from error

    def _made(self) -> Any:
        try:
            import requests
            from google.auth.exceptions import GoogleAuthError
            from google.cloud import storage
            from google.cloud.storage.retry import DEFAULT_RETRY
        except ImportError as error:
            raise StorageUnusable(
                "checkpoint storage of type gcs needs google-cloud-storage in the environment that runs this: "
                f"pip install 'tenax[gcs]', or google-cloud-storage ({error})"
            ) from None
        try:
            # A project is asked for by what lists buckets, and by nothing here.
            client = storage.Client(project=os.environ.get("GOOGLE_CLOUD_PROJECT") or "none")
        except GoogleAuthError as error:
            raise _refused(error) from error
        # One connection for each thread that sends, and none of them waits for another.
        adapter = requests.adapters.HTTPAdapter(pool_connections=4 * PARALLEL, pool_maxsize=4 * PARALLEL)
        for scheme in ("https://", "http://"):
            client._http.mount(scheme, adapter)
        self._retry = DEFAULT_RETRY.with_timeout(_TRIES_FOR_S if self.patient else 5.0)
        try:
            return client.bucket(self._name)
        except ValueError as error:
            raise BucketFailed(str(error), "Check the name of the bucket in checkpoint_storage.") from error


def _refused(error: Exception) -> BucketFailed:
    """What is wrong with the credentials, in one line: some have a page of what was tried."""
    from google.auth.exceptions import DefaultCredentialsError, TransportError

    if isinstance(error, TransportError):
        return BucketFailed(f"it cannot be reached ({error})", "Check the network.", passing=True)
    if isinstance(error, DefaultCredentialsError):
        return BucketFailed(
            "there are no credentials that can be used",
            "Name a key file with GOOGLE_APPLICATION_CREDENTIALS (of a task: under environment.environment_variables), "
            "or give the machine an account that may use the bucket.",
        )
    return BucketFailed(
        f"the credentials are refused ({type(error).__name__})",
        "Check what GOOGLE_APPLICATION_CREDENTIALS names, or the account of the machine.",
    )


def _failed(code: int, message: str, *, of_object: bool) -> BucketFailed:
    """What is wrong, by the status of an answer."""
    if code == 404 and of_object and "bucket" not in message:
        return ObjectGone("a file is not there any more", "Go on from another checkpoint.")
    if code == 404:
        return BucketFailed(*_NO_BUCKET)
    if code in (401, 403):
        return BucketFailed(
            f"access is denied ({message})",
            "Give this account storage.objects.create, .get, .list and .delete there (roles/storage.objectUser).",
        )
    advice = "Check checkpoint_storage, and that the store works."
    return BucketFailed(f"{code}: {message}", advice, passing=code in _BUSY)
