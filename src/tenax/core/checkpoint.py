"""``context.checkpoint``: files that outlive this run. Standard library only, Python 3.9.

Order, which a crash at any instant respects: the upload is announced, files are staged, then ``metadata.json``, then
the manifest (size and digest of each), then the checkpoint is committed (whole, and on the disk), and only then it is
reported. A checkpoint that was reported can be resumed from; one that was announced and never reported is found by the
master and deleted. A file that the checkpoint before had, too, is not stored again, where the storage can share it.

One checkpoint is stored at a time: whatever comes after `CheckpointContext.store_async` waits for its end first.

With ``shard=False`` only the chief calls; with ``shard=True`` all ranks call in step and the checkpoint is the union of
what they bring (``tenax.core.sharding`` has the rules).
"""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import contextmanager, suppress

from tenax.client.connection import fast_json
from tenax.core.hangs import beats
from tenax.core.integrity import verified
from tenax.core.modes import DownloadMode
from tenax.core.pending import PendingCheckpoint, SaveUnfinished
from tenax.core.sharding import (
    Inventory,
    conflicts,
    divide,
    inventory_of,
    merge_metadata,
    on_local_chief,
    plain_metadata,
    settle,
    together,
)
from tenax.core.spool import report_wait, say
from tenax.core.staging import listed, part_of, stage, stored_files, temporary_place, union, workplace
from tenax.errors import InvalidInput, NotFound, NotNow
from tenax.storage.files import md5_of
from tenax.storage.manifest import content_of, encoded, including_manifest
from tenax.storage.port import claimed_id
from tenax.wire.spool_names import (
    CHECKPOINT,
    CHECKPOINT_ABANDONED,
    CHECKPOINT_FILES,
    CHECKPOINT_STARTED,
    MANIFEST_FILE,
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
    from tenax.storage.manifest import Manifest, StoredFiles
    from tenax.storage.port import Files, Selector, Storage

    T = TypeVar("T")
    PathLike = Union[str, "os.PathLike[str]"]

#: Seconds that a question about a checkpoint waits for its own report to be with the master.
_REPORT_WAIT = 60.0
#: Seconds after which the end of a script says that it waits for a checkpoint.
_SAY_AFTER = 5.0


class CheckpointContext:
    """``client`` None: off the cluster. ``needs_steps``: metadata must say ``steps_completed`` (trials). ``trial_id``:
    whose other checkpoints are named where one is damaged."""

    def __init__(
        self,
        storage: Storage,
        spool: Spool,
        distributed: DistributedContext,
        client: Optional[TaskClient],
        needs_steps: bool,
        trial_id: Optional[int] = None,
    ) -> None:
        self._storage = storage
        storage.tell_waiting(beats.OWN.beat)
        #: Of the ids that were made here, until they are reported.
        self._claims: dict[str, str] = {}
        self._spool = spool
        self._distributed = distributed
        self._client = client
        self._needs_steps = needs_steps
        self._trial_id = trial_id
        self._pending: Optional[PendingCheckpoint] = None
        #: Of the checkpoint that was stored or read last: what the next one has, too, is not stored again.
        self._earlier: Optional[StoredFiles] = None

    @property
    def storage(self) -> Storage:
        """Where checkpoints lie, and whatever is put beside them."""
        return self._storage

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
        ShardConflict, InvalidInput, and what an earlier `store_async` failed with.
        """
        directory = None if ckpt_dir is None else os.fspath(ckpt_dir)
        with beats.OWN.during(beats.SAVE):
            return self._upload(directory, metadata, shard, selector)

    def _upload(
        self,
        directory: Optional[str],
        metadata: Optional[Mapping[str, object]],
        shard: bool,
        selector: Optional[Selector],
    ) -> str:
        if shard:
            storage_id = str(self._distributed.broadcast(self._new_id() if self._distributed.rank == 0 else ""))
            self._upload_sharded(storage_id, directory, metadata, selector)
            return storage_id
        self._refuse_rank("upload")
        if directory is None:
            raise InvalidInput("upload(None) stores nothing: give a directory, or shard=True on all ranks")
        checked = self._checked(metadata)
        self._settle()
        storage_id = self._new_id()
        files = inventory_of(directory, selector).files
        with self._announced(storage_id):
            self._finish(storage_id, files, checked, self._stage(storage_id, directory, files, direct=False))
        return storage_id

    def store_path(
        self, metadata: Optional[Mapping[str, object]] = None, *, shard: bool = False
    ) -> ContextManager[Tuple[Path, str]]:
        """A directory to write a checkpoint into, and its id: ``with ... as (path, storage_id)``.

        At the end of the block the checkpoint is stored and reported; if the block raises, nothing is. With ``shard``
        all ranks enter and leave in step; on a shared file system they write into the same directory.
        """
        if shard:
            return self._store_sharded(metadata)
        self._refuse_rank("store")
        return self._store_single(metadata)

    def store_async(
        self, take: Callable[[], Callable[[Path], None]], metadata: Optional[Mapping[str, object]] = None
    ) -> PendingCheckpoint:
        """Store a checkpoint in the background, on the chief; at most one at a time.

        ``take`` is called here, once an earlier save has ended: it copies what is to be stored and returns a function
        that writes the copy into a directory. That runs in a thread, and may call nothing of this context. What the
        loop waits for is ``take``, and an earlier save that is not done. Raises InvalidInput, NotNow, what ``take``
        raises, and what the earlier save failed with: then nothing of this one is stored.
        """
        self._refuse_rank("store")
        checked = self._checked(metadata)
        with beats.OWN.during(beats.SAVE):
            self._settle()
            write = take()
        storage_id = self._new_id()

        def store() -> None:
            with self._stored(storage_id, checked) as path:
                write(path)

        if self._pending is None:
            atexit.register(self._at_exit)
        self._pending = PendingCheckpoint(storage_id, store)
        return self._pending

    def download(
        self,
        storage_id: str,
        ckpt_dir: PathLike,
        download_mode: DownloadMode = DownloadMode.LocalWorkersShareDownload,
        *,
        selector: Optional[Selector] = None,
        verify: bool = True,
    ) -> None:
        """Copy a checkpoint into a directory, made if need be. Raises CheckpointMissing, CheckpointDamaged,
        StorageFailed. ``verify`` False: it is not held against what was stored."""
        target = os.fspath(ckpt_dir)
        with beats.OWN.during(beats.RESTORE):
            self._settle(storage_id)
            self._on_local_chief(download_mode, lambda: self._download(storage_id, target, selector, verify))

    @contextmanager
    def restore_path(
        self,
        storage_id: str,
        download_mode: DownloadMode = DownloadMode.LocalWorkersShareDownload,
        *,
        selector: Optional[Selector] = None,
        verify: bool = True,
    ) -> Iterator[Path]:
        """A checkpoint as a directory to read: in place where the storage is a file system, else a temporary copy.

        Its files (those that ``selector`` takes) are read first and held against what was stored, unless ``verify`` is
        False. Never write into it: other checkpoints may share its files. Raises CheckpointMissing, CheckpointDamaged.
        """
        from pathlib import Path

        mode = DownloadMode(download_mode)
        with beats.OWN.during(beats.RESTORE):
            self._settle(storage_id)
            path, temporary = self._on_local_chief(mode, lambda: self._fetch(storage_id, selector, verify))
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
        self._settle(storage_id)
        left = self._storage.delete(storage_id)
        self._spool.report(CHECKPOINT_FILES, fast_json.dumps({"uuid": storage_id, "resources": left}), durable=True)

    def get_metadata(self, storage_id: str) -> JsonObject:
        """The metadata of a checkpoint. Raises NotFound."""
        self._settle(storage_id)
        if self._client is None:
            return self._stored_metadata(storage_id)
        self._spool.flush(_REPORT_WAIT)
        answer = self._client.call("GET", f"/api/v1/checkpoints/{storage_id}")
        checkpoint = answer.get("checkpoint") if isinstance(answer, dict) else None
        metadata = checkpoint.get("metadata") if isinstance(checkpoint, dict) else None
        return metadata if isinstance(metadata, dict) else {}

    def _stored_metadata(self, storage_id: str) -> JsonObject:
        mode = DownloadMode.NoSharedDownload
        with self.restore_path(storage_id, mode, selector=METADATA_FILE.__eq__, verify=False) as path:
            try:
                document = fast_json.loads((path / METADATA_FILE).read_text(encoding="utf-8"))
            except FileNotFoundError:
                raise NotFound(f"checkpoint {storage_id} has no {METADATA_FILE}") from None
        return document if isinstance(document, dict) else {}

    def close(self) -> Optional[BaseException]:
        """Wait for a save in the background, as long as a script waits for its last reports; what it failed with, if
        nobody was given that."""
        pending, self._pending = self._pending, None
        if pending is None or not pending.is_own():
            return None
        atexit.unregister(self._at_exit)
        seconds = report_wait()
        ended = pending.ends_within(min(_SAY_AFTER, seconds))
        if not ended and seconds > _SAY_AFTER:
            say(f"waiting up to {seconds:.0f} s until checkpoint {pending.storage_id} is stored")
            ended = pending.ends_within(seconds - _SAY_AFTER)
        if ended:
            return pending.failure()
        return SaveUnfinished(
            f"checkpoint {pending.storage_id} is not stored after {seconds:.0f} s (DET_REPORT_WAIT): nothing of it "
            "counts as a checkpoint, and the one before is where this trial goes on. Is its storage slow, or away?"
        )

    def _at_exit(self) -> None:
        """For a context that nobody closed."""
        failure = self.close()
        if failure is not None:
            say(f"a checkpoint is lost: {failure}")

    def _settle(self, storage_id: Optional[str] = None) -> None:
        """Wait for the save in the background, or only if it is that of this checkpoint. Raises what it failed with."""
        pending = self._pending
        if pending is None or not pending.is_own() or storage_id not in (None, pending.storage_id):
            return
        pending.ends_within(threading.TIMEOUT_MAX)
        failure = pending.failure()
        if failure is not None:
            raise failure

    @contextmanager
    def _store_single(self, metadata: Optional[Mapping[str, object]]) -> Iterator[Tuple[Path, str]]:
        checked = self._checked(metadata)
        with beats.OWN.during(beats.SAVE):
            self._settle()
            storage_id = self._new_id()
            with self._stored(storage_id, checked) as path:
                yield path, storage_id

    @contextmanager
    def _stored(self, storage_id: str, metadata: JsonObject) -> Iterator[Path]:
        """What is written into the path becomes the checkpoint, which is reported. Needs no other rank, and no
        particular thread."""
        from pathlib import Path

        with self._announced(storage_id), workplace(self._storage, storage_id) as (path, direct):
            yield Path(path)
            files = listed(path)
            self._finish(storage_id, files, metadata, self._stage(storage_id, path, files, direct))

    @contextmanager
    def _store_sharded(self, metadata: Optional[Mapping[str, object]]) -> Iterator[Tuple[Path, str]]:
        from pathlib import Path

        storage_id = str(self._distributed.broadcast(self._new_id() if self._distributed.rank == 0 else ""))
        saving = beats.OWN.during(beats.SAVE)
        with saving, self._announced(storage_id), workplace(self._storage, storage_id) as (path, direct):
            failure: Optional[Exception] = None
            try:
                yield Path(path), storage_id
            except Exception as error:  # the other ranks have to hear of it before it goes its way
                failure = error
            if not direct and failure is None:
                self._upload_sharded(storage_id, path, metadata, None)
                return

            def look() -> JsonObject:
                if failure is not None:
                    raise failure
                self._settle()
                return plain_metadata(metadata)

            parts = together(self._distributed, look)
            # All have written. Of what they share each reads a part, and each flushes what its machine wrote.
            rank, size = self._distributed.rank, self._distributed.size
            files = together(self._distributed, lambda: listed(path) if rank == 0 else {})[0]
            mine = part_of(path, files, rank, size)
            manifests = together(self._distributed, lambda: self._stage(storage_id, path, mine, direct=True))
            self._finish_sharded(storage_id, merge_metadata(parts), files, union(manifests))

    def _upload_sharded(
        self,
        storage_id: str,
        directory: Optional[str],
        metadata: Optional[Mapping[str, object]],
        selector: Optional[Selector],
    ) -> None:
        rank = self._distributed.rank

        def look() -> tuple[JsonObject, Inventory]:
            self._settle()
            return plain_metadata(metadata), inventory_of(directory, selector)

        parts = together(self._distributed, look)
        merged = merge_metadata([part for part, _ in parts])
        divided = divide([inventory for _, inventory in parts])
        contested = conflicts(divided)
        digests = together(
            self._distributed,
            lambda: {path: md5_of(os.path.join(directory or "", path)) for path in contested if path in divided[rank]},
        )
        settled = settle(divided, contested, digests)

        def bring() -> Manifest:
            if directory is None or not settled[rank]:
                return {}
            return self._stage(storage_id, directory, settled[rank], direct=False)

        with self._announced(storage_id):
            manifest = union(together(self._distributed, bring))
            files = {path: size for files in settled for path, size in files.items()}
            self._finish_sharded(storage_id, merged, files, manifest)

    def _finish_sharded(self, storage_id: str, metadata: JsonObject, files: Files, manifest: Manifest) -> None:
        def finish() -> None:
            if self._distributed.rank == 0:
                self._finish(storage_id, files, self._checked(metadata), manifest)

        together(self._distributed, finish)
        if self._distributed.rank != 0:
            self._earlier = stored_files(self._storage, storage_id, manifest)

    def _stage(self, storage_id: str, directory: str, files: Files, direct: bool) -> Manifest:
        """Put files of a directory into the checkpoint to be, which may be the storage's own (``direct``): on the disk,
        and not again where the checkpoint before has the same. What is in them."""
        return stage(self._storage, storage_id, directory, files, direct, self._earlier)

    def _finish(self, storage_id: str, files: Files, metadata: JsonObject, manifest: Manifest) -> None:
        """All files are staged: add the metadata and the manifest, commit, report."""
        text = fast_json.dumps(metadata).encode("ascii")
        manifest = {path: content for path, content in manifest.items() if path != MANIFEST_FILE}
        manifest[METADATA_FILE] = content_of(text)
        listed = encoded(manifest)
        self._storage.stage_bytes(storage_id, METADATA_FILE, text)
        self._storage.stage_bytes(storage_id, MANIFEST_FILE, listed)
        self._storage.commit(storage_id)
        self._earlier = stored_files(self._storage, storage_id, manifest)
        steps = metadata.get("steps_completed")
        body = {
            "uuid": storage_id,
            "stepsCompleted": steps if isinstance(steps, int) else 0,
            "metadata": metadata,
            "resources": {**files, METADATA_FILE: len(text), MANIFEST_FILE: len(listed)},
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

    def _fetch(self, storage_id: str, selector: Optional[Selector], verify: bool) -> tuple[str, bool]:
        """A directory with the checkpoint, and whether it is a temporary copy."""
        direct = self._storage.direct_path(storage_id)
        if direct is not None:
            if verify:
                stored = verified(storage_id, direct, selector, self._client, self._trial_id)
                if self._earlier is None:
                    self._earlier = stored
            return direct, False
        import tempfile

        path = tempfile.mkdtemp(prefix="tenax-checkpoint-")
        try:
            with temporary_place(path):
                self._download(storage_id, path, selector, verify)
        except BaseException:
            _remove(path)
            raise
        return path, True

    def _download(self, storage_id: str, target: str, selector: Optional[Selector], verify: bool) -> None:
        if not verify:
            self._storage.download(storage_id, target, selector)
            return
        with_manifest = None if selector is None else including_manifest(selector)
        self._storage.download(storage_id, target, with_manifest)
        stored = verified(storage_id, target, selector, self._client, self._trial_id)
        if stored is not None and self._earlier is None and self._storage.shares:
            self._earlier = stored.in_store()
        if selector is not None:  # which is not asked about it
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(target, MANIFEST_FILE))

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
