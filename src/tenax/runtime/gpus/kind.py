"""What a kind of GPU is: how its devices are found, how a process is kept to some, and what an engine is asked for.

Rules:
- Without its driver a machine has none of a kind: that is no error.
- A device is named by its vendor's identity, which holds whatever is turned on or off around it.
- A process that got no device of a kind sees none of that kind.
- A device whose driver says what is wrong with it, or does not know it any more, is broken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from tenax.jsonvalue import Json
from tenax.scheduler.devices import DeviceKind


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU, or a part of one that is given away by itself (a MIG instance), as its vendor numbers it."""

    index: str
    uuid: str
    name: str
    #: Bytes; None where it is not known.
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """What a container engine is asked for, beside what the task asked for itself."""

    #: Paths of this machine that the container sees as well.
    devices: Sequence[str] = ()
    #: Further keys of ``HostConfig``.
    host_config: Mapping[str, Json] = field(default_factory=dict)
    #: Variables of the container.
    environment: Mapping[str, str] = field(default_factory=dict)


class GpuKind(Protocol):
    """One kind."""

    #: As slots, settings and configurations spell it.
    kind: ClassVar[DeviceKind]
    #: The vendor's variable: which devices a process sees. It narrows what an agent offers as well.
    variable: ClassVar[str]
    #: Variables of a container that gets none, where an engine would give it some unasked.
    withheld: ClassVar[Mapping[str, str]]

    def find(self) -> list[Gpu]:
        """Those of this machine, in the vendor's order. Blocks: for a thread."""

    def faults(self, uuids: Sequence[str]) -> Mapping[str, str]:
        """What is wrong with these devices, in words for people, by identity. May block as long as a driver does."""

    def engine_request(self, uuids: Sequence[str]) -> EngineRequest:
        """What gives these devices, one at least, to a container."""
