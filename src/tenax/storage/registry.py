"""Which kinds of checkpoint storage are served: the one place where a new one is added. Standard library, Python 3.9.

A kind is one module with a subclass of `tenax.storage.kind.Kind` and one line in the table. Its settings: a schema in
`tenax.config.schema.storage`, which knows some that are not served yet.
"""

from __future__ import annotations

from tenax.storage.local_directory import DirectoryKind
from tenax.storage.shared_fs import SharedFsKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Optional

    from tenax.jsonvalue import Json
    from tenax.storage.kind import StorageKind

#: By the ``type`` of a section.
KINDS: Mapping[str, StorageKind] = {kind.name: kind for kind in (SharedFsKind(), DirectoryKind())}


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
