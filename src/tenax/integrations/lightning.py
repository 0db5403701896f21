"""`LightningCallback`: a `lightning.Trainer` as a trial. Fabric needs none: its loop is the script's own.

::

    with core.init() as context:
        callback = LightningCallback(context)
        trainer = lightning.Trainer(max_epochs=10, callbacks=[callback])
        trainer.fit(model, loader, held_out, ckpt_path=callback.ckpt_path)

Rules:
- A checkpoint is Lightning's own, ``trainer.ckpt``, with the random states of all ranks, which Lightning leaves out. It
  is made after all else that belongs to the end of an epoch, but for one: a schedule that follows a metric has had it
  only in those of a pause and of the end.
- It leaves at the end of an epoch: within one, Lightning does not know which samples it had, unless the loader does.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Any, Optional

from tenax.core import Context
from tenax.core.searcher import compare_with_search
from tenax.core.spool import say
from tenax.errors import InvalidInput
from tenax.integrations.random_state import random_state, restore_random_state
from tenax.integrations.reporting import LoopReports
from tenax.integrations.stopping import StopQuestion
from tenax.storage.manifest import names_in

if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    # Its classes under their older name are others.
    import pytorch_lightning as lightning
else:
    import lightning.pytorch as lightning

FILE = "trainer.ckpt"


class LightningCallback(lightning.callbacks.Checkpoint):
    """Reports what is logged and how far it is, saves, and stops when the cluster asks.

    ``context``: of ``core.init()``. ``checkpoint_epochs``: so often it saves; 0: at a pause and at the end only.
    ``stops_within_epochs``: between any two batches, for epochs of hours; see the rules. All ranks make one. Raises
    InvalidInput.
    """

    def __init__(self, context: Context, *, checkpoint_epochs: int = 1, stops_within_epochs: bool = False) -> None:
        super().__init__()
        if isinstance(checkpoint_epochs, bool) or not isinstance(checkpoint_epochs, int) or checkpoint_epochs < 0:
            raise InvalidInput(f"checkpoint_epochs must be a number of epochs, or 0, not {checkpoint_epochs!r}")
        self._context = context
        self._checkpoint_epochs = checkpoint_epochs
        self._stops_within_epochs = stops_within_epochs
        self._chief = context.distributed.rank == 0
        self._reports = LoopReports(context)
        self._question = StopQuestion(context)
        self._restoring = ExitStack()
        #: What validations have logged; all else is training's.
        self._of_validations: set[str] = set()
        self._before: dict[str, Any] = {}
        #: Of all ranks, while a checkpoint is written.
        self._random_states: list[Any] = []
        #: Asked to stop within an epoch: what belongs to its end is left to the run that goes on.
        self._leaves = False
        #: How many there were when the training ended, or was asked to.
        self._epochs_ended: Optional[int] = None
        #: For ``Trainer.fit``: where this trial goes on; None: it begins.
        self.ckpt_path: Optional[str] = None
        if context.latest_checkpoint is not None:
            self.ckpt_path = self._restore(context.latest_checkpoint)

    def _restore(self, storage_id: str) -> str:
        directory = self._restoring.enter_context(self._context.checkpoint.restore_path(storage_id))
        if not (directory / FILE).exists():
            held = names_in(directory)
            raise InvalidInput(
                f"checkpoint {storage_id} is none of this callback: there is no {FILE} in it, but {held}. Load what "
                "you need of it yourself, without LightningCallback"
            )
        return str(directory / FILE)

    # What Lightning keeps with a checkpoint.

    def state_dict(self) -> dict[str, Any]:
        return {"random_states": self._random_states} if self._random_states else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Before the data are loaded: the order of an epoch is drawn as it would have been."""
        states, ranks = state_dict.get("random_states", []), self._context.distributed
        if len(states) == ranks.size:
            restore_random_state(states[ranks.rank])
        elif states:
            say(f"the checkpoint is of {len(states)} ranks, these are {ranks.size}: random states begin anew")

    # What Lightning calls.

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        self._restoring.close()
        self._leaves, self._epochs_ended = False, None
        if self.ckpt_path is not None and trainer.ckpt_path is None and self._chief:
            say(
                "warning: this run was paused or restarted and begins anew: to go on where it stood, call "
                "trainer.fit(..., ckpt_path=callback.ckpt_path)"
            )
        if trainer.max_steps > 0:
            compare_with_search(self._context.info, trainer.max_steps, "batches")
        elif trainer.max_epochs is not None and trainer.max_epochs > 0:
            compare_with_search(self._context.info, trainer.max_epochs, "epochs")

    def on_train_batch_end(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        step = trainer.global_step
        if not trainer.is_last_batch and (batch_idx + 1) % max(1, trainer.log_every_n_steps) == 0:
            self._report_training(trainer)
            self._report_progress(trainer, trainer.current_epoch + (batch_idx + 1) / trainer.num_training_batches)
        if self._stops_within_epochs and not trainer.is_last_batch and self._question.asked_to_stop(step):
            self._leaves = True
            self._save(trainer, trainer.current_epoch)
            _stop(trainer)

    def on_validation_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        self._before = dict(trainer.callback_metrics)

    def on_validation_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        if trainer.sanity_checking or self._leaves:
            return
        # A value that is logged again is another object.
        now = trainer.callback_metrics
        metrics = {name: value for name, value in now.items() if self._before.get(name) is not value}
        self._of_validations.update(metrics)
        self._reports.report("validation", trainer.global_step, _epochs(trainer), metrics)

    def on_train_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        if self._leaves:
            return
        epochs = trainer.current_epoch + 1
        self._report_training(trainer)
        self._report_progress(trainer, epochs)
        is_last = trainer.should_stop or _is_reached(epochs, trainer.max_epochs)
        is_last = is_last or _is_reached(trainer.global_step, trainer.max_steps)
        stops = not is_last and self._question.asked_to_stop(trainer.global_step, always=True)
        if stops:
            _stop(trainer)
        if stops or is_last:
            self._epochs_ended = epochs
        elif self._checkpoint_epochs and epochs % self._checkpoint_epochs == 0:
            self._save(trainer, epochs)

    def on_train_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        # Schedules that follow a metric have had it by now.
        if self._epochs_ended is not None:
            self._save(trainer, self._epochs_ended)

    def _report_training(self, trainer: lightning.Trainer) -> None:
        metrics = trainer.callback_metrics.items()
        training = {name: value for name, value in metrics if name not in self._of_validations}
        self._reports.report("training", trainer.global_step, _epochs(trainer), training)

    def _report_progress(self, trainer: lightning.Trainer, epochs: float) -> None:
        shares = [
            done / whole
            for done, whole in ((trainer.global_step, trainer.max_steps), (epochs, trainer.max_epochs))
            if whole is not None and whole > 0
        ]
        if self._chief and shares:
            self._context.train.report_progress(min(1.0, max(shares)))

    def _save(self, trainer: lightning.Trainer, epochs: int) -> None:
        about = {
            "steps_completed": trainer.global_step,
            "epochs": epochs,
            "framework": f"lightning-{lightning.__version__}",
        }
        self._random_states = self._context.distributed.allgather(random_state())
        with self._context.checkpoint.store_path(about, shard=True) as (directory, _):
            trainer.save_checkpoint(directory / FILE)
        self._random_states = []


def _epochs(trainer: lightning.Trainer) -> int:
    """Those that are trained to their ends."""
    return int(trainer.current_epoch) + bool(trainer.is_last_batch)


def _is_reached(count: int, limit: Optional[int]) -> bool:
    return limit is not None and 0 <= limit <= count


def _stop(trainer: lightning.Trainer) -> None:
    """Whatever the shortest training is that it was given."""
    trainer.fit_loop.min_epochs = trainer.fit_loop.epoch_loop.min_steps = 0
    trainer.should_stop = True
