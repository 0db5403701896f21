"""``tenax.pytorch``: a training loop of PyTorch that is paused, preempted and searched, for who wants one. Python 3.9.

::

    from tenax import pytorch

    class Digits(pytorch.PyTorchTrial):
        def __init__(self, context): ...
        def build_training_data_loader(self): ...
        def build_validation_data_loader(self): ...
        def train_batch(self, batch, epoch_idx, batch_idx): ...
        def evaluate_batch(self, batch): ...

    with pytorch.init() as context:
        trainer = pytorch.Trainer(Digits(context), context)
        trainer.fit(max_length=pytorch.Epoch(10), latest_checkpoint=context.latest_checkpoint)

Who has a loop already needs none of this: `tenax.core` asks for four calls. Importing this package loads nothing; each
name below loads PyTorch when it is used (any from 2.4 on).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenax.pytorch import deepspeed as deepspeed
    from tenax.pytorch import samplers as samplers
    from tenax.pytorch.batch_process import TorchBatchProcessor as TorchBatchProcessor
    from tenax.pytorch.batch_process import TorchBatchProcessorContext as TorchBatchProcessorContext
    from tenax.pytorch.batch_process import torch_batch_process as torch_batch_process
    from tenax.pytorch.callback import PyTorchCallback as PyTorchCallback
    from tenax.pytorch.context import PyTorchTrialContext as PyTorchTrialContext
    from tenax.pytorch.context import init as init
    from tenax.pytorch.data import DataLoader as DataLoader
    from tenax.pytorch.data import TorchData as TorchData
    from tenax.pytorch.data import adapt_batch_sampler as adapt_batch_sampler
    from tenax.pytorch.data import data_length as data_length
    from tenax.pytorch.data import to_device as to_device
    from tenax.pytorch.distributed_checkpoint import load_sharded as load_sharded
    from tenax.pytorch.distributed_checkpoint import save_sharded as save_sharded
    from tenax.pytorch.experimental import PyTorchExperimentalContext as PyTorchExperimentalContext
    from tenax.pytorch.load import CheckpointLoadContext as CheckpointLoadContext
    from tenax.pytorch.load import load_trial_from_checkpoint_path as load_trial_from_checkpoint_path
    from tenax.pytorch.lr_scheduler import LRScheduler as LRScheduler
    from tenax.pytorch.reducers import MetricReducer as MetricReducer
    from tenax.pytorch.reducers import Reducer as Reducer
    from tenax.pytorch.state_copy import StateCopy as StateCopy
    from tenax.pytorch.trainer import Trainer as Trainer
    from tenax.pytorch.trial import PyTorchTrial as PyTorchTrial
    from tenax.pytorch.units import Batch as Batch
    from tenax.pytorch.units import Epoch as Epoch
    from tenax.pytorch.units import TrainUnit as TrainUnit

_WHERE = {
    "Batch": "units",
    "CheckpointLoadContext": "load",
    "DataLoader": "data",
    "Epoch": "units",
    "LRScheduler": "lr_scheduler",
    "MetricReducer": "reducers",
    "PyTorchCallback": "callback",
    "PyTorchExperimentalContext": "experimental",
    "PyTorchTrial": "trial",
    "PyTorchTrialContext": "context",
    "Reducer": "reducers",
    "StateCopy": "state_copy",
    "TorchBatchProcessor": "batch_process",
    "TorchBatchProcessorContext": "batch_process",
    "TorchData": "data",
    "TrainUnit": "units",
    "Trainer": "trainer",
    "adapt_batch_sampler": "data",
    "data_length": "data",
    "init": "context",
    "load_sharded": "distributed_checkpoint",
    "load_trial_from_checkpoint_path": "load",
    "save_sharded": "distributed_checkpoint",
    "to_device": "data",
    "torch_batch_process": "batch_process",
}

_MODULES = ("deepspeed", "samplers")

__all__ = [*_WHERE, *_MODULES]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'tenax.pytorch' has no attribute {name!r}")
    from importlib import import_module

    if name in _MODULES:
        return import_module("tenax.pytorch." + name)
    value: object = getattr(import_module("tenax.pytorch." + _WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
