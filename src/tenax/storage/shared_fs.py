"""``shared_fs``: a file system that is mounted at the same place of every agent, and so in tasks. Python 3.9."""

from __future__ import annotations

import os

from tenax.errors import InvalidInput
from tenax.storage.directory import DirectoryStorage
from tenax.storage.kind import StorageKind, absolute, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Optional

    from tenax.jsonvalue import Json
    from tenax.storage.kind import Place
    from tenax.storage.port import Storage


class SharedFsKind(StorageKind):
    """See `tenax.storage.kind.StorageKind`."""

    name = "shared_fs"
    standard_library_only = True
    reachable_by_agents = True

    def open(self, config: Mapping[str, Json], mount: str) -> Storage:
        """At ``mount``, or at ``host_path`` itself where there is no such directory (no container engine)."""
        host_path = os.path.normpath(absolute(config, "host_path", self.name))
        inside = _below(host_path, text(config, "storage_path"))
        root = text(config, "container_path") or (mount if os.path.isdir(mount) else host_path)
        identity: dict[str, Json] = {"type": self.name, "host_path": host_path}
        if inside:
            identity["storage_path"] = inside
        label = f"{self.name} {os.path.join(host_path, inside) if inside else host_path}"
        return DirectoryStorage(
            os.path.join(root, inside).rstrip("/") or "/", root=root, identity=identity, label=label
        )

    def mounted(self, config: Mapping[str, Json]) -> Optional[str]:
        """``host_path``."""
        return str(config.get("host_path") or "")

    def outside_container(self, config: Mapping[str, Json]) -> Mapping[str, Json]:
        """Where a container would see it says nothing elsewhere."""
        return {key: value for key, value in config.items() if key != "container_path"}

    def place(self, identity: Mapping[str, Json]) -> Optional[Place]:
        """``storage_path`` below ``host_path``; an absolute one replaces it, as joining does."""
        host_path, below = text(identity, "host_path"), text(identity, "storage_path") or ""
        if not host_path:
            return None
        if os.path.isabs(below):
            return below, ()
        return host_path, tuple(part for part in below.split("/") if part)


def _below(host_path: str, storage_path: Optional[str]) -> str:
    """``storage_path`` relative to ``host_path``; empty for none."""
    if not storage_path:
        return ""
    whole = os.path.normpath(os.path.join(host_path, storage_path))
    if whole != host_path and not whole.startswith(host_path.rstrip("/") + "/"):
        raise InvalidInput(
            f"checkpoint_storage.storage_path {storage_path!r} leads out of host_path {host_path!r}: "
            "give a relative path, or an absolute one below host_path"
        )
    inside = os.path.relpath(whole, host_path)
    return "" if inside == "." else inside
