"""``core.init()``: the context in which a script trains. Standard library only, Python 3.9.

On a cluster (there are info files) the parts speak to the master; off it they are the same parts without one: reports
go to a local file, checkpoints to this user's data directory, and nobody asks the script to stop. Parts are made when
they are first used, so that a script pays for what it uses.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import TextIOWrapper

from tenax.core.hangs import beats
from tenax.core.info import ClusterInfo, get_cluster_info, run_dir
from tenax.core.local_runs.by_hand import RunByHand, declared_hparams, is_tracked, require_chief_known
from tenax.core.local_runs.files import LocalRun
from tenax.core.modes import EarlyExitReason, InvalidHP, PreemptMode, TensorboardMode
from tenax.core.spool import Spool, client_of, say, spool_of
from tenax.errors import InvalidInput, NotNow, TenaxError
from tenax.wire.spool_names import RUN_START
from tenax.wire.task_names import LEAVE_FILE, SHARED_FILES_IN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping
    from types import TracebackType
    from typing import NoReturn, Optional, Type, Union

    from tenax.core.checkpoint import CheckpointContext
    from tenax.core.distributed import DistributedContext
    from tenax.core.experimental import ExperimentalContext
    from tenax.core.local_runs.detached import Detached
    from tenax.core.local_runs.trace import ResumeTrace
    from tenax.core.local_runs.trial_at_cluster import TrialAtCluster
    from tenax.core.preempt import PreemptContext, PreemptionWatcher
    from tenax.core.profiler import ProfilerContext
    from tenax.core.searcher import SearcherContext
    from tenax.core.tensorboard import Tensorboard
    from tenax.core.train import TrainContext
    from tenax.jsonvalue import Json, JsonObject
    from tenax.storage.port import Storage

#: Seconds that a master has to answer before a script in detached mode goes on without its word.
_REGISTERED_S = 10.0
_LEVELS = {"debug": "DEBUG", "info": "INFO", "warn": "WARNING", "error": "ERROR"}


def init(
    *,
    distributed: Optional[DistributedContext] = None,
    checkpoint_storage: Optional[Union[str, Mapping[str, Json]]] = None,
    preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
    tensorboard_mode: TensorboardMode = TensorboardMode.AUTO,
    hparams: Optional[Union[Mapping[str, object], Namespace]] = None,
) -> Context:
    """The context of this task; use it as ``with core.init() as context``.

    ``distributed``: needed by a task with several slots or containers. ``checkpoint_storage``: a directory, or a
    ``checkpoint_storage`` section, instead of the experiment's. ``preempt_mode``: who asks whether to stop.
    ``tensorboard_mode``: whether reports become TensorBoard files by themselves. ``hparams``: what a run by hand trains
    with, as a dict or as argparse gives it; on a cluster what the search chose stands above it. `Context.hparams` has
    both. Raises InvalidInput, and TypeError for hyperparameters that are none.
    """
    _write_whole_lines()
    info = get_cluster_info()
    if (info is None or not info.is_trial) and is_tracked():
        # In a shell of the cluster, too.
        info = None
        require_chief_known(distributed is not None)
    if info is not None and distributed is None:
        _require_single_process(info)
    if info is not None and distributed is not None and "WORLD_SIZE" in os.environ and _apart(info, distributed):
        raise InvalidInput(_told_apart(info))
    if distributed is None:
        from tenax.core.distributed import DummyDistributedContext

        distributed = DummyDistributedContext()
    modes = PreemptMode(preempt_mode), TensorboardMode(tensorboard_mode)
    return Context(info, distributed, checkpoint_storage, *modes, hparams)


def detached_context(
    detached: Detached,
    distributed: Optional[DistributedContext],
    checkpoint_storage: Optional[Union[str, Mapping[str, Json]]],
    preempt_mode: PreemptMode,
    tensorboard_mode: TensorboardMode,
    hparams: Optional[Mapping[str, object]],
) -> Context:
    """That of a script in detached mode (`tenax.experimental.core_v2`). Raises InvalidInput, TypeError."""
    _write_whole_lines()
    require_chief_known(distributed is not None)
    if distributed is None:
        from tenax.core.distributed import DummyDistributedContext

        distributed = DummyDistributedContext()
    context = Context(None, distributed, checkpoint_storage, preempt_mode, tensorboard_mode, hparams, detached)
    context.meet_cluster(detached, _REGISTERED_S)
    return context


class Context:
    """The parts: ``train``, ``checkpoint``, ``preempt``, ``distributed``, ``profiler``, ``experimental``, ``info``, and
    ``alert``."""

    def __init__(
        self,
        info: Optional[ClusterInfo],
        distributed: DistributedContext,
        checkpoint_storage: Optional[Union[str, Mapping[str, Json]]],
        preempt_mode: PreemptMode,
        tensorboard_mode: TensorboardMode = TensorboardMode.AUTO,
        hparams: Optional[Union[Mapping[str, object], Namespace]] = None,
        detached: Optional[Detached] = None,
    ) -> None:
        #: What the cluster says that has started this task; None off the cluster.
        self._info = info
        self.distributed = distributed
        self._storage = checkpoint_storage
        self._client = client_of(info) if info is not None else None
        declared = declared_hparams(hparams)
        self._declared = declared
        chief = distributed.rank == 0
        self._by_hand = RunByHand(chief, declared, distributed.size, detached) if info is None else None
        self._at_cluster: Optional[TrialAtCluster] = None
        self._spool = _spool(info, self._by_hand)
        beats.OWN.open(distributed.rank, distributed.size)
        self._preempt_mode = preempt_mode
        self._tensorboard_mode = tensorboard_mode
        self._tensorboard: Optional[Tensorboard] = None
        self._train: Optional[TrainContext] = None
        self._checkpoint: Optional[CheckpointContext] = None
        self._preempt: Optional[PreemptContext] = None
        self._profiler: Optional[ProfilerContext] = None
        self._outcome = "COMPLETED", ""

    def __enter__(self) -> Context:
        _print_stacks_on_signal()
        if self._info is not None and self._info.is_trial and self.distributed.rank == 0:
            self._spool.report(RUN_START, _run_start(self._info))
        elif self._by_hand is not None and self.distributed.rank == 0:
            start = self._by_hand.start_body()
            if start is not None:
                self._spool.report(RUN_START, start)
            if self._by_hand.trace is not None:
                self._by_hand.trace.begin()
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if isinstance(error, InvalidHP):
            self._leave_invalid(error)
        leaving = isinstance(error, SystemExit) and error.code in (None, 0)
        if error is not None and not leaving:
            state = "CANCELED" if isinstance(error, KeyboardInterrupt) else "ERROR"
            self._outcome = state, f"{type(error).__name__}: {error}".rstrip(": ")
        self._close(failing=error is not None and not leaving)

    def close(self) -> None:
        """For a context that was not used by ``with``: wait for the reports, and leave. Raises ReportRefused."""
        self._close(failing=False)

    @property
    def hparams(self) -> JsonObject:
        """The hyperparameters: those that the search chose over those that ``core.init`` was given; in a run by hand
        what ``tenax track --hparam`` said over the latter."""
        if self._by_hand is not None:
            return dict(self._by_hand.read_hparams())
        assert self._info is not None
        return {**self._declared, **self._info.trial.hparams}

    @property
    def latest_checkpoint(self) -> Optional[str]:
        """The checkpoint to go on from, on a cluster and in a run by hand that is resumed; None: begin anew."""
        if self._by_hand is not None:
            return self._by_hand.latest_checkpoint
        assert self._info is not None
        return self._info.latest_checkpoint

    @property
    def info(self) -> Optional[ClusterInfo]:
        """What the cluster says about this task; in detached mode the same of its trial there. None in other runs by
        hand."""
        return self._at_cluster.info() if self._at_cluster is not None else self._info

    @property
    def kept_in(self) -> str:
        """The directory of a run by hand; empty on a cluster."""
        if self._at_cluster is not None:
            return self._at_cluster.run.path
        return self._by_hand.run.path if self._by_hand is not None else ""

    def meet_cluster(self, detached: Detached, seconds: float) -> None:
        """In detached mode: wait for the cluster's word about this run, and tell all ranks."""
        from tenax.core.local_runs.trial_at_cluster import TrialAtCluster

        assert self._by_hand is not None
        by_hand = self._by_hand
        known: object = None
        if self.distributed.rank == 0:
            sent = by_hand.registered(seconds)
            # Of a trial that it begins anew the cluster knows none, whatever this machine has.
            checkpoint = sent.get("latestCheckpoint") if by_hand.is_named and sent.get("runId") else by_hand.checkpoint
            known = sent, by_hand.run.path, str(by_hand.run.card.get("trialKey", "")), checkpoint
        known = self.distributed.broadcast(known)
        assert isinstance(known, (tuple, list))
        sent, path, key, checkpoint = known
        by_hand.checkpoint = checkpoint if isinstance(checkpoint, str) else None
        about = self.hparams, detached.config
        self._at_cluster = TrialAtCluster(LocalRun(path), key, sent, about, by_hand.open_session)
        self._at_cluster.checkpoint = self.latest_checkpoint

    @property
    def train(self) -> TrainContext:
        """Reports of a trial. Raises NotNow in a task that is none."""
        if self._train is None:
            if self._info is not None and not self._info.is_trial:
                raise NotNow(f"this task is a {self._info.task_type}: only trials report training")
            from tenax.core.train import TrainContext

            trial = self._info.trial if self._info is not None else None
            self._tensorboard = self._make_tensorboard()
            self._train = TrainContext(
                self._spool, self.distributed.rank, self._client, trial, self._tensorboard, self._tensorboard_mode
            )
            self._train.at_cluster = self._at_cluster
            if self._info is not None and _apart(self._info, self.distributed) and self._info.container_rank > 0:
                # The first machine's may be the only one: the others may be there to help it.
                self._train.refusal = _told_apart(self._info)
            if self._by_hand is not None and self._by_hand.trace is not None:
                self._train.follower = self._by_hand.trace
            if self._by_hand is not None and self.distributed.rank == 0 and not self._by_hand.sends:
                say(f"not on a cluster: reports go to {self._spool.path}")
        return self._train

    def set_tensorboard_mode(self, mode: TensorboardMode) -> None:
        """Another one than ``core.init`` was given. Raises NotNow once ``train`` was used: it decides by then."""
        mode = TensorboardMode(mode)
        if self._train is not None and mode is not self._tensorboard_mode:
            raise NotNow("the mode of TensorBoard files is chosen before the first report, and before their directory")
        self._tensorboard_mode = mode

    @property
    def checkpoint(self) -> CheckpointContext:
        """Storing and restoring. Raises InvalidInput where no checkpoint storage is known."""
        if self._checkpoint is None:
            from tenax.core.checkpoint import CheckpointContext

            trial = self._info is None or self._info.is_trial
            self._checkpoint = CheckpointContext(
                _make_storage(self._info, self._storage),
                self._spool,
                self.distributed,
                self._client,
                needs_steps=trial,
                trial_id=self._info.trial.trial_id if self._info is not None and trial else None,
            )
        return self._checkpoint

    @property
    def preempt(self) -> PreemptContext:
        """Whether to stop."""
        if self._preempt is None:
            from tenax.core.preempt import PreemptContext, PreemptionWatcher

            asks = self.distributed.rank == 0 or self._preempt_mode is PreemptMode.WorkersAskMaster
            watcher: Optional[Union[PreemptionWatcher, ResumeTrace]] = None
            if self._by_hand is not None:
                watcher = self._by_hand.trace
            if self._info is not None and self._client is not None and asks:
                leave_file = os.path.join(run_dir(), LEAVE_FILE)
                watcher = PreemptionWatcher(self._client.twin(), self._info.allocation_id, leave_file)
            self._preempt = PreemptContext(self._spool, self.distributed, self._preempt_mode, watcher)
        return self._preempt

    @property
    def profiler(self) -> ProfilerContext:
        """Metrics of the machine: ``on()`` and ``off()``."""
        if self._profiler is None:
            from tenax.core.profiler import ProfilerContext

            info = self._info
            samples = info is not None and info.is_trial and self.distributed.local_rank == 0
            self._profiler = ProfilerContext(
                self._spool,
                info.agent_id if info is not None and samples else None,
                info.gpu_uuids if info is not None else [],
            )
        return self._profiler

    @property
    def searcher(self) -> SearcherContext:
        """For scripts of before 0.38. Raises InvalidInput where ``searcher.max_length`` is not set."""
        from tenax.core.searcher import SearcherContext, length_of

        length: Json = 1
        info = self.info
        if info is not None:
            section = info.trial._config.get("searcher")
            length = section.get("max_length") if isinstance(section, dict) else None
        return SearcherContext(self.train, *length_of(length), chief=self.distributed.rank == 0)

    @property
    def experimental(self) -> ExperimentalContext:
        """What is said of checkpoints of others. Raises NotNow in a task that is no trial."""
        if self._info is not None and not self._info.is_trial:
            raise NotNow(f"this task is a {self._info.task_type}: only trials say which checkpoints they use")
        from tenax.core.experimental import ExperimentalContext

        return ExperimentalContext(self._client, self._info.trial if self._info is not None else None)

    def alert(
        self, title: Optional[str] = None, description: Optional[str] = None, level: Optional[str] = "info"
    ) -> None:
        """Send a custom event to the webhooks of this experiment; ``level``: debug, info, warn or error.

        A master that cannot take it now is no reason to stop training: that is said on standard error.
        """
        known = _LEVELS.get(level or "info")
        if known is None:
            raise InvalidInput(f"level must be one of {', '.join(_LEVELS)}, not {level!r}")
        if self._client is None or self._info is None:
            say(f"alert ({level}): {title or ''} {description or ''}")
            return
        trial = self._info.trial
        data = {"title": title or "", "description": description or "", "level": f"LOG_LEVEL_{known}"}
        body = {"experimentId": trial.experiment_id, "trialId": trial.trial_id, "data": data}
        try:
            self._client.call("POST", "/api/v1/webhooks/custom", body=body, timeout=5.0, retry_for_s=5.0, creates=True)
        except TenaxError as error:
            say(f"the alert {title!r} was not sent: {error}")

    def _leave_invalid(self, error: InvalidHP) -> NoReturn:
        from tenax.core.train import TrainContext

        say(f"these hyperparameters cannot be trained: {error}")
        trial = self._info.trial if self._info is not None else None
        TrainContext(self._spool, self.distributed.rank, self._client, trial).report_early_exit(
            EarlyExitReason.INVALID_HP
        )
        self._outcome = "ERROR", f"these hyperparameters cannot be trained: {error}"
        self._close(failing=False)
        raise SystemExit(0)

    def _make_tensorboard(self) -> Optional[Tensorboard]:
        info = self._info
        if info is None or not (isinstance(self._storage, (str, dict)) or info.trial._config.get("checkpoint_storage")):
            return None
        from tenax.core.tensorboard import of_trial

        writes = self._tensorboard_mode is TensorboardMode.AUTO and self.distributed.rank == 0
        return of_trial(info, run_dir(), lambda: _make_storage(info, self._storage), writes=writes)

    def _close(self, *, failing: bool) -> None:
        with beats.OWN.during(beats.SAVE):
            lost = self._checkpoint.close() if self._checkpoint is not None else None
        beats.OWN.change_phase(beats.LEFT)
        if lost is not None and failing:
            say(f"a checkpoint is lost: {lost}")
        elif lost is not None:
            self._outcome = "ERROR", f"{type(lost).__name__}: {lost}"
        try:
            if self._train is not None:
                self._train.close()
            if self._tensorboard is not None:
                self._tensorboard.close()
            if self._profiler is not None:
                self._profiler.off()
            if self._preempt is not None:
                self._preempt.close()
            self._spool.close(failing=failing or lost is not None)
        finally:
            self.distributed.close()
            if self._client is not None:
                self._client.close()
            if self._at_cluster is not None:
                self._at_cluster.close()
            if self._by_hand is not None:
                self._end_by_hand(self._by_hand)
        if lost is not None and not failing:
            raise lost

    def _end_by_hand(self, by_hand: RunByHand) -> None:
        for name in by_hand.unread() if self.distributed.rank == 0 else ():
            say(f"warning: this run was given what {name} says, and the script did not read it")
        if by_hand.trace is not None:
            by_hand.trace.end(by_hand.unread())
        by_hand.finish(*self._outcome)


