"""Files that several checkpoints in a store of objects have, stored once. Standard library only, Python 3.9.

``<prefix>/.shared/<file>/data`` is such a file, under an id that never comes again; ``for-<id>`` beside it says that
checkpoint ``<id>`` has it: a hold. ``<prefix>/<id>/.tenax-files/writer-*.json``, an index, says which files a
checkpoint has there, under which paths. Rules that keep a file for as long as a checkpoint has it, whoever is killed in
between, and with no other means than that a store shows at once what was put into it:

- What a checkpoint may hold is in an index before it is held, and stays there until it was let go: so whoever throws
  away a checkpoint, or half of one, finds all of its holds. Indexes go last.
- Whoever would delete a file finds no hold on it, marks it (``closed``), and looks again: only then it is deleted.
- Whoever would share a file holds it first, and looks then: where it is marked, or gone, he lets go and stores his own.
  Of the two, who put his word first is seen by the other. A mark stays where the second look found a hold: the file
  lives as long as that, and nobody else comes to share it.

A client that knows nothing of this finds, before all else, a name that no file system can hold, and which says what to
do: it fails, where it would take what lies there for all of the checkpoint.
"""

from __future__ import annotations

import os
import re

from tenax.storage.port import StorageFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Dict, Optional, Protocol, Set, Tuple, TypeVar

    from tenax.storage.objects import Bucket

    T = TypeVar("T")

    class Tried(Protocol):
        """Takes a step, again while the store is away."""

        def __call__(self, step: Callable[[], T], /) -> T: ...

    #: Path in a checkpoint -> the shared file, and its bytes.
    Shared = Dict[str, Tuple[str, int]]

#: Below a checkpoint: what is no file of it.
FOLDER = ".tenax-files/"
_DATA, _CLOSED, _HOLD = "data", "closed", "for-"
_FILE = re.compile(r"[0-9a-f]{32}")
#: Of an index that is read, at most: whoever may write into a bucket chooses how large it is.
_MAX_BYTES = 64 * 1024 * 1024
#: Longer than the name of any file may be.
_REFUSAL = (
    "This checkpoint shares files with others, so that they are stored once: a client that reads the bucket itself "
    "does not find all of it. Fetch it through the master: tenax checkpoint download UUID, or, with Determined's "
    "client, det checkpoint download --mode master UUID"
).ljust(300, ".")


class IndexUnreadable(StorageFailed):
    """What a checkpoint says of its shared files is not what was written."""


class _Index:
    """What one writer has put into a checkpoint."""

    def __init__(self, key: str, files: Shared, held: Set[str]) -> None:
        self.key = key
        self.files = files
        #: All shared files on which the checkpoint may have a hold.
        self.held = held

    def encoded(self) -> bytes:
        import json

        listed = {path: list(file) for path, file in self.files.items()}
        return json.dumps({"files": listed, "held": sorted(self.held)}).encode()


