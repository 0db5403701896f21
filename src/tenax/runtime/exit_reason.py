"""How a container ended, as a sentence for people. Pure."""

from __future__ import annotations

import signal

import msgspec

from tenax.runtime.directory import ExitRecord
from tenax.wire.agents import Exit

#: From this share of its disk on, a container has filled it itself.
OWN_SHARE = 0.1
#: Of a container that ended with the cluster of its machine.
SWITCHED_OFF = "it was ended together with the cluster on its machine"


def exit_of(record: ExitRecord, directory: str = "", own_share: float = 0.0) -> Exit:
    """The exit of a supervised process.

    ``directory``: where it was; ``own_share``: what its own files take there of a disk that is full.
    """
    if record.lost:
        return Exit(reason=record.lost, platform=True)
    ended = _exit_of(record)
    if not record.disk_full or record.killed or record.terminated or ended.code == 0:
        return ended
    full = f"the disk of {directory} on the agent's machine is full"
    if own_share >= OWN_SHARE:
        return msgspec.structs.replace(
            ended, reason=f"{ended.reason}; {full}, {own_share:.0%} of it with its own files"
        )
    reason = f"{full} and took neither its output nor its reports: make room there ({ended.reason})"
    return msgspec.structs.replace(ended, reason=reason, platform=True, disk_full=True)


def _exit_of(record: ExitRecord) -> Exit:
    if record.signal is None:
        reason = "" if record.code == 0 else f"exited with code {record.code}"
        if record.code != 0 and record.oom_kills:
            reason += "; meanwhile the machine ran out of memory and a process was killed, perhaps one of its own"
        return Exit(code=record.code, reason=reason)
    if record.signal == signal.SIGKILL and not record.killed and record.oom_kills:
        return Exit(signal=record.signal, reason="out of memory: the kernel killed it", out_of_memory=True)
    return Exit(signal=record.signal, reason=killed_by(record.signal, requested=record.killed or record.terminated))


def killed_by(number: int, *, requested: bool) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return f"stopped by {name}, as asked" if requested else f"killed by {name} ({number}), not by the platform"
