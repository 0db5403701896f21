"""`Trainer`: trains a `PyTorchTrial`, on a cluster and off it."""

from __future__ import annotations

from typing import Any, Optional

from tenax.core.searcher import compare_with_search, length_of
from tenax.core.spool import say
from tenax.errors import InvalidInput
from tenax.pytorch.context import PyTorchTrialContext
from tenax.pytorch.loop import TrainingLoop
from tenax.pytorch.trial import PyTorchTrial, TrialClass
from tenax.pytorch.units import NEVER, Batch, Epoch, FitPlan, TrainUnit

_POLICIES = ("best", "all", "none")


class Trainer:
    """``Trainer(trial, context).fit(...)``, inside of ``with pytorch.init() as context``."""

    _family: type[TrialClass] = PyTorchTrial  # type: ignore[type-abstract]
    _context_class: type[PyTorchTrialContext] = PyTorchTrialContext
    _loop: type[TrainingLoop] = TrainingLoop

    def __init__(self, trial: TrialClass, context: PyTorchTrialContext) -> None:
        if not isinstance(trial, self._family):
            raise InvalidInput(f"Trainer() takes an instance of your {self._family.__name__}, not {trial!r}")
        if not isinstance(context, self._context_class):
            init = self._family.trained_by.partition(".")[2] + ".init()"
            raise InvalidInput(f"Trainer() takes what `with {init} as context` gave, not {context!r}")
        self._trial = trial
        self._context = context

    def fit(
        self,
        checkpoint_period: Optional[TrainUnit] = None,
        validation_period: Optional[TrainUnit] = None,
        max_length: Optional[TrainUnit] = None,
        reporting_period: Optional[TrainUnit] = None,
        checkpoint_policy: str = "best",
        latest_checkpoint: Optional[str] = None,
        step_zero_validation: bool = False,
        test_mode: bool = False,
        profiling_enabled: bool = False,
        async_checkpoints: Optional[bool] = None,
    ) -> None:
        """Train ``max_length`` from ``latest_checkpoint`` on, validate and checkpoint at the ends of periods and at the
        end; leave early, with a checkpoint, when the cluster asks for it.

        ``reporting_period``: of training metrics (`Batch(100)`). ``checkpoint_policy``: which validations are followed
        by a checkpoint: the ``best`` of the experiment so far, by the searcher's metric (off a cluster all), ``all`` or
        ``none``. ``step_zero_validation``: one before the first batch. ``test_mode``: one batch of training and of
        validation, off a cluster. ``profiling_enabled``: metrics of the machine, too. ``async_checkpoints``: the
        state is copied, and stored while the training goes on (False: the training waits; None: states of 64 MiB and
        more are, where a copy takes at most half of the memory that is left). Raises InvalidInput, StorageFailed.
        """
        info = self._context.core.info
        config = info.trial._config if info is not None else {}
        if checkpoint_policy not in _POLICIES:
            raise InvalidInput(f"checkpoint_policy must be one of {', '.join(_POLICIES)}, not {checkpoint_policy!r}")
        if test_mode and info is not None:
            raise InvalidInput("test_mode is for runs by hand: on a cluster set max_length=pytorch.Batch(1)")
        if not isinstance(latest_checkpoint, (str, type(None))):
            raise InvalidInput(f"latest_checkpoint must be the id of a checkpoint, or None, not {latest_checkpoint!r}")
        if async_checkpoints not in (None, True, False):
            raise InvalidInput(f"async_checkpoints must be True, False or None, not {async_checkpoints!r}")
        length = self._length(max_length, config)
        searcher: Any = config.get("searcher")
        assert isinstance(length.value, int)
        compare_with_search(info, length.value, "epochs" if isinstance(length, Epoch) else "batches")
        if info is not None and latest_checkpoint is None and info.latest_checkpoint is not None:
            say(
                "warning: this run was paused or restarted and begins anew: to go on where it stood, call "
                "fit(latest_checkpoint=context.latest_checkpoint)"
            )
        if profiling_enabled and info is not None:
            self._context.core.profiler.on()
        plan = FitPlan(
            length=length,
            reporting=_unit("reporting_period", reporting_period, Batch(100)),
            validation=_unit("validation_period", validation_period, NEVER),
            checkpoint=_unit("checkpoint_period", checkpoint_period, NEVER),
            policy="all" if checkpoint_policy == "best" and info is None else checkpoint_policy,
            latest_checkpoint=latest_checkpoint,
            metric=searcher.get("metric") if isinstance(searcher, dict) else None,
            smaller_is_better=bool(searcher.get("smaller_is_better", True)) if isinstance(searcher, dict) else True,
            validates_first=step_zero_validation,
            test_mode=test_mode,
            async_checkpoints=async_checkpoints,
        )
        self._loop(self._trial, self._context, plan).run()

    def _length(self, given: Optional[TrainUnit], config: Any) -> TrainUnit:
        """Raises InvalidInput where nobody says how long to train."""
        searcher = config.get("searcher")
        if given is None and isinstance(searcher, dict) and searcher.get("max_length") is not None:
            number, unit = length_of(searcher["max_length"])
            if unit is not None and unit.value == "EPOCHS":
                return Epoch(number)
            if unit is not None and unit.value == "RECORDS":
                return Batch(max(1, number // self._context.get_global_batch_size()))
            return Batch(number)
        if not isinstance(given, (Batch, Epoch)) or not isinstance(given.value, int) or given.value < 1:
            raise InvalidInput(
                f"fit() must be told how long to train: max_length=pytorch.Epoch(10) or pytorch.Batch(1000), not "
                f"{given!r}"
            )
        return given


def _unit(name: str, given: object, default: TrainUnit) -> TrainUnit:
    if given is None:
        return default
    if not isinstance(given, (Batch, Epoch)):
        raise InvalidInput(f"{name} must be pytorch.Batch(...) or pytorch.Epoch(...), not {given!r}")
    return given
