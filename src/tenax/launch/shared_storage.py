"""Whether the machines of a trial see the same checkpoint storage. Standard library only, Python 3.9.

A directory of one machine alone passes every other check: what rank 0 saves there is lost to a run that begins
elsewhere. So the chief's launcher leaves a mark, and the others look for it.
"""

from __future__ import annotations

import uuid
from contextlib import suppress

from tenax.core.spool import say
from tenax.errors import TenaxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Optional

    from tenax.core.collectives import Star
    from tenax.storage.port import Storage

_MARK = "seen-by-all"


def warn_where_apart(star: Star, addresses: Sequence[str], storage: Optional[Storage]) -> None:
    """Say in the log which machines do not see it. All launchers call this in step; a failure is no news here."""
    name = star.broadcast(_leave_mark(storage) if star.rank == 0 else None)
    seen = not isinstance(name, str) or (storage is not None and _sees(storage, name))
    answers = star.gather(seen)
    if answers is None or storage is None:
        return
    if isinstance(name, str):
        with suppress(TenaxError, OSError):
            storage.abandon(name)
    blind = [address for address, sees in zip(addresses, answers) if not sees]
    if blind:
        say(
            f"warning: checkpoints are stored on this machine alone ({_place(storage)}): {', '.join(blind)} "
            f"{'does' if len(blind) == 1 else 'do'} not see them, and a run that begins there will not find them. Name "
            "a directory that all machines share in checkpoint_storage (docs/distributed.md)"
        )


def _leave_mark(storage: Optional[Storage]) -> Optional[str]:
    """The name of the mark; None where there is none: no storage, or one that is no file system."""
    name = str(uuid.uuid4())
    try:
        if storage is None or storage.stage_directory(name) is None:
            return None
        storage.stage_bytes(name, _MARK, b"")
    except (TenaxError, OSError):
        return None
    return name


def _sees(storage: Storage, name: str) -> bool:
    try:
        return _MARK in (storage.staged(name) or {})
    except (TenaxError, OSError):
        return False


def _place(storage: Storage) -> str:
    identity = storage.identity()
    return " ".join(
        str(identity[key]) for key in ("type", "host_path", "container_path", "storage_path") if key in identity
    )
