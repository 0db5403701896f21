"""Which device a rank trains on. What is said here of GPUs is PyTorch's word for those of any maker."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Optional

import torch

_GPU = "cuda"


def own_device(local_rank: int) -> torch.device:
    """The GPU of this rank on its machine, else the CPU."""
    return torch.device(f"{_GPU}:{local_rank}" if torch.cuda.is_available() else "cpu")


def is_gpu(device: torch.device) -> bool:
    return device.type == _GPU


def gradient_scaler() -> torch.amp.GradScaler:
    """One that does nothing where there is no GPU."""
    return torch.amp.GradScaler(_GPU, enabled=torch.cuda.is_available())


def page_lock(block: mmap.mmap) -> Optional[Callable[[], None]]:
    """Let a GPU copy into this memory at its full speed; what undoes it. None: it could not be."""
    cuda: Any = torch.cuda
    runtime = cuda.cudart()
    address = torch.frombuffer(block, dtype=torch.uint8).data_ptr()
    if int(runtime.cudaHostRegister(address, len(block), 0)) != 0:
        # Else it would be raised by whatever is done on the GPU next.
        with suppress(RuntimeError):
            torch.zeros(1, device=_GPU)
        return None

    def release() -> None:
        runtime.cudaHostUnregister(address)

    return release


def wait_for_copies(device: torch.device) -> None:
    """Until what was copied from a GPU has arrived."""
    torch.cuda.current_stream(device).synchronize()
