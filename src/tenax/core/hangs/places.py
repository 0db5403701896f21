"""From a stack to where it stands, in words. Pure; standard library only, Python 3.9.

Rules, of which the first that holds gives the words:

- In a call of ``torch.distributed``, of `tenax.core`'s own or in the backward pass of several ranks: it waits in that
  call, for other ranks.
- In a data loader: it waits for that; where its worker stands is another stack.
- Else it stands at the innermost line of the user's own code; without such a line, at the innermost of all.

What compiles, asks the master or waits for a program is marked: it may take its time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Optional


@dataclass(frozen=True)
class Frame:
    """One call."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class StackPlace:
    """Where a process stands."""

    #: ``waits in all_reduce (train.py:60)``, ``stands at data.py:88``.
    text: str
    #: For other ranks.
    waits: bool = False
    #: For its data loader.
    loads: bool = False
    #: It may take its time: it compiles, or waits for the master.
    excused: bool = False
    #: It waits for a program that it has started.
    runs_program: bool = False


_LIBRARY = re.compile(
    r"^<|/(?:site|dist)-packages/|/lib(?:64)?/python3|/tenax/(?:core|client|exec|launch|storage|pytorch)/"
)
_TORCH = "/torch/distributed/"
_BACKWARD = re.compile(r"/torch/(?:autograd/(?:graph|__init__)|_tensor)\.py$")
_OURS = re.compile(r"/tenax/core/(?:collectives|distributed|sharding|preempt|checkpoint)\.py$")
_OWN_WAIT = "/tenax/core/collectives.py"
_LOADER = re.compile(r"/torch/utils/data/(?:dataloader|_utils/\w+)\.py$")
_IDLE_WORKER = "/torch/utils/data/_utils/worker.py"
_COMPILERS = re.compile(
    r"/torch/(?:_dynamo|_inductor|_functorch|fx)/|/torch/utils/cpp_extension\.py$|/triton/|/jax/_src/(?:compiler|interpreters)|/numba/core/"
)
_MASTER = re.compile(r"/tenax/(?:client/|core/spool)")
_MAX_CODE = 80


def place_of(stack: Sequence[Frame], several: bool, source: Callable[[str, int], str]) -> Optional[StackPlace]:
    """Where this stack, innermost call first, stands; None: nothing is known of it.

    ``several``: whether its job has several ranks. ``source``: the text of a line, empty where it cannot be read.
    """
    if not stack:
        return None
    own = next((frame for frame in stack if not _LIBRARY.search(frame.file)), None)
    inner = list(stack if own is None else stack[: stack.index(own)])
    at = f" ({_short(own)})" if own is not None else ""
    if any(_COMPILERS.search(frame.file) for frame in inner):
        return StackPlace(f"compiles{at}", excused=True)
    if any(_MASTER.search(frame.file) for frame in inner):
        return StackPlace(f"waits for the master{at}", excused=True)
    call = _collective(inner)
    if call and several:
        return StackPlace(f"waits in {call}{at}", waits=True)
    if several and any(_BACKWARD.search(frame.file) for frame in inner):
        return StackPlace(f"waits in backward{at}", waits=True)
    if any(_LOADER.search(frame.file) for frame in inner) and not any(_is_worker(frame) for frame in stack):
        return StackPlace(f"waits for its data loader{at}", loads=True)
    frame = own or stack[0]
    code = source(frame.file, frame.line).strip()
    shown = f", `{code[:_MAX_CODE]}`" if code else ""
    program = any(frame.file.endswith("/subprocess.py") for frame in inner)
    return StackPlace(f"stands at {_short(frame)}{shown}", runs_program=program)


def worker_place(stack: Sequence[Frame], source: Callable[[str, int], str]) -> Optional[StackPlace]:
    """Where a worker of a data loader stands; None: it is none, or has nothing to do."""
    own = next((at for at, frame in enumerate(stack) if _is_worker(frame)), None)
    if own is None or not any(not _LIBRARY.search(frame.file) for frame in stack[:own]):
        return None
    return place_of(stack[:own], False, source)


def _is_worker(frame: Frame) -> bool:
    return frame.function == "_worker_loop" and frame.file.endswith(_IDLE_WORKER)


def _collective(inner: Sequence[Frame]) -> str:
    """The outermost call that is one; empty: none is."""
    ours = any(frame.file.endswith(_OWN_WAIT) for frame in inner)
    name = ""
    for frame in inner:
        known = _TORCH in frame.file or (ours and _OURS.search(frame.file) is not None)
        if known and not frame.function.startswith("_") and frame.function not in ("wrapper", "together"):
            name = frame.function
    return name


def _short(frame: Frame) -> str:
    return f"{frame.file.rpartition('/')[2]}:{frame.line}"
