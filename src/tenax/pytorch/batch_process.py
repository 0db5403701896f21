"""`torch_batch_process`: a data set through a model, batch by batch, shared out among ranks, paused and gone on with.

::

    class Predict(TorchBatchProcessor):
        def __init__(self, context):
            self.context = context
            self.model = context.prepare_model_for_inference(load_model())

        def process_batch(self, batch, batch_idx):
            answers = self.model(self.context.to_device(batch))
            with self.context.upload_path() as path:
                torch.save(answers.cpu(), path / f"{batch_idx}.pt")

    torch_batch_process(Predict, dataset, batch_size=64)

Which batches are done is in a checkpoint every ``checkpoint_interval`` rounds; in a round each rank has one batch. A
run that goes on may have another number of ranks.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sized
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

import torch
from torch import nn
from torch.utils import data

from tenax import core
from tenax.core.spool import say
from tenax.errors import InvalidInput
from tenax.pytorch.context import process_group
from tenax.pytorch.data import DataLoader, begin_pass, to_device
from tenax.pytorch.devices import own_device
from tenax.pytorch.reducers import ReducerContext
from tenax.storage.files import walk_files

if TYPE_CHECKING:
    from tenax.client import Checkpoint, ModelVersion

_STATE = "batches.json"
_REDUCERS = "reducers.pt"
#: What is the job's to decide.
_OWN = ("shuffle", "sampler", "batch_sampler")


class TorchBatchProcessor(ABC):
    """What is done with each batch. It is made once in each process."""

    @abstractmethod
    def __init__(self, context: TorchBatchProcessorContext) -> None: ...

    @abstractmethod
    def process_batch(self, batch: Any, batch_idx: int) -> None:
        """``batch_idx``: of this rank, counted over all runs; a number is never used twice on a rank."""

    def on_checkpoint_start(self) -> None:  # noqa: B027 - need not be there
        """Called before each checkpoint: what was processed counts as done from there on, so write it out here."""

    def on_finish(self) -> None:  # noqa: B027 - need not be there
        """Called after the last batch and its checkpoint."""


class TorchBatchProcessorContext(ReducerContext):
    """What a processor is made with."""

    def __init__(self, core_context: core.Context, outputs: str) -> None:
        super().__init__(self._of_all_runs)
        #: For what is not offered here.
        self.core = core_context
        self.distributed = core_context.distributed
        self.device = get_default_device(core_context)
        #: Below the storage of checkpoints: all that `upload_path` stored, whichever rank and run. No checkpoint's id
        #: leads there, so nobody can delete it as one.
        self.outputs = f"outputs/{outputs}"
        self.has_outputs = False
        #: What reducers gathered in runs before this one.
        self.earlier: list[Any] = []
        self._warned_types: set[type] = set()

    def get_hparams(self) -> Mapping[str, Any]:
        """All hyperparameters. Raises InvalidInput where there are none."""
        return self.core.hparams

    def to_device(self, data: Any) -> Any:
        """As `tenax.pytorch.to_device`, to this rank's device."""
        return to_device(data, self.device, self._warned_types)

    def prepare_model_for_inference(self, model: nn.Module) -> nn.Module:
        """The model on this rank's device, for evaluation."""
        return model.eval().to(self.device)

    def get_distributed_rank(self) -> int:
        return self.distributed.rank

    def get_distributed_size(self) -> int:
        return self.distributed.size

    def get_tensorboard_path(self) -> Path:
        """Where files for TensorBoard are written."""
        return self.core.train.get_tensorboard_path()

    def report_metrics(self, group: str, steps_completed: int, metrics: Mapping[str, Any]) -> None:
        """As `tenax.core.TrainContext.report_metrics`; on the chief."""
        self.core.train.report_metrics(group, steps_completed, dict(metrics))

    def report_task_using_checkpoint(self, checkpoint: Union[Checkpoint, str]) -> None:
        """As `tenax.core.ExperimentalContext.report_task_using_checkpoint`."""
        self.core.experimental.report_task_using_checkpoint(checkpoint)

    def report_task_using_model_version(self, model_version: ModelVersion) -> None:
        """As `tenax.core.ExperimentalContext.report_task_using_model_version`."""
        self.core.experimental.report_task_using_model_version(model_version)

    @contextmanager
    def upload_path(self) -> Iterator[Path]:
        """An empty directory; what is in it at the end is stored beside the checkpoints, in a directory of this rank.

        Files of the same path replace earlier ones. Raises StorageFailed.
        """
        storage = self.core.checkpoint.storage
        self.has_outputs = True
        with tempfile.TemporaryDirectory(prefix="tenax-outputs-") as directory:
            yield Path(directory)
            for path in walk_files(directory):
                if not path.endswith("/"):
                    place = f"{self.outputs}/rank_{self.distributed.rank}/{path}"
                    storage.put(place, os.path.join(directory, path), flush=True)

    def _of_all_runs(self, value: Any) -> list[Any]:
        return [*self.earlier, *self.distributed.allgather(value)]


