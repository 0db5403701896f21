"""The training loop: batch by batch, with what is due after each.

    TrainingLoop.run -> _train -> one batch -> due: report, validate, checkpoint -> asked to stop: checkpoint and leave

All ranks run it in step: whatever one of them decides (the length of an epoch, that it is time to look whether to stop,
that a validation was the best) it has from the chief.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any, Optional

import torch
from torch.utils import data

from tenax.core.preempt import NextLook
from tenax.core.spool import say
from tenax.errors import InvalidInput
from tenax.pytorch import metrics as of
from tenax.pytorch import state as states
from tenax.pytorch.callback import PyTorchCallback
from tenax.pytorch.context import PyTorchTrialContext, apart
from tenax.pytorch.data import DataLoader, begin_pass
from tenax.pytorch.saving import CheckpointSaver
from tenax.pytorch.trial import TrialClass, evaluates_batches
from tenax.pytorch.units import Batch, Epoch, FitPlan, TrainUnit

_EMPTY = (
    "the training data is empty: build_training_data_loader() gave no batch. Its data set has no samples, or fewer "
    "than a batch where it drops the last one (drop_last)"
)


class TrainingLoop:
    """One call of `Trainer.fit`. Raises InvalidInput for a trial that cannot be trained."""

    def __init__(self, trial: TrialClass, context: PyTorchTrialContext, plan: FitPlan) -> None:
        self._trial = trial
        self._context = context
        self._plan = plan
        self._core = context.core
        self._ranks = context.distributed
        self._chief = context.distributed.rank == 0
        self._callbacks = _callbacks_of(trial)
        self._saver = self._make_saver()
        self._by_batch = evaluates_batches(trial)
        self._position = states.Position()
        #: Of the batches since the last report.
        self._collected: list[dict[str, Any]] = []
        self._validation_loader: Optional[data.DataLoader[Any]] = None
        self._look = NextLook()
        #: Whether to look, after the next step of the optimizers, whether to stop.
        self._asks_next = False
        #: Nothing is due after fewer batches than these: each step asks for this number alone.
        self._quiet_until = 0
        self._reports = False
        self._check()

    # What another family of trials does otherwise.

    def _check(self) -> None:
        """Raises InvalidInput for a trial that cannot be trained."""
        context = self._context
        for name, wrapped in (("model", context.models), ("optimizer", context.optimizers)):
            if not wrapped:
                raise InvalidInput(f"the trial has no {name}: give each to context.wrap_{name}() in its __init__")
        if context.shards and not self._by_batch:
            raise InvalidInput(
                "evaluate_full_dataset() runs on one rank, and a sharded model is on all: write evaluate_batch()"
            )

    def _make_saver(self) -> CheckpointSaver:
        return CheckpointSaver(self._context, self._callbacks, self._trial, self._plan.async_checkpoints)

    def _read_models(self, directory: Path, state: dict[str, Any]) -> None:
        """What of a checkpoint is read while its files are there, and not restored later."""

    def _restore(self, state: dict[str, Any], same_trial: bool) -> None:
        states.restore(state, self._context, self._callbacks, same_trial=same_trial)

    def _take(self, batches: Iterator[Any]) -> Any:
        """What `_call_train` is given of the training data."""
        return next(batches)

    def _call_train(self, batch: Any, epoch: int, index: int) -> list[Any]:
        """What the trial's ``train_batch`` gives, once or several times."""
        trial: Any = self._trial
        if self._context.experimental.auto_to_device:
            batch = self._context.to_device(batch)
        return [trial.train_batch(batch=batch, epoch_idx=epoch, batch_idx=index)]

    def _evaluations(self) -> Iterator[tuple[Any, bool]]:
        """What the trial's ``evaluate_batch`` gives, batch by batch, and whether it counts."""
        trial: Any = self._trial
        evaluate: Callable[..., Any] = trial.evaluate_batch
        takes_index = "batch_idx" in inspect.signature(evaluate).parameters
        assert self._validation_loader is not None
        batches = begin_pass(self._validation_loader)
        for index, (batch, own) in enumerate(self._in_step(batches) if self._context.shards else _all_own(batches)):
            moved = self._context.to_device(batch) if self._context.experimental.auto_to_device else batch
            with nullcontext() if own else self._context.reducers_kept():
                given = evaluate(batch=moved, batch_idx=index) if takes_index else evaluate(batch=moved)
            yield given, own

    def run(self) -> None:
        """Until the length is reached, or somebody asks to stop; the last state is in a checkpoint then."""
        with ExitStack() as stack:
            for callback in self._callbacks.values():
                stack.callback(callback.on_trial_shutdown)
            state, same_trial = self._read()
            for callback in self._callbacks.values():
                callback.on_trial_startup(self._position.batches_trained, self._plan.latest_checkpoint)
            batches = self._load_data(stack)
            stack.callback(self._context.close_tensorboard_writer)
            if state is not None:
                self._restore(state, same_trial)
                del state
            for callback in self._callbacks.values():
                callback.on_training_start()
            if self._context.profiler is not None:
                stack.enter_context(self._context.profiler)
            self._train(batches)

    # Before the first batch.

    def _read(self) -> tuple[Optional[dict[str, Any]], bool]:
        """The checkpoint to go on from, and whether it is of this trial; where that stood is where this stands."""
        trial_id = self._context.get_trial_id()
        state, position = None, None
        if self._plan.latest_checkpoint is not None:
            with self._core.checkpoint.restore_path(self._plan.latest_checkpoint) as directory:
                state = states.read(directory)
                position = states.position_of(directory, state, trial_id)
                self._read_models(directory, state)
        same_trial = position is not None
        self._position = position or states.Position(trial_id=trial_id)
        if self._position.shuffle_seed is None:
            info = self._core.info
            own = info.trial.trial_seed if info is not None else torch.initial_seed()
            self._position.shuffle_seed = int(str(self._ranks.broadcast(own)))
        return state, same_trial

    def _load_data(self, stack: ExitStack) -> Iterator[Any]:
        """Batches of this rank, without end, from the first that was not trained; ``stack`` ends who loads them."""
        share = self._context.data_share()
        training = self._trial.build_training_data_loader() if share.loads else None
        loader, length = None, None
        if share.loads:
            skip = self._skipped(training) * share.micro_batches
            loader = self._real(training, "training", repeat=True, skip=skip, ranks=share.size, rank=share.rank)
            try:
                length = len(loader)
            except TypeError:
                length = sys.maxsize
        self._set_epoch_length(length, share.micro_batches)
        validation = self._trial.build_validation_data_loader() if share.loads else None
        if share.loads and (self._by_batch or self._chief):
            ranks, rank = (share.size, share.rank) if self._by_batch else (1, 0)
            self._validation_loader = self._real(validation, "validation", ranks=ranks, rank=rank)
        if loader is None:
            return iter(())
        # Made before states are restored: its making draws a random number.
        batches = begin_pass(loader)
        if isinstance(training, DataLoader) and hasattr(batches, "_shutdown_workers"):
            # An error holds them as long as it is held, in a notebook for good; found by the garbage collector later,
            # each is waited for five seconds.
            stack.callback(batches._shutdown_workers)
        return _without_end(loader, batches)

    def _set_epoch_length(self, own: Optional[int], micro_batches: int) -> None:
        """``own``: batches of this rank's loader in a pass. Raises InvalidInput."""
        # Of the chief, or the first rank with a loader: a rank's share of one batch is none, until it is repeated.
        counts: list[Any] = self._ranks.allgather(own)
        given = next((each for each in counts if each is not None), 0)
        if given == 0:
            raise InvalidInput(_EMPTY)
        length = given if given == sys.maxsize else given // micro_batches
        if length == 0:
            raise InvalidInput(
                f"an epoch has {given} micro-batches for each rank, and a step of the optimizer takes {micro_batches}: "
                "lower gradient_accumulation_steps, or the size of a micro-batch"
            )
        self._context.epoch_length = length
        plan = self._plan
        for unit in (plan.length, plan.validation, plan.checkpoint, plan.reporting):
            if length == sys.maxsize and isinstance(unit, Epoch):
                raise InvalidInput(
                    f"fit() is given {unit!r}, and the training data loader has no length: give all lengths and "
                    "periods in batches, pytorch.Batch(...), or give the data set a __len__"
                )

    def _skipped(self, training: object) -> int:
        """Number of batches to leave out, however many records those had that were trained."""
        trained, size = self._position.batches_trained, getattr(training, "batch_size", None)
        share = self._context.data_share()
        now = size * share.size * share.micro_batches if isinstance(size, int) else 0
        before = self._position.global_batch_size
        self._position.global_batch_size = now
        if not trained or not before or not now or before == now:
            return trained
        skip, rest = divmod(trained * before, now)
        say(f"batches have {now} records now, and had {before}: {skip} of today's are taken as trained")
        if rest:
            say(f"warning: {rest} records are trained twice: choose a batch size that divides {trained * before}")
        return skip

    def _real(
        self, given: object, purpose: str, *, ranks: int, rank: int, repeat: bool = False, skip: int = 0
    ) -> data.DataLoader[Any]:
        if isinstance(given, DataLoader):
            assert self._position.shuffle_seed is not None
            given.seed_shuffle(self._position.shuffle_seed + (purpose != "training"))
            return given.get_data_loader(repeat=repeat, skip=skip, num_replicas=ranks, rank=rank)
        if self._context.experimental.checks_datasets:
            raise InvalidInput(
                f"build_{purpose}_data_loader() gave a {type(given).__name__}: give a pytorch.DataLoader, which takes "
                "the same arguments, is shared out among ranks and goes on where a run was paused. If yours does so by "
                "itself, call context.experimental.disable_dataset_reproducibility_checks() in __init__"
            )
        if not hasattr(given, "__iter__"):
            raise InvalidInput(f"build_{purpose}_data_loader() must return a data loader, not {given!r}")
        return given  # type: ignore[return-value]

    # Training.

    def _train(self, batches: Iterator[Any]) -> None:
        plan, position = self._plan, self._position
        if plan.validates_first and position.batches_trained == 0:
            self._validate()
        self._set_training()
        self._reports = self._context.data_share().reports
        while position.batches_trained < self._quiet_until or not self._complete():
            self._train_batch(self._take(batches))
            if position.batches_trained >= self._quiet_until and self._after_batch():
                self._saver.settle()
                return
        if position.last_val != position.batches_trained:
            self._validate()
        if position.last_ckpt != position.batches_trained:
            self._checkpoint()
        self._saver.settle()
        if self._chief and not plan.test_mode:
            self._core.train.report_progress(1.0)

    def _train_batch(self, batch: Any) -> None:
        context, index = self._context, self._position.batches_trained
        context.batch_idx = index
        epoch_length = self._epoch_length
        epoch, within = divmod(index, epoch_length)
        if within == 0:
            for callback in self._callbacks.values():
                callback.on_training_epoch_start(epoch)
        given = self._call_train(batch, epoch, index)
        if context.experimental.auto_amp and context.steps_now():
            context.experimental.scaler.update()
        for scheduler in context.lr_schedulers:
            for _ in range(scheduler.due(index, epoch_length, context.aggregation_frequency)):
                scheduler.step()
        if context.profiler is not None:
            context.profiler.step()
        if self._reports:
            self._collected += [of.of_batch(each, "train_batch") for each in given]
        self._position.batches_trained = index + 1
        self._core.train.beat(index + 1)
        if within == epoch_length - 1:
            self._position.epochs_trained = epoch + 1
            for callback in self._callbacks.values():
                callback.on_training_epoch_end(epoch)

    def _after_batch(self) -> bool:
        """Do what is due; whether to leave."""
        stops = self._do_what_is_due()
        batches = self._position.batches_trained
        due = self._plan.next_due(batches, self._epoch_length)
        self._quiet_until = 0 if self._complete() or self._asks_next else min(due, self._look.due_at)
        return stops

    def _do_what_is_due(self) -> bool:
        plan, position = self._plan, self._position
        reports, validates = self._ends(plan.reporting), self._ends(plan.validation)
        saves = self._ends(plan.checkpoint)
        # Not between batches that make a step together: what they gathered is in no checkpoint of several ranks.
        self._asks_next |= reports or validates or saves or self._look.is_due(position.batches_trained)
        may_stop = self._asks_next and self._context.steps_now()
        asks = may_stop and not (reports or validates or saves)
        if not (reports or validates or saves or asks or self._complete()):
            return False
        self._saver.settle(wait=False)
        stops = self._asked_to_stop() if asks else False
        if reports or validates or saves or stops or self._complete():
            self._report_training()
        if validates and position.last_val != position.batches_trained:
            self._validate()
            self._set_training()
        if saves and position.last_ckpt != position.batches_trained:
            self._checkpoint()
        if may_stop and not asks:
            stops = self._asked_to_stop()
        if stops and position.last_ckpt != position.batches_trained:
            self._checkpoint(leaving=True)
        return stops

    def _asked_to_stop(self) -> bool:
        self._asks_next = False
        requested = self._context.get_stop_requested()
        if self._ranks.size > 1:
            requested = any(self._ranks.allgather(requested))
        stops = self._core.preempt.should_preempt() or requested
        self._look.was_at(self._position.batches_trained, lambda next_look: int(str(self._ranks.broadcast(next_look))))
        return stops

    def _report_training(self) -> None:
        batches = of.plain(self._collected)
        self._collected = []
        if self._ranks.size > 1:
            gathered: Any = self._ranks.gather(batches if self._context.data_share().reports else None)
            if self._chief:
                batches = of.of_all_ranks([each for each in gathered if each is not None])
        own = self._context.reduce_metrics(for_training=True)
        self._context.reset_reducers()
        average = {**of.averages(batches), **own}
        if self._callbacks and self._ranks.size > 1:
            average, batches = self._ranks.broadcast((average, batches))  # type: ignore[misc]
        for callback in self._callbacks.values():
            callback.on_training_workload_end(avg_metrics=average, batch_metrics=batches)
        if self._chief:
            self._show("trained", average)
            self._core.train.report_training_metrics(self._position.batches_trained, self._with_time(average), batches)
            self._core.train.report_progress(min(1.0, self._trained(self._plan.length) / self._length()))

    # Validation.

    def _validate(self) -> None:
        if self._chief:
            self._core.train.set_status("validating")
        self._context.reset_reducers()
        for model in self._context.models:
            model.eval()
        for callback in self._callbacks.values():
            callback.on_validation_start()
        # Training draws the same random numbers, however often it is validated.
        randoms = states.random_state(self._context.device)
        with torch.no_grad(), apart(self._context.models), self._core.train.evaluating():
            result = self._evaluate_batches() if self._by_batch else self._evaluate_all()
        states.set_random_state(randoms, self._context.device)
        result.update(self._context.reduce_metrics(for_training=False))
        if self._callbacks and self._ranks.size > 1:
            result = self._ranks.broadcast(result)  # type: ignore[assignment]
        for callback in self._callbacks.values():
            callback.on_validation_end(result)
        self._position.last_val = self._position.batches_trained
        best = False
        if self._chief:
            best = self._is_best(result)
            self._show("validated", result)
            self._core.train.report_validation_metrics(self._position.batches_trained, self._with_time(result))
        saves = self._plan.policy == "all" or bool(self._ranks.broadcast(best))
        self._context.reset_reducers()
        if saves and self._position.last_ckpt != self._position.batches_trained:
            self._checkpoint()

    def _evaluate_batches(self) -> dict[str, Any]:
        for callback in self._callbacks.values():
            callback.on_validation_epoch_start()
        outputs: list[dict[str, Any]] = []
        reports = self._context.data_share().reports
        for given, own in self._evaluations():
            if own and reports:
                outputs.append(of.of_batch(given, "evaluate_batch"))
            if self._plan.test_mode:
                break
        outputs = of.plain(outputs)
        for callback in self._callbacks.values():
            callback.on_validation_epoch_end(outputs)
        how = self._trial.evaluation_reducer()
        gathered: Any = self._ranks.gather((of.of_rank(outputs, how), len(outputs)))
        return of.validation(gathered, how) if self._chief else {}

    def _in_step(self, batches: Iterator[Any]) -> Iterator[tuple[Any, bool]]:
        """As many batches as the rank with the most has: who has fewer takes its last one again (or, without any, the
        chief's first), which does not count."""
        batch = nothing = object()
        while True:
            following = next(batches, nothing)
            there = self._ranks.allgather(following is not nothing)
            if not any(there):
                return
            if batch is nothing and not all(there):
                batch = self._ranks.broadcast(None if following is nothing else following)
            batch = batch if following is nothing else following
            yield batch, following is not nothing

    def _evaluate_all(self) -> dict[str, Any]:
        if not self._chief:
            return {}
        assert self._validation_loader is not None
        given = self._trial.evaluate_full_dataset(data_loader=self._validation_loader)
        return of.plain([of.of_batch(given, "evaluate_full_dataset")])[0]

    def _is_best(self, result: dict[str, Any]) -> bool:
        """Whether a checkpoint follows since no validation of the experiment was better. Raises InvalidInput."""
        if self._plan.policy != "best" or self._plan.metric is None:
            return False
        value = result.get(self._plan.metric)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            problem = "is no number" if self._plan.metric in result else f"is not among {', '.join(result)}"
            raise InvalidInput(f"the searcher's metric {self._plan.metric!r} {problem}: the validation must give it")
        before = self._core.train.get_experiment_best_validation()
        return before is None or (value < before if self._plan.smaller_is_better else value > before)

    # Checkpoints.

    def _checkpoint(self, *, leaving: bool = False) -> None:
        if self._chief:
            self._core.train.set_status("checkpointing")
        self._position.last_ckpt = self._position.batches_trained
        self._saver.save(self._position, leaving=leaving or self._complete())
        if self._chief:
            self._core.train.set_status("training")

    def _show(self, what: str, values: dict[str, Any]) -> None:
        """A line for who trains by hand: on a cluster there are lists and charts."""
        if self._core.info is None:
            shown = ", ".join(
                f"{name} {value:.4g}" for name, value in values.items() if isinstance(value, (int, float))
            )
            unit = "epoch" if isinstance(self._plan.length, Epoch) else "batch"
            sys.stdout.write(f"{unit} {self._trained(self._plan.length)} of {self._length()}: {what}: {shown}\n")
            sys.stdout.flush()

    # Where it stands.

    @property
    def _epoch_length(self) -> int:
        assert self._context.epoch_length is not None
        return self._context.epoch_length

    def _set_training(self) -> None:
        if self._chief:
            self._core.train.set_status("training")
        for model in self._context.models:
            model.train()

    def _trained(self, unit: TrainUnit) -> int:
        return self._position.epochs_trained if isinstance(unit, Epoch) else self._position.batches_trained

    def _length(self) -> int:
        assert isinstance(self._plan.length.value, int)
        return self._plan.length.value

    def _complete(self) -> bool:
        return self._trained(Batch(1) if self._plan.test_mode else self._plan.length) >= (
            1 if self._plan.test_mode else self._length()
        )

    def _ends(self, period: TrainUnit) -> bool:
        batches = self._position.batches_trained
        if isinstance(period, Epoch):
            return batches % self._epoch_length == 0 and period.should_stop(batches // self._epoch_length)
        return period.should_stop(batches)

    def _with_time(self, values: dict[str, Any]) -> dict[str, Any]:
        """With what searches count time in."""
        return {"batches": self._position.batches_trained, "epochs": self._position.epochs_trained, **values}


def _callbacks_of(trial: TrialClass) -> dict[str, PyTorchCallback]:
    """Raises InvalidInput."""
    given: object = trial.build_callbacks()
    callbacks = dict(given) if isinstance(given, Mapping) else None
    if callbacks is None or not all(isinstance(each, PyTorchCallback) for each in callbacks.values()):
        raise InvalidInput(
            'build_callbacks() must return a dict of instances of pytorch.PyTorchCallback, as {"mine": MyCallback()}, '
            f"not {given!r}"
        )
    return callbacks


def _all_own(batches: Iterator[Any]) -> Iterator[tuple[Any, bool]]:
    for batch in batches:
        yield batch, True


def _without_end(loader: data.DataLoader[Any], batches: Iterator[Any]) -> Iterator[Any]:
    """A loader of the trial's own ends after a pass, and is begun again."""
    while True:
        empty = True
        for batch in batches:
            empty = False
            yield batch
        if empty:
            raise InvalidInput(_EMPTY)
        batches = iter(loader)
