"""What a checkpoint of a `PyTorchTrial` holds, and how a run becomes again what it was.

    state_dict.pth      models, optimizers, schedulers, scaler, callbacks, random states; where the training stood
    trial_state.pkl     where it stood, as Determined's own programs read it
    load_data.json      which class it was, with which hyperparameters and configuration
    code/               that class's module, and what it was loaded with from the same folder

Written by the chief; random states are those of all ranks. Checkpoints of Determined's PyTorchTrial are read, too.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Optional

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from tenax.core.spool import say
from tenax.errors import InvalidInput
from tenax.pytorch.callback import PyTorchCallback
from tenax.pytorch.context import PyTorchTrialContext
from tenax.pytorch.devices import is_gpu
from tenax.pytorch.sharded import like, models_like, optimizer_like, whole
from tenax.pytorch.state_copy import unpicklable
from tenax.pytorch.trial import TrialClass, family_of
from tenax.storage.manifest import names_in

STATE = "state_dict.pth"
POSITION = "trial_state.pkl"
LOAD_DATA = "load_data.json"
CODE = "code"
#: What a DeepSpeedTrial of Determined's keeps beside its engines.
OF_RANK_0 = "det_state_dict_rank0.pth"
#: Before each name of a model that torch.compile made.
_COMPILED = "_orig_mod."
#: Where older versions had the state, newest first.
_PLACES = (STATE, "determined/state_dict.pth", "pedl/state_dict.pth", "checkpoint.pt", OF_RANK_0)


@dataclass
class Position:
    """Where the training stands. The names are those of the files."""

    #: Of another trial's checkpoint the weights are taken, and nothing of where it stood.
    trial_id: int = 0
    batches_trained: int = 0
    epochs_trained: int = 0
    #: Number of batches at the last checkpoint, and at the last validation.
    last_ckpt: int = 0
    last_val: int = 0
    step_id: int = 0
    #: What the order of the samples comes from.
    shuffle_seed: Optional[int] = None
    #: Records of a batch of all ranks; 0: not known.
    global_batch_size: int = 0


def read(directory: Path, **options: Any) -> dict[str, Any]:
    """The state in a checkpoint; ``options``: of ``torch.load``. Its pickles are run: it is code of whoever made it.
    Raises InvalidInput."""
    for name in _PLACES:
        if (directory / name).exists():
            state = _loaded(directory / name, {"map_location": "cpu", **options})
            if isinstance(state, dict):
                return state
    held = names_in(directory)
    raise InvalidInput(f"{directory} is no checkpoint of a PyTorchTrial: there is no {STATE} in it, but {held}")


def _loaded(file: Path, options: dict[str, Any]) -> object:
    try:
        return torch.load(file, **{"weights_only": False, **options})
    except (EOFError, OSError, RuntimeError, pickle.UnpicklingError) as error:
        raise InvalidInput(
            f"{file} cannot be read, it may be incomplete: go on from another checkpoint, or begin anew without "
            f"latest_checkpoint ({error})"
        ) from error


def position_of(directory: Path, state: Mapping[str, Any], trial_id: int) -> Optional[Position]:
    """Where the training stood; None: it was another trial's, and this one begins anew with its weights."""
    known = state.get("tenax")
    stored = known.get("position") if isinstance(known, dict) else None
    if stored is None and (directory / POSITION).exists():
        with (directory / POSITION).open("rb") as file:
            stored = pickle.load(file)
    if not isinstance(stored, dict) or stored.get("trial_id") != trial_id:
        return None
    names = {each.name for each in fields(Position)}
    return Position(**{name: value for name, value in stored.items() if name in names})


def restore(
    state: dict[str, Any],
    context: PyTorchTrialContext,
    callbacks: Mapping[str, PyTorchCallback],
    *,
    same_trial: bool,
) -> None:
    """Put everything back; random states last, and those only of the same trial. Raises InvalidInput."""
    for callback in callbacks.values():
        callback.on_checkpoint_load_start(state)
    _restore_trained(state, context)
    _restore_callbacks(state, callbacks)
    if same_trial:
        for parameter, gradient in zip(_parameters(context), state.get("tenax", {}).get("gradients", ())):
            parameter.grad = None if gradient is None else like(gradient.to(parameter.device), parameter)
        _restore_random(state, context)


def restore_beside(
    state: dict[str, Any],
    context: PyTorchTrialContext,
    callbacks: Mapping[str, PyTorchCallback],
    *,
    same_trial: bool,
) -> None:
    """As `restore`, but for what was trained, which is in files of its own."""
    for callback in callbacks.values():
        callback.on_checkpoint_load_start(state)
    _restore_callbacks(state, callbacks)
    if same_trial:
        _restore_random(state, context)


