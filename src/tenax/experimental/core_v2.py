"""Detached mode: a script that no cluster has started, and that reports to one, in the dialect of Determined.

    from tenax.experimental import core_v2

    core_v2.init(config=core_v2.Config(name="mine", hparams={"lr": 0.1}))
    for step in range(1, 101):
        core_v2.train.report_training_metrics(steps_completed=step, metrics={"loss": 1 / step})
    core_v2.close()

It is a run by hand (`tenax.core.local_runs`): kept on this machine, and sent while it runs; without a cluster it goes
on all the same, and ``tenax sync`` sends it later. In a trial that a cluster has started it is ``core.init()``, and
``config`` is ignored. Standard library only, Python 3.9. Not thread-safe.
"""

from __future__ import annotations

import atexit
import builtins
import os
import sys

from tenax.core.context import Context, detached_context
from tenax.core.context import init as _core_init
from tenax.core.distributed import DistributedContext as DistributedContext
from tenax.core.info import get_cluster_info
from tenax.core.local_runs.detached import Detached, card_of, config_of
from tenax.core.modes import PreemptMode as PreemptMode
from tenax.core.modes import TensorboardMode as TensorboardMode
from tenax.errors import InvalidInput, NotNow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Optional, Union

    from tenax.experimental.determined import Determined
    from tenax.jsonvalue import Json, JsonObject

_PARTS = ("train", "checkpoint", "distributed", "preempt", "profiler", "searcher")

_context: Optional[Context] = None
#: The latest, also when it is closed: what is known of it stays.
_last: Optional[Context] = None
#: The process that closes it when it exits.
_opener = 0


class Config:
    """What the run is called and where its experiment lies.

    ``workspace`` and ``project`` must be there. ``checkpoint_storage``: a directory, or such a section of a
    configuration; else this user's data directory. ``searcher``: its ``metric`` and ``smaller_is_better`` rank the
    trial. The same ``external_experiment_id`` means the same experiment, the same ``external_trial_id`` in it the same
    trial, which goes on from its latest checkpoint.
    """

    def __init__(
        self,
        name: Optional[str] = None,
        hparams: Optional[Mapping[str, Json]] = None,
        data: Optional[JsonObject] = None,
        description: Optional[str] = None,
        labels: Optional[Sequence[str]] = None,
        workspace: Optional[str] = None,
        project: Optional[str] = None,
        checkpoint_storage: Optional[Union[str, Mapping[str, Json]]] = None,
        searcher: Optional[JsonObject] = None,
        external_experiment_id: Optional[str] = None,
        external_trial_id: Optional[str] = None,
    ) -> None:
        self.name = name
        self.hparams = hparams
        self.data = data
        self.description = description
        self.labels = labels
        self.workspace = workspace
        self.project = project
        self.checkpoint_storage = checkpoint_storage
        self.searcher = searcher
        self.external_experiment_id = external_experiment_id
        self.external_trial_id = external_trial_id


class DefaultConfig(Config):
    """The older name of one half of `Config`."""


class UnmanagedConfig(Config):
    """The older name of the other half."""


def init_context(
    *,
    config: Optional[Config] = None,
    defaults: Optional[DefaultConfig] = None,
    unmanaged: Optional[UnmanagedConfig] = None,
    client: Optional[Determined] = None,
    distributed: Optional[DistributedContext] = None,
    checkpoint_storage: Optional[Union[str, Mapping[str, Json]]] = None,
    preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
    tensorboard_mode: TensorboardMode = TensorboardMode.AUTO,
) -> Context:
    """A context for ``with``. Numbers in its ``info`` are 0 until a cluster has the trial.

    ``client``: a login; else the cluster and the user that the command line takes. Raises InvalidInput, NotNow for an
    ``external_trial_id`` that runs, TypeError.
    """
    info = get_cluster_info()
    if info is not None and info.is_trial:
        return _core_init(
            distributed=distributed,
            checkpoint_storage=checkpoint_storage,
            preempt_mode=preempt_mode,
            tensorboard_mode=tensorboard_mode,
        )
    chosen = _merged(config, defaults, unmanaged)
    storage = checkpoint_storage if checkpoint_storage is not None else chosen.pop("checkpoint_storage", None)
    hparams = chosen.pop("hparams", None)
    chief = distributed is None or distributed.rank == 0
    session = client._session if client is not None else None
    return detached_context(
        Detached(card_of(chosen) if chief else {}, config_of(chosen), session.another if session is not None else None),
        distributed,
        storage,  # type: ignore[arg-type]
        PreemptMode(preempt_mode),
        TensorboardMode(tensorboard_mode),
        hparams,  # type: ignore[arg-type]
    )


