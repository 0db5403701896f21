"""States that no rank has as a whole (``fully_shard``, tensor parallel): each rank saves what it has, and any number of
ranks goes on with it.

The format is that of ``torch.distributed.checkpoint``, in a folder of the checkpoint, which PyTorch alone reads, too.
All ranks call, in step, with a process group; one process needs none.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Optional, Union

import torch
import torch.distributed as group
from torch import nn
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from tenax.errors import InvalidInput

FOLDER = "sharded"
_MODEL, _OPTIMIZERS, _EXTRA = "model", "optimizers", "extra"
#: Problems that a message names.
_MAX_NAMED = 5

Optimizers = Union[torch.optim.Optimizer, Iterable[torch.optim.Optimizer]]


def save_sharded(
    directory: Path,
    model: nn.Module,
    optimizers: Optimizers = (),
    extra: Optional[dict[str, Any]] = None,
    *,
    file_per_tensor: bool = False,
) -> None:
    """Write the part of this rank into a directory: inside of ``context.checkpoint.store_path(..., shard=True)``.

    ``extra``: what else belongs to the state, that of rank 0. ``file_per_tensor``: a file for each tensor instead of
    one a rank, so that layers which are not trained are stored once for all checkpoints; for hundreds, not for tens of
    thousands of files. Raises InvalidInput for what cannot be pickled, and what PyTorch raises where a rank fails.
    """
    try:
        pickled = pickle.dumps(extra or {})
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        raise InvalidInput(f"`extra` cannot be saved: {error}. Leave out what cannot be pickled") from error
    writer = FileSystemWriter(directory / FOLDER, single_file_per_rank=not file_per_tensor, sync_files=False)
    state = {**_state_of(model, optimizers), _EXTRA: pickled}
    save(state, storage_writer=writer, no_dist=not group.is_initialized())


def load_sharded(directory: Path, model: nn.Module, optimizers: Optimizers = ()) -> dict[str, Any]:
    """Put a model and optimizers back as `save_sharded` wrote them, on however many ranks: each reads what it has now.

    Returns ``extra``; its pickle is run: it is code of whoever made it. Raises InvalidInput for a checkpoint that does
    not fit, or is none.
    """
    reader = FileSystemReader(directory / FOLDER)
    try:
        stored = reader.read_metadata()
    except (OSError, EOFError, pickle.UnpicklingError) as error:
        raise InvalidInput(
            f"{directory} holds no sharded state that can be read ({error}): give a checkpoint of save_sharded()"
        ) from error
    state = {**_state_of(model, optimizers), _EXTRA: b""}
    problems = _misfits(state, stored)
    if problems:
        more = f" and {len(problems) - _MAX_NAMED} more" if len(problems) > _MAX_NAMED else ""
        raise InvalidInput(
            f"the checkpoint does not fit: {'; '.join(problems[:_MAX_NAMED])}{more}. Build the model and its "
            "optimizers as they were when the checkpoint was made, or begin anew without latest_checkpoint"
        )
    load(state, storage_reader=reader, no_dist=not group.is_initialized())
    set_state_dict(
        model,
        _several(optimizers),
        model_state_dict=state[_MODEL],
        optim_state_dict=state[_OPTIMIZERS],
    )
    extra: dict[str, Any] = pickle.loads(state[_EXTRA])
    return extra


def _misfits(state: dict[str, Any], stored: Any) -> list[str]:
    """What the checkpoint has not, or in another shape."""
    problems: list[str] = []
    for name, value in _tensors(state, ""):
        theirs = stored.state_dict_metadata.get(name)
        shape = tuple(getattr(theirs, "size", ()))
        if theirs is None:
            problems.append(f"it has no {name}")
        elif shape != tuple(value.shape):
            problems.append(f"{name} is {_shape(shape)} in it and {_shape(tuple(value.shape))} here")
    names = {name for name, _ in _tensors(state, "")}
    problems += [
        f"{name} is in it alone"
        for name, theirs in stored.state_dict_metadata.items()
        if name.startswith(_MODEL + ".") and hasattr(theirs, "size") and name not in names
    ]
    return problems


def _shape(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes)) or "a number"


def _tensors(value: Any, name: str) -> Iterable[tuple[str, torch.Tensor]]:
    """With the names that ``torch.distributed.checkpoint`` gives them."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _tensors(each, f"{name}.{key}" if name else str(key))


def _several(optimizers: Optimizers) -> list[torch.optim.Optimizer]:
    return [optimizers] if isinstance(optimizers, torch.optim.Optimizer) else list(optimizers)


def _state_of(model: nn.Module, optimizers: Optimizers) -> dict[str, Any]:
    of_model, of_optimizers = get_state_dict(model, _several(optimizers))
    return {_MODEL: of_model, _OPTIMIZERS: of_optimizers}
