"""``context.experimental``: what else the loop can be told; and, under the name that users of Determined know,
`tenax.pytorch.torch_batch_process`."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import nn

from tenax.errors import InvalidInput
from tenax.pytorch.devices import gradient_scaler, is_gpu

_BATCH_PROCESS = ("TorchBatchProcessor", "TorchBatchProcessorContext", "get_default_device", "torch_batch_process")


def __getattr__(name: str) -> object:
    if name not in _BATCH_PROCESS:
        raise AttributeError(f"module 'tenax.pytorch.experimental' has no attribute {name!r}")
    from tenax.pytorch import batch_process

    return getattr(batch_process, name)


class PyTorchExperimentalContext:
    """Switches, to be set in the trial's ``__init__``."""

    def __init__(self) -> None:
        #: Whether passes run in mixed precision by themselves, and the scaler is used without being named.
        self.auto_amp = False
        #: Whether batches are moved to the device.
        self.auto_to_device = True
        #: Whether loaders must be `tenax.pytorch.DataLoader`.
        self.checks_datasets = True
        #: Of gradients; None: none is used.
        self.scaler: Any = None

    def use_amp(self) -> None:
        """Mixed precision by itself: passes in ``torch.autocast``, loss scaled, gradients unscaled before they are
        clipped. Before ``wrap_model``. Without a GPU it changes nothing. Raises InvalidInput after `wrap_scaler`."""
        if self.scaler is not None:
            raise InvalidInput("use_amp() brings a scaler of its own: call it, or context.wrap_scaler(), once")
        self.scaler = gradient_scaler()
        self.auto_amp = True

    def disable_dataset_reproducibility_checks(self) -> None:
        """Take any ``torch.utils.data.DataLoader``: sharing out, shuffling and skipping are the trial's then."""
        self.checks_datasets = False

    def disable_auto_to_device(self) -> None:
        """Leave batches where they are: the trial calls ``context.to_device``."""
        self.auto_to_device = False


def autocast_forward(model: nn.Module, device: torch.device) -> nn.Module:
    """Its passes run in mixed precision, and what comes out has full precision, whatever computes the loss."""
    forward = model.forward

    @functools.wraps(forward)
    def mixed(*arguments: Any, **named: Any) -> Any:
        with torch.autocast(device.type, enabled=is_gpu(device)):
            result = forward(*arguments, **named)
        return _full_precision(result)

    model.forward = mixed
    return model


def _full_precision(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype in (torch.float16, torch.bfloat16) else value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_full_precision, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(_full_precision, value))
    if isinstance(value, dict):
        return {name: _full_precision(each) for name, each in value.items()}
    return value
