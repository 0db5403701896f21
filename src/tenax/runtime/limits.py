"""What of a machine a container may have: with mapped users only what its operator's list names.

A task that runs as a uid of its own is not trusted with the machine, and an engine does as root what it is asked for.
So bind mounts, devices, capabilities, the machine's network and uid 0 are what the operator lets them have: by
``allowed`` in the agent's configuration, or by giving them to every task in the master's (`Grants`). Tasks of users
without a uid run as the agent does and may do what it can: one trust domain, unless ``allowed.unmapped`` is off.

A plain process has no more of the machine than its uid has, so that only uid 0 is looked at.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tenax.config.agent import AllowedSettings
from tenax.runtime.port import StartFailed
from tenax.wire.agents import READ_ONLY, ContainerSpec, Mount

#: Of a mount whose changes would be seen outside of the container.
_SHARED = frozenset(("shared", "rshared"))
#: Errors that a path has on every machine that is like this one.
_OF_PATHS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG})


@dataclass(frozen=True, slots=True)
class NotAllowed:
    """Something that is not allowed."""

    #: Of the configuration that asks for it; empty for the user as whom it would run.
    setting: str
    #: What it is, and by which setting of the agent an operator would allow it.
    what: str


def user_refusal(spec: ContainerSpec, allowed: AllowedSettings) -> NotAllowed | None:
    """Why the operator does not let a task run as that uid; None: they do."""
    if spec.uid is None and not allowed.unmapped:
        return NotAllowed(
            "its owner",
            "its owner has no uid on this machine, and would run as the agent's own user, which its operator does not "
            "allow (allowed.unmapped): an administrator gives one with `tenax user link-with-agent-user`",
        )
    if spec.uid == 0 and not allowed.root:
        return NotAllowed(
            "its owner",
            "it is to run as uid 0, which the operator of this machine does not allow (allowed.root): an administrator "
            "links its owner, or its workspace, with another uid",
        )
    return None


def refusals(spec: ContainerSpec, allowed: AllowedSettings) -> list[NotAllowed]:
    """What a container asks for and the operator does not give to tasks with a uid of their own."""
    if spec.uid is None:
        return []
    return [*_mounts(spec, allowed), *_capabilities(spec, allowed), *_devices(spec, allowed)]


def check_user(spec: ContainerSpec, allowed: AllowedSettings) -> None:
    """Raises StartFailed where the operator does not let a task run as that uid."""
    refused = user_refusal(spec, allowed)
    if refused is not None:
        raise StartFailed(refused.what, platform=False)


def check_container(spec: ContainerSpec, allowed: AllowedSettings, *, host_network: bool) -> None:
    """Raises StartFailed with all that the operator does not allow.

    ``host_network``: it would be on the machine's network although that is not the usual one here.
    """
    check_user(spec, allowed)
    if spec.uid is None:
        return
    refused = [refusal.what for refusal in refusals(spec, allowed)]
    if host_network and not allowed.host_network:
        refused.append("the machine's network, which members on several machines need (allowed.host_network)")
    if refused:
        raise StartFailed(
            f"it runs as uid {spec.uid}, and the operator of this machine does not allow it {'; '.join(refused)}: "
            "leave that out, or ask the operator to name it in the agent's configuration",
            platform=False,
        )


def check_unchangeable(spec: ContainerSpec, allowed: AllowedSettings, *, by_root: bool = False) -> None:
    """Raises StartFailed where somebody could make an allowed path lead elsewhere before the engine follows it.

    ``by_root``: root in a container counts as somebody, and may write wherever a mount may. After `check_container`.
    Blocking.
    """
    if spec.uid is None:
        return
    entries = [_entry(text) for text in (*allowed.bind_mounts, *spec.granted.bind_mounts)]
    roots = [root for root, _ in entries]
    for mount in spec.mounts:
        path = posixpath.normpath(mount.host_path)
        above = [root for root, writable in entries if writable and path != root and _below(path, root)]
        if by_root and above:
            raise StartFailed(
                f"the bind mount {path} could be led elsewhere by a container that is root in it and may write to "
                f"{above[0]}: mount {above[0]} itself",
                platform=False,
            )
        if path not in roots:
            root = max((root for root in roots if _below(path, root)), key=len)
            _walk(root, PurePosixPath(path).relative_to(root).parts)


def _mounts(spec: ContainerSpec, allowed: AllowedSettings) -> Iterator[NotAllowed]:
    entries = [_entry(text) for text in (*allowed.bind_mounts, *spec.granted.bind_mounts)]
    for mount in spec.mounts:
        path = posixpath.normpath(mount.host_path)
        if not any(_below(path, root) and (mount.read_only or writable) for root, writable in entries):
            yield NotAllowed("bind_mounts", f"the bind mount {_shown(mount)} (allowed.bind_mounts)")
        elif mount.propagation in _SHARED:
            yield NotAllowed("bind_mounts.propagation", f"the propagation {mount.propagation} of {mount.host_path}")


def _capabilities(spec: ContainerSpec, allowed: AllowedSettings) -> Iterator[NotAllowed]:
    known = {_capability(name) for name in (*allowed.capabilities, *spec.granted.capabilities)}
    for name in spec.add_capabilities:
        if _capability(name) not in known:
            yield NotAllowed("environment.add_capabilities", f"the capability {name} (allowed.capabilities)")


def _devices(spec: ContainerSpec, allowed: AllowedSettings) -> Iterator[NotAllowed]:
    known = {posixpath.normpath(path) for path in (*allowed.devices, *spec.granted.devices)}
    for text in spec.devices:
        path = text.partition(":")[0]
        if posixpath.normpath(path) not in known:
            yield NotAllowed("resources.devices", f"the device {path} (allowed.devices)")


def _entry(text: str) -> tuple[str, bool]:
    """A path and whether it may be written: ``/data`` or ``/data:ro``."""
    path = text.removesuffix(READ_ONLY)
    return posixpath.normpath(path), path == text


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _capability(name: str) -> str:
    return name.upper().removeprefix("CAP_")


def _shown(mount: Mount) -> str:
    return f"{mount.host_path} for {'reading' if mount.read_only else 'reading and writing'}"


def _walk(root: str, parts: Sequence[str]) -> None:
    """Down from an allowed folder: nobody but root, or the agent's own user, may put another thing on the way."""
    flags = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC
    opened: list[int] = []
    here = Path(root)
    try:
        opened.append(os.open(root, flags & ~os.O_NOFOLLOW))
        for part in parts:
            status = os.fstat(opened[-1])
            if status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022:
                raise StartFailed(
                    f"the bind mount {here / part} could be led elsewhere by whoever may write to {here}: mount {root} "
                    "itself, or ask the operator to name the path in allowed.bind_mounts",
                    platform=False,
                )
            opened.append(os.open(part, flags, dir_fd=opened[-1]))
            here /= part
            if stat.S_ISLNK(os.fstat(opened[-1]).st_mode):
                raise StartFailed(f"the bind mount {here} is a link: name what it leads to", platform=False)
    except OSError as error:
        # Of the path, or of a machine that cannot look now.
        raise StartFailed(f"the bind mount {here}: {error.strerror}", platform=error.errno not in _OF_PATHS) from None
    finally:
        for descriptor in opened:
            os.close(descriptor)
