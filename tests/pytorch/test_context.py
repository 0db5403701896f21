"""What a trial gives its context, and asks it."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from torch import nn

from tenax import pytorch
from tenax.errors import InvalidInput, NotNow
from tenax.pytorch.load import CheckpointLoadContext


@pytest.fixture
def context() -> pytorch.PyTorchTrialContext:
    """One of its own that reports nothing."""
    return CheckpointLoadContext({"global_batch_size": 32, "lr": 0.1}, {"data": {"path": "x"}})


def one_weight(context: pytorch.PyTorchTrialContext, lr: float = 1.0) -> tuple[nn.Linear, torch.optim.Optimizer]:
    """y = w x from w = 0, and its optimizer."""
    model = context.wrap_model(nn.Linear(1, 1, bias=False))
    nn.init.zeros_(model.weight)  # type: ignore[arg-type]
    return model, context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr))  # type: ignore[return-value]


def weights_after(context: Any, frequency: int, average: bool | None, clip: Any = None) -> list[float]:
    """After each of four batches, of which each has a gradient of -1, -2, -3, -4."""
    context.aggregation_frequency = frequency
    model = context.wrap_model(nn.Linear(1, 1, bias=False))
    nn.init.zeros_(model.weight)
    optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), 1.0), average_aggregated_gradients=average)
    weights = []
    for index in range(4):
        context.batch_idx = index
        context.backward(-(index + 1) * model.weight.sum())
        context.step_optimizer(optimizer, clip_grads=clip)
        weights.append(float(model.weight))
    return weights


def test_gradients_of_several_batches_are_averaged_or_summed(context: Any) -> None:
    """One step each two batches, of their mean; of their sum where asked for."""
    assert weights_after(context, 1, None) == [1, 3, 6, 10]
    assert weights_after(context, 2, None) == [0, 1.5, 1.5, 5]
    assert weights_after(context, 2, True) == [0, 1.5, 1.5, 5]
    assert weights_after(context, 2, False) == [0, 3, 3, 10]


def test_gradients_are_clipped_as_they_are_stepped_with(context: Any) -> None:
    """After the mean over batches, and only where there is a step."""
    calls: list[float] = []

    def clip(parameters: Any) -> None:
        calls.extend(float(each.grad) for each in parameters)
        nn.utils.clip_grad_value_(parameters, 1.0)

    assert weights_after(context, 2, None, clip) == [0, 1, 1, 2]
    assert calls == [-1.5, -3.5]


def test_gradients_stay_where_the_trial_says_so(context: Any) -> None:
    """It sets them to zero itself; not where several batches make a step."""
    model, optimizer = one_weight(context)
    context.backward(model.weight.sum())
    context.step_optimizer(optimizer, auto_zero_grads=False)
    assert model.weight.grad is not None
    context.aggregation_frequency = 2
    with pytest.raises(InvalidInput, match="auto_zero_grads must stay True"):
        context.step_optimizer(optimizer, auto_zero_grads=False)


def test_two_optimizers_step_apart(context: Any) -> None:
    """As of a generator and a discriminator: each has its own parameters."""
    first, its = one_weight(context)
    second, others = one_weight(context, lr=0.5)
    context.backward(-(first.weight.sum() + second.weight.sum()))
    context.step_optimizer(its)
    assert (float(first.weight), float(second.weight)) == (1.0, 0.0)
    context.step_optimizer(others)
    assert float(second.weight) == 0.5


def test_what_is_wrapped_must_be_what_it_is_called(context: Any) -> None:
    """Where it is given, and not in the first checkpoint."""
    model = nn.Linear(1, 1)
    with pytest.raises(InvalidInput, match=r"wrap_model\(\) takes a torch\.nn\.Module, not SGD"):
        context.wrap_model(torch.optim.SGD(model.parameters(), 0.1))
    with pytest.raises(InvalidInput, match=r"wrap_optimizer\(\) takes an optimizer of torch\.optim, not Linear"):
        context.wrap_optimizer(model)
    with pytest.raises(InvalidInput, match="backward_passes_per_step must be at least 1, not 0"):
        context.wrap_optimizer(torch.optim.SGD(model.parameters(), 0.1), backward_passes_per_step=0)
    with pytest.raises(InvalidInput, match="this is another optimizer"):
        context.step_optimizer(torch.optim.SGD(model.parameters(), 0.1))
    with pytest.raises(InvalidInput, match=r"use context\.experimental\.use_amp|call context\.experimental\.use_amp"):
        context.configure_apex_amp(model, None)


def test_there_is_one_scaler_and_it_comes_first(context: Any) -> None:
    """The model is made for it."""
    scaler = torch.amp.GradScaler("cuda", enabled=False)
    assert context.wrap_scaler(scaler) is scaler
    with pytest.raises(InvalidInput, match="has a gradient scaler already"):
        context.wrap_scaler(scaler)
    with pytest.raises(InvalidInput, match=r"call it, or context\.wrap_scaler\(\), once"):
        context.experimental.use_amp()
    other = CheckpointLoadContext()
    other.wrap_model(nn.Linear(1, 1))
    with pytest.raises(InvalidInput, match=r"before wrap_model\(\)"):
        other.wrap_scaler(scaler)


def test_mixed_precision_without_a_gpu_changes_nothing() -> None:
    """The same script trains everywhere."""
    results = []
    for mixed in (False, True):
        context: Any = CheckpointLoadContext()
        if mixed:
            context.experimental.use_amp()
        results.append(weights_after(context, 2, None, lambda parameters: None))
    assert results[0] == results[1]


def test_hyperparameters_and_configuration_are_told(context: Any) -> None:
    """By name; what there is not is said with what there is."""
    assert context.get_hparam("lr") == 0.1
    assert context.get_hparams() == {"global_batch_size": 32, "lr": 0.1}
    assert context.get_data_config() == {"path": "x"}
    with pytest.raises(InvalidInput, match="no hyperparameter 'rl': there are global_batch_size, lr"):
        context.get_hparam("rl")
    with pytest.raises(InvalidInput, match=r"give them as pytorch\.init\(hparams=\.\.\.\)"):
        CheckpointLoadContext().get_hparams()
    with pytest.raises(InvalidInput, match=r"give one as pytorch\.init\(exp_conf=\.\.\.\)"):
        CheckpointLoadContext().get_experiment_config()


def test_the_batch_size_is_shared_by_ranks(
    context: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What does not divide is left out, and said once."""
    assert (context.get_per_slot_batch_size(), context.get_global_batch_size()) == (32, 32)
    monkeypatch.setattr(context.distributed, "size", 5, raising=False)
    assert (context.get_per_slot_batch_size(), context.get_global_batch_size()) == (6, 30)
    assert capsys.readouterr().err.count("32 is not a multiple of 5 ranks: 30 is taken") == 1


