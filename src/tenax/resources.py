"""Slots and what a request asks of them: the words that scheduler, agent and API share. Standard library only.

A slot is one device that can be given to one container at a time: a GPU, a MIG instance, or a share of the CPU.
"""

from __future__ import annotations

from enum import Enum


class DeviceKind(str, Enum):
    """What a slot is made of; the values are those of Determined's ``slot_type``."""

    CPU = "cpu"
    CUDA = "cuda"
    ROCM = "rocm"
