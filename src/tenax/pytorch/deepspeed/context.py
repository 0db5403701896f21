"""`init`, and what it gives: the context that a `DeepSpeedTrial` is made with."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Optional

import torch.distributed as group

from tenax import core
from tenax.errors import InvalidInput, NotNow
from tenax.pytorch.context import PyTorchTrialContext, made_context
from tenax.pytorch.data import DataShare
from tenax.pytorch.deepspeed.mpu import ModelParallelUnit, make_data_parallel_mpu, make_deepspeed_mpu

#: What DeepSpeed takes its place from, and what it is for a process that nobody started as a rank.
_ALONE = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}


@contextmanager
def init(
    *,
    hparams: Optional[Mapping[str, Any]] = None,
    exp_conf: Optional[Mapping[str, Any]] = None,
    distributed: Optional[core.DistributedContext] = None,
    enable_tensorboard_logging: bool = True,
) -> Iterator[DeepSpeedTrialContext]:
    """``with pytorch.deepspeed.init() as context``: as `tenax.pytorch.init`; DeepSpeed's ranks meet here, if they have
    not yet. How many micro-batches make a step is said in DeepSpeed's configuration. Raises InvalidInput."""
    ranks_meet()
    if distributed is None:
        distributed = core.DistributedContext.from_deepspeed()
    with made_context(DeepSpeedTrialContext, hparams, exp_conf, distributed, enable_tensorboard_logging) as context:
        yield context


def ranks_meet() -> None:
    """``deepspeed.init_distributed()``, if nobody called it yet. DeepSpeed keeps groups of this meeting for as long as
    the process lives, so it is for good."""
    deepspeed = _deepspeed()
    if group.is_initialized():
        return
    own = {} if "RANK" in os.environ else {**_ALONE, "MASTER_PORT": _free_port()}
    os.environ.update(own)
    try:
        deepspeed.init_distributed()
    finally:
        for name in own.keys() - {"LOCAL_RANK"}:  # which each engine looks for
            del os.environ[name]


def _free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def _deepspeed() -> Any:
    """Raises InvalidInput."""
    try:
        import deepspeed
    except ImportError as error:
        raise InvalidInput(
            f"a DeepSpeedTrial needs DeepSpeed in the task's environment: pip install deepspeed ({error})"
        ) from error
    return deepspeed


class DeepSpeedTrialContext(PyTorchTrialContext):
    """What a trial is made with: it takes engines, and says where the training stands."""

    def __init__(self, core_context: core.Context, **named: Any) -> None:
        super().__init__(core_context, **named)
        #: Its iterators are the trial's to read.
        self.experimental.disable_auto_to_device()
        self._mpu = make_data_parallel_mpu(self.distributed)
        self._accumulates = True
        self._allgather = self._gather_reports

    def wrap_model_engine(self, model: Any) -> Any:
        """Keep an engine of DeepSpeed in checkpoints; the first says how many micro-batches make a batch, and that of a
        pipeline which ranks load data. Raises InvalidInput."""
        if not isinstance(model, _deepspeed().DeepSpeedEngine):
            raise InvalidInput(
                f"wrap_model_engine() takes the engine that deepspeed.initialize() gives first, not "
                f"{type(model).__name__}"
            )
        if not self.models and _is_pipeline(model):
            self._mpu = make_deepspeed_mpu(model.grid)
        self.models.append(model)
        return model

    def set_mpu(self, mpu: ModelParallelUnit) -> None:
        """Which part of the data is this rank's, and whether its metrics count, where ranks share a model in a way that
        DeepSpeed does not know. After ``wrap_model_engine``. Raises InvalidInput."""
        if not isinstance(mpu, ModelParallelUnit):
            raise InvalidInput(f"set_mpu() takes a ModelParallelUnit, not {mpu!r}")
        self._mpu = mpu

    wrap_mpu = set_mpu

    def disable_auto_grad_accumulation(self) -> None:
        """Call ``train_batch`` once for a batch: it takes its micro-batches by itself."""
        self._accumulates = False

    def disable_dataset_reproducibility_checks(self) -> None:
        """Take any ``torch.utils.data.DataLoader``: sharing out, shuffling and skipping are the trial's then."""
        self.experimental.disable_dataset_reproducibility_checks()

    @property
    def use_pipeline_parallel(self) -> bool:
        """Whether an engine is a pipeline's."""
        return any(map(_is_pipeline, self.models))

    @property
    def num_micro_batches_per_slot(self) -> int:
        """To a step of the optimizer. Raises NotNow without an engine."""
        return int(self._first_engine().gradient_accumulation_steps())

    @property
    def train_micro_batch_size_per_gpu(self) -> int:
        """Raises NotNow without an engine."""
        return int(self._first_engine().train_micro_batch_size_per_gpu())

    def get_num_micro_batches_per_slot(self) -> int:
        return self.num_micro_batches_per_slot

    def get_train_micro_batch_size_per_gpu(self) -> int:
        return self.train_micro_batch_size_per_gpu

    def calls_per_batch(self) -> int:
        """How often ``train_batch`` is called for a batch."""
        return self.num_micro_batches_per_slot if self._accumulates and not self.use_pipeline_parallel else 1

    @property
    def evaluates_in_step(self) -> bool:
        """Whether ranks evaluate as often as another: each pass takes all of those that share a model."""
        whole = all(engine.zero_optimization_stage() < 3 for engine in self._engines())
        return not whole or self._mpu.data_parallel_world_size < self.distributed.size

    def data_share(self) -> DataShare:
        mpu = self._mpu
        return DataShare(
            mpu.data_parallel_rank,
            mpu.data_parallel_world_size,
            loads=mpu.should_build_data_loader,
            reports=mpu.should_report_metrics,
            micro_batches=self.num_micro_batches_per_slot,
        )

    def left_to_engine(self, *_: Any, **__: Any) -> Any:
        """Raises InvalidInput."""
        raise InvalidInput(
            "models, optimizers and schedulers are DeepSpeed's here: give them to deepspeed.initialize(), its engine "
            "to context.wrap_model_engine(), and call engine.backward(loss) and engine.step()"
        )

    wrap_model = wrap_optimizer = wrap_lr_scheduler = wrap_scaler = left_to_engine
    configure_apex_amp = backward = step_optimizer = left_to_engine

    def _engines(self) -> list[Any]:
        return list(self.models)

    def _first_engine(self) -> Any:
        if not self.models:
            raise NotNow("there is no engine yet: call context.wrap_model_engine() first")
        return self.models[0]

    def _gather_reports(self, value: Any) -> list[Any]:
        """Of the ranks whose metrics count."""
        gathered: list[Any] = self.distributed.allgather((value, self._mpu.should_report_metrics))
        return [each for each, reports in gathered if reports]


def _is_pipeline(engine: Any) -> bool:
    from deepspeed.runtime.pipe.engine import PipelineEngine

    return isinstance(engine, PipelineEngine)
