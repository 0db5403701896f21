"""Where the master itself touches files of checkpoints: below the directories that the operator has listed.

An experiment's configuration is its owner's word, and so is what a task reports: neither opens a directory to the
master. Listed are ``checkpoint_roots`` and the ``checkpoint_storage`` of the master's own configuration. What lies
elsewhere, a task on an agent deletes with its owner's rights, and nobody downloads it through the master. Refused too:

- the way out of a root by ``..``, and through a link (`tenax.master.checkpoints.files`);
- a storage inside of another checkpoint, or of what TensorBoard wrote: below a root a UUID names one of these;
- storages that are no directories, but for the very one of the master's own configuration, from which is downloaded
  (`CheckpointRoots.store_of`). No kind may use credentials of the master for a place that a user has named.
"""

from __future__ import annotations

import json
import os
import uuid
from contextlib import suppress
from dataclasses import dataclass

from tenax.config.master import MasterSettings
from tenax.errors import InvalidInput, NotNow
from tenax.jsonvalue import JsonObject
from tenax.master.checkpoints.files import MAX_ENTRIES, CheckpointPlace
from tenax.master.store.users.rows import FileOwner
from tenax.storage.objects import ObjectStorage
from tenax.storage.registry import from_config, kind_of
from tenax.wire.task_names import SHARED_FILES_IN

SETTING = "checkpoint_roots"


@dataclass(frozen=True, slots=True)
class CheckpointRoots:
    """What the operator has listed, and the storage that is set for everyone."""

    listed: tuple[CheckpointPlace, ...]
    clusters: JsonObject | None = None

    def place_of(
        self, reported: JsonObject | None, configured: JsonObject | None, owner: FileOwner | None
    ) -> CheckpointPlace:
        """Where the files of a checkpoint are, if the master may touch them there. Raises NotNow, saying why not.

        ``reported``: by its task; None: where it was ``configured`` for its experiment. ``owner``: whose files
        these are on disk; None: that is not asked.
        """
        storage = reported or configured or self.clusters
        if not storage:
            raise NotNow("it is not known where the files are: neither its experiment nor the cluster names a storage")
        place = _place(storage)
        for root in self.listed:
            below = _below(str(root), str(place))
            if below is not None and not any(map(_is_uuid, below)):
                return CheckpointPlace(root.root, (*root.below, *below), owner)
        raise NotNow(
            f"the files are in {place}, which the master does not touch: an administrator may list that directory, "
            f"or one above it, under {SETTING} in the master's configuration"
        )

    def store_of(self, reported: JsonObject | None, configured: JsonObject | None) -> ObjectStorage | None:
        """The store of objects with the files of a checkpoint, if it is the operator's own; else None."""
        named = reported or configured or self.clusters
        if named is None or self.clusters is None:
            return None
        with suppress(InvalidInput):
            own = from_config(self.clusters)
            if isinstance(own, ObjectStorage) and from_config(named).identity() == own.identity():
                own.hurry(MAX_ENTRIES)
                return own
        return None


def checkpoint_roots(settings: MasterSettings) -> CheckpointRoots:
    """What the master's configuration lists."""
    listed = [CheckpointPlace(os.path.normpath(path)) for path in settings.checkpoint_roots]
    if settings.checkpoint_storage is not None:
        with suppress(NotNow):  # One that is no directory has nothing that the master could reach.
            listed.append(_place(settings.checkpoint_storage))
    return CheckpointRoots(tuple(listed), settings.checkpoint_storage)


def sharing(settings: MasterSettings) -> dict[str, str]:
    """The variable that tells tasks in which bucket they store files that checkpoints have in common once."""
    if settings.share_checkpoint_files and settings.checkpoint_storage is not None:
        storage = from_config(settings.checkpoint_storage)
        if isinstance(storage, ObjectStorage):
            return {SHARED_FILES_IN: json.dumps(storage.identity())}
    return {}


def _place(storage: JsonObject) -> CheckpointPlace:
    """The directory of a section, without ``..``. Raises NotNow."""
    kind = kind_of(storage)
    try:
        identity = from_config(storage if kind is None else kind.outside_container(storage), mount="").identity()
    except InvalidInput as error:
        raise NotNow(f"the master cannot reach the checkpoints: {error}") from None
    place = None if kind is None else kind.place(identity)
    if place is None:
        raise NotNow(
            f"the files are in a storage of type {identity.get('type')}, of which the master touches none but its own "
            "checkpoint_storage: fetch them with credentials of yours (tenax checkpoint download --mode direct)"
        )
    root, below = place
    return CheckpointPlace(os.path.normpath(root), below)


def _below(root: str, path: str) -> tuple[str, ...] | None:
    """The way from one directory down to another; None: it does not lie there."""
    if path != root and not path.startswith(root.rstrip("/") + "/"):
        return None
    return tuple(part for part in path[len(root) :].split("/") if part)


def _is_uuid(name: str) -> bool:
    try:
        return str(uuid.UUID(name)) == name.lower()
    except ValueError:
        return False
