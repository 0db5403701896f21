"""A mount namespace for one process and what it starts. Linux, standard library only, Python 3.9.

The new root is a small file system in memory. It holds what stands in the old one, mounted at the same paths, and the
targets; a directory in which a target would have to be made is taken apart into its entries, so that nothing is made on
the machine. The new root itself cannot be written: what would be lost at the end is refused at once. Where the user may
write beside the target, though, it is made on the machine, and stays there empty, as with a container engine: nothing
could be written to a directory that is taken apart.

As root a mount namespace suffices. Anyone else takes a user namespace in which they are the same user; in it, as in the
first, programs started later have no more rights than before.
"""

from __future__ import annotations

import ctypes
import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Optional

CLONE_NEWNS = 0x0002_0000
CLONE_NEWUSER = 0x1000_0000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT = 1, 2, 4, 32
MS_BIND, MS_REC, MS_SLAVE = 4096, 16384, 1 << 19
MNT_DETACH = 2
PR_SET_DUMPABLE = 4
SHM = "/dev/shm"
#: Of the system itself: nothing is made there, and what tasks write is elsewhere.
_TAKEN_APART = ("/", "/run")
#: NOSUID, NODEV, NOEXEC, NOATIME, NODIRATIME: the same numbers in what is told of a mount and in what is asked for one.
_SAME_FLAGS = 2 | 4 | 8 | 1024 | 2048
#: Number of the system call, which has no function in the C library, by machine.
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "ppc64le": 203, "riscv64": 41}


def enter(targets: Mapping[str, str], new_root: str, read_only: Collection[str] = (), shm_bytes: int = 0) -> None:
    """Move this process, of one thread, to where each target (an absolute path) is what it names.

    ``new_root``: an empty directory, which stays empty. ``read_only``: targets that cannot be written. ``shm_bytes``:
    of a shared memory of its own; 0: the machine's. Raises OSError.
    """
    here = os.getcwd()
    real = {os.path.realpath(path): source for path, source in targets.items()}
    inner = {path for path in real if any(path.startswith(f"{other}/") for other in real)}
    for path in sorted(real.keys() - inner):
        _make_beside_what_is_written(real[path], path)
    _unshare()
    _mount(None, "/", MS_REC | MS_SLAVE)
    there = {path for path, source in real.items() if os.path.exists(path) and _alike(path, source)} - inner
    _mount("tmpfs", new_root, MS_NOSUID | MS_NODEV, kind="tmpfs", options="mode=755,size=1m")
    _populate("", new_root, {path: source for path, source in real.items() if path not in there | inner})
    for path in sorted(there):
        _mount(real[path], new_root + path, MS_BIND | MS_REC)
    for path in sorted(inner):
        # Where it has to be made, it is made in what is mounted above it, as a container engine does.
        _make(real[path], new_root + path)
        _mount(real[path], new_root + path, MS_BIND | MS_REC)
    if shm_bytes:
        _mount("tmpfs", f"{new_root}{SHM}", MS_NOSUID | MS_NODEV, kind="tmpfs", options=f"mode=1777,size={shm_bytes}")
    _pivot(new_root)
    # What was mounted there came along with its surroundings.
    _libc().umount2(os.fsencode(new_root), MNT_DETACH)
    for path in read_only:
        if path in targets:
            _guard(os.path.realpath(path))
    _mount(None, "/", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    os.chdir(here)
    # What changing the user namespace took away: others of this user may look at this process again.
    _libc().prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


def _populate(real: str, made: str, targets: Mapping[str, str]) -> None:
    """Fill the directory ``made`` with what ``real`` has, and with the targets below it."""
    below: dict[str, dict[str, str]] = {}
    for path, source in targets.items():
        below.setdefault(path[len(real) + 1 :].split("/")[0], {})[path] = source
    try:
        names = os.listdir(real or "/")
    except FileNotFoundError:
        names = []
    for name in sorted({*names, *below}):
        path, place = f"{real}/{name}", f"{made}/{name}"
        if name not in below:
            _take_over(path, place)
        elif path in below[name]:
            _bind(below[name][path], place)
        else:
            os.mkdir(place)
            _populate(path, place, below[name])


def _take_over(path: str, place: str) -> None:
    if os.path.islink(path):
        os.symlink(os.readlink(path), place)
    elif os.path.lexists(path):
        _bind(path, place)


def _alike(path: str, source: str) -> bool:
    return os.path.isdir(path) == os.path.isdir(source)


def _make(source: str, place: str) -> None:
    """Something to mount ``source`` on."""
    if os.path.isdir(source):
        os.makedirs(place, exist_ok=True)
    elif not os.path.exists(place):
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _make_beside_what_is_written(source: str, path: str) -> None:
    """Make a place that is not there on the machine, where this user may write next to it."""
    above = os.path.dirname(path)
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    if os.path.lexists(path) or above in _TAKEN_APART or not os.access(above, os.W_OK):
        return
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _make(source, path)
    except OSError:
        # Then the directory is taken apart, as where nobody may write.
        pass


def _bind(source: str, place: str) -> None:
    _make(source, place)
    _mount(source, place, MS_BIND | MS_REC)


def _guard(path: str) -> None:
    """Make what is mounted there read-only; what else holds for it must stay."""
    kept = os.statvfs(path).f_flag & _SAME_FLAGS
    _mount(None, path, MS_REMOUNT | MS_BIND | MS_RDONLY | kept)


def _unshare() -> None:
    uid, gid = os.geteuid(), os.getegid()
    libc = _libc()
    if uid == 0 and libc.unshare(CLONE_NEWNS) == 0:
        return
    # Whose rights were taken from it, without an exec since, does not own what the next lines write to.
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0:
        _raise("a user namespace")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="utf-8") as file:
            file.write(text)


def _pivot(new_root: str) -> None:
    """Make ``new_root`` the root, and let go of the old one."""
    number = _PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), "pivot_root")
    os.chdir(new_root)
    libc = _libc()
    if libc.syscall(ctypes.c_long(number), b".", b".") != 0:
        _raise("pivot_root")
    if libc.umount2(b".", MNT_DETACH) != 0:
        _raise("umount of the old root")
    os.chdir("/")


def _mount(source: Optional[str], target: str, flags: int, *, kind: str = "", options: str = "") -> None:
    arguments = [
        None if text is None else os.fsencode(text) for text in (source, target, kind or None, options or None)
    ]
    if _libc().mount(arguments[0], arguments[1], arguments[2], ctypes.c_ulong(flags), arguments[3]) != 0:
        _raise(target)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _raise(what: str) -> None:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number), what)
