"""Names for a task's uid and gid where the place that it runs in has none: lines of ``passwd`` and ``group``. Pure.

An administrator gives them with the link between a user and a uid; what is no usual name, or is somebody else's there,
becomes ``uid-<number>``. Names that are there already are left alone.
"""

from __future__ import annotations

import re

_USUAL = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")
#: Field of the number in both files.
_NUMBER = 2


def passwd_with(passwd: str, uid: int, gid: int, name: str, home: str) -> str | None:
    """The file with a line for this user; None where it has one."""
    if _has(passwd, uid):
        return None
    return _ended(passwd) + f"{_free(passwd, name, f'uid-{uid}')}:x:{uid}:{gid}::{_field(home)}:/bin/sh\n"


def group_with(group: str, gid: int, name: str) -> str | None:
    """The file with a line for this group; None where it has one."""
    if _has(group, gid):
        return None
    return _ended(group) + f"{_free(group, name, f'gid-{gid}')}:x:{gid}:\n"


def name_of(passwd: str, uid: int) -> str:
    """What the file calls a user; empty for nothing."""
    return next((fields[0] for fields in _lines(passwd) if fields[_NUMBER] == str(uid)), "")


def _has(text: str, number: int) -> bool:
    return any(fields[_NUMBER] == str(number) for fields in _lines(text))


def _free(text: str, name: str, otherwise: str) -> str:
    return name if _USUAL.fullmatch(name) and all(fields[0] != name for fields in _lines(text)) else otherwise


def _lines(text: str) -> list[list[str]]:
    lines = (line.split(":") for line in text.splitlines())
    return [fields for fields in lines if len(fields) > _NUMBER]


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _field(path: str) -> str:
    return "/" if ":" in path or "\n" in path else path
