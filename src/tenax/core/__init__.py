"""What training code imports inside a task (the Core API). Standard library only, Python 3.9.

::

    from tenax import core

    with core.init() as context:
        for step in range(start, steps):
            ...
            context.train.report_training_metrics(step, {"loss": loss})
            if context.preempt.should_preempt():
                save(...)
                break

On a cluster the context speaks to the master; off it, the same script runs with local files. Importing this package
loads nothing: each name below loads what it needs when it is used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenax.core.checkpoint import CheckpointContext as CheckpointContext
    from tenax.core.context import Context as Context
    from tenax.core.context import init as init
    from tenax.core.distributed import DistributedContext as DistributedContext
    from tenax.core.distributed import DummyDistributedContext as DummyDistributedContext
    from tenax.core.experimental import ExperimentalContext as ExperimentalContext
    from tenax.core.info import ClusterInfo as ClusterInfo
    from tenax.core.info import TrialInfo as TrialInfo
    from tenax.core.info import get_cluster_info as get_cluster_info
    from tenax.core.modes import DownloadMode as DownloadMode
    from tenax.core.modes import EarlyExitReason as EarlyExitReason
    from tenax.core.modes import InvalidHP as InvalidHP
    from tenax.core.modes import PreemptMode as PreemptMode
    from tenax.core.modes import TensorboardMode as TensorboardMode
    from tenax.core.pending import PendingCheckpoint as PendingCheckpoint
    from tenax.core.preempt import PreemptContext as PreemptContext
    from tenax.core.profiler import ProfilerContext as ProfilerContext
    from tenax.core.searcher import SearcherContext as SearcherContext
    from tenax.core.searcher import SearcherMode as SearcherMode
    from tenax.core.searcher import SearcherOperation as SearcherOperation
    from tenax.core.searcher import Unit as Unit
    from tenax.core.spool import ReportRefused as ReportRefused
    from tenax.core.train import TrainContext as TrainContext

_WHERE = {
    "CheckpointContext": "checkpoint",
    "ClusterInfo": "info",
    "Context": "context",
    "DistributedContext": "distributed",
    "DownloadMode": "modes",
    "DummyDistributedContext": "distributed",
    "EarlyExitReason": "modes",
    "ExperimentalContext": "experimental",
    "InvalidHP": "modes",
    "PendingCheckpoint": "pending",
    "PreemptContext": "preempt",
    "PreemptMode": "modes",
    "ProfilerContext": "profiler",
    "ReportRefused": "spool",
    "SearcherContext": "searcher",
    "SearcherMode": "searcher",
    "SearcherOperation": "searcher",
    "TensorboardMode": "modes",
    "TrainContext": "train",
    "TrialInfo": "info",
    "Unit": "searcher",
    "get_cluster_info": "info",
    "init": "context",
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'tenax.core' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module("tenax.core." + _WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_WHERE)