class SharedFiles:
    """Those below ``prefix``. ``tried`` and ``at_once``: how steps are taken, as `tenax.storage.objects` does."""

    def __init__(
        self,
        bucket: Bucket,
        prefix: str,
        tried: Tried,
        at_once: Callable[[Callable[[str], None], Sequence[str]], None],
    ) -> None:
        self._bucket = bucket
        self._prefix = prefix
        self._tried = tried
        self._at_once = at_once
        #: Of checkpoints that this writes.
        self._own: dict[str, _Index] = {}

    def key(self, file: str) -> str:
        """The object that holds it."""
        return self._folder(file) + _DATA

    def share(self, storage_id: str, paths: Shared) -> Set[str]:
        """Have the checkpoint to be hold files of another one; which it holds now."""
        index = self._index(storage_id)
        sizes = dict(paths.values())
        index.held |= sizes.keys()
        self._put(index)
        open_to_all: Set[str] = set()

        def hold(file: str) -> None:
            self._bucket.write(self._hold(storage_id, file), b"")
            if self._open(file, sizes[file]):
                open_to_all.add(file)

        self._at_once(hold, sorted(sizes))
        held = {path: shared for path, shared in paths.items() if shared[0] in open_to_all}
        self._replace(storage_id, index, held, held)
        return set(held)

    def upload(self, storage_id: str, source: str, paths: Mapping[str, int]) -> None:
        """Put files (path below ``source`` -> bytes) where other checkpoints can share them."""
        index = self._index(storage_id)
        new = {path: (os.urandom(16).hex(), size) for path, size in paths.items()}
        index.held |= {file for file, _ in new.values()}
        self._put(index)

        def put(path: str) -> None:
            file = new[path][0]
            self._bucket.write(self._hold(storage_id, file), b"")
            self._bucket.upload(self.key(file), os.path.join(source, path))

        self._at_once(put, sorted(new))
        self._replace(storage_id, index, new, new)

    def forget(self, storage_id: str, paths: Iterable[str]) -> None:
        """What was put there under these paths is put again, as objects of the checkpoint itself."""
        index = self._own.get(storage_id)
        if index is not None and not index.files.keys().isdisjoint(paths):
            self._replace(storage_id, index, paths, {})

    def written(self, storage_id: str) -> None:
        """It is a checkpoint: nothing more is put into it."""
        self._own.pop(storage_id, None)

    def read(self, place: str, listed: Mapping[str, int]) -> Shared:
        """What the checkpoint at ``place`` has there; ``listed``: its objects, by their name below. Raises
        IndexUnreadable."""
        return {path: file for index in self._indexes(place, listed) for path, file in index.files.items()}

    def trim(self, storage_id: str, place: str, listed: Mapping[str, int], removed: Set[str]) -> None:
        """Let go of what lies under these paths of a checkpoint."""
        for index in self._indexes(place, listed):
            if not index.files.keys().isdisjoint(removed):
                self._replace(storage_id, index, removed, {})

    def let_go(self, storage_id: str, place: str, listed: Mapping[str, int]) -> None:
        """Give up all holds of a checkpoint, which is no more; its indexes are deleted afterwards."""
        held = {file for index in self._indexes(place, listed) for file in index.held}
        self._at_once(lambda file: self._release(storage_id, file), sorted(held))
        self._own.pop(storage_id, None)

    def _replace(self, storage_id: str, index: _Index, paths: Iterable[str], files: Shared) -> None:
        """In an index, ``files`` instead of what these paths were; what is in none any more is let go."""
        for path in paths:
            index.files.pop(path, None)
        index.files.update(files)
        self._put(index)
        unused = index.held - {file for file, _ in index.files.values()}
        if unused:
            self._at_once(lambda file: self._release(storage_id, file), sorted(unused))
            index.held -= unused
            self._put(index)

    def _release(self, storage_id: str, file: str) -> None:
        """Let go of a file, and delete it if nobody holds it."""
        self._bucket.delete([self._hold(storage_id, file)])
        folder = self._folder(file)
        if not self._is_unheld(file):
            return
        self._bucket.write(folder + _CLOSED, b"")
        if self._is_unheld(file):
            self._bucket.forget_uploads(folder)
            self._bucket.delete([folder + _DATA])
            self._bucket.delete([folder + _CLOSED])

    def _names(self, file: str) -> Dict[str, int]:
        """What lies there, and its bytes."""
        folder = self._folder(file)
        return {key[len(folder) :]: size for key, size in self._bucket.entries(folder)}

    def _is_unheld(self, file: str) -> bool:
        return not any(name.startswith(_HOLD) for name in self._names(file))

    def _open(self, file: str, size: int) -> bool:
        """Whether it is there, with all its bytes, and nobody is about to delete it."""
        names = self._names(file)
        return names.get(_DATA) == size and _CLOSED not in names

    def _index(self, storage_id: str) -> _Index:
        if storage_id not in self._own:
            folder = f"{self._prefix}{storage_id}/{FOLDER}"
            self._own[storage_id] = _Index(f"{folder}writer-{os.urandom(8).hex()}.json", {}, set())
            self._tried(lambda: self._bucket.write(folder + _REFUSAL, b""))
        return self._own[storage_id]

    def _put(self, index: _Index) -> None:
        data = index.encoded()
        self._tried(lambda: self._bucket.write(index.key, data))

    def _indexes(self, place: str, listed: Mapping[str, int]) -> list[_Index]:
        names = [name for name in listed if name.startswith(FOLDER) and name.endswith(".json")]
        if sum(listed[name] for name in names) > _MAX_BYTES:
            raise IndexUnreadable(f"what {place}{FOLDER} says of shared files is too large to be read")
        return [index for index in (self._read(place + name) for name in names) if index is not None]

    def _read(self, key: str) -> Optional[_Index]:
        """None: it is gone by now. Raises IndexUnreadable for what this has not written."""
        data = self._tried(lambda: self._bucket.read(key))
        if data is None:
            return None
        import json

        try:
            document: Any = json.loads(data.decode())
            files = {str(path): (str(file), int(size)) for path, (file, size) in document["files"].items()}
            held = {str(file) for file in document["held"]}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise IndexUnreadable(f"{key} does not say which files are shared: {error!r}") from None
        for file in (*held, *(file for file, _ in files.values())):
            if not _FILE.fullmatch(file):
                raise IndexUnreadable(f"{key} names {file!r}, which is no shared file")
        return _Index(key, files, held)

    def _folder(self, file: str) -> str:
        return f"{self._prefix}.shared/{file}/"

    def _hold(self, storage_id: str, file: str) -> str:
        return f"{self._folder(file)}{_HOLD}{storage_id}"
