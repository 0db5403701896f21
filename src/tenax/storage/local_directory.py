"""``directory``: a path inside of the task; that it is shared and durable is the user's promise. Python 3.9."""

from __future__ import annotations

import os

from tenax.storage.directory import DirectoryStorage
from tenax.storage.kind import StorageKind, absolute, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Optional

    from tenax.jsonvalue import Json
    from tenax.storage.kind import Place
    from tenax.storage.port import Storage


class DirectoryKind(StorageKind):
    """See `tenax.storage.kind.StorageKind`."""

    name = "directory"
    standard_library_only = True
    reachable_by_agents = True
    bound_to_machine = True

    def open(self, config: Mapping[str, Json], mount: str) -> Storage:
        """Made if need be."""
        return from_directory(absolute(config, "container_path", self.name))

    def place(self, identity: Mapping[str, Json]) -> Optional[Place]:
        """The path itself."""
        path = text(identity, "container_path")
        return (path, ()) if path else None


def from_directory(path: str) -> Storage:
    """Checkpoints in a directory of this machine's file system (or of one mounted on it), made if need be."""
    path = os.path.abspath(path)
    return DirectoryStorage(path, identity={"type": DirectoryKind.name, "container_path": path}, label=path)
