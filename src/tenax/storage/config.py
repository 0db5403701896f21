"""From the ``checkpoint_storage`` of an experiment to the storage itself. Standard library only, Python 3.9."""

from __future__ import annotations

import os

from tenax.errors import InvalidInput
from tenax.storage.local_directory import from_directory
from tenax.storage.port import SHARED_FS_MOUNT
from tenax.storage.registry import KINDS, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenax.jsonvalue import Json
    from tenax.storage.port import Storage


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
    if "://" in text:
        raise InvalidInput(f"checkpoint storage {text!r} is not served by this release: give a directory")
    return from_directory(os.path.expanduser(text))
