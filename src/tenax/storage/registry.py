"""The kinds of checkpoint storage: the one place where a new one is added; and from a section to its storage.

A kind is one module with a subclass of `tenax.storage.kind.StorageKind` and one line in the table. Its settings: a
schema in `tenax.config.schema.storage`. Standard library only, Python 3.9.
"""

from __future__ import annotations

import os

from tenax.errors import InvalidInput
from tenax.storage.azure import AzureKind
from tenax.storage.gcs import GcsKind
from tenax.storage.local_directory import DirectoryKind, from_directory
from tenax.storage.port import SHARED_FS_MOUNT
from tenax.storage.s3 import S3Kind
from tenax.storage.shared_fs import SharedFsKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Optional

    from tenax.jsonvalue import Json
    from tenax.storage.kind import StorageKind
    from tenax.storage.port import Storage

#: By the ``type`` of a section.
KINDS: Mapping[str, StorageKind] = {
    kind.name: kind for kind in (SharedFsKind(), DirectoryKind(), S3Kind(), GcsKind(), AzureKind())
}
#: The kind of a bucket by how its URL begins.
_SCHEMES = {"s3": S3Kind.name, "gs": GcsKind.name}


def is_reachable_by_agents(section: Optional[Mapping[str, Json]]) -> bool:
    """Whether a task on an agent may reach what the master cannot."""
    kind = kind_of(section)
    return kind is not None and kind.reachable_by_agents


def is_bound_to_machine(section: Optional[Mapping[str, Json]]) -> bool:
    """Whether what lies there may be on the machine alone that put it there."""
    kind = kind_of(section)
    return kind is not None and kind.bound_to_machine


def kind_of(section: Optional[Mapping[str, Json]]) -> Optional[StorageKind]:
    """The kind of a ``checkpoint_storage`` section; None for one that is not served, and for none."""
    name = None if section is None else section.get("type")
    return KINDS.get(name) if isinstance(name, str) else None


def from_config(config: Mapping[str, Json], *, mount: str = SHARED_FS_MOUNT) -> Storage:
    """The storage that a ``checkpoint_storage`` section names. Raises InvalidInput.

    ``mount``: where shared_fs is mounted in a container; where there is no such directory (no container engine),
    ``host_path`` itself is used.
    """
    kind = kind_of(config)
    if kind is None:
        raise InvalidInput(
            f"checkpoint_storage of type {config.get('type')!r} is not served by this release: "
            f"use one of {', '.join(KINDS)}"
        )
    return kind.open(config, mount)


def from_shortcut(text: str) -> Storage:
    """A directory, or a URL of an object store. Raises InvalidInput for a URL that is not served."""
    scheme, separator, place = text.partition("://")
    if not separator:
        return from_directory(os.path.expanduser(text))
    if scheme == "file" and place.startswith("/"):
        return from_directory(place)
    if scheme not in _SCHEMES:
        raise InvalidInput(
            f"checkpoint storage {text!r} is not served by this release: give a directory, s3://bucket/prefix or "
            "gs://bucket/prefix, or a section like checkpoint_storage"
        )
    bucket, _, prefix = place.partition("/")
    return from_config({"type": _SCHEMES[scheme], "bucket": bucket, "prefix": prefix or None})
