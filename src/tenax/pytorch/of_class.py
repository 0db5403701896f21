"""``python3 -m tenax.pytorch.of_class model_def:MyTrial``: trains a class that an entrypoint names.

How long and how often stands in the configuration then, as in Determined before it had a `Trainer`:
``searcher.max_length``, ``min_validation_period``, ``min_checkpoint_period``, ``scheduling_unit`` (the reporting
period, in batches), ``perform_initial_validation``, ``checkpoint_policy``, ``optimizations.aggregation_frequency``.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Optional

from tenax.core import get_cluster_info
from tenax.errors import InvalidInput, TenaxError

if TYPE_CHECKING:
    from tenax.pytorch.trial import TrialClass
    from tenax.pytorch.units import TrainUnit


def main(spec: str) -> int:
    """The exit status."""
    try:
        _train(spec)
    except TenaxError as error:
        sys.stderr.write(f"tenax: {error}\n")
        return 1
    return 0


def _train(spec: str) -> None:
    info = get_cluster_info()
    if info is None or not info.is_trial:
        raise InvalidInput(f"{spec} is trained as an experiment's entrypoint; by hand, start a script with a Trainer")
    config: dict[str, Any] = info.trial._config
    kind = load_class(spec)

    from tenax.pytorch import Batch

    package: Any = import_module(kind.trained_by)
    frequency = int((config.get("optimizations") or {}).get("aggregation_frequency", 1))
    if frequency != 1 and kind.trained_by != "tenax.pytorch":
        raise InvalidInput(
            "optimizations.aggregation_frequency is nothing to a DeepSpeedTrial: say gradient_accumulation_steps in "
            "DeepSpeed's own configuration"
        )
    options = {} if frequency == 1 else {"aggregation_frequency": frequency}
    with package.init(**options) as context:
        size = info.trial.hparams.get("global_batch_size")
        trial: Any = kind
        package.Trainer(trial(context), context).fit(
            validation_period=_period(config, "min_validation_period", size),
            checkpoint_period=_period(config, "min_checkpoint_period", size),
            reporting_period=Batch(int(config.get("scheduling_unit") or 100)),
            checkpoint_policy=str(config.get("checkpoint_policy") or "best"),
            latest_checkpoint=info.latest_checkpoint,
            step_zero_validation=bool(config.get("perform_initial_validation")),
            profiling_enabled=bool((config.get("profiling") or {}).get("enabled")),
        )


def load_class(spec: str) -> type[TrialClass]:
    """``module:Class`` from the directory of the task. Raises InvalidInput for what is no trial class, ImportError."""
    try:
        from tenax.pytorch.trial import TrialClass
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise InvalidInput(
            f"entrypoint {spec!r} names a Trial class, which needs PyTorch in the task's environment: pip install torch"
        ) from None

    module, _, name = spec.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        value: object = import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise InvalidInput(f"entrypoint {spec!r} names a class of {module}.py, and the code has no such file") from None
    for part in name.split("."):
        value = getattr(value, part, None)
    if not (isinstance(value, type) and issubclass(value, TrialClass)):
        problem = "there is no such name in it" if value is None else f"it is {value!r}"
        raise InvalidInput(f"entrypoint {spec!r} must name a PyTorchTrial or DeepSpeedTrial in {module}.py: {problem}")
    return value


def _period(config: dict[str, Any], field: str, global_batch_size: object) -> Optional[TrainUnit]:
    """None: never. Raises InvalidInput for records without the size of a batch."""
    from tenax.pytorch import Batch, Epoch

    given = config.get(field) or {}
    for unit, value in given.items() if isinstance(given, dict) else ():
        if not isinstance(value, int) or value < 1:
            continue
        if unit == "epochs":
            return Epoch(value)
        if unit == "batches":
            return Batch(value)
        if not isinstance(global_batch_size, int):
            raise InvalidInput(f"{field} is in records: set the hyperparameter global_batch_size, or say batches")
        return Batch(max(1, value // global_batch_size))
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else "name one class: model_def:MyTrial")
