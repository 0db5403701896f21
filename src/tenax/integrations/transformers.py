"""`DetCallback`: a `transformers.Trainer` as a trial.

::

    args = transformers.TrainingArguments("out", ...)
    with core.init() as context:
        callback = DetCallback(context, args)
        trainer = transformers.Trainer(model=model, args=args, callbacks=[callback], ...)
        trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)

Rules:
- The Trainer saves, and what it saved is stored. It saves when its arguments say so, at the end, and before it leaves.
- It leaves between two steps of the optimizer, as soon as it is asked to. An evaluation or a checkpoint that belongs to
  the end of an epoch is not made up within one: the run that goes on makes it where it belongs.
- A checkpoint has the Trainer's own folder, ``checkpoint-<step>``, as those of Determined have.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Optional

import transformers

from tenax.core import Context
from tenax.core.searcher import compare_with_search
from tenax.core.spool import say
from tenax.errors import InvalidInput
from tenax.integrations.reporting import LoopReports
from tenax.integrations.stopping import StopQuestion
from tenax.integrations.trainer_weights import restore_weights

#: Of a log: speeds, and the epoch, which is reported unrounded.
_LEFT_OUT = ("_runtime", "_per_second", "_compilation_time", "_model_preparation_time")
_FOLDER = "checkpoint-"
USER_DATA = "my_data.json"


class DetCallback(transformers.TrainerCallback):
    """Reports what a Trainer logs and how far it is, stores its checkpoints, and stops it when the cluster asks.

    ``core_context``: of ``core.init()``. ``args``: those that the Trainer gets; where this trial goes on,
    ``args.resume_from_checkpoint`` is set, and the checkpoint lies in ``args.output_dir``. ``filter_metrics``: report
    only metrics whose names contain one of these, and what the search needs. ``user_data``: is in each checkpoint, as
    ``my_data.json`` and in its metadata. All ranks make one. Raises InvalidInput.
    """

    def __init__(
        self,
        core_context: Context,
        args: transformers.TrainingArguments,
        filter_metrics: Optional[list[str]] = None,
        user_data: Optional[dict[str, Any]] = None,
    ) -> None:
        super().__init__()
        self.core_context = core_context
        self.filter_metrics = filter_metrics
        self.user_data = user_data
        _require_same_ranks(core_context, args)
        self._chief = core_context.distributed.rank == 0
        self._question = StopQuestion(core_context)
        self._reports = LoopReports(core_context)
        #: The step of the last checkpoint, and of the last evaluation, of this process.
        self._saved = self._evaluated = -1
        #: This call of train() has trained a step; the cluster has asked to stop.
        self._trains = self._leaves = False
        if args.max_steps > 0:
            compare_with_search(core_context.info, args.max_steps, "batches")
        else:
            compare_with_search(core_context.info, int(args.num_train_epochs), "epochs")
        if args.save_only_model:
            say("warning: save_only_model leaves the optimizer out of checkpoints: a paused run is not what it was")
        self._resumes = False
        self.load_last_checkpoint(args)

    def load_last_checkpoint(self, args: transformers.TrainingArguments) -> None:
        """Get the checkpoint that this trial goes on from, and name it in ``args.resume_from_checkpoint``."""
        storage_id = self.core_context.latest_checkpoint
        if storage_id is None:
            return
        if getattr(args, "overwrite_output_dir", False):  # of Transformers 4
            say("overwrite_output_dir is set: the training begins anew, and not from the trial's checkpoint")
            return
        names: set[str] = set()

        def select(path: str) -> bool:
            name = path.partition("/")[0]
            names.add(name)
            return _is_folder(name)

        self.core_context.checkpoint.download(storage_id, args.output_dir, selector=select)
        # Who downloads on this machine has seen the names.
        folders: Any = self.core_context.distributed.broadcast_local(sorted(names))
        steps = [int(name[len(_FOLDER) :]) for name in folders if _is_folder(name)]
        if not steps:
            raise InvalidInput(
                f"checkpoint {storage_id} is none of a Trainer: it has no folder {_FOLDER}<step>, but "
                f"{', '.join(folders[:10])}. Begin anew, or load it yourself without DetCallback"
            )
        args.resume_from_checkpoint = os.path.join(args.output_dir, f"{_FOLDER}{max(steps)}")
        self._resumes = True

    # What the Trainer calls.

    def on_train_begin(
        self,
        args: transformers.TrainingArguments,
        state: transformers.TrainerState,
        control: transformers.TrainerControl,
        **kwargs: Any,
    ) -> None:
        self._trains = self._leaves = False
        self._report_progress(state)
        if self._resumes and state.global_step > 0:
            restore_weights(kwargs.get("model"), args.resume_from_checkpoint)
        elif self._resumes and self._chief:
            say(
                "warning: this run was paused or restarted and begins anew: to go on where it stood, call "
                "trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)"
            )

    def on_train_end(
        self,
        args: transformers.TrainingArguments,
        state: transformers.TrainerState,
        control: transformers.TrainerControl,
        **kwargs: Any,
    ) -> None:
        if _best_folder(args, state):
            restore_weights(kwargs.get("model"), state.best_model_checkpoint)

    def on_log(
        self,
        args: transformers.TrainingArguments,
        state: transformers.TrainerState,
        control: transformers.TrainerControl,
        logs: Optional[dict[str, Any]] = None,
        **kwargs: Any,
    ) -> None:
        """Report it: names that begin with ``eval`` as a validation, with ``test`` as the group "test"."""
        group, step = _group_of(logs or {}), state.global_step
        if logs and "train_runtime" in logs and (self._leaves or not self._trains or self._reports.has(group, step)):
            # The summary of a call of train(): not of the last step, and of a part where it was paused.
            return
        self._reports.report(group, step, state.epoch or 0, self._chosen(logs or {}))

    def on_evaluate(
        self,
        args: transformers.TrainingArguments,
        state: transformers.TrainerState,
        control: transformers.TrainerControl,
        **kwargs: Any,
    ) -> None:
        self._evaluated = state.global_step

    def on_step_end(
        self,
        args: transformers.TrainingArguments,
        state: transformers.TrainerState,
        control: transformers.TrainerControl,
        **kwargs: Any,
    ) -> None:
        self._trains = True
        self._report_progress(state)
        # What ends an epoch asks there, and what ends the training has no need to.
        if _is_last(state) or _ends_epoch(state) or not self._question.asked_to_stop(state.global_step):
            return
        self._leaves = True
        control.should_log = control.should_save = control.should_training_stop = True

    def on_epoch_end(
        self,
        args: transformers.TrainingArguments,
        state: transformers.TrainerState,
        control: transformers.TrainerControl,
        **kwargs: Any,
    ) -> None:
        if self._leaves:
            # Within the epoch: what belongs to its end is done there.
            control.should_log = control.should_evaluate = control.should_save = False
            return
        if _is_last(state) or control.should_training_stop:
            evaluates = args.eval_strategy != "no" and self._evaluated != state.global_step
            control.should_evaluate = control.should_evaluate or evaluates
            control.should_save = self._saved != state.global_step or control.should_save
        elif self._question.asked_to_stop(state.global_step, always=True):
            self._leaves = True
            control.should_save = control.should_training_stop = True

    def on_save(
        self,
        args: transformers.TrainingArguments,
        state: transformers.TrainerState,
        control: transformers.TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Store what the Trainer has saved, on all ranks."""
        context, folder = self.core_context, f"{_FOLDER}{state.global_step}"
        ranks, path = context.distributed, os.path.join(args.output_dir, folder)
        if self._chief and self.user_data is not None:
            self._on_save_user_data(path)
        folders = {folder, _best_folder(args, state)}
        # Each rank has written what is its own; one of each machine stores it all.
        ranks.allgather(None)
        context.checkpoint.upload(
            args.output_dir if ranks.local_rank == 0 else None,
            self._about(state) if self._chief else None,
            shard=True,
            selector=lambda name: name.partition("/")[0] in folders,
        )
        self._saved = state.global_step

    def _on_save_user_data(self, save_path: str) -> None:
        """Write ``user_data`` into a checkpoint's folder; a subclass may write what it likes."""
        with open(os.path.join(save_path, USER_DATA), "w", encoding="utf-8") as file:
            json.dump(self.user_data, file, indent=2)

    def _report_progress(self, state: transformers.TrainerState) -> None:
        if self._chief and state.max_steps > 0:
            self.core_context.train.report_progress(min(1.0, state.global_step / state.max_steps))

    def _about(self, state: transformers.TrainerState) -> dict[str, Any]:
        """The metadata of a checkpoint."""
        info = self.core_context.info
        return {
            "steps_completed": state.global_step,
            "epochs": state.epoch or 0,
            "framework": f"transformers-{transformers.__version__}",
            **({"trial_id": info.trial.trial_id} if info is not None else {}),
            **({"user_data": self.user_data} if self.user_data is not None else {}),
        }

    def _chosen(self, logs: Mapping[str, Any]) -> dict[str, Any]:
        """What is reported of a log."""
        kept = {name: value for name, value in logs.items() if name != "epoch" and not name.endswith(_LEFT_OUT)}
        if self.filter_metrics is None:
            return kept
        info = self.core_context.info
        searcher: Any = info.trial._config.get("searcher") if info is not None else None
        needed = [searcher.get("metric"), searcher.get("time_metric")] if isinstance(searcher, dict) else []
        parts = [*self.filter_metrics, *filter(None, needed)]
        return {name: value for name, value in kept.items() if any(part in name for part in parts)}


