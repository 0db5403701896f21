"""``tenax.pytorch.deepspeed``: the training loop of `tenax.pytorch` over engines of DeepSpeed. Python 3.9.

::

    import deepspeed
    from tenax.pytorch import DataLoader
    from tenax.pytorch.deepspeed import DeepSpeedTrial

    class Digits(DeepSpeedTrial):
        def __init__(self, context):
            engine, *_ = deepspeed.initialize(model=..., model_parameters=..., config=...)
            self.engine = context.wrap_model_engine(engine)
        def build_training_data_loader(self): ...
        def build_validation_data_loader(self): ...
        def train_batch(self, dataloader_iter, epoch_idx, batch_idx): ...
        def evaluate_batch(self, dataloader_iter, batch_idx): ...

    python3 -m tenax.launch.deepspeed --trial model_def:Digits

Importing this package loads nothing; PyTorch is loaded with the first name, DeepSpeed with the first engine.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenax.pytorch.deepspeed.config import overwrite_deepspeed_config as overwrite_deepspeed_config
    from tenax.pytorch.deepspeed.context import DeepSpeedTrialContext as DeepSpeedTrialContext
    from tenax.pytorch.deepspeed.context import init as init
    from tenax.pytorch.deepspeed.mpu import ModelParallelUnit as ModelParallelUnit
    from tenax.pytorch.deepspeed.mpu import make_data_parallel_mpu as make_data_parallel_mpu
    from tenax.pytorch.deepspeed.mpu import make_deepspeed_mpu as make_deepspeed_mpu
    from tenax.pytorch.deepspeed.trainer import DeepSpeedTrainer
    from tenax.pytorch.deepspeed.trial import DeepSpeedTrial as DeepSpeedTrial

    Trainer = DeepSpeedTrainer

#: The module of each name; and what it is called there.
_WHERE = {
    "DeepSpeedTrial": ("trial", "DeepSpeedTrial"),
    "DeepSpeedTrialContext": ("context", "DeepSpeedTrialContext"),
    "ModelParallelUnit": ("mpu", "ModelParallelUnit"),
    "Trainer": ("trainer", "DeepSpeedTrainer"),
    "init": ("context", "init"),
    "make_data_parallel_mpu": ("mpu", "make_data_parallel_mpu"),
    "make_deepspeed_mpu": ("mpu", "make_deepspeed_mpu"),
    "overwrite_deepspeed_config": ("config", "overwrite_deepspeed_config"),
}

__all__ = [*_WHERE]


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'tenax.pytorch.deepspeed' has no attribute {name!r}")
    from importlib import import_module

    module, own_name = _WHERE[name]
    value: object = getattr(import_module("tenax.pytorch.deepspeed." + module), own_name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
