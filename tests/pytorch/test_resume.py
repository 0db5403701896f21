"""A run that was paused and goes on is the run that was not: samples, losses and parameters, bit for bit."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tenax import pytorch
from tests.pytorch.trials import Digits, StopAfter

#: Seven batches to an epoch, the last one smaller.
LENGTH = 24


class Paused(Digits):
    """Asks to stop after its first report, if told to."""

    def __init__(self, context: pytorch.PyTorchTrialContext, reports: int | None) -> None:
        super().__init__(context)
        self.watch = StopAfter(context, reports)

    def build_callbacks(self) -> dict[str, pytorch.PyTorchCallback]:
        return {"watch": self.watch}


def train(stop_after: int | None, checkpoint: str | None = None, **fit: Any) -> Paused:
    """One process's part of a run; ``stop_after`` so many batches."""
    torch.manual_seed(11)
    with pytorch.init() as context:
        trial = Paused(context, None if stop_after is None else 1)
        period = pytorch.Batch(4) if stop_after is None else pytorch.Batch([stop_after])
        options: dict[str, Any] = {"max_length": pytorch.Batch(LENGTH), "reporting_period": period, **fit}
        pytorch.Trainer(trial, context).fit(latest_checkpoint=checkpoint, **options)
        return trial


@pytest.mark.parametrize(
    "pauses", [([7], [14], [5, 16], [LENGTH - 1]), pytest.param(([1], [13], [20]), marks=pytest.mark.long)]
)
def test_a_paused_run_is_the_run_that_was_not(pauses: tuple[list[int], ...]) -> None:
    """Wherever it is paused: within an epoch, at its end, several epochs on; twice, too."""
    whole = train(None)
    assert [index for index, _, _ in whole.seen] == list(range(LENGTH))
    for stops in pauses:
        seen: list[Any] = []
        checkpoint = None
        for stop in [*stops, None]:
            part = train(stop, checkpoint)
            seen += part.seen
            checkpoint = part.watch.stored[-1]
        assert seen == whole.seen, stops
        assert part.parameters() == whole.parameters(), stops
        assert part.schedule.get_last_lr() == whole.schedule.get_last_lr()


def test_validations_draw_no_random_number_of_the_training() -> None:
    """However often it is validated, and wherever it is paused between, it is one training."""
    options = {"validation_period": pytorch.Batch(5)}
    whole = train(None)
    first = train(11, **options)
    rest = train(None, first.watch.stored[-1], **options)
    assert first.seen + rest.seen == whole.seen
    assert rest.parameters() == whole.parameters()


def test_each_epoch_has_each_sample_once_in_another_order() -> None:
    """A pass is all samples."""
    trial = train(None)
    epochs = [[number for _, numbers, _ in trial.seen[first : first + 7] for number in numbers] for first in (0, 7, 14)]
    assert all(sorted(epoch) == list(range(200)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]


@pytest.mark.parametrize("seed", [11, 12])
def test_the_order_is_the_seeds(seed: int) -> None:
    """Another seed, another order; and nothing else decides it."""
    orders = []
    for draws in (0, 3):
        torch.manual_seed(seed)
        torch.rand(draws)
        loader = pytorch.DataLoader(range(50), batch_size=10, shuffle=True)  # type: ignore[arg-type]
        orders.append([batch.tolist() for batch in loader])
    assert orders[0] == orders[1]
    torch.manual_seed(seed + 100)
    assert [batch.tolist() for batch in loader] != orders[0]


class Gathering(Digits):
    """Keeps what is stored; two batches make a step."""

    def __init__(self, context: pytorch.PyTorchTrialContext, reports: int | None = None) -> None:
        super().__init__(context)
        self.watch = StopAfter(context, reports)

    def build_callbacks(self) -> dict[str, pytorch.PyTorchCallback]:
        return {"watch": self.watch}


def gather(reports: int | None = None, **fit: Any) -> Gathering:
    torch.manual_seed(11)
    with pytorch.init(aggregation_frequency=2) as context:
        trial = Gathering(context, reports)
        pytorch.Trainer(trial, context).fit(max_length=pytorch.Batch(12), **fit)
        return trial


def test_gradients_that_wait_for_a_step_are_in_the_checkpoint() -> None:
    """One between two batches that make a step together: the first one's part of the step was lost."""
    whole = gather(checkpoint_period=pytorch.Batch([5]))
    rest = gather(latest_checkpoint=whole.watch.stored[0])
    assert rest.seen == whole.seen[5:]
    assert rest.parameters() == whole.parameters()


def test_a_run_stops_where_the_optimizers_have_stepped() -> None:
    """Told to after the fifth batch it stops after the sixth: ranks have gathered different gradients between."""
    first = gather(1, reporting_period=pytorch.Batch([5]))
    assert len(first.seen) == 6
    rest = gather(latest_checkpoint=first.watch.stored[-1])
    assert rest.parameters() == gather().parameters()
