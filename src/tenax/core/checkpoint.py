"""``context.checkpoint``: files that outlive this run. Standard library only, Python 3.9.

Order, which a crash at any instant respects: the upload is announced, files are staged, then ``metadata.json``, then
the checkpoint is committed (whole, and on the disk), and only then it is reported. A checkpoint that was reported can
be resumed from; one that was announced and never reported is found by the master and deleted.

With ``shard=False`` only the chief calls; with ``shard=True`` all ranks call in step and the checkpoint is the union of
what they bring (``tenax.core.sharding`` has the rules).
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress

from tenax.client.connection import fast_json
from tenax.core.modes import DownloadMode
from tenax.core.sharding import (
    conflicts,
    divide,
    inventory_of,
    merge_metadata,
    on_local_chief,
    plain_metadata,
    refuse_unsayable,
    settle,
    together,
)
from tenax.disk import is_full, says_full
from tenax.errors import InvalidInput, NotFound, NotNow
from tenax.storage.files import md5_of, walk_files
from tenax.storage.port import claimed_id
from tenax.wire.spool_names import (
    CHECKPOINT,
    CHECKPOINT_ABANDONED,
    CHECKPOINT_FILES,
    CHECKPOINT_STARTED,
    METADATA_FILE,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from typing import ContextManager, Optional, Tuple, TypeVar, Union

    from tenax.client.task import TaskClient
    from tenax.core.distributed import DistributedContext
    from tenax.core.spool import Spool
    from tenax.jsonvalue import JsonObject
    from tenax.storage.port import Files, Selector, Storage

    T = TypeVar("T")
    PathLike = Union[str, "os.PathLike[str]"]

#: Seconds that a question about a checkpoint waits for its own report to be with the master.
_REPORT_WAIT = 60.0


class CheckpointContext:
    """``client`` None: off the cluster. ``needs_steps``: metadata must say ``steps_completed`` (trials)."""

    def __init__(
        self,
        storage: Storage,
        spool: Spool,
        distributed: DistributedContext,
        client: Optional[TaskClient],
        needs_steps: bool,
    ) -> None:
        self._storage = storage
        #: Of the ids that were made here, until they are reported.
        self._claims: dict[str, str] = {}
        self._spool = spool
        self._distributed = distributed
        self._client = client
        self._needs_steps = needs_steps

    def upload(
        self,
        ckpt_dir: Optional[PathLike],
        metadata: Optional[Mapping[str, object]] = None,
        *,
        shard: bool = False,
        selector: Optional[Selector] = None,
    ) -> str:
        """Store a directory (with ``shard``, one of each rank, or None); the id of the checkpoint, a UUID.

        ``metadata`` holds an integer ``steps_completed`` in a trial. ``selector`` takes a path relative to the
        directory (folders with a slash at the end). The directory itself is not changed. Raises StorageFailed,
        ShardConflict, InvalidInput.
        """
        directory = None if ckpt_dir is None else os.fspath(ckpt_dir)
        if shard:
            storage_id = str(self._distributed.broadcast(self._new_id() if self._distributed.rank == 0 else ""))
            self._upload_sharded(storage_id, directory, metadata, selector)
            return storage_id
        self._refuse_rank("upload")
        if directory is None:
            raise InvalidInput("upload(None) stores nothing: give a directory, or shard=True on all ranks")
        checked = self._checked(metadata)
        storage_id = self._new_id()
        files = inventory_of(directory, selector).files
        with self._announced(storage_id):
            self._storage.stage(storage_id, directory, files)
            self._finish(storage_id, files, checked)
        return storage_id

    def store_path(
        self, metadata: Optional[Mapping[str, object]] = None, *, shard: bool = False
    ) -> ContextManager[Tuple[Path, str]]:
        """A directory to write a checkpoint into, and its id: ``with ... as (path, storage_id)``.

        At the end of the block the checkpoint is stored and reported; if the block raises, nothing is. With ``shard``
        all ranks enter and leave in step; on a shared file system they write into the same directory.
        """
        return self._store_sharded(metadata) if shard else self._store_single(metadata)

    def download(
        self,
        storage_id: str,
        ckpt_dir: PathLike,
        download_mode: DownloadMode = DownloadMode.LocalWorkersShareDownload,
        *,
        selector: Optional[Selector] = None,
    ) -> None:
        """Copy a checkpoint into a directory, made if need be. Raises CheckpointMissing, StorageFailed."""
        target = os.fspath(ckpt_dir)
        self._on_local_chief(download_mode, lambda: self._storage.download(storage_id, target, selector))

    @contextmanager
    def restore_path(
        self,
        storage_id: str,
        download_mode: DownloadMode = DownloadMode.LocalWorkersShareDownload,
        *,
        selector: Optional[Selector] = None,
    ) -> Iterator[Path]:
        """A checkpoint as a directory to read: in place where the storage is a file system, else a temporary copy."""
        from pathlib import Path

        mode = DownloadMode(download_mode)
        path, temporary = self._on_local_chief(mode, lambda: self._fetch(storage_id, selector))
        try:
            yield Path(path)
        finally:
            if temporary:
                if mode is DownloadMode.LocalWorkersShareDownload:
                    self._distributed.allgather_local(None)  # all have read it
                if mode is DownloadMode.NoSharedDownload or self._distributed.local_rank == 0:
                    _remove(path)

    def delete(self, storage_id: str) -> None:
        """Delete a checkpoint's files and tell the master. What is gone already is no error."""
        left = self._storage.delete(storage_id)
        self._spool.report(CHECKPOINT_FILES, fast_json.dumps({"uuid": storage_id, "resources": left}), durable=True)

    def get_metadata(self, storage_id: str) -> JsonObject:
        """The metadata of a checkpoint. Raises NotFound."""
        if self._client is None:
            return self._stored_metadata(storage_id)
        self._spool.flush(_REPORT_WAIT)
        answer = self._client.call("GET", f"/api/v1/checkpoints/{storage_id}")
        checkpoint = answer.get("checkpoint") if isinstance(answer, dict) else None
        metadata = checkpoint.get("metadata") if isinstance(checkpoint, dict) else None
        return metadata if isinstance(metadata, dict) else {}

    def _stored_metadata(self, storage_id: str) -> JsonObject:
        with self.restore_path(storage_id, DownloadMode.NoSharedDownload, selector=METADATA_FILE.__eq__) as path:
            try:
                document = fast_json.loads((path / METADATA_FILE).read_text(encoding="utf-8"))
            except FileNotFoundError:
                raise NotFound(f"checkpoint {storage_id} has no {METADATA_FILE}") from None
        return document if isinstance(document, dict) else {}

    @contextmanager
    def _store_single(self, metadata: Optional[Mapping[str, object]]) -> Iterator[Tuple[Path, str]]:
        from pathlib import Path

        self._refuse_rank("store")
        checked = self._checked(metadata)
        storage_id = self._new_id()
        with self._announced(storage_id), self._workplace(storage_id) as (path, direct):
            yield Path(path), storage_id
            files = self._storage.staged(storage_id) if direct else walk_files(path)
            refuse_unsayable(files or {})
            if not direct:
                self._storage.stage(storage_id, path, files or {})
            self._finish(storage_id, files or {}, checked)

    @contextmanager
    def _store_sharded(self, metadata: Optional[Mapping[str, object]]) -> Iterator[Tuple[Path, str]]:
        from pathlib import Path

        storage_id = str(self._distributed.broadcast(self._new_id() if self._distributed.rank == 0 else ""))
        with self._announced(storage_id), self._workplace(storage_id) as (path, direct):
            failure: Optional[Exception] = None
            try:
                yield Path(path), storage_id
            except Exception as error:  # the other ranks have to hear of it before it goes its way
                failure = error
            if not direct and failure is None:
                self._upload_sharded(storage_id, path, metadata, None)
                return

            def flush() -> tuple[JsonObject, Files]:
                if failure is not None:
                    raise failure
                files = self._storage.staged(storage_id) or {}
                refuse_unsayable(files)
                return plain_metadata(metadata), files

            parts = together(self._distributed, flush)
            self._finish_sharded(storage_id, merge_metadata([part for part, _ in parts]), parts[0][1])

    def _upload_sharded(
        self,
        storage_id: str,
        directory: Optional[str],
        metadata: Optional[Mapping[str, object]],
        selector: Optional[Selector],
    ) -> None:
        rank = self._distributed.rank
        parts = together(self._distributed, lambda: (plain_metadata(metadata), inventory_of(directory, selector)))
        merged = merge_metadata([part for part, _ in parts])
        divided = divide([inventory for _, inventory in parts])
        contested = conflicts(divided)
        digests = together(
            self._distributed,
            lambda: {path: md5_of(os.path.join(directory or "", path)) for path in contested if path in divided[rank]},
        )
        settled = settle(divided, contested, digests)

        def stage() -> None:
            if directory is not None and settled[rank]:
                self._storage.stage(storage_id, directory, settled[rank])

        with self._announced(storage_id):
            together(self._distributed, stage)
            self._finish_sharded(storage_id, merged, {path: size for files in settled for path, size in files.items()})

    def _finish_sharded(self, storage_id: str, metadata: JsonObject, files: Files) -> None:
        def finish() -> None:
            if self._distributed.rank == 0:
                self._finish(storage_id, files, self._checked(metadata))

        together(self._distributed, finish)

    def _finish(self, storage_id: str, files: Files, metadata: JsonObject) -> None:
        """All files are staged: add the metadata, commit, report."""
        text = fast_json.dumps(metadata).encode("ascii")
        self._storage.stage_bytes(storage_id, METADATA_FILE, text)
        self._storage.commit(storage_id)
        steps = metadata.get("steps_completed")
        body = {
            "uuid": storage_id,
            "stepsCompleted": steps if isinstance(steps, int) else 0,
            "metadata": metadata,
            "resources": {**files, METADATA_FILE: len(text)},
            "storage": self._storage.identity(),
            "state": "COMPLETED",
            "claim": self._claims.pop(storage_id),
        }
        self._spool.report(CHECKPOINT, fast_json.dumps(body), urgent=True, durable=True)

    def _new_id(self) -> str:
        """One that nobody else can report, whoever sees its directory."""
        claim = os.urandom(16).hex()
        storage_id = claimed_id(claim)
        self._claims[storage_id] = claim
        return storage_id

    def _checked(self, metadata: Optional[Mapping[str, object]]) -> JsonObject:
        checked = plain_metadata(metadata)
        steps = checked.get("steps_completed")
        if self._needs_steps and (isinstance(steps, bool) or not isinstance(steps, int)):
            raise InvalidInput(
                f"the metadata of a trial's checkpoint must hold a whole number 'steps_completed', not {steps!r}"
            )
        return checked

    @contextmanager
    def _workplace(self, storage_id: str) -> Iterator[tuple[str, bool]]:
        """A directory to write into, and whether it is the storage's own."""
        direct = self._storage.stage_directory(storage_id)
        if direct is not None:
            try:
                yield direct, True
            except Exception as error:
                if not _took_no_more(error, direct):
                    raise
                from tenax.storage.port import StorageFailed

                raise StorageFailed(
                    f"the checkpoint storage is full, or takes no more, at {os.path.dirname(direct)} on "
                    f"{os.uname().nodename}: make room there, or choose another checkpoint_storage ({error})"
                ) from error
            return
        import tempfile

        with tempfile.TemporaryDirectory(prefix="tenax-checkpoint-") as path:
            yield path, False

    @contextmanager
    def _announced(self, storage_id: str) -> Iterator[None]:
        """The chief announces an upload before its first file; on an error it throws the files away and says so."""
        speaks = self._distributed.rank == 0 and self._client is not None
        if speaks:
            body = {"uuid": storage_id, "storage": self._storage.identity(), "claim": self._claims[storage_id]}
            self._spool.report(CHECKPOINT_STARTED, fast_json.dumps(body), durable=True)
        try:
            yield
        except BaseException:
            if self._distributed.rank == 0:
                # Where the files cannot be thrown away the announcement stands, and the master tries.
                with suppress(Exception):
                    self._storage.abandon(storage_id)
                    if speaks:
                        self._spool.report(CHECKPOINT_ABANDONED, fast_json.dumps({"uuid": storage_id}))
            raise

    def _fetch(self, storage_id: str, selector: Optional[Selector]) -> tuple[str, bool]:
        """A directory with the checkpoint, and whether it is a temporary copy."""
        direct = self._storage.direct_path(storage_id)
        if direct is not None:
            return direct, False
        import tempfile

        path = tempfile.mkdtemp(prefix="tenax-checkpoint-")
        try:
            self._storage.download(storage_id, path, selector)
        except BaseException:
            _remove(path)
            raise
        return path, True

    def _refuse_rank(self, what: str) -> None:
        if self._distributed.rank != 0:
            raise NotNow(
                f"only the chief may {what} without shard=True, and this is rank {self._distributed.rank}: "
                "ask distributed.rank == 0 first, or pass shard=True on all ranks"
            )

    def _on_local_chief(self, mode: DownloadMode, step: Callable[[], T]) -> T:
        """Run ``step`` on this rank, or once for all ranks of this machine, as ``mode`` says."""
        if DownloadMode(mode) is DownloadMode.NoSharedDownload:
            return step()
        return on_local_chief(self._distributed, step)


def _remove(path: str) -> None:
    import shutil

    shutil.rmtree(path, ignore_errors=True)


def _took_no_more(error: Exception, path: str) -> bool:
    """Whether a block that writes a checkpoint failed since its storage is full; not every library says so."""
    import errno

    return says_full(error) or is_full(path) or (isinstance(error, OSError) and error.errno == errno.EROFS)
