"""`DeterminedCallback`: a ``model.fit()`` of Keras 3 as a trial, whatever its backend.

::

    with core.init() as context:
        callback = DeterminedCallback(context, context.latest_checkpoint, continue_id="mine")
        model.fit(x, y, epochs=10, validation_data=held_out, callbacks=[callback])

Rules:
- It goes on from ``checkpoint``: with the same ``continue_id`` where that stood, with another one its weights alone.
- It saves and leaves at the ends of epochs. What was trained is in a checkpoint when ``fit`` returns.
- A checkpoint holds ``model_checkpoint.weights.h5`` (weights, the optimizer, random generators of layers) and
  ``training_state.json`` (where it stood, random states of the process). Not in it: other callbacks.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Optional, Union

import keras

from tenax.core import Context, DistributedContext
from tenax.core.hangs import beats
from tenax.core.searcher import compare_with_search
from tenax.core.spool import say
from tenax.errors import InvalidInput
from tenax.integrations.random_state import random_state, restore_random_state
from tenax.integrations.reporting import LoopReports
from tenax.storage.manifest import names_in

STATE = "training_state.json"
WEIGHTS = "model_checkpoint"
_ENDING = ".weights.h5"


class DeterminedCallback(keras.callbacks.ProgbarLogger):
    """Reports, saves, goes on and stops. Instead of the progress bar, of which it takes the place, a line an epoch.

    ``core_context``: of ``core.init()``. ``checkpoint``: the id of one to go on from, or None. ``continue_id``: what
    tells this training from others, the number of the trial for example. ``train_metrics_report_period``: "epoch", or a
    number of batches. ``checkpoint_epochs``: so often it saves; 0: at a pause and at the end only. ``initial_epoch`` of
    ``fit`` counts only without a checkpoint. All ranks make one. Raises InvalidInput.
    """

    def __init__(
        self,
        core_context: Context,
        checkpoint: Optional[str],
        continue_id: Union[int, str],
        *,
        train_metrics_report_period: Union[int, str] = "epoch",
        checkpoint_epochs: int = 1,
    ) -> None:
        super().__init__()
        _check(checkpoint, continue_id, train_metrics_report_period, checkpoint_epochs)
        self._core = core_context
        self._checkpoint = checkpoint
        self._continue_id = continue_id
        self._period = train_metrics_report_period
        self._checkpoint_epochs = checkpoint_epochs
        self._chief = core_context.distributed.rank == 0
        self._reports = LoopReports(core_context)
        #: Steps of the optimizer, and of those what was done before this epoch.
        self._steps = self._steps_before = 0
        #: Epochs that are trained, and of those what is in the last checkpoint.
        self._epochs = self._epochs_saved = 0

    # What a subclass may replace.

    def save_model(self, model: keras.Model, path: str, distributed: DistributedContext) -> None:
        """Save what is trained, to ``path`` or with endings of its own behind it. All ranks call it."""
        if distributed.rank == 0:
            model.save_weights(path + _ENDING)

    def load_model(self, model: keras.Model, path: str, distributed: DistributedContext) -> None:
        """Load what `save_model` saved. All ranks call it."""
        model.load_weights(path + _ENDING)

    # What Keras calls.

    def set_params(self, params: dict[str, Any]) -> None:
        self.params = params

    def on_train_begin(self, logs: Optional[dict[str, Any]] = None) -> None:
        compare_with_search(self._core.info, self.params["epochs"], "epochs")
        if self._checkpoint is not None:
            self._load(self._checkpoint)
            self._checkpoint = None

    def on_epoch_begin(self, epoch: int, logs: Optional[dict[str, Any]] = None) -> None:
        self._epochs = epoch
        self._steps_before = self._steps

    def on_train_batch_end(self, batch: int, logs: Optional[dict[str, Any]] = None) -> None:
        before, self._steps = self._steps, self._steps_before + batch + 1
        beats.OWN.at(self._steps)
        if isinstance(self._period, int) and before // self._period != self._steps // self._period:
            self._reports.report("training", self._steps, self._epochs, logs or {})

    def on_test_end(self, logs: Optional[dict[str, Any]] = None) -> None:
        trains = self._steps > self._steps_before
        self._reports.report("validation", self._steps, self._epochs + trains, logs or {})

    def on_epoch_end(self, epoch: int, logs: Optional[dict[str, Any]] = None) -> None:
        self._epochs, logs = epoch + 1, logs or {}
        self._steps_before = self._steps
        if self._period == "epoch":
            training = {name: value for name, value in logs.items() if not name.startswith("val_")}
            self._reports.report("training", self._steps, self._epochs, training)
        if self._chief:
            self._core.train.report_progress(min(1.0, self._epochs / self.params["epochs"]))
            self._show(logs)
        if self._checkpoint_epochs and self._epochs % self._checkpoint_epochs == 0:
            self._save()
        if self._core.preempt.should_preempt():
            self.model.stop_training = True

    def on_train_end(self, logs: Optional[dict[str, Any]] = None) -> None:
        if self._epochs > self._epochs_saved:
            self._save()
        self.model._initial_epoch = None

    # Nothing of the progress bar, whose place this takes.

    def on_test_begin(self, logs: Optional[dict[str, Any]] = None) -> None: ...

    def on_test_batch_end(self, batch: int, logs: Optional[dict[str, Any]] = None) -> None: ...

    def on_predict_begin(self, logs: Optional[dict[str, Any]] = None) -> None: ...

    def on_predict_batch_end(self, batch: int, logs: Optional[dict[str, Any]] = None) -> None: ...

    def on_predict_end(self, logs: Optional[dict[str, Any]] = None) -> None: ...

    def _show(self, logs: dict[str, Any]) -> None:
        values = ", ".join(f"{name} {float(value):.4g}" for name, value in logs.items())
        if self.params.get("verbose"):
            sys.stdout.write(f"epoch {self._epochs} of {self.params['epochs']}: {values}\n")
            sys.stdout.flush()

    # Checkpoints.

    def _save(self) -> None:
        ranks = self._core.distributed
        randoms = ranks.gather(random_state())
        about = {
            "steps_completed": self._steps,
            "epochs": self._epochs,
            "framework": f"keras-{keras.__version__}",
        }
        with self._core.checkpoint.store_path(about, shard=True) as (directory, _):
            self.save_model(self.model, str(directory / WEIGHTS), ranks)
            if self._chief:
                state = {
                    "continue_id": self._continue_id,
                    "epochs": self._epochs,
                    "steps": self._steps,
                    "random_states": randoms,
                }
                (directory / STATE).write_text(json.dumps(state))
        self._epochs_saved = self._epochs

    def _load(self, checkpoint: str) -> None:
        ranks = self._core.distributed
        with self._core.checkpoint.restore_path(checkpoint) as directory:
            state = _state_in(directory, checkpoint)
            goes_on = state.get("continue_id") == self._continue_id
            optimizer = self.model.optimizer
            fresh = [] if goes_on or optimizer is None else [keras.ops.copy(each) for each in optimizer.variables]
            self.load_model(self.model, str(directory / WEIGHTS), ranks)
        if not goes_on:
            # The weights alone: the optimizer begins anew.
            for variable, value in zip(optimizer.variables if fresh else (), fresh):
                variable.assign(value)
            return
        self._epochs = self._epochs_saved = state["epochs"]
        self._steps = self._steps_before = state["steps"]
        self.model._initial_epoch = state["epochs"]
        if len(state["random_states"]) == ranks.size:
            restore_random_state(state["random_states"][ranks.rank])
        else:
            say(
                f"the checkpoint is of {len(state['random_states'])} ranks, these are {ranks.size}: other random states"
            )


class TensorBoard(keras.callbacks.TensorBoard):
    """That of Keras, which writes where TensorBoard files of this trial are kept; ``log_dir`` is of no account.

    It needs TensorFlow. What this trial reports is written without it.
    """

    def __init__(self, core_context: Context, *args: Any, **kwargs: Any) -> None:
        kwargs["log_dir"] = str(core_context.train.get_tensorboard_path())
        super().__init__(*args, **kwargs)


def _check(checkpoint: object, continue_id: object, period: object, checkpoint_epochs: object) -> None:
    """Raises InvalidInput."""
    if not isinstance(checkpoint, (str, type(None))):
        raise InvalidInput(f"checkpoint must be the id of one, or None, not {checkpoint!r}")
    if isinstance(continue_id, bool) or not isinstance(continue_id, (int, str)):
        raise InvalidInput(f"continue_id must be a number or a text that names this training, not {continue_id!r}")
    if period != "epoch" and (isinstance(period, bool) or not isinstance(period, int) or period < 1):
        raise InvalidInput(f'train_metrics_report_period must be "epoch" or a number of batches, not {period!r}')
    if isinstance(checkpoint_epochs, bool) or not isinstance(checkpoint_epochs, int) or checkpoint_epochs < 0:
        raise InvalidInput(f"checkpoint_epochs must be a number of epochs, or 0, not {checkpoint_epochs!r}")


def _state_in(directory: Path, checkpoint: str) -> dict[str, Any]:
    """Raises InvalidInput."""
    try:
        state: dict[str, Any] = json.loads((directory / STATE).read_text())
    except FileNotFoundError:
        held = names_in(directory)
        raise InvalidInput(
            f"checkpoint {checkpoint} is none of this callback: there is no {STATE} in it, but {held}. Begin anew with "
            "checkpoint=None, and load what you need of it yourself"
        ) from None
    return state
