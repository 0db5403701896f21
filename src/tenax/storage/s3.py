"""``s3``: a bucket of Amazon's S3, or of a server that speaks its protocol. Needs boto3; Python 3.9.

Without ``access_key`` and ``secret_key`` the credentials are those that boto3 finds where it runs: variables of the
task, files, the role of the machine.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress

from tenax.errors import InvalidInput
from tenax.storage.kind import StorageKind, text
from tenax.storage.objects import PARALLEL, BucketFailed, ObjectGone, ObjectStorage, PerProcess, checked_prefix
from tenax.storage.port import StorageUnusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, Optional

    from tenax.jsonvalue import Json, JsonObject
    from tenax.storage.port import Storage

_MIB = 1024 * 1024
#: A file from this size on is sent and fetched in parts.
_IN_PARTS = 32 * _MIB
_PART = 16 * _MIB
#: Tries of the library itself.
_TRIES = 3
#: Names in one request to delete.
_DELETED_AT_ONCE = 1000
#: Names of one answer, at most.
_PAGE = 1000
_GONE = ("NoSuchKey", "404", "NotFound", "NoSuchUpload")
#: Names of exceptions of connections, and codes of a store that does not answer now.
_AWAY = (
    *("EndpointConnectionError", "ConnectTimeoutError", "ConnectionClosedError", "ReadTimeoutError"),
    *("ResponseStreamingError", "IncompleteReadError", "RetriesExceededError", "ProxyConnectionError"),
)
_BUSY = ("SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "500", "502", "503", "504")
_REFUSED_CREDENTIALS = (
    *("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired"),
    *("InvalidClientTokenId", "UnrecognizedClientException"),
)


class S3Kind(StorageKind):
    """See `tenax.storage.kind.StorageKind`."""

    name = "s3"
    reachable_by_agents = True

    def open(self, config: Mapping[str, Json], mount: str) -> Storage:
        """Nothing is asked of the bucket yet."""
        keys = ("bucket", "endpoint_url", "prefix", "access_key", "secret_key")
        values = {key: text(config, key) for key in keys}
        bucket, endpoint, prefix = values["bucket"], values["endpoint_url"], checked_prefix(values["prefix"])
        if not bucket:
            raise InvalidInput("checkpoint_storage of type s3 needs bucket")
        if (values["access_key"] is None) != (values["secret_key"] is None):
            raise InvalidInput("checkpoint_storage of type s3 needs both access_key and secret_key, or neither")
        if endpoint and "@" in endpoint.partition("://")[2].partition("/")[0]:
            raise InvalidInput(
                "checkpoint_storage.endpoint_url holds a user or a password, and is shown to all: leave them out; "
                "credentials are access_key and secret_key"
            )
        identity: JsonObject = {"type": self.name, "bucket": bucket}
        if endpoint:
            identity["endpoint_url"] = endpoint
        if prefix:
            identity["prefix"] = prefix
        place = f"s3://{bucket}/{prefix or ''}".rstrip("/")
        return ObjectStorage(
            S3Bucket(bucket, endpoint, values["access_key"], values["secret_key"]),
            prefix,
            identity=identity,
            label=f"{place} at {endpoint}" if endpoint else place,
        )

    def server(self, config: Mapping[str, Json]) -> Optional[str]:
        """See `tenax.storage.kind.StorageKind`."""
        return text(config, "endpoint_url") or None


class S3Bucket:
    """See `tenax.storage.objects.Bucket`."""

    patient = True

    def __init__(self, name: str, endpoint: Optional[str], access_key: Optional[str], secret_key: Optional[str]):
        self._name = name
        self._endpoint = endpoint
        self._keys = access_key, secret_key
        self._client = PerProcess(self._made)

    def write(self, key: str, data: bytes) -> None:
        with self._connection() as client:
            client.put_object(Bucket=self._name, Key=key, Body=data)

    def read(self, key: str) -> Optional[bytes]:
        try:
            with self._connection() as client:
                return bytes(client.get_object(Bucket=self._name, Key=key)["Body"].read())
        except ObjectGone:
            return None

    def upload(self, key: str, path: str) -> None:
        with self._connection() as client, open(path, "rb") as file:
            client.upload_fileobj(file, self._name, key, Config=_transfer())

    def download(self, key: str, path: str) -> None:
        with self._connection() as client, open(path, "wb") as file:
            client.download_fileobj(self._name, key, file, Config=_transfer())

    def read_part(self, key: str, start: int, size: int) -> bytes:
        with self._connection() as client:
            part = client.get_object(Bucket=self._name, Key=key, Range=f"bytes={start}-{start + size - 1}")
            return bytes(part["Body"].read())

    def entries(self, prefix: str, limit: Optional[int] = None) -> Iterable[tuple[str, int]]:
        listed: list[tuple[str, int]] = []
        with self._connection() as client:
            settings = {} if limit is None else {"PaginationConfig": {"MaxItems": limit, "PageSize": min(limit, _PAGE)}}
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=self._name, Prefix=prefix, **settings)
            for page in pages:
                listed += [(entry["Key"], entry["Size"]) for entry in page.get("Contents", ())]
        return listed

    def delete(self, keys: Sequence[str]) -> None:
        for first in range(0, len(keys), _DELETED_AT_ONCE):
            several = [{"Key": key} for key in keys[first : first + _DELETED_AT_ONCE]]
            with self._connection() as client:
                reply = client.delete_objects(Bucket=self._name, Delete={"Objects": several, "Quiet": True})
            for error in reply.get("Errors", ()):
                if error.get("Code") not in _GONE:
                    raise _failed(str(error.get("Code")), f"{error.get('Message')} ({error.get('Key')})")

    def forget_uploads(self, prefix: str) -> None:
        with self._connection() as client:
            pages = client.get_paginator("list_multipart_uploads").paginate(Bucket=self._name, Prefix=prefix)
            broken = [(each["Key"], each["UploadId"]) for page in pages for each in page.get("Uploads", ())]
        for key, upload in broken:
            with suppress(ObjectGone), self._connection() as client:
                client.abort_multipart_upload(Bucket=self._name, Key=key, UploadId=upload)

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """The client. Raises BucketFailed for what it raises."""
        client = self._client.get()
        from boto3.exceptions import Boto3Error
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield client
        except ClientError as error:
            answer = error.response.get("Error", {})
            raise _failed(str(answer.get("Code")), str(answer.get("Message") or error)) from error
        except (BotoCoreError, Boto3Error) as error:
            raise _failed(type(error).__name__, str(error)) from error

    def _made(self) -> Any:
        try:
            import boto3
            from botocore.config import Config
            from botocore.exceptions import BotoCoreError
        except ImportError as error:
            raise StorageUnusable(
                "checkpoint storage of type s3 needs boto3 in the environment that runs this: pip install 'tenax[s3]', "
                f"or boto3 ({error})"
            ) from None
        access_key, secret_key = self._keys
        settings = {
            "retries": {"total_max_attempts": _TRIES if self.patient else 2, "mode": "standard"},
            "connect_timeout": 10 if self.patient else 5,
            "read_timeout": 20,
            "max_pool_connections": 4 * PARALLEL,
        }
        with_checksums = {
            "request_checksum_calculation": "when_required",
            "response_checksum_validation": "when_required",
        }
        try:
            # Manifests say what is in a file; servers of others do not know all kinds of checksums.
            config = Config(**settings, **with_checksums)
        except TypeError:  # before botocore 1.36, which asked for none
            config = Config(**settings)
        try:
            session = boto3.session.Session(aws_access_key_id=access_key, aws_secret_access_key=secret_key)
            # A region is part of a signature, and servers of others have none.
            region = session.region_name or ("us-east-1" if self._endpoint else None)
            return session.client("s3", endpoint_url=self._endpoint, config=config, region_name=region)
        except BotoCoreError as error:
            raise BucketFailed(str(error), "Check AWS_PROFILE, and the files that it is in.") from error
        except ValueError as error:
            raise BucketFailed(str(error), "Check endpoint_url: it begins with http:// or https://.") from error


def _transfer() -> Any:
    from boto3.s3.transfer import TransferConfig

    return TransferConfig(
        multipart_threshold=_IN_PARTS, multipart_chunksize=_PART, max_concurrency=PARALLEL, num_download_attempts=10
    )


def _failed(code: str, message: str) -> BucketFailed:
    """What is wrong, by the code of an answer or the name of an exception."""
    if code in _GONE:
        return ObjectGone("a file is not there any more", "Go on from another checkpoint.")
    if code == "NoSuchBucket":
        return BucketFailed("there is no such bucket", "Make it, or name another one in checkpoint_storage.")
    if code in ("AccessDenied", "403", "AllAccessDisabled", "Forbidden"):
        return BucketFailed(
            f"access is denied ({message})",
            "Give these credentials s3:ListBucket, s3:GetObject, s3:PutObject and s3:DeleteObject there.",
        )
    if code in _REFUSED_CREDENTIALS:
        return BucketFailed(
            f"the credentials are refused ({code})",
            "Check access_key and secret_key of checkpoint_storage, or the credentials where this runs.",
        )
    if code in ("NoCredentialsError", "PartialCredentialsError"):
        return BucketFailed(
            "there are no credentials",
            "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (of a task: under environment.environment_variables, or "
            "access_key and secret_key in checkpoint_storage), or give the machine a role.",
        )
    if code in _AWAY:
        return BucketFailed(f"it cannot be reached ({message})", "Check endpoint_url and the network.", passing=True)
    advice = "Check checkpoint_storage, and that the store works."
    return BucketFailed(f"{code}: {message}", advice, passing=code in _BUSY)
