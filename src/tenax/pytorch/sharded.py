"""Models whose parameters are shared out among ranks (FSDP2, ``torch.distributed.fsdp.fully_shard``).

A checkpoint holds them whole, as those of any other job: it is read by a job of any number of ranks, sharded or not,
and by who looks at a model on a laptop. All ranks call what is here, in the same order.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch
import torch.distributed as group
from torch import nn

from tenax.errors import InvalidInput


def is_sharded(model: nn.Module) -> bool:
    """Whether `fully_shard` was called on it or on a part of it. The name of what it is moved between releases."""
    return any(hasattr(part, "set_requires_gradient_sync") for part in model.modules())


def require_whole(model: nn.Module) -> None:
    """Gradients of what is not sharded would differ between ranks. Raises InvalidInput."""
    apart = [name for name, each in model.named_parameters() if each.requires_grad and not _is_shard(each)]
    if apart:
        raise InvalidInput(
            f"parts of this model are sharded, and these parameters are not: {', '.join(apart[:5])}"
            f"{', ...' if len(apart) > 5 else ''}. Call fully_shard(model) on the model itself too, after its parts"
        )


def sync_gradients(model: nn.Module, steps: bool) -> None:
    """Whether ranks exchange gradients at the end of the next backward pass; else each keeps whole ones of its own."""
    for part in model.modules():
        switch: Any = getattr(part, "set_requires_gradient_sync", None)
        if switch is not None:
            switch(steps, recurse=False)


def whole(value: Any, keeps: bool) -> Any:
    """A state with whole tensors for shards, in memory of the CPU; nothing of those where not ``keeps``."""
    if _is_shard(value):
        full = value.full_tensor()
        return full.detach().cpu() if keeps else None
    if isinstance(value, dict):
        return type(value)((name, whole(each, keeps)) for name, each in value.items())
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(whole(each, keeps) for each in value)
    return value


def like(value: Any, own: Any) -> Any:
    """A whole tensor shared out as ``own`` is. Raises InvalidInput for one of another shape."""
    if not _is_shard(own) or not isinstance(value, torch.Tensor) or _is_shard(value):
        return value
    if value.shape != own.shape:
        raise InvalidInput(f"a tensor of the checkpoint has the shape {tuple(value.shape)}, not {tuple(own.shape)}")
    return _distribute(value.to(own.device), own)


def models_like(saved: Any, model: nn.Module) -> dict[str, Any]:
    """A model's state, its tensors shared out as the model's are; those of another shape as they are."""
    own = model.state_dict()
    return {
        name: like(value, own[name]) if name in own and value.shape == own[name].shape else value
        for name, value in saved.items()
    }


def optimizer_like(saved: dict[str, Any], optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """An optimizer's state, what is of a parameter's shape shared out as that is."""
    parameters = [each for several in optimizer.param_groups for each in several["params"]]
    state = dict(saved["state"])
    for number, parameter in enumerate(parameters):
        if _is_shard(parameter) and isinstance(state.get(number), dict):
            state[number] = {
                name: like(value, parameter) if getattr(value, "shape", None) == parameter.shape else value
                for name, value in state[number].items()
            }
    return {**saved, "state": state}


def share_buffers(model: nn.Module) -> None:
    """The chief's, as running means are: each rank has its own, which are in no checkpoint."""
    for buffer in model.buffers():
        if not _is_shard(buffer):
            group.broadcast(buffer, 0)


def _is_shard(value: Any) -> bool:
    return hasattr(value, "full_tensor") and hasattr(value, "placements")


def _distribute(value: torch.Tensor, own: Any) -> Any:
    try:
        tensors = importlib.import_module("torch.distributed.tensor")
    except ImportError:  # before PyTorch 2.5
        tensors = importlib.import_module("torch.distributed._tensor")
    return tensors.distribute_tensor(value, own.device_mesh, own.placements)