def get_default_device(core_context: core.Context) -> torch.device:
    """The GPU of this rank, or the CPU where there is none."""
    return own_device(core_context.distributed.local_rank)


def torch_batch_process(
    batch_processor_cls: type[TorchBatchProcessor],
    dataset: data.Dataset[Any],
    batch_size: Optional[int] = None,
    max_batches: Optional[int] = None,
    checkpoint_interval: int = 5,
    dataloader_kwargs: Optional[Mapping[str, Any]] = None,
    distributed_context: Optional[core.DistributedContext] = None,
) -> None:
    """Give each batch of the data set, in its order, to the processor of one rank.

    Once, unless the job is killed: what came after the last checkpoint is processed again then, under the same numbers,
    and by as many ranks as there are now.

    ``batch_size``: 1 where ``dataloader_kwargs`` has none. ``max_batches``: of each rank, at most. What reducers of
    the context gathered is reported as a validation at the end. Raises InvalidInput.
    """
    loader_settings = dict(dataloader_kwargs or {})
    size = _batch_size(batch_size, loader_settings)
    if not isinstance(dataset, Sized):
        raise InvalidInput(
            f"the data set of torch_batch_process is a {type(dataset).__name__}, which does not say how many items it "
            "has: give one with __len__ and __getitem__"
        )
    if not isinstance(checkpoint_interval, int) or checkpoint_interval < 1:
        raise InvalidInput(f"checkpoint_interval must be a whole number from 1 on, not {checkpoint_interval!r}")
    if max_batches is not None and max_batches < 1:
        raise InvalidInput(f"max_batches must be a whole number from 1 on, or None, not {max_batches!r}")
    with ExitStack() as stack:
        if distributed_context is None and "WORLD_SIZE" in os.environ and "RANK" in os.environ:
            stack.enter_context(process_group())
            distributed_context = core.DistributedContext.from_torch_distributed()
        context = stack.enter_context(core.init(distributed=distributed_context))
        drops_last = bool(loader_settings.pop("drop_last", False))
        batches = len(dataset) // size if drops_last else math.ceil(len(dataset) / size)
        job = _Job(context, batch_processor_cls, batches, max_batches, checkpoint_interval)
        # Batches that were done are not even counted off.
        left = data.BatchSampler(range(job.done.batches * size, len(dataset)), size, drops_last)
        loader = DataLoader(dataset, batch_sampler=left, **loader_settings)
        distributed = context.distributed
        job.run(loader.get_data_loader(num_replicas=distributed.size, rank=distributed.rank))


@dataclass
class _Done:
    """How far a job is: rounds, and batches of all ranks."""

    rounds: int = 0
    batches: int = 0
    outputs: str = field(default_factory=lambda: str(uuid.uuid4()))