def _restore_trained(state: Mapping[str, Any], context: PyTorchTrialContext) -> None:
    restore_models(state, context.models)
    of_optimizers = _each(state, "optimizers_state_dict", "optimizer_state_dict")
    _require_as_many("optimizers", len(of_optimizers), len(context.optimizers))
    for optimizer, its in zip(context.optimizers, of_optimizers):
        _restore_optimizer(its, optimizer)
    of_schedulers = _each(state, "lr_schedulers_state_dict", "lr_scheduler")
    _require_as_many("learning rate schedulers", len(of_schedulers), len(context.lr_schedulers))
    for scheduler, its in zip(context.lr_schedulers, of_schedulers):
        scheduler.load_state_dict(its)
    scaler = context.experimental.scaler
    if scaler is not None and "scaler_state_dict" in state:
        scaler.load_state_dict(state["scaler_state_dict"])
    elif (scaler is None) != ("scaler_state_dict" not in state):
        say(f"warning: this trial has {'no' if scaler is None else 'a'} gradient scaler, unlike the checkpoint's")


def _restore_callbacks(state: Mapping[str, Any], callbacks: Mapping[str, PyTorchCallback]) -> None:
    kept = state.get("callbacks", {})
    for name, callback in callbacks.items():
        if name in kept:
            callback.load_state_dict(kept[name])
        elif type(callback).load_state_dict is not PyTorchCallback.load_state_dict:
            say(f"warning: the checkpoint holds nothing of the callback {name!r}, which begins anew")


def trained(context: PyTorchTrialContext) -> dict[str, Any]:
    """What was trained, for `collect`. All ranks call it; of what they share the chief has the whole, others none."""
    state: dict[str, Any] = {
        "models_state_dict": [model.state_dict() for model in context.models],
        "optimizers_state_dict": [optimizer.state_dict() for optimizer in context.optimizers],
        "gradients": _gradients(context),
    }
    return dict(whole(state, keeps=context.distributed.rank == 0)) if context.shards else state


def collect(
    context: PyTorchTrialContext,
    callbacks: Mapping[str, PyTorchCallback],
    position: Position,
    randoms: list[Any],
    parameters: dict[str, Any],
) -> dict[str, Any]:
    """The state as it is now, not copied; ``randoms``: what `random_state` gives on each rank; ``parameters``: what
    `trained` gave."""
    state: dict[str, Any] = {
        "models_state_dict": parameters["models_state_dict"],
        "optimizers_state_dict": parameters["optimizers_state_dict"],
        "lr_schedulers_state_dict": [scheduler.state_dict() for scheduler in context.lr_schedulers],
        "callbacks": {name: callback.state_dict() for name, callback in callbacks.items()},
        "rng_state": randoms[0],
        "tenax": {"position": asdict(position), "random_states": randoms, "gradients": parameters["gradients"]},
    }
    if context.experimental.scaler is not None:
        state["scaler_state_dict"] = context.experimental.scaler.state_dict()
    for callback in callbacks.values():
        callback.on_checkpoint_save_start(state)
    return state


def save(state: dict[str, Any], directory: Path) -> None:
    """Write the state. Raises InvalidInput."""
    try:
        torch.save(state, directory / STATE)
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        raise InvalidInput(unpicklable(error)) from error


@dataclass(frozen=True)
class SmallFiles:
    """What a checkpoint holds beside the state, as it is now."""

    position: bytes
    load_data: str
    trial: object

    def write(self, directory: Path) -> None:
        (directory / POSITION).write_bytes(self.position)
        (directory / LOAD_DATA).write_text(self.load_data)
        write_code(directory / CODE, self.trial)


def described(context: PyTorchTrialContext, trial: TrialClass, position: Position) -> SmallFiles:
    """Where the training stands and which class it is, for whoever loads it."""
    known = ("trial_id", "last_ckpt", "step_id", "last_val", "batches_trained", "epochs_trained")
    return SmallFiles(
        pickle.dumps({name: getattr(position, name) for name in known}),
        json.dumps(_load_data(context, trial), default=str),
        trial,
    )


def _parameters(context: PyTorchTrialContext) -> list[Any]:
    """Of all optimizers, in their order."""
    return [each for optimizer in context.optimizers for group in optimizer.param_groups for each in group["params"]]


def _gradients(context: PyTorchTrialContext) -> list[Any]:
    """Those that wait for a step, as between batches that make one together; none in most checkpoints. Those of several
    ranks differ until they step, which is when such a job stops."""
    gradients = [each.grad for each in _parameters(context)]
    return gradients if context.distributed.size == 1 and any(each is not None for each in gradients) else []


def random_state(device: torch.device) -> dict[str, Any]:
    """Of this rank, for `write`."""
    state: dict[str, Any] = {"cpu_rng_state": torch.get_rng_state(), "random_rng_state": random.getstate()}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        state["np_rng_state"] = numpy.random.get_state()
    if is_gpu(device):
        state["gpu_rng_state"] = torch.cuda.get_rng_state(device)
    return state


def set_random_state(saved: Mapping[str, Any], device: torch.device) -> None:
    """Of this rank, to what `random_state` gave."""
    torch.set_rng_state(saved["cpu_rng_state"])
    random.setstate(saved["random_rng_state"])
    if "np_rng_state" in saved:
        import numpy

        numpy.random.set_state(saved["np_rng_state"])
    if "gpu_rng_state" in saved and is_gpu(device):
        torch.cuda.set_rng_state(saved["gpu_rng_state"], device)


