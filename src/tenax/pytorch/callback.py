"""What a trial may do at the turns of its training."""

from __future__ import annotations

from typing import Any, Optional


class PyTorchCallback:
    """A base to write over; each method does nothing. All ranks call them, but for those that say otherwise.

    A callback that keeps something across pauses says so by ``state_dict`` and ``load_state_dict``.
    """

    def on_trial_startup(self, first_batch_idx: int, checkpoint_uuid: Optional[str]) -> None:
        """Before data is loaded: the index of the first batch, and what is gone on from."""

    def on_trial_shutdown(self) -> None:
        """At the end, however it comes."""

    def on_training_start(self) -> None:
        """Before the first batch, with all state restored."""

    def on_training_epoch_start(self, epoch_idx: int) -> None:
        """Before the first batch of an epoch."""

    def on_training_epoch_end(self, epoch_idx: int) -> None:
        """After the last batch of an epoch."""

    def on_training_workload_end(self, avg_metrics: dict[str, Any], batch_metrics: list[dict[str, Any]]) -> None:
        """After the metrics of some batches were reported: their average, and those of each."""

    def on_validation_start(self) -> None:
        """Before a validation."""

    def on_validation_epoch_start(self) -> None:
        """Before its first batch, with `PyTorchTrial.evaluate_batch`."""

    def on_validation_epoch_end(self, outputs: list[Any]) -> None:
        """After its last batch: what evaluate_batch gave on this rank."""

    def on_validation_end(self, metrics: dict[str, Any]) -> None:
        """After a validation, before its metrics are reported."""

    def on_checkpoint_load_start(self, checkpoint: dict[str, Any]) -> None:
        """Before state is restored from it; may be changed."""

    def on_checkpoint_save_start(self, checkpoint: dict[str, Any]) -> None:
        """Before it is written, on the chief; may be changed."""

    def on_checkpoint_end(self, checkpoint_dir: str) -> None:
        """The older name of ``on_checkpoint_write_end``."""

    def on_checkpoint_write_end(self, checkpoint_dir: str) -> None:
        """Once it is written, on the chief: files added here belong to it."""

    def on_checkpoint_upload_end(self, uuid: str) -> None:
        """Once it is stored."""

    def state_dict(self) -> dict[str, Any]:
        """What to keep in checkpoints."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """What was kept."""