def init(
    *,
    config: Optional[Config] = None,
    defaults: Optional[DefaultConfig] = None,
    unmanaged: Optional[UnmanagedConfig] = None,
    client: Optional[Determined] = None,
    distributed: Optional[DistributedContext] = None,
    checkpoint_storage: Optional[Union[str, Mapping[str, Json]]] = None,
    preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
    tensorboard_mode: TensorboardMode = TensorboardMode.AUTO,
) -> None:
    """As `init_context`, for a whole script: its parts are ``core_v2.train``, ``core_v2.checkpoint``, ...

    What was begun before is closed. It ends with `close`, else with the script, and as an error where that raised; an
    exit code is not known here, so a script that ends with ``sys.exit(1)`` uses `init_context`.
    """
    global _context, _last, _opener
    close()
    context = init_context(
        config=config,
        defaults=defaults,
        unmanaged=unmanaged,
        client=client,
        distributed=distributed,
        checkpoint_storage=checkpoint_storage,
        preempt_mode=preempt_mode,
        tensorboard_mode=tensorboard_mode,
    )
    _context = _last = context.__enter__()
    if _opener != os.getpid():
        atexit.register(_close_at_exit)
        _opener = os.getpid()


def close() -> None:
    """End what `init` has begun; nothing where that was nothing."""
    _end(None)


def url_reverse_webui_exp_view() -> str:
    """The address of the experiment in the web page; where no cluster has it, of the directory that keeps the run.

    Raises NotNow before `init`.
    """
    context = _latest("url_reverse_webui_exp_view()")
    info = context.info
    assert info is not None
    if info.trial.experiment_id:
        return f"{info.master_url}/det/experiments/{info.trial.experiment_id}"
    from pathlib import Path

    return Path(context.kept_in).as_uri()


def _merged(
    config: Optional[Config], defaults: Optional[DefaultConfig], unmanaged: Optional[UnmanagedConfig]
) -> JsonObject:
    if config is not None and (defaults is not None or unmanaged is not None):
        raise InvalidInput("give config, or its older halves defaults and unmanaged")
    chosen: JsonObject = {}
    for part in (config, defaults, unmanaged):
        chosen.update({name: value for name, value in vars(part).items() if value is not None} if part else {})
    return chosen


def _begun(what: str) -> Context:
    if _context is None:
        raise NotNow(f"core_v2.{what} is there between core_v2.init() and core_v2.close()")
    return _context


def _latest(what: str) -> Context:
    if _last is None:
        raise NotNow(f"core_v2.{what} is there after core_v2.init()")
    return _last


def _close_at_exit() -> None:
    if os.getpid() != _opener:  # a fork, which inherited the list of what is done at the exit
        return
    # In a notebook it is whatever went wrong last.
    raised = None if hasattr(builtins, "__IPYTHON__") else getattr(sys, "last_value", None)
    _end(raised if isinstance(raised, BaseException) else None)


def _end(error: Optional[BaseException]) -> None:
    global _context
    context, _context = _context, None
    if context is not None:
        context.__exit__(type(error) if error is not None else None, error, None)


def __getattr__(name: str) -> Any:
    if name == "info":
        return _latest(name).info
    if name in _PARTS:
        return getattr(_begun(name), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
