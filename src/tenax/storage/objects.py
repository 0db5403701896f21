"""Checkpoints in a store of objects, whichever speaks to it. Standard library only, Python 3.9.

``<prefix>/<id>/<path>`` is a file of a checkpoint, and an empty object whose name ends in ``/`` a directory: the layout
of Determined, whose checkpoints are read and whose client reads these. A store has no rename, so what is being staged
lies there already; ``<prefix>/.<id>.partial`` is put before its first file and removed by the commit. While that is
there, nothing of it is a checkpoint. A store that is away for a while is waited for. Where the operator has chosen
that, files that later checkpoints may have, too, lie elsewhere (`tenax.storage.shared_files`); everybody reads them.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial

from tenax.backoff import Backoff
from tenax.errors import InvalidInput
from tenax.storage.directory import trimmed
from tenax.storage.files import select
from tenax.storage.globs import parents
from tenax.storage.port import (
    EVERYTHING,
    CheckpointMissing,
    Storage,
    StorageFailed,
    StorageUnusable,
    checked_id,
    inside,
)
from tenax.storage.shared_files import FOLDER, IndexUnreadable, SharedFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Dict, Optional, Protocol, Set, TypeVar

    from tenax.jsonvalue import JsonObject
    from tenax.storage.manifest import StoredFiles
    from tenax.storage.port import Files, Selector
    from tenax.storage.shared_files import Shared

    T = TypeVar("T")
else:
    Protocol = object

#: Bytes that are fetched at once of a file that is passed on.
_PIECE = 2 * 1024 * 1024
#: Files that are sent or fetched at once; a large one is sent in several parts at once, too.
PARALLEL = 4
#: Bytes from which on a file is worth the requests that sharing it takes.
_SHARED_FROM = 64 * 1024
#: Pauses between two tries while a store is away: its library has tried some times before.
_PAUSES = Backoff(first=1.0, ceiling=20.0)
#: Seconds for which the libraries of stores try by themselves what is not answered, about.
_LIBRARY_WAITS_S = 60.0
_SAID_EVERY_S = 30.0


class BucketFailed(Exception):
    """A store does not do what it was asked: the reason, and what to do. ``passing``: it may, a little later."""

    def __init__(self, reason: str, advice: str, *, passing: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.advice = advice
        self.passing = passing


class ObjectGone(BucketFailed):
    """There is no such object."""


class Bucket(Protocol):
    """Objects by name. All methods may be called from several threads, and raise BucketFailed."""

    #: Whether its library tries for minutes what does not work; to be set before the first call.
    patient: bool

    def write(self, key: str, data: bytes) -> None:
        """Put a small object, over what is there."""

    def read(self, key: str) -> Optional[bytes]:
        """A small object; None: there is none."""

    def upload(self, key: str, path: str) -> None:
        """Put a file; a large one in parts. What broke off is tried again."""

    def download(self, key: str, path: str) -> None:
        """Write an object into a file. What broke off is tried again, from where it was."""

    def read_part(self, key: str, start: int, size: int) -> bytes:
        """``size`` bytes of an object from ``start`` on; fewer at its end, of which one at least is left."""

    def entries(self, prefix: str, limit: Optional[int] = None) -> Iterable[tuple[str, int]]:
        """Names that begin so, and their bytes, in order; ``limit``: no more than that."""

    def delete(self, keys: Sequence[str]) -> None:
        """What is gone already is no error."""

    def forget_uploads(self, prefix: str) -> None:
        """Throw away parts of uploads that broke off, where the store keeps those."""


class ObjectStorage(Storage):
    """Checkpoints below ``prefix``. ``identity`` is the configuration that names the place, ``label`` names it for
    people."""

    #: Seconds for which a store that is away is waited for, where checkpoints are stored and fetched.
    waits_for_s = 300.0
    #: Of a checkpoint with more files nothing is listed; None: however many there are.
    most_files: Optional[int] = None

    def __init__(self, bucket: Bucket, prefix: Optional[str], *, identity: JsonObject, label: str) -> None:
        self._bucket = bucket
        self._prefix = "".join(f"{part}/" for part in (prefix or "").split("/") if part not in ("", "."))
        self._identity = identity
        self.label = label
        #: Checkpoints whose mark this has put.
        self._begun: set[str] = set()
        self._shared = SharedFiles(bucket, self._prefix, self._tried, self._at_once)
        #: Of checkpoints that were listed: where the files are that they share.
        self._elsewhere: Dict[str, Shared] = {}
        self._hear: Callable[[], None] = lambda: None
        #: When it was last said that the store is away: several files are on their way at once.
        self._said_at = -_SAID_EVERY_S

    def tell_waiting(self, hear: Callable[[], None]) -> None:
        self._hear = hear

    def identity(self) -> JsonObject:
        return self._identity

    def share_unchanged(self) -> None:
        self.shares = True

    def hurry(self, most_files: int) -> None:
        """Somebody waits for the answer: it is asked once or twice, and a checkpoint of many files is refused."""
        self.waits_for_s = 0.0
        self.most_files = most_files
        self._bucket.patient = False

    def validate(self) -> None:
        key = f"{self._prefix}.check-{os.urandom(8).hex()}"
        content = b"Written to see whether checkpoints can be stored here; may be deleted.\n"
        with self._explained("be written"):
            self._tried(lambda: self._bucket.write(key, content))
            try:
                if self._tried(lambda: self._bucket.read(key)) != content:
                    raise BucketFailed("what was written is not what is read back", "Look at the store's own log.")
            finally:
                self._tried(lambda: self._bucket.delete([key]))

    def stage(self, storage_id: str, source: str, paths: Iterable[str]) -> None:
        place = self._place(storage_id)
        named = [inside(path) for path in paths]
        with self._explained("be written"):
            self._tried(lambda: self._begin(storage_id))

            def put(path: str) -> None:
                if path.endswith("/"):
                    self._bucket.write(place + path, b"")
                else:
                    self._bucket.upload(place + path, os.path.join(source, path))

            sizes = self._worth_sharing(source, named)
            self._shared.forget(storage_id, [path for path in named if path not in sizes])
            self._at_once(put, [path for path in named if path not in sizes])
            if sizes:
                self._shared.upload(storage_id, source, sizes)

    def _worth_sharing(self, source: str, paths: Sequence[str]) -> Dict[str, int]:
        if not self.shares:
            return {}
        files = (path for path in paths if not path.endswith("/"))
        sizes = {path: os.stat(os.path.join(source, path)).st_size for path in files}
        return {path: size for path, size in sizes.items() if size >= _SHARED_FROM}

    def reuse(self, storage_id: str, source: str, earlier: StoredFiles, paths: Mapping[str, str]) -> Set[str]:
        if not self.shares or not paths:
            return set()
        try:
            self._files(earlier.storage_id)
        except (CheckpointMissing, IndexUnreadable):  # deleted or damaged meanwhile: this one is stored all the same
            return set()
        theirs = self._elsewhere.pop(earlier.storage_id)
        known = {inside(path): theirs[other] for path, other in paths.items() if other in theirs}
        with self._explained("be written"):
            self._tried(lambda: self._begin(storage_id))
            return self._shared.share(storage_id, known) if known else set()

    def stage_bytes(self, storage_id: str, path: str, data: bytes) -> None:
        key = self._place(storage_id) + inside(path)
        with self._explained("be written"):
            self._tried(lambda: self._begin(storage_id))
            self._tried(lambda: self._bucket.write(key, data))

    def stage_directory(self, storage_id: str) -> Optional[str]:
        return None

    def staged(self, storage_id: str) -> Optional[Files]:
        return None

    def commit(self, storage_id: str) -> None:
        place = self._place(storage_id)
        with self._explained("be written"):
            self._tried(lambda: self._bucket.delete([self._mark(storage_id)]))
            self._begun.discard(storage_id)
            self._shared.written(storage_id)
            if not self._tried(lambda: list(self._bucket.entries(place, limit=1))):
                raise CheckpointMissing(f"nothing of checkpoint {storage_id} is in {self.label}")

    def abandon(self, storage_id: str) -> None:
        place, mark = self._place(storage_id), self._mark(storage_id)
        with self._explained("be changed"):
            if not self._is_marked(storage_id):
                return
            self._bucket.forget_uploads(place)
            self._throw_away(storage_id)
            # Last: whoever does this again finds what is left.
            self._bucket.delete([mark])
            self._begun.discard(storage_id)

    def _throw_away(self, storage_id: str) -> None:
        """All objects of what is no checkpoint, and its holds on files of others."""
        place = self._place(storage_id)
        listed = {key[len(place) :]: size for key, size in self._bucket.entries(place)}
        self._shared.let_go(storage_id, place, listed)
        self._bucket.delete([place + name for name in listed if not name.startswith(FOLDER)])
        self._bucket.delete([place + name for name in listed if name.startswith(FOLDER)])

    def direct_path(self, storage_id: str) -> Optional[str]:
        place = self._place(storage_id)
        with self._explained("be read"):
            listed = self._tried(lambda: list(self._bucket.entries(place, limit=1)))
            if not listed or self._tried(lambda: self._is_marked(storage_id)):
                raise CheckpointMissing(f"there is no checkpoint {storage_id} in {self.label} (looked for {place})")
        return None

    def list_files(self, storage_id: str) -> Files:
        files = self._files(storage_id)
        for path in files:
            # Whoever may write into a bucket chooses the names in it.
            inside(path)
        return files

    def _files(self, storage_id: str) -> Files:
        self.direct_path(storage_id)
        place = self._place(storage_id)
        with self._explained("be read"):
            most = None if self.most_files is None else self.most_files + 1
            entries = self._tried(lambda: list(self._bucket.entries(place, most)))
            if most is not None and len(entries) >= most:
                raise self._too_many(storage_id)
            listed = {key[len(place) :]: size for key, size in entries}
            shared = self._elsewhere[storage_id] = self._shared.read(place, listed)
        files = {path: size for path, size in listed.items() if path and not path.startswith(FOLDER)}
        files.update({path: size for path, (_, size) in shared.items()})
        if self.most_files is not None and len(files) > self.most_files:
            raise self._too_many(storage_id)
        return {path: 0 if path.endswith("/") else files[path] for path in sorted(files)}

    def _too_many(self, storage_id: str) -> StorageFailed:
        return StorageFailed(
            f"checkpoint {storage_id} in {self.label} has more than {self.most_files} files, which are too many to go "
            "through here: fetch it from its storage, with credentials of yours"
        )

    def download(self, storage_id: str, target: str, selector: Optional[Selector] = None) -> None:
        files = self.list_files(storage_id)
        chosen = list(select(files, selector) if selector is not None else files)
        self._refuse_no_files(storage_id, chosen)
        os.makedirs(target, exist_ok=True)
        for path in chosen:
            for folder in (*parents(path), *((path,) if path.endswith("/") else ())):
                os.makedirs(os.path.join(target, folder), exist_ok=True)
        fetched = [path for path in chosen if not path.endswith("/")]
        with self._explained("be read"):
            self._at_once(
                lambda path: self._bucket.download(self._key(storage_id, path), os.path.join(target, path)), fetched
            )

    def _key(self, storage_id: str, path: str) -> str:
        """The object with a file of a checkpoint that was listed."""
        shared = self._elsewhere.get(storage_id, {}).get(path)
        return self._place(storage_id) + inside(path) if shared is None else self._shared.key(shared[0])

    def _refuse_no_files(self, storage_id: str, paths: Sequence[str]) -> None:
        """Raises StorageFailed for names of objects that no file system can hold: a store allows nearly all."""
        folders = {folder for path in paths for folder in parents(path)}
        for path in paths:
            parts = path.removesuffix("/").split("/")
            if f"{path}/" in folders or any(part in ("", ".") or len(os.fsencode(part)) > 255 for part in parts):
                raise StorageFailed(
                    f"{path[:100]!r} of checkpoint {storage_id} in {self.label} cannot be a file here: delete it "
                    "there, or fetch the others alone, with a selector"
                )

    def pieces(self, storage_id: str, path: str, size: int) -> Iterator[bytes]:
        """One file of a checkpoint, as `list_files` names and measures it; a piece at a time is held."""
        key = self._key(storage_id, path)
        start = 0
        while start < size:
            with self._explained("be read"):
                piece = self._tried(partial(self._bucket.read_part, key, start, min(_PIECE, size - start)))
            if not piece:
                raise StorageFailed(f"{path} of checkpoint {storage_id} in {self.label} is shorter than {size} bytes")
            start += len(piece)
            yield piece

    def put(self, path: str, source: str, *, flush: bool = False) -> None:
        key = self._prefix + inside(path)
        with self._explained("be written"):
            if flush:
                self._tried(lambda: self._bucket.upload(key, source))
            else:
                # What may be lost is not worth a wait.
                self._bucket.upload(key, source)

    def delete_beside(self, path: str) -> bool:
        folder = f"{self._prefix}{inside(path)}/"
        with self._explained("be changed"):
            keys = [key for key, _ in self._bucket.entries(folder)]
            self._bucket.delete(keys)
        return bool(keys)

    def delete(self, storage_id: str, globs: Sequence[str] = EVERYTHING) -> Files:
        place, mark = self._place(storage_id), self._mark(storage_id)
        try:
            files = self._files(storage_id)
        except CheckpointMissing:
            return {}
        removed = set(files) if tuple(globs) == EVERYTHING else trimmed(files, globs)
        left = {path: size for path, size in files.items() if path not in removed}
        whole = not any(not path.endswith("/") for path in left)
        with self._explained("be changed"):
            if whole:
                # Nobody finds half of it; what breaks off is thrown away as an upload is.
                self._bucket.write(mark, b"")
                self._throw_away(storage_id)
                self._bucket.delete([place, mark])
                return {}
            shared = self._elsewhere[storage_id]
            if not removed.isdisjoint(shared):
                listed = {key[len(place) :]: size for key, size in self._bucket.entries(place + FOLDER)}
                self._shared.trim(storage_id, place, listed, removed)
            self._bucket.delete([place + path for path in removed if path not in shared])
        return left

    def _begin(self, storage_id: str) -> None:
        if storage_id not in self._begun:
            self._bucket.write(self._mark(storage_id), b"")
            self._begun.add(storage_id)

    def _is_marked(self, storage_id: str) -> bool:
        """Listed, not read: whoever may write there chooses how large it is."""
        mark = self._mark(storage_id)
        return any(key == mark for key, _ in self._bucket.entries(mark, limit=1))

    def _place(self, storage_id: str) -> str:
        return f"{self._prefix}{checked_id(storage_id)}/"

    def _mark(self, storage_id: str) -> str:
        return f"{self._prefix}.{checked_id(storage_id)}.partial"

    def _tried(self, step: Callable[[], T]) -> T:
        """Try it until the store is there, for ``waits_for_s``. Raises BucketFailed."""
        until, tries, began = 0.0, 0, time.monotonic()
        while True:
            try:
                return step()
            except BucketFailed as error:
                tries += 1
                self._hear()
                now = time.monotonic()
                # What its library has waited for by itself counts; what a large file has taken until then does not.
                until = until or now + self.waits_for_s - min(now - began, _LIBRARY_WAITS_S)
                pause = _PAUSES.after(tries)
                if not error.passing or time.monotonic() + pause > until:
                    raise
                if tries == 1 and now >= self._said_at + _SAID_EVERY_S:
                    self._said_at = now
                    words = f"{error.reason}; it is tried again for up to {self.waits_for_s:.0f} s"
                    sys.stderr.write(f"tenax: warning: the checkpoint storage: {words}\n")
            time.sleep(pause)

    def _at_once(self, step: Callable[[str], None], paths: Sequence[str]) -> None:
        at_once(lambda path: self._tried(partial(step, path)), paths)

    @contextmanager
    def _explained(self, verb: str) -> Iterator[None]:
        """Turn what a store says into words that say where, and what to do."""
        try:
            yield
        except BucketFailed as error:
            failed = StorageFailed if error.passing else StorageUnusable
            raise failed(
                f"checkpoint storage {self.label} cannot {verb} from {os.uname().nodename}: {error.reason}. "
                f"{error.advice}"
            ) from error


def checked_prefix(prefix: Optional[str]) -> Optional[str]:
    """What all names begin with. Raises InvalidInput where it climbs out of its bucket."""
    if ".." in (prefix or "").split("/"):
        raise InvalidInput(f"checkpoint_storage.prefix {prefix!r} climbs out of its bucket: leave '..' out of it")
    return prefix


class PerProcess:
    """A client of a store, made when it is first used, and again in a process that was forked: connections are not
    shared."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: Any = None
        self._pid = 0

    def get(self) -> Any:
        """Raises what making it raises."""
        with self._lock:
            if self._made is None or self._pid != os.getpid():
                self._made, self._pid = self._make(), os.getpid()
            return self._made


def at_once(step: Callable[[str], None], names: Sequence[str]) -> None:
    """For each, some at once. Raises what one of them raised; the others that have begun are waited for."""
    if len(names) < 2:
        for name in names:
            step(name)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(PARALLEL, thread_name_prefix="tenax-objects") as pool:
        futures = [pool.submit(step, name) for name in names]
        try:
            for future in futures:
                future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            raise
