"""A copy of a training's state that is taken at once and written later: the loop is held for the copy alone.

The state goes through pickle as `torch.save` would send it, with the bytes of its tensors copied to one side: whatever
can be saved can be copied, and what cannot is an error at once. The bytes go into a block of memory, as large as the
state, that is kept for the next copy. Forked processes do not see it: its pages would have to be copied for them. For
tensors of a GPU it is page-locked.
"""

from __future__ import annotations

import io
import mmap
import pickle
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

import torch

from tenax.core.machine import memory_left
from tenax.errors import InvalidInput, NotNow
from tenax.pytorch.devices import is_gpu, page_lock, wait_for_copies

#: Where the bytes of each tensor begin: a multiple of this.
_ALIGNED = 4096
#: A block is so much larger than what it is made for: states grow a little.
_SPARE = 1.02


class StateCopy:
    """Copies of states, one after another, in the same memory. One is taken by one thread and written by another."""

    def __init__(self) -> None:
        self._block: Optional[mmap.mmap] = None
        self._locked = False
        #: What ends the page-locking, at the latest when this copy is given up: before the memory is another's.
        self._release: Optional[Callable[[], object]] = None
        self._lock = threading.Lock()
        #: Of the copy that is there now.
        self._number = 0

    def take(self, state: object, name: str = "state.pt") -> Callable[[Path], None]:
        """Copy a state as it is now: tensors, and all else that can be pickled. What comes back writes the copy into a
        directory, as the file ``name``, for `torch.load`, which gives tensors of a GPU back as those of the CPU.

        Call it in ``take`` of `tenax.core.CheckpointContext.store_async`, which waits until the copy before is written.
        Raises InvalidInput for what cannot be pickled, NotNow while the copy before is being written, MemoryError.
        """
        if not self._lock.acquire(blocking=False):
            raise NotNow("the copy before is still being written: take this one inside of store_async(lambda: ...)")
        try:
            self._number += 1
            pickled, storages = _taken_apart(state)
            copies = self._copied(storages)
        finally:
            self._lock.release()
        number = self._number

        def write(directory: Path) -> None:
            with self._lock:
                if self._number != number:
                    raise NotNow("another copy was taken before this one was written")
                torch.save(_put_together(pickled, copies), directory / name)

        return write

    def has_room(self, size: int) -> bool:
        """Whether a copy of so many bytes is made in memory that is there already, or takes at most half of what this
        process may still have."""
        if self._block is not None and len(self._block) >= size:
            return True
        left = memory_left()
        return left is None or 2 * size <= left

    def _copied(self, storages: list[torch.UntypedStorage]) -> list[torch.UntypedStorage]:
        places, size = [], 0
        for storage in storages:
            places.append(size)
            size += -(-storage.nbytes() // _ALIGNED) * _ALIGNED
        gpus = {storage.device for storage in storages if is_gpu(storage.device)}
        block = self._block_of(size, bool(gpus))
        copies = []
        for storage, place in zip(storages, places):
            count = storage.nbytes()
            if count == 0:
                copies.append(torch.empty(0, dtype=torch.uint8).untyped_storage())
                continue
            copy = torch.frombuffer(block, dtype=torch.uint8, count=count, offset=place)
            source = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
            copy.copy_(source, non_blocking=True)
            copies.append(copy.untyped_storage())
        for gpu in gpus:
            wait_for_copies(gpu)
        return copies

    def _block_of(self, size: int, locked: bool) -> mmap.mmap:
        block = self._block
        if block is not None and len(block) >= size and (self._locked or not locked):
            return block
        # Before the new one is made: there may be no room for both.
        self._block = block = None
        if self._release is not None:
            self._release()
        block = mmap.mmap(-1, max(mmap.PAGESIZE, int(size * _SPARE)), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for advice in ("MADV_HUGEPAGE", "MADV_DONTFORK"):
            if hasattr(mmap, advice):
                try:
                    block.madvise(getattr(mmap, advice))
                except OSError:  # a kernel without it
                    continue
        release = page_lock(block) if locked else None
        self._release = weakref.finalize(self, _release, release, block) if release is not None else None
        self._block, self._locked = block, locked
        return block


def bytes_of(state: object) -> int:
    """Of the tensors in a state of dicts and lists, counted once each."""
    seen: dict[tuple[str, int], int] = {}
    _count(state, seen)
    return sum(seen.values())


def _count(value: object, seen: dict[tuple[str, int], int]) -> None:
    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided and value.device.type != "meta":
            storage = value.untyped_storage()
            seen[str(storage.device), storage.data_ptr()] = storage.nbytes()
    elif isinstance(value, dict):
        for each in value.values():
            _count(each, seen)
    elif isinstance(value, (list, tuple)):
        for each in value:
            _count(each, seen)


def _release(release: Callable[[], None], block: mmap.mmap) -> None:
    """``block`` is there until then."""
    release()


class _Pickler(pickle.Pickler):
    """Leaves out the bytes of tensors, as `torch.save` does."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=2)
        self.storages: list[torch.UntypedStorage] = []
        self._places: dict[tuple[str, int, int], int] = {}

    def persistent_id(self, value: object) -> Any:
        if isinstance(value, torch.storage.TypedStorage):
            return self._place_of(value._untyped_storage), value.dtype
        if isinstance(value, torch.UntypedStorage):
            return self._place_of(value), None
        return None

    def _place_of(self, storage: torch.UntypedStorage) -> int:
        key = str(storage.device), storage.data_ptr(), storage.nbytes()
        if key[2] == 0 or key not in self._places:
            self._places[key] = len(self.storages)
            self.storages.append(storage)
        return self._places[key]


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, copies: list[torch.UntypedStorage]) -> None:
        super().__init__(file)
        self._copies = copies

    def persistent_load(self, place: Any) -> Any:
        number, dtype = place
        copy = self._copies[number]
        typed: Any = torch.storage.TypedStorage
        return copy if dtype is None else typed(wrap_storage=copy, dtype=dtype, _internal=True)


def _taken_apart(state: object) -> tuple[bytes, list[torch.UntypedStorage]]:
    file = io.BytesIO()
    pickler = _Pickler(file)
    try:
        pickler.dump(state)
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        raise InvalidInput(unpicklable(error)) from error
    return file.getvalue(), pickler.storages


def _put_together(pickled: bytes, copies: list[torch.UntypedStorage]) -> Any:
    return _Unpickler(io.BytesIO(pickled), copies).load()


def unpicklable(error: Exception) -> str:
    """Why a state cannot be saved, and what to do."""
    return (
        f"a checkpoint cannot hold all of this trial's state: {error}. A state_dict() of a callback, a scheduler "
        "or a model has what cannot be pickled, as a lambda, a lock or an open file: leave it out"
    )