def _require_single_process(info: ClusterInfo) -> None:
    machines = len(info.container_addrs) if info.is_trial else 1
    if machines > 1 or len(info.slot_ids) > 1:
        from tenax.core.distributed import how_to_launch

        place = f"on {machines} machines" if machines > 1 else f"with {len(info.slot_ids)} slots"
        take = "pass core.init(distributed=core.DistributedContext.from_torch_distributed())"
        env = os.environ
        if "RANK" in env and "WORLD_SIZE" in env and env.get("GROUP_WORLD_SIZE") == str(machines):
            raise InvalidInput(
                f"this task runs {place}, and a launcher has started this as rank {env['RANK']} of "
                f"{env['WORLD_SIZE']}: {take} in the script"
            )
        raise InvalidInput(
            f"this task runs {place}, and needs one rank for each slot: {how_to_launch(info)}, and in the script "
            f"{take}; or ask for one slot (resources.slots_per_trial: 1)"
        )


def _apart(info: ClusterInfo, distributed: DistributedContext) -> bool:
    """Whether the ranks of this job know nothing of the other machines."""
    return info.is_trial and len(info.container_addrs) > 1 and distributed.cross_size == 1


def _told_apart(info: ClusterInfo) -> str:
    from tenax.core.distributed import how_to_launch

    return (
        f"this trial runs on {len(info.container_addrs)} machines, and these ranks were not told of the others: each "
        f"machine would train by itself; {how_to_launch(info)}"
    )


