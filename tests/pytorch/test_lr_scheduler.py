"""When learning rate schedulers step."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tenax import pytorch
from tenax.errors import InvalidInput
from tenax.pytorch.load import CheckpointLoadContext

MODE = pytorch.LRScheduler.StepMode


def steps(mode: Any, frequency: int = 1, aggregation: int = 1, epoch: int = 4, batches: int = 12) -> list[int]:
    """How many steps are due after each batch."""
    scheduler = pytorch.LRScheduler(object(), mode, frequency)
    return [scheduler.due(index, epoch, aggregation) for index in range(batches)]


@pytest.mark.parametrize(
    ("options", "due"),
    [
        ({"mode": MODE.STEP_EVERY_BATCH}, [1] * 12),
        ({"mode": MODE.STEP_EVERY_BATCH, "frequency": 3}, [0, 0, 1] * 4),
        ({"mode": MODE.STEP_EVERY_BATCH, "aggregation": 2}, [0, 2] * 6),
        ({"mode": MODE.STEP_EVERY_BATCH, "aggregation": 4, "frequency": 3}, [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2]),
        ({"mode": MODE.STEP_EVERY_OPTIMIZER_STEP}, [1] * 12),
        ({"mode": MODE.STEP_EVERY_OPTIMIZER_STEP, "aggregation": 3}, [0, 0, 1] * 4),
        ({"mode": MODE.STEP_EVERY_EPOCH}, [0, 0, 0, 1] * 3),
        ({"mode": MODE.STEP_EVERY_EPOCH, "frequency": 2}, [0] * 7 + [1] + [0] * 4),
        ({"mode": MODE.STEP_EVERY_EPOCH, "aggregation": 8}, [0] * 7 + [2] + [0] * 4),
        ({"mode": MODE.MANUAL_STEP}, [0] * 12),
    ],
)
def test_steps_are_due_as_the_mode_says_and_never_without_the_optimizers(options: Any, due: list[int]) -> None:
    """What is due between two steps of the optimizer is taken with the second."""
    assert steps(**options) == due


@pytest.mark.parametrize("aggregation", [1, 2, 3, 5])
def test_no_epoch_is_lost_or_counted_twice(aggregation: int) -> None:
    """Wherever the optimizer's steps fall."""
    assert sum(steps(MODE.STEP_EVERY_EPOCH, aggregation=aggregation, epoch=7, batches=210)) == 30


def test_a_mode_that_is_none_is_refused() -> None:
    """A word in its place would never step."""
    with pytest.raises(TypeError, match=r"must be an LRScheduler\.StepMode, not 'epoch'"):
        pytorch.LRScheduler(object(), "epoch")  # type: ignore[arg-type]


def test_a_scheduler_that_waits_for_a_metric_is_stepped_by_hand() -> None:
    """Its step takes the metric, which nobody else has."""
    context = CheckpointLoadContext()
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    with pytest.raises(InvalidInput, match=r"MANUAL_STEP and call its step\(metric\) yourself"):
        context.wrap_lr_scheduler(scheduler, MODE.STEP_EVERY_EPOCH)
    assert context.wrap_lr_scheduler(scheduler, MODE.MANUAL_STEP) is scheduler


def test_its_state_and_rate_are_those_of_the_scheduler_in_it() -> None:
    """Kept and put back."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 1.0)
    wrapped = pytorch.LRScheduler(torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5), MODE.STEP_EVERY_BATCH)
    optimizer.step()
    wrapped.step()
    assert wrapped.get_last_lr() == [0.5]
    other = pytorch.LRScheduler(torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5), MODE.STEP_EVERY_BATCH)
    other.load_state_dict(wrapped.state_dict())
    assert other.state_dict() == wrapped.state_dict()
