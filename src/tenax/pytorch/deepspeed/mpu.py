"""Which ranks hold copies of a model and which hold parts of it, as far as data and metrics go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenax.core import DistributedContext


@dataclass
class ModelParallelUnit:
    """The place of this rank. Ranks that share a model have the same ``data_parallel_rank``, and get the same data.

    ``should_report_metrics``: what ``train_batch`` and ``evaluate_batch`` give here, and what its reducers were given,
    counts. ``should_build_data_loader``: it loads data; others get None for an iterator.
    """

    data_parallel_rank: int
    data_parallel_world_size: int
    should_report_metrics: bool
    should_build_data_loader: bool


def make_data_parallel_mpu(dist_context: DistributedContext) -> ModelParallelUnit:
    """A whole model on each rank."""
    return ModelParallelUnit(dist_context.rank, dist_context.size, True, True)


def make_deepspeed_mpu(topology: Any) -> ModelParallelUnit:
    """That of a ``PipelineParallelGrid``: the first stage loads what goes in, the last the labels, and all of them get
    the loss."""
    stage, stages = topology.get_pipe_parallel_rank(), topology.get_pipe_parallel_world_size()
    return ModelParallelUnit(
        topology.get_data_parallel_rank(),
        topology.get_data_parallel_world_size(),
        should_report_metrics=True,
        should_build_data_loader=stage in (0, stages - 1) and topology.get_slice_parallel_rank() == 0,
    )
