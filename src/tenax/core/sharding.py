"""One checkpoint from many ranks: who uploads what, and metadata made one. Standard library only, Python 3.9.

Rules: what fails on one rank fails on all, with the rank's words, so that nobody waits in a collective for a rank that
has given up; a decision is made from the same gathered facts on every rank, so that it needs no further message.
"""

from __future__ import annotations

import os

from tenax.core.values import plain
from tenax.errors import InvalidInput, TenaxError, UserError
from tenax.storage.files import select, walk_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Optional, TypeVar

    from tenax.core.distributed import DistributedContext
    from tenax.jsonvalue import Json, JsonObject
    from tenax.storage.port import Files, Selector

    T = TypeVar("T")


class ShardConflict(UserError):
    """Ranks want to store different things under one name."""


class OtherRankFailed(TenaxError):
    """A collective step failed on another rank."""


def together(distributed: DistributedContext, step: Callable[[], T]) -> list[T]:
    """Run ``step`` on every rank; the results of all, by rank. Raises on all ranks if it raised on one."""
    error: Optional[Exception] = None
    mine: Optional[T] = None
    try:
        mine = step()
    except Exception as failure:
        error = failure
    description = None if error is None else f"{type(error).__name__}: {error}"
    outcomes = distributed.allgather((mine, description))
    if error is not None:
        raise error
    results: list[T] = []
    for rank, outcome in enumerate(outcomes):
        assert isinstance(outcome, tuple)
        if outcome[1] is not None:
            raise OtherRankFailed(f"rank {rank} failed: {outcome[1]}")
        results.append(outcome[0])
    return results


def on_local_chief(distributed: DistributedContext, step: Callable[[], T]) -> T:
    """Run ``step`` on one rank of each machine; its result, or its failure, on all ranks of that machine."""
    if distributed.local_size == 1:
        return step()
    outcome: object = None
    error: Optional[Exception] = None
    if distributed.local_rank == 0:
        try:
            outcome = (step(), None)
        except Exception as failure:
            error = failure
            outcome = (None, f"{type(failure).__name__}: {failure}")
    outcome = distributed.broadcast_local(outcome)
    if error is not None:
        raise error
    assert isinstance(outcome, tuple)
    if outcome[1] is not None:
        raise OtherRankFailed(f"the local chief failed: {outcome[1]}")
    result: T = outcome[0]
    return result


def plain_metadata(metadata: Optional[Mapping[str, object]]) -> JsonObject:
    """Metadata as JSON has it. Raises InvalidInput or TypeError."""
    document = plain(metadata if metadata is not None else {}, "metadata")
    if not isinstance(document, dict):
        raise InvalidInput(f"metadata must be a dict, not {type(metadata).__name__}")
    return document


class Inventory:
    """What one rank brings: its files; where they lie; whether it chose among them itself."""

    def __init__(self, files: Files, place: Optional[tuple[str, int, int]], chosen: bool) -> None:
        self.files = files
        #: (machine, device, inode) of the directory; None: this rank brings nothing.
        self.place = place
        self.chosen = chosen


def inventory_of(directory: Optional[str], selector: Optional[Selector]) -> Inventory:
    """What this rank brings. Raises InvalidInput for a directory that cannot be read, or a name that none can say."""
    if directory is None:
        return Inventory({}, None, False)
    try:
        files = walk_files(directory)
        status = os.stat(directory)
    except OSError as error:
        raise InvalidInput(f"the directory of the checkpoint cannot be read: {error}") from error
    chosen = files if selector is None else select(files, selector)
    refuse_unsayable(chosen)
    return Inventory(chosen, (os.uname().nodename, status.st_dev, status.st_ino), selector is not None)


def refuse_unsayable(files: Files) -> None:
    """Raises InvalidInput for a file whose name is not UTF-8: no report can name it, and no storage of objects."""
    for path in files:
        name = os.fsencode(path)
        try:
            name.decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidInput(
                f"the name of the checkpoint's file {name.decode('utf-8', 'backslashreplace')} is not UTF-8, and "
                "cannot be reported: rename it, or leave it out with a selector"
            ) from None


def divide(inventories: Sequence[Inventory]) -> list[Files]:
    """The files of each rank, after ranks that share one directory were told apart: the lowest brings it.

    A rank with a selector of its own keeps what it chose.
    """
    seen: set[tuple[str, int, int]] = set()
    divided: list[Files] = []
    for inventory in inventories:
        if inventory.place is None or (not inventory.chosen and inventory.place in seen):
            divided.append({})
            continue
        if not inventory.chosen:
            seen.add(inventory.place)
        divided.append(dict(inventory.files))
    return divided


def conflicts(divided: Sequence[Files]) -> dict[str, list[int]]:
    """Paths of files that more than one rank brings, with those ranks. Raises ShardConflict for file against folder."""
    owners: dict[str, list[int]] = {}
    for rank, files in enumerate(divided):
        for path in files:
            owners.setdefault(path, []).append(rank)
    for path, ranks in owners.items():
        if not path.endswith("/") and path + "/" in owners:
            raise ShardConflict(
                f"{path!r} is a file on rank {ranks[0]} and a directory on rank {owners[path + '/'][0]}: rename one"
            )
    return {path: ranks for path, ranks in owners.items() if len(ranks) > 1 and not path.endswith("/")}


def settle(
    divided: Sequence[Files], contested: Mapping[str, Sequence[int]], digests: Sequence[Mapping[str, str]]
) -> list[Files]:
    """Each path once, from the lowest rank that brings it. Raises ShardConflict where contents differ.

    ``digests``: for each rank, the MD5 of its contested files.
    """
    different = [
        f"{path!r} on ranks {', '.join(map(str, ranks))}"
        for path, ranks in contested.items()
        if len({digests[rank][path] for rank in ranks}) > 1
    ]
    if different:
        raise ShardConflict(
            f"ranks bring different files under one name: {'; '.join(different[:5])}"
            f"{' and more' if len(different) > 5 else ''}. Put the rank into the name, or use a selector"
        )
    settled: list[Files] = []
    taken: set[str] = set()
    for files in divided:
        settled.append({path: size for path, size in files.items() if path not in taken})
        taken.update(files)
    return settled


def merge_metadata(parts: Sequence[Optional[JsonObject]]) -> JsonObject:
    """Metadata of all ranks as one; nested maps are united. Raises ShardConflict for two values of one key."""
    merged: JsonObject = {}
    for rank, part in enumerate(parts):
        if part:
            _merge(merged, part, rank, "")
    return merged


def _merge(into: JsonObject, part: Mapping[str, Json], rank: int, prefix: str) -> None:
    for key, value in part.items():
        present = into.get(key)
        if key not in into:
            # A copy: later ranks are merged into it.
            into[key] = merge_metadata([value]) if isinstance(value, dict) else value
        elif isinstance(present, dict) and isinstance(value, dict):
            _merge(present, value, rank, f"{prefix}{key}.")
        elif present != value:
            raise ShardConflict(
                f"metadata {prefix + key!r} is {value!r} on rank {rank} and {present!r} on a lower one: "
                "give it on one rank, or the same everywhere"
            )
