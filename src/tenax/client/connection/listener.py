"""Whose program listens on a port of this machine, from the kernel's table. Standard library only; Linux."""

from __future__ import annotations

import contextlib
import pwd
from pathlib import Path
from typing import Optional

#: The state LISTEN in ``/proc/net/tcp``.
_LISTENS = "0A"


def listening_uid(port: int) -> Optional[int]:
    """The user of whoever listens on this port; None where nobody does, or it cannot be known."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                    return int(fields[7])
    return None


def name_of(uid: int) -> str:
    """That user, for people."""
    with contextlib.suppress(KeyError):
        return f"user {pwd.getpwuid(uid).pw_name!r}"
    return f"user number {uid}"
