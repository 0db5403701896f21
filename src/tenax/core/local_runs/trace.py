"""What a run by hand is at each report, for ``tenax verify-resume``. Standard library only, Python 3.9.

``TENAX_VERIFY_RESUME`` names a file with a plan: where the trace goes, and when this process is asked to stop, or
killed. A line of the trace says at a report, or before the first step of an optimizer that follows one, what the run is
then: digests of parameters, of optimizers' states, of random states, and of the batches that were loaded since. Without
PyTorch there are Python's random state and the metrics.
"""

from __future__ import annotations

import hashlib
import random
import signal
import sys

from tenax.client.connection import fast_json
from tenax.core.values import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, TextIO, Tuple, Union

    from tenax.jsonvalue import Json, JsonObject

#: Samples whose numbers are written down, of those loaded between two lines.
_NUMBERS = 64


class ResumeTrace:
    """``plan``: ``trace``, the file; ``seed``; and when it ends, all optional: ``stopsAfter`` so many steps that were
    reported, ``stopsAt`` or ``killsAt`` a step."""

    def __init__(self, plan: JsonObject) -> None:
        self._plan = plan
        self._file: TextIO = open(str(plan["trace"]), "a", encoding="utf-8")  # noqa: SIM115
        self._steps: List[int] = []
        self._signalled = False
        self._torch = _TorchWatch()
        #: Whether the next step of an optimizer is the first since the last line.
        self._waits = True

    @classmethod
    def of_plan(cls, path: str) -> ResumeTrace:
        """As the file says."""
        with open(path) as file:
            plan = fast_json.loads(file.read())
        assert isinstance(plan, dict)
        return cls(plan)

    def begin(self) -> None:
        """Two runs of a script begin with the same random numbers, whether or not it sets them itself."""
        seed = self._plan.get("seed")
        if isinstance(seed, int):
            random.seed(seed)
            _seed_modules(seed)
        self._watch()

    def report(self, body: Union[str, bytes]) -> None:
        """A report was made: write down what the run is, and die where that is the plan."""
        self._watch()
        document = fast_json.loads(text_of(body))
        assert isinstance(document, dict)
        step = document.get("stepsCompleted")
        step = step if isinstance(step, int) else 0
        if not self._steps or self._steps[-1] != step:
            self._steps.append(step)
        self._write("report", step, group=document.get("group"), metrics=document.get("metrics"))
        self._torch.forget_batches()
        self._waits = True
        if step == self._plan.get("killsAt"):
            signal.raise_signal(signal.SIGKILL)

    def signalled(self) -> bool:
        """As the watcher of preemption: whether it is time to stop."""
        self._watch()
        after, at = self._plan.get("stopsAfter"), self._plan.get("stopsAt")
        stops = isinstance(after, int) and len(self._steps) >= after
        stops |= isinstance(at, int) and bool(self._steps) and self._steps[-1] >= at
        if stops and not self._signalled:
            self._signalled = True
            self._write("signalled", self._steps[-1])
        return stops

    def close(self) -> None:
        """As the watcher: nothing to do."""

    def end(self, unread: List[str]) -> None:
        """The script's part is over; ``unread``: what it was given and never asked for."""
        self._write("end", self._steps[-1] if self._steps else None, unread=list(unread))
        self._file.close()

    def _watch(self) -> None:
        self._torch.begin(self._before_step)

    def _before_step(self) -> None:
        if self._waits:
            self._waits = False
            self._write("before", self._steps[-1] if self._steps else None)

    def _write(self, kind: str, step: Optional[int], **more: Json) -> None:
        state: Dict[str, Json] = {"python random": _digest(random.getstate()), **self._torch.state()}
        line: JsonObject = {"kind": kind, "step": step, "state": state, **more}
        line["samples"] = list(self._torch.numbers)
        self._file.write(fast_json.dumps(line) + "\n")
        self._file.flush()


