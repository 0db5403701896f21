"""Slots and what a request asks of them: the words that scheduler, agent and API share. Standard library only.

A slot is one device that can be given to one container at a time: a GPU, a MIG instance, or a share of the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tenax.ids import SlotId


class DeviceKind(str, Enum):
    """What a slot is made of; the values are those of Determined's ``slot_type``."""

    CPU = "cpu"
    CUDA = "cuda"
    ROCM = "rocm"


@dataclass(frozen=True)
class DeviceSlot:
    """One device of an agent, as detection found it."""

    id: SlotId
    kind: DeviceKind
    #: Product name, as the vendor's library gives it.
    name: str
    #: The vendor's identity of the device ("GPU-...", "MIG-..."); empty for CPU slots.
    uuid: str = ""
