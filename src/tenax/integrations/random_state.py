"""Random states of one process as plain values, for checkpoints of frameworks that leave them out.

Python's, numpy's and PyTorch's own generators, of what this process has loaded; not those of generators that a script
makes, nor of worker processes.
"""

from __future__ import annotations

import random
import sys
from typing import Any


def random_state() -> dict[str, Any]:
    """The states as they are now: values that JSON has."""
    version, numbers, gauss = random.getstate()
    state: dict[str, Any] = {"python": [version, list(numbers), gauss]}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        name, keys, position, has_gauss, cached = numpy.random.get_state()
        state["numpy"] = [name, keys.tolist(), position, has_gauss, cached]
    torch = sys.modules.get("torch")
    if torch is not None:
        state["torch"] = bytes(torch.get_rng_state().tolist()).hex()
        if torch.cuda.is_available():
            state["cuda"] = [bytes(each.tolist()).hex() for each in torch.cuda.get_rng_state_all()]
    return state


def restore_random_state(state: dict[str, Any]) -> None:
    """Put back what `random_state` gave, on as many GPUs as there were."""
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    if "numpy" in state:
        import numpy

        numpy.random.set_state(tuple(state["numpy"]))
    if "torch" in state:
        import torch

        torch.set_rng_state(_tensor(state["torch"]))
        if len(state.get("cuda", ())) == torch.cuda.device_count():
            torch.cuda.set_rng_state_all([_tensor(each) for each in state.get("cuda", ())])


def _tensor(text: str) -> Any:
    import torch

    return torch.tensor(list(bytes.fromhex(text)), dtype=torch.uint8)
