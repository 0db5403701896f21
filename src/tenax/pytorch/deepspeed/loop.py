"""The loop of `tenax.pytorch.loop` over engines of DeepSpeed, and how their parts become a checkpoint.

A batch is a step of the optimizer: as many micro-batches as DeepSpeed accumulates gradients of. All ranks save and load
together, each its part; beside the engines stands what a checkpoint of a `PyTorchTrial` has, but for what was trained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from tenax.core.sharding import together
from tenax.errors import InvalidInput
from tenax.pytorch import state as states
from tenax.pytorch.data import begin_pass
from tenax.pytorch.loop import TrainingLoop
from tenax.pytorch.saving import CheckpointSaver

_NOTHING_TRAINED: dict[str, Any] = {"models_state_dict": [], "optimizers_state_dict": [], "gradients": []}


class EngineSaver(CheckpointSaver):
    """Saves of engines: the training waits."""

    def save(self, position: states.Position, *, leaving: bool) -> None:
        trial: Any = self._trial
        randoms: Any = self._ranks.gather(states.random_state(self._context.device))
        about = {"steps_completed": position.batches_trained, "framework": f"torch-{torch.__version__}"}
        with self._context.core.checkpoint.store_path(about, shard=True) as (directory, storage_id):
            together(self._ranks, lambda: trial.save(self._context, directory))
            if self._chief:
                state = states.collect(self._context, self._callbacks, position, randoms, _NOTHING_TRAINED)
                states.save(state, directory)
                states.described(self._context, self._trial, position).write(directory)
                for callback in self._callbacks.values():
                    callback.on_checkpoint_end(str(directory))
                    callback.on_checkpoint_write_end(str(directory))
        self._announce(storage_id)


class EngineLoop(TrainingLoop):
    """One call of the `Trainer` of engines. Raises InvalidInput for a trial that cannot be trained."""

    def _check(self) -> None:
        context: Any = self._context
        if not context.models:
            raise InvalidInput("the trial has no engine: give each to context.wrap_model_engine() in its __init__")
        if context.experimental.scaler is not None:
            raise InvalidInput("mixed precision is in DeepSpeed's configuration (bf16, fp16), not in experimental")
        if context.evaluates_in_step and not self._by_batch:
            raise InvalidInput(
                "evaluate_full_dataset() runs on one rank, and this model is shared out among ranks: write "
                "evaluate_batch()"
            )

    def _make_saver(self) -> CheckpointSaver:
        return EngineSaver(self._context, self._callbacks, self._trial, in_background=False)

    def _read_models(self, directory: Path, state: dict[str, Any]) -> None:
        trial: Any = self._trial
        saved, now = len(state.get("tenax", {}).get("random_states", ())), self._ranks.size
        try:
            trial.load(self._context, directory)
        except Exception as error:
            if saved in (0, now):
                raise
            raise InvalidInput(
                f"the checkpoint is of {saved} ranks, and these are {now}: go on with as many (slots_per_trial). What "
                f"DeepSpeed says: {error}"
            ) from error

    def _restore(self, state: dict[str, Any], same_trial: bool) -> None:
        states.restore_beside(state, self._context, self._callbacks, same_trial=same_trial)

    def _take(self, batches: Iterator[Any]) -> Any:
        return batches if self._context.data_share().loads else None

    def _call_train(self, batch: Any, epoch: int, index: int) -> list[Any]:
        trial, context = self._trial, self._context
        train: Callable[..., Any] = trial.train_batch  # type: ignore[attr-defined]
        return [train(batch, epoch, index) for _ in range(context.calls_per_batch())]  # type: ignore[attr-defined]

    def _evaluations(self) -> Iterator[tuple[Any, bool]]:
        trial, context = self._trial, self._context
        evaluate: Callable[..., Any] = trial.evaluate_batch  # type: ignore[attr-defined]
        batches = begin_pass(self._validation_loader) if self._validation_loader is not None else None
        pipeline: bool = context.use_pipeline_parallel  # type: ignore[attr-defined]
        if context.evaluates_in_step and not pipeline and self._ranks.size == context.data_share().size:  # type: ignore[attr-defined]
            assert batches is not None
            for index, (batch, own) in enumerate(self._in_step(batches)):
                with nullcontext() if own else context.reducers_kept():
                    given = evaluate(iter([batch]), index)
                yield given, own
            return
        for index in range(self._evaluation_calls()):
            try:
                given = evaluate(batches, index)
            except StopIteration:
                raise InvalidInput(
                    f"evaluate_batch() is called once a batch of the validation data, and call {index + 1} had none "
                    "left: take one from the iterator each time"
                ) from None
            yield given, True

    def _evaluation_calls(self) -> int:
        """Of this rank; of ranks that share a model, as many as each has data for."""
        context: Any = self._context
        own, taken = None, context.num_micro_batches_per_slot if context.use_pipeline_parallel else 1
        if self._validation_loader is not None:
            try:
                own = len(self._validation_loader) // taken
            except TypeError:
                raise InvalidInput("the validation data loader has no length: give its data set a __len__") from None
        if not context.evaluates_in_step:
            return own or 0
        return min((each for each in self._ranks.allgather(own) if isinstance(each, int)), default=0)
