"""Which kinds of GPU there are: the one place where a new one is added.

A kind is one file here, a class that keeps to `tenax.runtime.gpus.kind.GpuKind`, and one line in the table; its name is
one of `tenax.scheduler.devices.DeviceKind`, which settings, configurations and slots take from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tenax.runtime.gpus.amd import Amd
from tenax.runtime.gpus.kind import EngineRequest, GpuKind
from tenax.runtime.gpus.nvidia import Nvidia

#: By name, in the order in which an agent looks for them: it offers the first kind that its machine has.
GPUS: Mapping[str, GpuKind] = {gpus.kind.value: gpus for gpus in (Nvidia(), Amd())}


def variables(kind: str, uuids: Sequence[str]) -> dict[str, str]:
    """The vendors' variables that keep a process to these devices of one kind; with none it sees no GPU at all."""
    own = {GPUS[kind].variable: ",".join(uuids)} if uuids and kind in GPUS else {}
    return own or {gpus.variable: "" for gpus in GPUS.values()}


def engine_request(kind: str, uuids: Sequence[str]) -> EngineRequest:
    """What gives these devices of one kind to a container, and none of any other; without devices none at all."""
    given = GPUS[kind].engine_request(uuids) if uuids and kind in GPUS else EngineRequest()
    withheld: dict[str, str] = {}
    for name, gpus in GPUS.items():
        if not uuids or name != kind:
            withheld |= gpus.withheld
    return replace(given, environment={**withheld, **given.environment})