def _require_same_ranks(context: Context, args: transformers.TrainingArguments) -> None:
    """Raises InvalidInput."""
    size, own = context.distributed.size, int(args.world_size)
    if size != own:
        raise InvalidInput(
            f"the Trainer runs in {own} processes, and core.init() was told of {size}: start the script with "
            "python3 -m tenax.launch.torch_distributed, and call core.init(distributed="
            "core.DistributedContext.from_torch_distributed())"
        )


def _group_of(logs: Mapping[str, Any]) -> str:
    for prefix, group in (("eval", "validation"), ("test", "test")):
        if any(name.startswith(prefix) for name in logs):
            return group
    return "training"


def _is_last(state: transformers.TrainerState) -> bool:
    return bool(state.global_step >= state.max_steps)


def _ends_epoch(state: transformers.TrainerState) -> bool:
    """The Trainer counts epochs in parts, and the last one makes them whole."""
    return state.epoch is not None and float(state.epoch).is_integer()


def _is_folder(name: str) -> bool:
    return name.startswith(_FOLDER) and name[len(_FOLDER) :].isdigit()


def _best_folder(args: transformers.TrainingArguments, state: transformers.TrainerState) -> str:
    """The checkpoint that the Trainer loads in the end; empty where it loads none. A run that goes on elsewhere has it
    from the one that it goes on from."""
    best = state.best_model_checkpoint
    return os.path.basename(best) if args.load_best_model_at_end and best else ""
