"""From the ``checkpoint_storage`` of an experiment to the storage itself. Standard library only, Python 3.9."""

from __future__ import annotations

import os

from tenax.errors import InvalidInput
from tenax.storage.directory import DirectoryStorage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Optional

    from tenax.jsonvalue import Json
    from tenax.storage.port import Storage

#: Where an agent mounts the ``host_path`` of shared_fs inside a container.
SHARED_FS_MOUNT = "/determined_shared_fs"
_SERVED = ("shared_fs", "directory")


def from_config(config: Mapping[str, Json], *, mount: str = SHARED_FS_MOUNT) -> Storage:
    """The storage that a ``checkpoint_storage`` section names. Raises InvalidInput.

    ``mount``: where shared_fs is mounted in a container; where there is no such directory (no container engine),
    ``host_path`` itself is used.
    """
    kind = config.get("type")
    if kind == "shared_fs":
        return _shared_fs(config, mount)
    if kind == "directory":
        return from_directory(_absolute(config, "container_path", kind))
    raise InvalidInput(
        f"checkpoint_storage of type {kind!r} is not served by this release: use one of {', '.join(_SERVED)}"
    )


def from_directory(path: str) -> Storage:
    """Checkpoints in a directory of this machine's file system (or of one mounted on it), made if need be."""
    path = os.path.abspath(path)
    return DirectoryStorage(path, identity={"type": "directory", "container_path": path}, label=path)


def from_shortcut(text: str) -> Storage:
    """A directory, or a URL of an object store. Raises InvalidInput for a URL that is not served."""
    if "://" in text:
        raise InvalidInput(f"checkpoint storage {text!r} is not served by this release: give a directory")
    return from_directory(os.path.expanduser(text))


def _shared_fs(config: Mapping[str, Json], mount: str) -> Storage:
    host_path = os.path.normpath(_absolute(config, "host_path", "shared_fs"))
    inside = _below(host_path, _text(config, "storage_path"))
    root = _text(config, "container_path") or (mount if os.path.isdir(mount) else host_path)
    identity: dict[str, Json] = {"type": "shared_fs", "host_path": host_path}
    if inside:
        identity["storage_path"] = inside
    label = f"shared_fs {os.path.join(host_path, inside) if inside else host_path}"
    return DirectoryStorage(os.path.join(root, inside).rstrip("/") or "/", root=root, identity=identity, label=label)


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


def _absolute(config: Mapping[str, Json], key: str, kind: str) -> str:
    value = _text(config, key)
    if not value:
        raise InvalidInput(f"checkpoint_storage of type {kind} needs {key}")
    if not os.path.isabs(value):
        raise InvalidInput(f"checkpoint_storage.{key} must be an absolute path, not {value!r}")
    return value


def _text(config: Mapping[str, Json], key: str) -> Optional[str]:
    value = config.get(key)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"checkpoint_storage.{key} must be a string, not {value!r}")
    return value
