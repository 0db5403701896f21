"""What slots are made of: the words that scheduler, agent, settings and API share. Standard library only.

A slot is one device that can be given to one container at a time: a GPU, a MIG instance, or a share of the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class DeviceKind(str, Enum):
    """What a slot is made of; the values are those of Determined's ``slot_type``.

    Each but the CPU is a kind of GPU, which `tenax.runtime.gpus.registry` knows how to find and to give away.
    """

    CPU = "cpu"
    CUDA = "cuda"
    ROCM = "rocm"


@dataclass(frozen=True)
class SlotDevice:
    """What a slot is made of, as its agent says."""

    name: str = ""
    #: Bytes; None: it does not say.
    memory: int | None = None
