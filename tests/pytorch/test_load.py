"""A trial from the files of a checkpoint; checkpoints that do not fit, or are damaged."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tenax import pytorch
from tenax.errors import InvalidInput
from tenax.pytorch import state as states
from tenax.pytorch.load import CheckpointLoadContext
from tenax.storage.port import CheckpointDamaged
from tenax.wire.spool_names import MANIFEST_FILE
from tests.pytorch.trials import Digits, StopAfter, directory_of


class Small(Digits):
    """Made with a width, and a callback that keeps something."""

    def __init__(self, context: pytorch.PyTorchTrialContext, note: str = "") -> None:
        super().__init__(context, samples=64)
        self.note = note
        self.watch = StopAfter(context)

    def build_callbacks(self) -> dict[str, pytorch.PyTorchCallback]:
        return {"watch": self.watch}


def trained(data: Path) -> tuple[Small, Path]:
    """One batch, and its checkpoint."""
    with pytorch.init(hparams={"lr": 0.25}, exp_conf={"name": "small"}) as context:
        trial = Small(context)
        pytorch.Trainer(trial, context).fit(max_length=pytorch.Batch(1), checkpoint_policy="none")
    return trial, directory_of(trial.watch.stored[-1], data)


def test_a_trial_comes_back_with_its_weights(here: Path) -> None:
    """From the code in the checkpoint, or of a class that is given, with what else it takes; nothing else is kept."""
    trial, directory = trained(here)
    again: Any = pytorch.load_trial_from_checkpoint_path(str(directory))
    assert type(again).__qualname__ == "Small"
    assert again.parameters() == trial.parameters()
    assert again.context.get_hparams() == {"lr": 0.25}
    assert again.context.get_experiment_config() == {"name": "small"}
    given: Any = pytorch.load_trial_from_checkpoint_path(
        str(directory), trial_class=Small, trial_kwargs={"note": "n"}, torch_load_kwargs={"map_location": "cpu"}
    )
    assert isinstance(given, Small)
    assert given.note == "n"
    assert given.parameters() == trial.parameters()


def test_a_damaged_checkpoint_says_so_to_who_goes_on_and_who_loads(here: Path) -> None:
    """Cut short, gone, and with a description that is none; and a run that goes on is told which file it is."""
    trial, directory = trained(here)
    uuid, file = trial.watch.stored[-1], directory / states.STATE
    whole = file.read_bytes()

    def attempts(said: str) -> None:
        with pytest.raises(InvalidInput, match=said):
            pytorch.load_trial_from_checkpoint_path(str(directory), trial_class=Small)
        with pytest.raises(InvalidInput, match=said), pytorch.init() as context:
            pytorch.Trainer(Small(context), context).fit(max_length=pytorch.Batch(2), latest_checkpoint=uuid)

    file.write_bytes(whole[:100])
    with pytest.raises(CheckpointDamaged, match=r"state_dict\.pth has 100 bytes and had \d+\. Go on from another"):
        with pytorch.init() as context:
            pytorch.Trainer(Small(context), context).fit(max_length=pytorch.Batch(2), latest_checkpoint=uuid)
    # As of a program that says nothing of what it stored.
    (directory / MANIFEST_FILE).unlink()
    for length in (0, 100, len(whole) // 2, len(whole) - 1000):
        file.write_bytes(whole[:length])
        attempts("cannot be read, it may be incomplete: go on from another checkpoint")
    file.unlink()
    attempts(r"there is no state_dict\.pth in it, but code, load_data\.json")
    (directory / states.LOAD_DATA).write_text("{")
    with pytest.raises(InvalidInput, match=r"load_data\.json is damaged: download the checkpoint again"):
        pytorch.load_trial_from_checkpoint_path(str(directory), trial_class=Small)
    with pytest.raises(InvalidInput, match=r"there is no load_data\.json in it"):
        pytorch.load_trial_from_checkpoint_path(str(here / "nowhere"))


def written(directory: Path, module: str, code: str, spec: str) -> Path:
    """A checkpoint whose trial is ``spec``, with one file of code."""
    (directory / states.CODE).mkdir(parents=True)
    (directory / states.CODE / f"{module}.py").write_text(code)
    (directory / states.LOAD_DATA).write_text(json.dumps({"trial_cls_spec": spec, "hparams": {}}))
    torch.save({"models_state_dict": []}, directory / states.STATE)
    return directory


TRIAL = """
from tests.pytorch.trials import Digits
class Mine(Digits):
    which = {which!r}
    def __init__(self, context):
        self.context = context
"""


def test_two_checkpoints_have_each_its_own_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both call it train.py, and so may the program: the second one got the first one's class."""
    mine = type(sys)("train_of_checkpoints")
    monkeypatch.setitem(sys.modules, "train_of_checkpoints", mine)
    for which in ("first", "second", "first again"):
        code = TRIAL.format(which=which)
        directory = written(tmp_path / which, "train_of_checkpoints", code, "train_of_checkpoints:Mine")
        loaded: Any = pytorch.load_trial_from_checkpoint_path(str(directory))
        assert loaded.which == which
    assert sys.modules["train_of_checkpoints"] is mine
    assert not any(str(tmp_path) in entry for entry in sys.path)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("", "does not say which class its trial is: give it as trial_class"),
        ("gone_module:Mine", "cannot be imported from .*Give its class as trial_class"),
        ("of_a_trial:Yours", "has no attribute 'Yours'. Give its class as trial_class"),
        ("of_a_trial:number", "is no PyTorchTrial: give its class as trial_class"),
    ],
)
def test_code_that_does_not_give_the_class_leaves_a_way(tmp_path: Path, spec: str, said: str) -> None:
    """The class, from where it is now."""
    directory = written(tmp_path / "it", "of_a_trial", "number = 5\n", spec)
    with pytest.raises(InvalidInput, match=said):
        pytorch.load_trial_from_checkpoint_path(str(directory))


