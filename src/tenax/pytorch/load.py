"""A trained trial again, from the files of a checkpoint."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any, Optional

from tenax import core
from tenax.core.distributed import DummyDistributedContext
from tenax.errors import InvalidInput
from tenax.pytorch import state as states
from tenax.pytorch.context import PyTorchTrialContext
from tenax.pytorch.trial import PyTorchTrial


class CheckpointLoadContext(PyTorchTrialContext):
    """A context to make a trial with that is not trained: nothing is reported or kept."""

    def __init__(self, hparams: Optional[dict[str, Any]] = None, exp_conf: Optional[Mapping[str, Any]] = None) -> None:
        unused = core.Context(
            None, DummyDistributedContext(), None, core.PreemptMode.WorkersAskChief, core.TensorboardMode.MANUAL
        )
        super().__init__(unused, hparams=hparams, exp_conf=exp_conf, seed=0)


def load_trial_from_checkpoint_path(
    path: str,
    trial_class: Optional[type[PyTorchTrial]] = None,
    trial_kwargs: Optional[dict[str, Any]] = None,
    torch_load_kwargs: Optional[dict[str, Any]] = None,
    **kwargs: Any,
) -> PyTorchTrial:
    """The trial of a checkpoint that was downloaded to ``path``, with its models as they were trained.

    ``trial_class``: instead of the one that is imported from the code in the checkpoint, which is run.
    ``trial_kwargs``: what it takes besides the context. ``torch_load_kwargs``: of ``torch.load``. Raises InvalidInput.
    """
    directory = Path(path)
    described = _load_data(directory)
    if described.get("trial_type") == "DeepSpeedTrial":
        raise InvalidInput(
            f"{directory} is of a DeepSpeedTrial, whose engine is made and loaded by its own ranks: train on from it "
            "(latest_checkpoint), or make one file of its weights with the zero_to_fp32.py in it, and load that"
        )
    hparams, config = described.get("hparams"), described.get("experiment_config")
    context = CheckpointLoadContext(hparams, config)
    if trial_class is None:
        trial_class = _imported(directory / states.CODE, str(described.get("trial_cls_spec", "")))
    trial = trial_class(context, **(trial_kwargs or {}))
    options = {"map_location": context.device, **kwargs, **(torch_load_kwargs or {})}
    states.restore_models(states.read(directory, **options), context.models)
    return trial


def _load_data(directory: Path) -> dict[str, Any]:
    for name in (states.LOAD_DATA, "metadata.json"):
        try:
            described = json.loads((directory / name).read_text())
        except FileNotFoundError:
            continue
        except ValueError as error:
            raise InvalidInput(f"{directory / name} is damaged: download the checkpoint again ({error})") from error
        if isinstance(described, dict):
            return described
    raise InvalidInput(f"{directory} is no checkpoint of a PyTorchTrial: there is no {states.LOAD_DATA} in it")


def _imported(code: Path, spec: str) -> type[PyTorchTrial]:
    module_name, _, name = spec.partition(":")
    if not module_name or not name:
        raise InvalidInput("the checkpoint does not say which class its trial is: give it as trial_class=...")
    try:
        with _first_on_path(code):
            value: object = import_module(module_name)
            for part in name.split("."):
                value = getattr(value, part)
    except (ImportError, AttributeError) as error:
        raise InvalidInput(
            f"the trial {spec} cannot be imported from {code}: {error}. Give its class as trial_class=..."
        ) from error
    if not (isinstance(value, type) and issubclass(value, PyTorchTrial)):
        raise InvalidInput(f"{spec} is no PyTorchTrial: give its class as trial_class=...")
    return value


@contextmanager
def _first_on_path(directory: Path) -> Iterator[None]:
    """Its modules are those that are imported, though others of these names are: of this program, or of another
    checkpoint. Those are as they were afterwards."""
    own = {each.stem for each in directory.glob("*") if each.is_dir() or each.suffix == ".py"} - {"__pycache__"}
    hidden = {name: module for name, module in list(sys.modules.items()) if name.split(".")[0] in own}
    for name in hidden:
        del sys.modules[name]
    sys.path.insert(0, str(directory))
    invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(directory))
        if hidden:
            for name in [name for name in sys.modules if name.split(".")[0] in own]:
                del sys.modules[name]
            sys.modules.update(hidden)
