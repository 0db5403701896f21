"""Whether two checkpoints hold the same, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

#: Where a run was, what it logged, and how fast it was, differ.
_LEFT_OUT = {"trainer_state.json", "training_args.bin", ".tenax-manifest.json"}


def same(first: Path, second: Path) -> None:
    """Raises AssertionError with what differs."""
    names = [
        sorted(str(path.relative_to(each)) for path in each.rglob("*") if path.is_file() and path.name not in _LEFT_OUT)
        for each in (first, second)
    ]
    assert names[0] == names[1]
    assert names[0]
    for name in names[0]:
        if name.endswith((".pt", ".pth", ".ckpt", ".bin", ".pkl")):
            _same_values(_read(first / name), _read(second / name), name)
        elif name.endswith(".h5"):
            _same_values(_arrays(first / name), _arrays(second / name), name)
        else:
            assert (first / name).read_bytes() == (second / name).read_bytes(), name


def _arrays(path: Path) -> dict[str, Any]:
    """Of a file of HDF5, which has the time of its making in it, too."""
    import h5py

    arrays: dict[str, Any] = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, node: arrays.update({name: node[()]} if isinstance(node, h5py.Dataset) else {}))
    return arrays


def _read(path: Path) -> Any:
    return torch.load(path, weights_only=False)


def _same_values(one: Any, other: Any, where: str) -> None:
    if isinstance(one, torch.Tensor):
        assert torch.equal(one, other), where
    elif isinstance(one, np.ndarray):
        assert np.array_equal(one, other), where
    elif isinstance(one, Mapping):
        assert one.keys() == other.keys(), where
        for key in one:
            _same_values(one[key], other[key], f"{where}: {key}")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), where
        for index, (mine, its) in enumerate(zip(one, other)):
            _same_values(mine, its, f"{where}[{index}]")
    elif type(one).__eq__ is object.__eq__ and not isinstance(one, type) and hasattr(one, "__dict__"):
        assert type(one) is type(other), where
        _same_values(vars(one), vars(other), where)
    else:
        assert one == other, where
