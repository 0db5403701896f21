"""`PyTorchTrial`: what a person writes, and the loop calls; `TrialClass`: what it shares with `DeepSpeedTrial`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Union

from torch.utils import data

from tenax.errors import InvalidInput
from tenax.pytorch.callback import PyTorchCallback
from tenax.pytorch.context import PyTorchTrialContext
from tenax.pytorch.data import DataLoader, data_length
from tenax.pytorch.reducers import Reducer


class TrialClass(ABC):
    """Data, callbacks and metrics of a trial, whatever trains a batch of it."""

    #: The package whose ``init`` and ``Trainer`` train it.
    trained_by = "tenax.pytorch"

    @abstractmethod
    def build_training_data_loader(self) -> Any:
        """Batches to train on."""

    @abstractmethod
    def build_validation_data_loader(self) -> Any:
        """Batches to validate on."""

    def evaluate_full_dataset(self, data_loader: data.DataLoader[Any]) -> dict[str, Any]:
        """Metrics of all validation data, on the chief alone. Without gradients."""
        raise NotImplementedError

    def evaluation_reducer(self) -> Union[Reducer, Mapping[str, Reducer]]:
        """How metrics of batches become one: for all, or one for each name."""
        return Reducer.AVG

    def build_callbacks(self) -> dict[str, PyTorchCallback]:
        """By name."""
        return {}

    def get_batch_length(self, batch: Any) -> int:
        """Number of records of a batch."""
        return data_length(batch)


class PyTorchTrial(TrialClass):
    """Models, data and what is done with a batch.

    ``__init__`` makes models, optimizers and schedulers and gives each to the context (``wrap_model``...).
    Define exactly one of ``evaluate_batch`` and ``evaluate_full_dataset``.
    """

    #: As older programs name it.
    trial_context_class = PyTorchTrialContext

    @abstractmethod
    def __init__(self, context: PyTorchTrialContext) -> None: ...

    @abstractmethod
    def build_training_data_loader(self) -> Union[DataLoader, data.DataLoader[Any]]:
        """Batches to train on."""

    @abstractmethod
    def build_validation_data_loader(self) -> Union[DataLoader, data.DataLoader[Any]]:
        """Batches to validate on."""

    @abstractmethod
    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        """Train on one batch (``context.backward``, ``context.step_optimizer``); a dict of metrics, or the loss.

        ``batch_idx`` counts all batches from 0, ``epoch_idx`` passes over the data.
        """

    def evaluate_batch(self, batch: Any, batch_idx: int) -> dict[str, Any]:
        """Metrics of one batch, the same names for each; may leave out ``batch_idx``. Without gradients."""
        raise NotImplementedError


def family_of(kind: type[TrialClass]) -> type[TrialClass]:
    """`PyTorchTrial` or `DeepSpeedTrial`: which of ours a trial's class is made of."""
    return next(each for each in kind.__mro__ if TrialClass in each.__bases__)


def evaluates_batches(trial: TrialClass) -> bool:
    """Whether validation goes batch by batch. Raises InvalidInput where the trial says neither or both."""
    kind = type(trial)
    written = [
        getattr(kind, name) is not getattr(family_of(kind), name)
        for name in ("evaluate_batch", "evaluate_full_dataset")
    ]
    if all(written) or not any(written):
        raise InvalidInput(
            f"{kind.__name__} must define evaluate_batch() or evaluate_full_dataset(), and not both: the first is "
            "shared out among ranks, the second runs on the chief"
        )
    return written[0]
