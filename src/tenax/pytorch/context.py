"""`init`, and what it gives: the context that a `PyTorchTrial` is made with."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Optional, TypeVar

import torch
import torch.distributed as group
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from tenax import core
from tenax.core.spool import say
from tenax.errors import InvalidInput, NotNow
from tenax.pytorch.data import DataShare, to_device
from tenax.pytorch.devices import is_gpu, own_device
from tenax.pytorch.experimental import PyTorchExperimentalContext, autocast_forward
from tenax.pytorch.lr_scheduler import LRScheduler, StepMode
from tenax.pytorch.reducers import ReducerContext
from tenax.pytorch.sharded import is_sharded, require_whole, share_buffers, sync_gradients
from tenax.wire.task_names import LAUNCHER

if TYPE_CHECKING:
    from pathlib import Path

    from torch.optim import Optimizer

C = TypeVar("C", bound="PyTorchTrialContext")


@contextmanager
def init(
    *,
    hparams: Optional[Mapping[str, Any]] = None,
    exp_conf: Optional[Mapping[str, Any]] = None,
    distributed: Optional[core.DistributedContext] = None,
    aggregation_frequency: int = 1,
    enable_tensorboard_logging: bool = True,
) -> Iterator[PyTorchTrialContext]:
    """``with pytorch.init() as context``: on a cluster and off it, in one process and in each of a torchrun job.

    ``hparams``: what `PyTorchTrialContext.get_hparams` gives; None: on a cluster what the search chose.
    ``exp_conf``: the configuration that a run by hand shows the trial. ``aggregation_frequency``: batches to a step
    of the optimizer. ``distributed``: of a job that torchrun did not start. Raises InvalidInput.
    """
    if not isinstance(aggregation_frequency, int) or aggregation_frequency < 1:
        raise InvalidInput(f"aggregation_frequency must be a whole number from 1 on, not {aggregation_frequency!r}")
    with ExitStack() as stack:
        if distributed is None and "WORLD_SIZE" in os.environ and "RANK" in os.environ:
            stack.enter_context(process_group())
            distributed = core.DistributedContext.from_torch_distributed()
        made = made_context(PyTorchTrialContext, hparams, exp_conf, distributed, enable_tensorboard_logging)
        context = stack.enter_context(made)
        context.aggregation_frequency = aggregation_frequency
        yield context


@contextmanager
def made_context(
    kind: type[C],
    hparams: Optional[Mapping[str, Any]],
    exp_conf: Optional[Mapping[str, Any]],
    distributed: Optional[core.DistributedContext],
    enable_tensorboard_logging: bool,
) -> Iterator[C]:
    """What an ``init`` gives, once ranks have met. Raises InvalidInput."""
    for name, given in (("hparams", hparams), ("exp_conf", exp_conf)):
        if given is not None and not isinstance(given, Mapping):
            raise InvalidInput(f"pytorch.init({name}=...) takes a dict, not {given!r}")
    info = core.get_cluster_info()
    trial = info.trial if info is not None and info.is_trial else None
    if trial is not None:
        _seed(trial.trial_seed)
    with core.init(
        distributed=distributed,
        tensorboard_mode=_tensorboard_mode(enable_tensorboard_logging),
        hparams=dict(hparams) if hparams is not None and trial is None else None,
    ) as core_context:
        if hparams is None and (info is None or trial is not None):
            hparams = core_context.hparams
        yield kind(
            core_context,
            hparams=dict(hparams) if hparams is not None else None,
            exp_conf=dict(trial._config) if trial is not None else exp_conf,
            seed=trial.trial_seed if trial is not None else None,
            enable_tensorboard_logging=enable_tensorboard_logging,
        )


@contextmanager
def process_group() -> Iterator[None]:
    """Of a torchrun job, if there is none yet. Raises InvalidInput."""
    if group.is_initialized():
        yield
        return
    if "HOROVOD_RANK" in os.environ and "MASTER_ADDR" not in os.environ:
        raise InvalidInput(
            "this was started for Horovod, and tenax.pytorch averages gradients by torch.distributed: start it with "
            f"{LAUNCHER}"
        )
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    group.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield
    finally:
        if group.is_initialized():
            group.destroy_process_group()


def _seed(seed: int) -> None:
    """The same on all ranks: they begin with the same weights; their data is told apart by the loaders."""
    random.seed(seed)
    torch.manual_seed(seed)
    try:
        import numpy
    except ImportError:
        return
    numpy.random.seed(seed % 2**32)


class _Parallel(DistributedDataParallel):
    """One that has the attributes of the model in it."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.module, name)


