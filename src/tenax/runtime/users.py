"""Whom a task runs as, and the one way in which an agent that is root touches what belongs to such a user.

Below a container's ``run`` directory everything is its user's: a name there may be a link, a pipe or another file a
moment later. So what the agent does there it does with that user's rights (`acting_as`), in a thread whose file system
identity is the user's and which has no capability: the kernel refuses what it would refuse the user. Signals and
debuggers of that user do not reach the thread, whose real identity stays root's.

Linux only: elsewhere an agent that is root refuses tasks of other users.

Where the place that a task runs in has no names for its numbers it gets lines of ``passwd`` and ``group``: with the
names that the administrator gave with the link, or ``uid-<number>`` where those are unusual, or somebody else's there.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import pwd
import re
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tenax.runtime.port import StartFailed
from tenax.runtime.processes import LINUX
from tenax.wire.agents import ContainerSpec

Result = TypeVar("Result")

#: Numbers of ``setgroups`` by machine: the C library's own function changes all threads at once.
_SETGROUPS = {"x86_64": 116, "aarch64": 159, "ppc64le": 81, "riscv64": 159, "s390x": 206}
_CAPABILITY_VERSION_3 = 0x20080522
_USUAL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")
#: Field of the number in ``passwd`` and ``group``.
_NUMBER = 2


@dataclass(frozen=True, slots=True)
class TaskUser:
    """Whom a task runs as, where that is not the agent's own user."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    #: No program that it runs gives it the rights of another, as sudo would.
    no_new_privileges: bool = False

    def plan(self) -> list[tuple[str, str]]:
        """What the plan of a supervisor says of it."""
        items = [("uid", str(self.uid)), ("gid", str(self.gid)), *(("group", str(group)) for group in self.groups)]
        return [*items, ("no_new_privileges", "1")] if self.no_new_privileges else items


def user_of(spec: ContainerSpec) -> TaskUser | None:
    """None for the agent's own; 0 too means that, where the agent is not root. Raises StartFailed.

    A group without a user, as a workspace has it, is that of the agent's own user.
    """
    if spec.uid is None:
        return _own_in_group(spec.gid)
    if os.geteuid() == 0 == spec.uid:
        return _own_in_group(spec.gid)
    if spec.uid in (0, os.geteuid()):
        return None
    if os.geteuid() != 0:
        raise StartFailed(
            f"the task is to run as uid {spec.uid}, and the agent is not root: start the agent as root, "
            "or remove the link between the user and that uid",
            platform=False,
        )
    if not LINUX or platform.machine() not in _SETGROUPS:
        raise StartFailed(
            f"the task is to run as uid {spec.uid}, which takes Linux on a usual processor, and this machine is "
            f"{platform.system()} on {platform.machine()}: remove the link between the user and that uid",
            platform=False,
        )
    return _account(spec.uid, spec.gid)


def _own_in_group(gid: int | None) -> TaskUser | None:
    if gid is None or gid == os.getegid():
        return None
    if os.geteuid() != 0:
        raise StartFailed(
            f"the task is to run in group {gid}, and the agent is not root: start the agent as root, "
            "or remove the group from the workspace or the user",
            platform=False,
        )
    return TaskUser(0, gid, (gid,))


def files_of(spec: ContainerSpec | None) -> TaskUser | None:
    """Whose the files of a task are; None for the agent's own user."""
    return None if spec is None or not spec.uid or os.geteuid() != 0 else _account(spec.uid, spec.gid)


def owner_of(folder: int) -> TaskUser | None:
    """Whose an open ``run`` directory is: the agent alone can have said so. None for the agent's own user."""
    status = os.fstat(folder)
    if os.geteuid() != 0 or status.st_uid == 0:
        return None
    return _account(status.st_uid, status.st_gid)


def acting_as(who: TaskUser | None, work: Callable[[], Result]) -> Result:
    """What ``work`` returns or raises, done with that user's rights on files; None: with the agent's own. Blocking.

    Descriptors that are open already go on to be what they are. ``work`` imports nothing: that user may not be able to
    come down to this Python's library.
    """
    if who is None:
        return work()
    outcome: list[Result] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            _become(who)
            outcome.append(work())
        except BaseException as error:
            failure.append(error)

    # A thread of its own, which ends: nothing else ever runs in it.
    thread = threading.Thread(target=run, name=f"uid-{who.uid}")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


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


def _become(who: TaskUser) -> None:
    """Make this thread, and no other, that user for the file system, without capabilities. Raises OSError."""
    number = _SETGROUPS.get(platform.machine())
    if not LINUX or number is None:
        raise OSError(errno.ENOSYS, "files of another user are out of reach on this kind of machine")
    library = ctypes.CDLL(None, use_errno=True)
    groups = (ctypes.c_uint32 * len(who.groups))(*who.groups)
    if library.syscall(ctypes.c_long(number), ctypes.c_size_t(len(who.groups)), groups):
        raise OSError(ctypes.get_errno(), f"cannot take the groups of uid {who.uid}")
    library.setfsgid(ctypes.c_uint32(who.gid))
    library.setfsuid(ctypes.c_uint32(who.uid))
    nobody = ctypes.c_uint32(0xFFFFFFFF)
    if (library.setfsgid(nobody) & 0xFFFFFFFF, library.setfsuid(nobody) & 0xFFFFFFFF) != (who.gid, who.uid):
        raise PermissionError(errno.EPERM, f"cannot act as uid {who.uid}")
    header, none = struct.pack("Ii", _CAPABILITY_VERSION_3, 0), bytes(24)
    if library.capset(header, none):
        raise OSError(ctypes.get_errno(), f"cannot lay down the rights of root for uid {who.uid}")


def _account(uid: int, gid: int | None) -> TaskUser:
    """With its other groups too: devices are often open to ``video`` or ``render`` only."""
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        own = gid if gid is not None else uid
        return TaskUser(uid, own, (own,))
    own = gid if gid is not None else entry.pw_gid
    return TaskUser(uid, own, tuple(os.getgrouplist(entry.pw_name, own)))


def _has(text: str, number: int) -> bool:
    return any(fields[_NUMBER] == str(number) for fields in _lines(text))


def _free(text: str, name: str, otherwise: str) -> str:
    return name if _USUAL_NAME.fullmatch(name) and all(fields[0] != name for fields in _lines(text)) else otherwise


def _lines(text: str) -> list[list[str]]:
    lines = (line.split(":") for line in text.splitlines())
    return [fields for fields in lines if len(fields) > _NUMBER]


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _field(path: str) -> str:
    return "/" if ":" in path or "\n" in path else path