def _spool(info: Optional[ClusterInfo], by_hand: Optional[RunByHand]) -> Spool:
    if info is None:
        assert by_hand is not None
        return Spool(by_hand.file, None, "", "")
    return spool_of(info)


def _run_start(info: ClusterInfo) -> str:
    """The body of the first record. Where checkpoints go, without policies and credentials."""
    from tenax.client.connection import fast_json
    from tenax.display.secrets import OF_STORAGE

    section = info.trial._config.get("checkpoint_storage")
    place = None
    if isinstance(section, dict):
        place = {key: value for key, value in section.items() if not key.startswith("save_") and key not in OF_STORAGE}
    return fast_json.dumps({"checkpointStorage": place})


def _make_storage(info: Optional[ClusterInfo], chosen: Optional[Union[str, Mapping[str, Json]]]) -> Storage:
    from tenax.storage.local_directory import from_directory
    from tenax.storage.registry import from_config, from_shortcut

    if isinstance(chosen, str):
        return from_shortcut(chosen)
    if chosen is not None:
        return from_config(chosen)
    if info is None:
        from tenax.local.user_data import checkpoint_directory

        return from_directory(checkpoint_directory())
    section = info.trial._config.get("checkpoint_storage") if info.is_trial else None
    if not isinstance(section, dict):
        raise InvalidInput(
            "this task has no checkpoint_storage: set it in the experiment's configuration, "
            "or pass core.init(checkpoint_storage=...)"
        )
    storage = from_config(section)
    shared_in = os.environ.get(SHARED_FILES_IN)
    if shared_in:
        from tenax.client.connection import fast_json

        if fast_json.loads(shared_in) == storage.identity():
            storage.share_unchanged()
    return storage


def _write_whole_lines() -> None:
    """Of ranks that share their output: unbuffered, words of one would stand in the lines of another."""
    if os.environ.get("LOCAL_WORLD_SIZE", "1") == "1":
        return
    for stream in (sys.stdout, sys.stderr):
        # What a script has put there instead may take no such arguments, and what is closed takes none.
        if isinstance(stream, TextIOWrapper):
            with suppress(OSError, ValueError):
                stream.reconfigure(line_buffering=True, write_through=False)


def _print_stacks_on_signal() -> None:
    """SIGUSR1 prints the stacks of all threads, unless the script has a use of its own for it."""
    import faulthandler
    import signal

    number = getattr(signal, "SIGUSR1", None)
    if number is not None and signal.getsignal(number) is signal.SIG_DFL:
        try:
            faulthandler.register(number, file=2, all_threads=True)
        except (AttributeError, ValueError, OSError):  # this platform has no such thing, or there is no standard error
            return
