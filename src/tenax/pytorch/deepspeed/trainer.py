"""`Trainer` of `tenax.pytorch.deepspeed`: trains a `DeepSpeedTrial`, on a cluster and off it."""

from __future__ import annotations

from typing import Optional

from tenax.pytorch.deepspeed.context import DeepSpeedTrialContext
from tenax.pytorch.deepspeed.loop import EngineLoop
from tenax.pytorch.deepspeed.trial import DeepSpeedTrial
from tenax.pytorch.trainer import Trainer
from tenax.pytorch.units import TrainUnit


class DeepSpeedTrainer(Trainer):
    """``Trainer(trial, context).fit(...)``, inside of ``with pytorch.deepspeed.init() as context``."""

    _family = DeepSpeedTrial
    _context_class = DeepSpeedTrialContext
    _loop = EngineLoop

    def fit(  # type: ignore[override]
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
    ) -> None:
        """As `tenax.pytorch.Trainer.fit`; a batch is a step of the optimizer, and the training waits while checkpoints
        are stored."""
        super().fit(
            checkpoint_period=checkpoint_period,
            validation_period=validation_period,
            max_length=max_length,
            reporting_period=reporting_period,
            checkpoint_policy=checkpoint_policy,
            latest_checkpoint=latest_checkpoint,
            step_zero_validation=step_zero_validation,
            test_mode=test_mode,
            profiling_enabled=profiling_enabled,
            async_checkpoints=False,
        )