class _Job:
    def __init__(
        self,
        context: core.Context,
        kind: type[TorchBatchProcessor],
        batches: int,
        max_rounds: Optional[int],
        interval: int,
    ) -> None:
        self._context = context
        self._ranks = context.distributed.size
        self._chief = context.distributed.rank == 0
        self._batches = batches
        self._interval = interval
        self.done, earlier = self._read()
        rounds = math.ceil((batches - self.done.batches) / self._ranks)
        self._last = self.done.rounds + rounds
        if max_rounds is not None:
            self._last = max(min(self._last, max_rounds), self.done.rounds)
        self._given = TorchBatchProcessorContext(context, self.done.outputs)
        self._given.earlier = earlier
        self._processor = kind(self._given)
        self._stored = self.done.rounds

    def run(self, loader: data.DataLoader[Any]) -> None:
        """All batches that are left, or until it is asked to stop."""
        batches = begin_pass(loader)
        stops = False
        while self.done.rounds < self._last and not stops:
            batch = next(batches, None)
            # In the last round there are fewer batches than ranks.
            if batch is not None:
                self._processor.process_batch(batch, self.done.rounds)
            self.done.rounds += 1
            self.done.batches = min(self.done.batches + self._ranks, self._batches)
            stops = self._context.preempt.should_preempt()
            if stops or self.done.rounds - self._stored >= self._interval:
                self._checkpoint()
        if stops and self.done.rounds < self._last:
            return
        if self.done.rounds > self._stored:
            self._checkpoint()
        metrics = self._given.reduce_metrics(for_training=False)
        if metrics and self._chief:
            self._context.train.report_validation_metrics(self.done.rounds, metrics)
        self._processor.on_finish()
        # Nobody leaves, and ends the job, while others write.
        used = self._context.distributed.allgather(self._given.has_outputs)
        if self._chief and any(used):
            label = self._context.checkpoint.storage.label
            say(f"what was uploaded is in {label}, in {self._given.outputs}/rank_<rank>")

    def _read(self) -> tuple[_Done, list[Any]]:
        """How far the run is that this one goes on with, and what its reducers had gathered. All ranks call it."""
        latest, distributed = self._context.latest_checkpoint, self._context.distributed
        if latest is None:
            return _Done(outputs=str(distributed.broadcast(self._new_outputs()))), []
        with self._context.checkpoint.restore_path(latest) as path:
            metadata: Any = None
            if self._chief:
                metadata = self._context.checkpoint.get_metadata(latest)
            metadata = distributed.broadcast(metadata)
            earlier = torch.load(path / _REDUCERS, weights_only=False) if (path / _REDUCERS).exists() else []
        rounds = metadata.get("steps_completed")
        outputs = metadata.get("default_output_uuid")
        if not isinstance(rounds, int) or not isinstance(outputs, str):
            raise InvalidInput(
                f"checkpoint {latest} is none of torch_batch_process: it does not say how many batches were processed"
            )
        # One of Determined counts rounds alone, of as many ranks as there are now.
        batches = int(metadata.get("batches", rounds * self._ranks))
        return _Done(rounds, min(batches, self._batches), outputs), list(earlier)

    def _new_outputs(self) -> str:
        """Of a trial always the same: a run that is killed before its first checkpoint leaves nothing that the next one
        does not replace."""
        info = self._context.info
        if info is None or not info.is_trial:
            return str(uuid.uuid4())
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{info.cluster_id}/{info.task_id}"))

    def _checkpoint(self) -> None:
        self._processor.on_checkpoint_start()
        # Nobody's part counts as done before everybody has written what belongs to it.
        gathered = self._given.gathered(for_training=False)
        self._stored = self.done.rounds
        if not self._chief:
            return
        metadata = {
            "steps_completed": self.done.rounds,
            "batches": self.done.batches,
            "default_output_uuid": self.done.outputs,
        }
        with self._context.checkpoint.store_path(metadata) as (path, _):
            (path / _STATE).write_text(json.dumps({"batches": self.done.batches, "of": self._batches}))
            if any(gathered):
                torch.save(gathered, path / _REDUCERS)
        self._context.train.report_progress(self.done.batches / self._batches if self._batches else 1.0)


def _batch_size(given: Optional[int], settings: dict[str, Any]) -> int:
    """Takes it out of the settings of a loader. Raises InvalidInput."""
    for name in _OWN:
        if settings.pop(name, None):
            raise InvalidInput(
                f"dataloader_kwargs may not have {name}: batches are shared out, and gone on with, in the order of the "
                "data set"
            )
    if given is not None and "batch_size" in settings:
        raise InvalidInput("give batch_size once: by itself, or in dataloader_kwargs")
    size = settings.pop("batch_size", 1) if given is None else given
    if not isinstance(size, int) or size < 1:
        raise InvalidInput(f"batch_size must be a whole number from 1 on, not {size!r}")
    return size
