"""`DeepSpeedTrial`: what a person writes around engines of DeepSpeed, and the loop calls."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional

from tenax.errors import InvalidInput
from tenax.pytorch.deepspeed.context import DeepSpeedTrialContext
from tenax.pytorch.trial import TrialClass


class DeepSpeedTrial(TrialClass):
    """Engines, data and what is done with a batch.

    ``__init__`` makes engines with ``deepspeed.initialize`` and gives each to ``context.wrap_model_engine``. Loaders
    give batches of ``train_micro_batch_size_per_gpu`` samples. Define exactly one of ``evaluate_batch`` and
    ``evaluate_full_dataset``.
    """

    #: As older programs name it.
    trial_context_class = DeepSpeedTrialContext
    trained_by = "tenax.pytorch.deepspeed"

    @abstractmethod
    def __init__(self, context: DeepSpeedTrialContext) -> None: ...

    @abstractmethod
    def build_training_data_loader(self) -> Any:
        """Micro-batches to train on, on ranks that load data."""

    @abstractmethod
    def build_validation_data_loader(self) -> Any:
        """Micro-batches to validate on, on ranks that load data."""

    @abstractmethod
    def train_batch(self, dataloader_iter: Optional[Iterator[Any]], epoch_idx: int, batch_idx: int) -> Any:
        """Train on one micro-batch from the iterator (forward, ``engine.backward``, ``engine.step``); a dict of
        metrics, or the loss.

        It is called ``gradient_accumulation_steps`` times for a batch. With a pipeline engine, whose ``train_batch``
        takes as many from the iterator, and after ``context.disable_auto_grad_accumulation()``, it is called once.
        ``batch_idx`` counts all batches from 0, ``epoch_idx`` passes over the data.
        """

    def evaluate_batch(self, dataloader_iter: Optional[Iterator[Any]], batch_idx: int) -> dict[str, Any]:
        """Metrics of one micro-batch from the iterator (with a pipeline engine, of as many as make a batch), the same
        names each time. Without gradients."""
        raise NotImplementedError

    def save(self, context: DeepSpeedTrialContext, path: Path) -> None:
        """Write the engines into a checkpoint, on all ranks: each its part."""
        for number, engine in enumerate(context.models):
            engine.save_checkpoint(str(path), tag=f"model{number}")  # type: ignore[operator]

    def load(self, context: DeepSpeedTrialContext, load_path: Path) -> None:
        """Read what `save` wrote, on all ranks. Raises InvalidInput where there is nothing to be read."""
        for number, engine in enumerate(context.models):
            tag, place = f"model{number}", None
            if (load_path / tag).is_dir():
                place, _ = engine.load_checkpoint(str(load_path), tag=tag)  # type: ignore[operator]
            if place is None:
                raise InvalidInput(
                    f"the checkpoint holds no state of engine {number} for this rank, which would be in {tag}: give "
                    "the context as many engines as when it was made, or begin anew without latest_checkpoint"
                )
