"""What a kind of checkpoint storage is: how it is made from its section of a configuration, and what it can.

Standard library only, Python 3.9. A kind whose storage needs another package imports it inside ``open``: the kinds
themselves are loaded with every task.
"""

from __future__ import annotations

import os

from tenax.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Optional, Tuple

    from tenax.jsonvalue import Json
    from tenax.storage.port import Storage

    #: A root that exists where it is mounted, and the names below it.
    Place = Tuple[str, Tuple[str, ...]]


class StorageKind:
    """One kind. What is said here holds for one that says nothing else: an object store."""

    #: The ``type`` of its sections.
    name = ""
    #: Whether trying it imports no package but ours.
    standard_library_only = False
    #: Whether a task on an agent may reach what the master cannot, with nothing but the section.
    reachable_by_agents = False
    #: Whether it may be a path of one machine alone, so that nobody else could ever delete what lies there.
    bound_to_machine = False

    def open(self, config: Mapping[str, Json], mount: str) -> Storage:
        """The storage of a section. ``mount``: where a file system of it is mounted in a container."""
        raise NotImplementedError

    def mounted(self, config: Mapping[str, Json]) -> Optional[str]:
        """The directory of the machine that a container must have at ``SHARED_FS_MOUNT``; None: it needs none."""
        return None

    def outside_container(self, config: Mapping[str, Json]) -> Mapping[str, Json]:
        """The section without what is true in a container alone."""
        return config

    def server(self, config: Mapping[str, Json]) -> Optional[str]:
        """What of the section says to whom credentials are sent; None: to the vendor, or to nobody."""
        return None

    def place(self, identity: Mapping[str, Json]) -> Optional[Place]:
        """The directory with the checkpoints, as machines see it; None where it is none, or none is named."""
        return None


def absolute(config: Mapping[str, Json], key: str, kind: str) -> str:
    """A path that must be there. Raises InvalidInput."""
    value = text(config, key)
    if not value:
        raise InvalidInput(f"checkpoint_storage of type {kind} needs {key}")
    if not os.path.isabs(value):
        raise InvalidInput(f"checkpoint_storage.{key} must be an absolute path, not {value!r}")
    return value


def text(config: Mapping[str, Json], key: str) -> Optional[str]:
    """A string, or None where none is set. Raises InvalidInput for anything else."""
    value = config.get(key)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"checkpoint_storage.{key} must be a string, not {value!r}")
    return value