@contextmanager
def apart(models: list[nn.Module]) -> Iterator[None]:
    """Inside, passes exchange nothing with other ranks, which may have more of them or fewer; all begin with the
    chief's buffers."""
    parallel = [model for model in models if isinstance(model, DistributedDataParallel)]
    for model in models:
        if is_sharded(model):
            share_buffers(model)
    for model in parallel:
        for buffer in model.module.buffers():
            group.broadcast(buffer, 0)
        model.require_forward_param_sync = False
    try:
        yield
    finally:
        for model in parallel:
            model.require_forward_param_sync = True


class PyTorchTrialContext(ReducerContext):
    """What a trial is made with: it takes models, optimizers and schedulers, and says where the training stands."""

    def __init__(
        self,
        core_context: core.Context,
        *,
        hparams: Optional[dict[str, Any]] = None,
        exp_conf: Optional[Mapping[str, Any]] = None,
        seed: Optional[int] = None,
        aggregation_frequency: int = 1,
        enable_tensorboard_logging: bool = True,
    ) -> None:
        self.distributed = core_context.distributed
        super().__init__(self.distributed.allgather)
        #: For what is not offered here: reports of other groups, metadata, alerts.
        self.core = core_context
        self.experimental = PyTorchExperimentalContext()
        self.aggregation_frequency = aggregation_frequency
        self.device = own_device(self.distributed.local_rank)
        self.models: list[nn.Module] = []
        self.optimizers: list[Optimizer] = []
        self.lr_schedulers: list[LRScheduler] = []
        self.profiler: Any = None
        #: Number of batches of a pass of this job, of all ranks one; set by the loop.
        self.epoch_length: Optional[int] = None
        #: Of all batches, from 0; set by the loop.
        self.batch_idx: Optional[int] = None
        self._hparams = hparams
        self._exp_conf = exp_conf
        self._seed = seed
        self._averages: dict[int, bool] = {}
        self._stop_requested = False
        self._logs_to_tensorboard = enable_tensorboard_logging
        self._writer: Any = None
        self._warned_types: set[type] = set()

    def data_share(self) -> DataShare:
        """For the loop: what this rank loads and reports."""
        return DataShare(self.distributed.rank, self.distributed.size)

    # What the trial gives.

    def wrap_model(self, model: nn.Module) -> nn.Module:
        """Move it to the device and, in a job of several ranks, share its gradients. Use what comes back.

        What `torch.distributed.fsdp.fully_shard` was called on stays as it is. Raises InvalidInput for no model.
        """
        if not isinstance(model, nn.Module):
            raise InvalidInput(f"wrap_model() takes a torch.nn.Module, not {type(model).__name__}")
        if is_sharded(model):
            return self._wrap_sharded(model)
        model = model.to(self.device)
        if self.experimental.auto_amp:
            model = autocast_forward(model, self.device)
        if self.distributed.size > 1 and any(each.requires_grad for each in model.parameters()):
            _require_group()
            model = _Parallel(model, device_ids=[self.device] if is_gpu(self.device) else None)
        self.models.append(model)
        return model

    def _wrap_sharded(self, model: nn.Module) -> nn.Module:
        require_whole(model)
        if self.experimental.scaler is not None:
            raise InvalidInput(
                "a sharded model has mixed precision of its own, without a gradient scaler: call fully_shard(..., "
                "mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16)), and neither use_amp() nor wrap_scaler()"
            )
        self.models.append(model)
        return model

    @property
    def shards(self) -> bool:
        """Whether parameters of a model are shared out among ranks: these must make the same passes then."""
        return any(map(is_sharded, self.models))

    def wrap_optimizer(
        self,
        optimizer: Optimizer,
        backward_passes_per_step: int = 1,
        fp16_compression: Optional[bool] = None,
        average_aggregated_gradients: Optional[bool] = None,
    ) -> Optimizer:
        """Keep it in checkpoints. ``average_aggregated_gradients`` False: gradients of several batches are summed.

        ``fp16_compression`` was Horovod's and changes nothing. Raises InvalidInput.
        """
        if backward_passes_per_step < 1:
            raise InvalidInput(f"backward_passes_per_step must be at least 1, not {backward_passes_per_step}")
        if not (hasattr(optimizer, "param_groups") and hasattr(optimizer, "step")):
            raise InvalidInput(f"wrap_optimizer() takes an optimizer of torch.optim, not {type(optimizer).__name__}")
        self._averages[id(optimizer)] = average_aggregated_gradients is not False
        self.optimizers.append(optimizer)
        return optimizer

    def wrap_lr_scheduler(self, lr_scheduler: Any, step_mode: StepMode, frequency: int = 1) -> Any:
        """Keep it in checkpoints, and step it as ``step_mode`` says. Raises TypeError, and InvalidInput for one that
        steps by a metric and not by hand."""
        by_hand = step_mode is StepMode.MANUAL_STEP
        if isinstance(lr_scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau) and not by_hand:
            raise InvalidInput(
                "ReduceLROnPlateau steps by a metric: wrap it with LRScheduler.StepMode.MANUAL_STEP and call its "
                "step(metric) yourself, as in a callback's on_validation_end(metrics)"
            )
        self.lr_schedulers.append(LRScheduler(lr_scheduler, step_mode, frequency))
        return lr_scheduler

    def wrap_scaler(self, scaler: Any) -> Any:
        """Keep a gradient scaler in checkpoints; scaling and stepping stay the trial's. Before ``wrap_model``.

        Raises InvalidInput for a second one.
        """
        if self.experimental.scaler is not None:
            raise InvalidInput("this trial has a gradient scaler already: call wrap_scaler() or use_amp() once")
        if self.models:
            raise InvalidInput("call wrap_scaler() before wrap_model()")
        self.experimental.scaler = scaler
        return scaler

    def configure_apex_amp(self, *_: Any, **__: Any) -> Any:
        """Apex is no longer kept up. Raises InvalidInput."""
        raise InvalidInput(
            "NVIDIA's Apex is not kept up any more and not used here: call context.experimental.use_amp() before "
            "wrap_model(), which does the same with PyTorch's own mixed precision"
        )

    def set_profiler(self, *arguments: Any, **named: Any) -> None:
        """``torch.profiler.profile`` with these arguments over the training; traces go to TensorBoard."""
        named.setdefault("on_trace_ready", torch.profiler.tensorboard_trace_handler(str(self.get_tensorboard_path())))
        self.profiler = torch.profiler.profile(*arguments, **named)

    # What a batch does.

    def to_device(self, data: Any) -> Any:
        """As `tenax.pytorch.to_device`, to this rank's device."""
        return to_device(data, self.device, self._warned_types)

    def backward(
        self,
        loss: torch.Tensor,
        gradient: Optional[torch.Tensor] = None,
        retain_graph: bool = False,
        create_graph: bool = False,
    ) -> None:
        """``loss.backward()``, scaled where `use_amp` was called; ranks exchange gradients where optimizers step."""
        if self.experimental.auto_amp:
            loss = self.experimental.scaler.scale(loss)
        if self.aggregation_frequency == 1 or self.distributed.size == 1:
            loss.backward(gradient, retain_graph, create_graph)  # type: ignore[no-untyped-call]
            return
        with ExitStack() as stack:
            for model in self.models:
                if not isinstance(model, DistributedDataParallel):
                    sync_gradients(model, self.steps_now())
                elif not self.steps_now():
                    stack.enter_context(model.no_sync())
            loss.backward(gradient, retain_graph, create_graph)  # type: ignore[no-untyped-call]

    def step_optimizer(
        self,
        optimizer: Optimizer,
        clip_grads: Optional[Callable[[Any], object]] = None,
        auto_zero_grads: bool = True,
        scaler: Any = None,
    ) -> None:
        """The optimizer's step, where this batch has one, and gradients to zero after it.

        ``clip_grads`` gets the parameters first. ``scaler``: one's own. Raises InvalidInput for an optimizer that was
        not wrapped, and for gradients kept where several batches make a step.
        """
        if self.aggregation_frequency > 1 and not auto_zero_grads:
            raise InvalidInput("with aggregation_frequency above 1, auto_zero_grads must stay True")
        if not self.steps_now():
            return
        average = self._averages.get(id(optimizer))
        if average is None:
            raise InvalidInput("step_optimizer() takes what wrap_optimizer() gave, and this is another optimizer")
        if average and self.aggregation_frequency > 1:
            for each in _parameters_of(optimizer):
                if each.grad is not None:
                    each.grad.div_(self.aggregation_frequency)
        if self.experimental.auto_amp and scaler is None:
            scaler = self.experimental.scaler
            if clip_grads is not None:
                scaler.unscale_(optimizer)
        if clip_grads is not None:
            clip_grads(_parameters_of(optimizer))
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
        if auto_zero_grads:
            optimizer.zero_grad()

    def steps_now(self) -> bool:
        """Whether optimizers step after this batch."""
        every = self.aggregation_frequency
        return every == 1 or self.batch_idx is None or (self.batch_idx + 1) % every == 0

    # What the trial asks.

    def get_hparams(self) -> dict[str, Any]:
        """All hyperparameters. Raises InvalidInput where there are none."""
        if self._hparams is None:
            raise InvalidInput("this run has no hyperparameters: give them as pytorch.init(hparams=...)")
        return self._hparams

    def get_hparam(self, name: str) -> Any:
        """One of them. Raises InvalidInput."""
        hparams = self.get_hparams()
        if name not in hparams:
            raise InvalidInput(
                f"there is no hyperparameter {name!r}: there are {', '.join(map(str, hparams)) or 'none'}"
            )
        return hparams[name]

    def get_global_batch_size(self) -> int:
        """The hyperparameter ``global_batch_size``, as ranks share it evenly. Raises InvalidInput."""
        return self.get_per_slot_batch_size() * self.distributed.size

    def get_per_slot_batch_size(self) -> int:
        """The share of one rank. Raises InvalidInput for a ``global_batch_size`` that is missing or too small."""
        size = self.get_hparam("global_batch_size")
        ranks = self.distributed.size
        if isinstance(size, bool) or not isinstance(size, int) or size < ranks:
            raise InvalidInput(
                f"global_batch_size must be a whole number of at least {ranks} (one a rank), not {size!r}"
            )
        if size % ranks and self.distributed.rank == 0 and type(self) not in self._warned_types:
            self._warned_types.add(type(self))
            say(f"warning: global_batch_size {size} is not a multiple of {ranks} ranks: {size - size % ranks} is taken")
        return size // ranks

    def get_experiment_config(self) -> Mapping[str, Any]:
        """The configuration. Raises InvalidInput in a run by hand that was given none."""
        if self._exp_conf is None:
            raise InvalidInput("a run by hand has no configuration: give one as pytorch.init(exp_conf=...)")
        return self._exp_conf

    def get_data_config(self) -> Any:
        """Its ``data`` section."""
        return self.get_experiment_config().get("data") or {}

    def get_trial_seed(self) -> int:
        """Raises NotNow in a run by hand."""
        if self._seed is None:
            raise NotNow("a run by hand has no seed of a trial: use torch.initial_seed()")
        return self._seed

    def get_experiment_id(self) -> int:
        """0 in a run by hand."""
        return self.core.info.trial.experiment_id if self.core.info is not None else 0

    def get_trial_id(self) -> int:
        """0 in a run by hand."""
        return self.core.info.trial.trial_id if self.core.info is not None else 0

    @property
    def latest_checkpoint(self) -> Optional[str]:
        """What to go on from, for ``Trainer.fit(latest_checkpoint=...)``; None: begin anew."""
        return self.core.latest_checkpoint

    def get_initial_batch(self) -> int:
        """Number of batches that were trained before this start."""
        return self.core.info.trial._steps_completed if self.core.info is not None else 0

    def current_train_batch(self) -> int:
        """Index of the batch, of all, from 0. Raises NotNow before the first."""
        if self.batch_idx is None:
            raise NotNow("there is no current batch before training has begun")
        return self.batch_idx

    def current_train_epoch(self) -> int:
        """Index of the pass over the data, from 0. Raises NotNow before the first."""
        return self.current_train_batch() // self._epoch()

    def is_epoch_start(self) -> bool:
        """Whether this batch is the first of its epoch. Raises NotNow before the first."""
        return self.current_train_batch() % self._epoch() == 0

    def is_epoch_end(self) -> bool:
        """Whether it is the last. Raises NotNow before the first."""
        return (self.current_train_batch() + 1) % self._epoch() == 0

    def _epoch(self) -> int:
        if self.epoch_length is None:
            raise NotNow("how long an epoch is is known once Trainer.fit() was called")
        return self.epoch_length

    def set_stop_requested(self, stop_requested: bool) -> None:
        """End the training, with a checkpoint, at the next look: when metrics are reported. Raises InvalidInput."""
        if not isinstance(stop_requested, bool):
            raise InvalidInput(f"set_stop_requested() takes True or False, not {stop_requested!r}")
        self._stop_requested = stop_requested

    def get_stop_requested(self) -> bool:
        return self._stop_requested

    def set_enable_tensorboard_logging(self, enable_tensorboard_logging: bool) -> None:
        """Whether reports become TensorBoard files, and those of the trial's own are kept: in its ``__init__``, before
        the first of them. Raises NotNow after that."""
        self.core.set_tensorboard_mode(_tensorboard_mode(enable_tensorboard_logging))
        self._logs_to_tensorboard = bool(enable_tensorboard_logging)

    def get_enable_tensorboard_logging(self) -> bool:
        return self._logs_to_tensorboard

    def get_tensorboard_path(self) -> Path:
        """A directory for TensorBoard files of the trial's own, which are kept."""
        return self.core.train.get_tensorboard_path()

    def close_tensorboard_writer(self) -> None:
        """Write out what it holds; it may be used again."""
        if self._writer is not None:
            self._writer.close()

    def get_tensorboard_writer(self) -> Any:
        """A ``torch.utils.tensorboard.SummaryWriter``, one for the trial. Raises InvalidInput without TensorBoard."""
        if self._writer is None:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise InvalidInput(
                    f"get_tensorboard_writer() needs TensorBoard: pip install tensorboard ({error})"
                ) from None
            self._writer = SummaryWriter(self.get_tensorboard_path())
        return self._writer


def _tensorboard_mode(logs: bool) -> core.TensorboardMode:
    return core.TensorboardMode.AUTO if logs else core.TensorboardMode.MANUAL


def _parameters_of(optimizer: Optimizer) -> list[nn.Parameter]:
    return [each for several in optimizer.param_groups for each in several["params"]]


def _require_group() -> None:
    if not group.is_initialized():
        raise InvalidInput(
            "a job of several ranks needs torch.distributed: start it with torchrun, on a cluster with the entrypoint "
            f"python3 -m {LAUNCHER} python3 train.py, or call init_process_group() first"
        )