def _restore_random(state: Mapping[str, Any], context: PyTorchTrialContext) -> None:
    ours = state.get("tenax", {}).get("random_states", [])
    rank = context.distributed.rank
    if len(ours) not in (0, context.distributed.size):
        say(f"the checkpoint is of {len(ours)} ranks, these are {context.distributed.size}: random states begin anew")
        return
    saved = ours[rank] if ours else state.get("rng_state")
    if saved is None:
        say("warning: the checkpoint holds no random states")
    else:
        set_random_state(saved, context.device)


def restore_models(state: Mapping[str, Any], models: list[nn.Module]) -> None:
    """Weights and buffers alone. Raises InvalidInput."""
    saved = _each(state, "models_state_dict", "model_state_dict")
    _require_as_many("models", len(saved), len(models))
    for number, (model, its) in enumerate(zip(models, saved)):
        bare = model.module if isinstance(model, DistributedDataParallel) else model
        try:
            bare.load_state_dict(models_like(_named_as(bare.state_dict(), its), bare))
        except RuntimeError as error:
            which = f"model {number + 1} of {len(models)}" if len(models) > 1 else "the model"
            raise InvalidInput(
                f"the checkpoint does not fit {which}: {error}\nBuild the model as it was when the checkpoint was "
                "made, or begin anew without latest_checkpoint"
            ) from None


def _named_as(own: Mapping[str, Any], saved: Mapping[str, Any]) -> Mapping[str, Any]:
    """``saved`` with names as in the model itself: of a job of several ranks, and of a compiled model, each has another
    word before it, which a model may have as a name of its own, too."""
    for prefix in ("module.", _COMPILED):
        if saved and saved.keys() != own.keys() and all(name.startswith(prefix) for name in saved):
            saved = {name[len(prefix) :]: value for name, value in saved.items()}
    if own and all(name.startswith(_COMPILED) for name in own) and not any(_COMPILED in name for name in saved):
        saved = {_COMPILED + name: value for name, value in saved.items()}
    return saved


def _restore_optimizer(saved: dict[str, Any], optimizer: torch.optim.Optimizer) -> None:
    kind = type(optimizer).__name__
    try:
        optimizer.load_state_dict(optimizer_like(saved, optimizer))
        fits = all(name in each for each in optimizer.param_groups for name in getattr(optimizer, "defaults", ()))
        why = "it is of another kind of optimizer"
    except (KeyError, ValueError) as error:
        fits, why = False, str(error)
    if not fits:
        raise InvalidInput(
            f"the checkpoint does not fit the optimizer {kind}: {why}. Make it as it was when the checkpoint was made, "
            "or begin anew without latest_checkpoint"
        )


def _each(state: Mapping[str, Any], name: str, older: str) -> list[Any]:
    if name in state:
        return list(state[name])
    return [state[older]] if older in state else []


def _require_as_many(kind: str, saved: int, mine: int) -> None:
    if saved != mine:
        raise InvalidInput(
            f"the checkpoint has {saved} {kind} and this trial {mine}: give the context as many as when it was made, "
            "in the same order, or begin anew without latest_checkpoint"
        )


def _load_data(context: PyTorchTrialContext, trial: TrialClass) -> dict[str, Any]:
    kind = type(trial)
    config = context._exp_conf
    return {
        "trial_type": family_of(kind).__name__,
        "experiment_config": dict(config) if config is not None else None,
        "hparams": context._hparams,
        "trial_cls_spec": f"{_module_of(kind)}:{kind.__qualname__}",
        "is_trainer": True,
        "trial_in_main": kind.__module__ == "__main__",
    }


def _module_of(kind: type) -> str:
    """The module to import a class from: of a script that runs its name, and with ``python -m`` its name in full."""
    if kind.__module__ != "__main__":
        return kind.__module__
    main = sys.modules["__main__"]
    spec, script = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None and spec.name != "__main__":
        return str(spec.name)
    return Path(script).stem if script else ""


def write_code(directory: Path, trial: object) -> None:
    """Copy what the trial was loaded from: the modules in its own folder, and not what is installed."""
    source = getattr(sys.modules.get(type(trial).__module__), "__file__", None)
    if source is None:
        return
    root = Path(source).resolve().parents[_module_of(type(trial)).count(".")]
    for path in _loaded_from(root):
        copy = directory / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def _loaded_from(root: Path) -> list[Path]:
    """Python files below ``root`` that are loaded."""
    files = set()
    own = __name__.split(".")[0]
    for name, module in list(sys.modules.items()):
        source = getattr(module, "__file__", None)
        if not isinstance(source, str) or not source.endswith(".py") or "site-packages" in source:
            continue
        if name.split(".")[0] != own and os.path.abspath(source).startswith(f"{root}{os.sep}"):
            files.add(Path(os.path.abspath(source)))
    return sorted(path for path in files if path.is_file())