@pytest.mark.parametrize("size", ["32", 0, 1.5, True, None])
def test_a_batch_size_that_is_none_is_refused(size: Any) -> None:
    """From a command line it comes as text."""
    with pytest.raises(InvalidInput, match="global_batch_size must be a whole number of at least 1"):
        CheckpointLoadContext({"global_batch_size": size}).get_per_slot_batch_size()


def test_where_the_training_stands_is_known_once_it_runs(context: Any) -> None:
    """Batches count on, epochs by their length."""
    for ask in (context.current_train_batch, context.current_train_epoch, context.is_epoch_end):
        with pytest.raises(NotNow, match="no current batch before training has begun"):
            ask()
    context.batch_idx = 3
    with pytest.raises(NotNow, match=r"once Trainer\.fit\(\) was called"):
        context.is_epoch_start()
    context.epoch_length = 4
    assert (context.current_train_epoch(), context.is_epoch_start(), context.is_epoch_end()) == (0, False, True)
    context.batch_idx = 4
    assert (context.current_train_epoch(), context.is_epoch_start(), context.is_epoch_end()) == (1, True, False)


def test_only_yes_or_no_stops_a_training(context: Any) -> None:
    """A number would be either."""
    context.set_stop_requested(True)
    assert context.get_stop_requested()
    with pytest.raises(InvalidInput, match="takes True or False, not 1"):
        context.set_stop_requested(1)


def test_a_writer_without_tensorboard_says_what_to_install(context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no dependency."""
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    for name in [name for name in sys.modules if name.startswith("torch.utils.tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(InvalidInput, match="pip install tensorboard"):
        context.get_tensorboard_writer()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"aggregation_frequency": 0}, "whole number from 1 on, not 0"),
        ({"aggregation_frequency": "2"}, "whole number from 1 on, not '2'"),
        ({"hparams": 0.1}, r"pytorch\.init\(hparams=\.\.\.\) takes a dict, not 0\.1"),
        ({"exp_conf": "conf.yaml"}, r"pytorch\.init\(exp_conf=\.\.\.\) takes a dict, not 'conf\.yaml'"),
    ],
)
def test_what_init_is_given_is_checked_first(options: Any, said: str) -> None:
    """Before anything is opened."""
    with pytest.raises(InvalidInput, match=said), pytorch.init(**options):
        pass


def test_off_a_cluster_there_are_no_numbers_of_a_trial() -> None:
    """0, and no seed."""
    with pytorch.init(hparams={"lr": 1}) as context:
        assert (context.get_trial_id(), context.get_experiment_id(), context.get_initial_batch()) == (0, 0, 0)
        assert context.get_hparam("lr") == 1
        assert context.latest_checkpoint is None
        with pytest.raises(NotNow, match=r"use torch\.initial_seed\(\)"):
            context.get_trial_seed()


def test_what_a_writer_holds_is_written_out_in_the_end(context: Any) -> None:
    """It writes in a thread of its own, which ends with the process."""
    closed = []
    context._writer = type("Writer", (), {"close": lambda _: closed.append(True)})()
    context.close_tensorboard_writer()
    assert closed == [True]


def test_ranks_of_horovod_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients are averaged by torch.distributed, which has no place to meet there: with the launcher to take."""
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "HOROVOD_RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(InvalidInput, match=r"start it with tenax\.launch\.torch_distributed"), pytorch.init(hparams={}):
        pass