def test_a_module_that_is_run_by_its_name_is_kept_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``python -m package.train``: its code was kept as train, and could not import its package."""
    package = tmp_path / "package_of_run"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "train.py").touch()
    main = type(sys)("__main__")
    main.__file__ = str(package / "train.py")
    main.__spec__ = type("Spec", (), {"name": "package_of_run.train"})()  # type: ignore[assignment]
    held = type(sys)("package_of_run")
    held.__file__ = str(package / "__init__.py")
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setitem(sys.modules, "package_of_run", held)
    kind: type[Digits] = type("Mine", (Digits,), {"__module__": "__main__"})
    trial = kind.__new__(kind)
    assert states._load_data(CheckpointLoadContext(), trial)["trial_cls_spec"] == "package_of_run.train:Mine"
    states.write_code(tmp_path / "code", trial)
    assert {str(path.relative_to(tmp_path / "code")) for path in (tmp_path / "code").rglob("*.py")} == {
        "package_of_run/__init__.py",
        "package_of_run/train.py",
    }
    main.__spec__ = None
    assert states._load_data(CheckpointLoadContext(), trial)["trial_cls_spec"] == "train:Mine"
    shutil.rmtree(package)


# What a state is restored into.


class Inner(nn.Module):
    """A model whose one part is called as a job of several ranks calls a model."""

    def __init__(self) -> None:
        super().__init__()
        self.module = nn.Linear(2, 1)


def context_of(model: nn.Module, optimizer: Any = None) -> pytorch.PyTorchTrialContext:
    context = CheckpointLoadContext()
    context.wrap_model(model)
    if optimizer is not None:
        context.wrap_optimizer(optimizer(model.parameters()))
    return context


def saved(context: pytorch.PyTorchTrialContext, prefix: str = "") -> dict[str, Any]:
    names = [{prefix + name: value for name, value in model.state_dict().items()} for model in context.models]
    return {
        "models_state_dict": names,
        "optimizers_state_dict": [each.state_dict() for each in context.optimizers],
        "lr_schedulers_state_dict": [],
    }


@pytest.mark.parametrize("prefix", ["", "module.", "_orig_mod.", "module._orig_mod."])
@pytest.mark.parametrize("kind", [Inner, lambda: nn.Linear(2, 1), lambda: torch.compile(nn.Linear(2, 1))])
def test_weights_fit_however_the_model_was_wrapped(kind: Any, prefix: str) -> None:
    """By a job of several ranks, compiled, both, or with a part that is called so itself."""
    made = kind()
    bare = getattr(made, "_orig_mod", made)
    state = saved(context_of(bare), prefix)
    other = kind()
    states.restore_models(state, context_of(other).models)
    for mine, its in zip(other.parameters(), made.parameters()):
        assert torch.equal(mine, its)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (lambda: nn.Linear(2, 1), lambda: nn.Linear(3, 1), r"does not fit the model: [\s\S]*size mismatch for weight"),
        (lambda: nn.Linear(2, 1), lambda: nn.Sequential(nn.Linear(2, 1)), 'Missing key.s. in state_dict: "0.weight"'),
    ],
)
def test_another_model_is_told_apart(before: Any, after: Any, said: str) -> None:
    """With what is different, and what to do."""
    with pytest.raises(InvalidInput, match=said) as raised:
        states.restore_models(saved(context_of(before())), context_of(after()).models)
    assert "begin anew without latest_checkpoint" in str(raised.value)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (lambda each: torch.optim.SGD(each, 0.1), lambda each: torch.optim.Adam(each, 0.1)),
        (lambda each: torch.optim.Adam(each, 0.1), lambda each: torch.optim.SGD(each, 0.1)),
        (lambda each: torch.optim.SGD(each, 0.1), lambda each: torch.optim.SGD(list(each)[:1], 0.1)),
        (
            lambda each: torch.optim.SGD(each, 0.1),
            lambda each: torch.optim.SGD([{"params": [one]} for one in each], 0.1),
        ),
    ],
)
def test_another_optimizer_is_told_apart(before: Any, after: Any) -> None:
    """Of another kind it took the state, and failed at its first step."""
    model = nn.Linear(2, 1)
    state = saved(context_of(model, before))
    with pytest.raises(InvalidInput, match=r"does not fit the optimizer (SGD|Adam): .*begin anew without latest_check"):
        states.restore(state, context_of(model, after), {}, same_trial=False)


@pytest.mark.parametrize("missing", ["optimizers", "models"])
def test_there_are_as_many_as_there_were(missing: str) -> None:
    """A GAN has two of each."""
    model = nn.Linear(2, 1)
    state = saved(context_of(model, lambda each: torch.optim.SGD(each, 0.1)))
    state[f"{missing}_state_dict"] *= 2
    with pytest.raises(InvalidInput, match=f"the checkpoint has 2 {missing} and this trial 1"):
        states.restore(state, context_of(model, lambda each: torch.optim.SGD(each, 0.1)), {}, same_trial=False)