class _TorchWatch:
    """PyTorch's optimizers and data loaders in this process, once it has PyTorch."""

    def __init__(self) -> None:
        self._watches = False
        self._optimizers: Dict[int, object] = {}
        self._batches = hashlib.blake2b(digest_size=8)
        #: Of the samples that were loaded since the last line, the first ones, where the loader numbers them.
        self.numbers: List[Json] = []
        self._loaded = 0

    def begin(self, before_step: object) -> None:
        if self._watches or "torch.optim" not in sys.modules or "torch.utils.data" not in sys.modules:
            return
        self._watches = True
        from torch.optim.optimizer import register_optimizer_step_pre_hook
        from torch.utils.data import dataloader

        def before(optimizer: object, *_: object) -> None:
            self._optimizers[id(optimizer)] = optimizer
            before_step()  # type: ignore[operator]

        register_optimizer_step_pre_hook(before)
        if "keras" in sys.modules and sys.modules["keras"].backend.backend() == "torch":
            kind: Any = sys.modules["keras"].optimizers.Optimizer
            apply_of = kind.apply

            def apply(optimizer: Any, *arguments: object, **named: object) -> object:
                before(optimizer)
                return apply_of(optimizer, *arguments, **named)

            kind.apply = apply
        iterator: Any = dataloader._BaseDataLoaderIter
        drawn_of, next_of = iterator._next_index, iterator.__next__

        def drawn(loading: Any) -> object:
            numbers = drawn_of(loading)
            vars(loading).setdefault("_tenax_drawn", []).append(numbers)
            return numbers

        def following(loading: Any) -> object:
            batch = next_of(loading)
            waiting = vars(loading).get("_tenax_drawn")
            self._loaded_batch(batch, waiting.pop(0) if waiting else None)
            return batch

        iterator._next_index, iterator.__next__ = drawn, following

    def _loaded_batch(self, batch: object, numbers: object) -> None:
        _feed(self._batches, batch)
        self._loaded += 1
        if isinstance(numbers, (list, tuple)):
            room = _NUMBERS - len(self.numbers)
            self.numbers += [number for number in numbers[: max(0, room)] if isinstance(number, int)]

    def forget_batches(self) -> None:
        """Count from here."""
        self._batches = hashlib.blake2b(digest_size=8)
        self.numbers, self._loaded = [], 0

    def state(self) -> Dict[str, Json]:
        """Name -> digest."""
        state: Dict[str, Json] = {}
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        if numpy is not None and hasattr(numpy, "random"):
            state["numpy random"] = _digest(numpy.random.get_state())
        if torch is None or not hasattr(torch, "get_rng_state"):
            return state
        state["torch random"] = _digest(torch.get_rng_state())
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            state["cuda random"] = _digest(torch.cuda.get_rng_state_all())
        if self._loaded:
            state["batches"] = f"{self._loaded} {self._batches.hexdigest()}"
        if self._optimizers:
            parts = [_parts(each) for each in self._optimizers.values()]
            state["parameters"] = _digest([part[0] for part in parts])
            state["learning rate"] = ", ".join(f"{rate:.8g}" for part in parts for rate in part[1])
            state["optimizer"] = _digest([part[2] for part in parts])
        return state


def _parts(optimizer: Any) -> Tuple[object, List[float], object]:
    """Parameters, learning rates, and the rest of what an optimizer of PyTorch's or of Keras's has."""
    if hasattr(optimizer, "param_groups"):
        groups = optimizer.param_groups
        rates = [float(group["lr"]) for group in groups if "lr" in group]
        return [each for group in groups for each in group["params"]], rates, optimizer.state_dict()["state"]
    trained = [each.value for each in optimizer._trainable_variables]
    return trained, [float(optimizer.learning_rate)], [each.value for each in optimizer.variables]


def _seed_modules(seed: int) -> None:
    """Of the libraries that are loaded by now."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and hasattr(numpy, "random"):
        numpy.random.seed(seed)
    if torch is not None and hasattr(torch, "manual_seed"):
        torch.manual_seed(seed)


def _digest(value: object) -> str:
    state = hashlib.blake2b(digest_size=8)
    _feed(state, value)
    return state.hexdigest()


def _feed(state: hashlib.blake2b, value: object) -> None:
    """All that is in a value: tensors and arrays by their bytes, and what is neither by its text."""
    if hasattr(value, "to_local"):  # the chief's share of what ranks share
        value = value.to_local()
    if hasattr(value, "detach"):
        tensor = value.detach().cpu().contiguous()
        state.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
        state.update(bytes(tensor.reshape(-1).view(sys.modules["torch"].uint8).numpy()))
    elif hasattr(value, "tobytes"):
        state.update(value.tobytes())
    elif isinstance(value, dict):
        for name, each in value.items():
            state.update(repr(name).encode())
            _feed(state, each)
    elif isinstance(value, (list, tuple)):
        state.update(f"[{len(value)}".encode())
        for each in value:
            _feed(state, each)
    elif isinstance(value, (str, bytes, int, float, bool, type(None))):
        state.update(repr(value).encode())
    else:
        state.update(type(value).__name__.encode())
