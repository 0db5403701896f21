"""How a container ended, as a sentence for people. Pure."""

from __future__ import annotations

import signal

from tenax.runtime.directory import ExitRecord
from tenax.wire.agents import Exit

#: Of a container that ended with the cluster of its machine.
SWITCHED_OFF = "it was ended together with the cluster on its machine"


def exit_of(record: ExitRecord) -> Exit:
    """The exit of a supervised process."""
    if record.lost:
        return Exit(reason=record.lost, platform=True)
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
