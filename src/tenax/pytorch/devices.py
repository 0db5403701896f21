"""Which device a rank trains on. What is said here of GPUs is PyTorch's word for those of any maker."""

from __future__ import annotations

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
