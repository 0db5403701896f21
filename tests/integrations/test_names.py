"""Scripts of Determined's users, under that name and under ours: the very same training."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tenax
from tests.integrations.dialects import DATASETS, KERAS, NAMES, TRANSFORMERS
from tests.integrations.place import Trial

IMPORTS = Path(tenax.__file__).parent / "exec" / "imports"
#: 13 steps to an epoch.
ARGUMENTS = {
    "do_train": True,
    "num_train_epochs": 2,
    "per_device_train_batch_size": 32,
    "learning_rate": 0.003,
    "eval_strategy": "epoch",
    "save_strategy": "epoch",
    "logging_steps": 5,
    "disable_tqdm": True,
}
SCRIPTS: dict[str, Any] = {
    "transformers": (TRANSFORMERS, "DetCallback", {"hidden": 16, "training_arguments": ARGUMENTS}),
    "keras": (KERAS, "DeterminedCallback", {"dense": 16, "dropout": 0.3, "lr": 0.01, "epochs": 3}),
}


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """``import determined`` as in a task."""
    before, finders = set(sys.modules), list(sys.meta_path)
    monkeypatch.syspath_prepend(str(IMPORTS))
    yield
    sys.meta_path[:] = finders
    for name in set(sys.modules) - before:
        if name.split(".")[0] in ("determined", "datasets_of_ours"):
            del sys.modules[name]


@pytest.mark.parametrize("part", SCRIPTS)
def test_a_script_trains_the_same_under_both_names(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paused and gone on with under one, never paused under the other: each metric is the same."""
    source, names, hparams = SCRIPTS[part]
    datasets = types.ModuleType("datasets_of_ours")
    exec(DATASETS, vars(datasets))
    monkeypatch.setitem(sys.modules, "datasets_of_ours", datasets)
    scripts: dict[str, dict[str, Any]] = {}
    for name, header in NAMES.items():
        scripts[name] = {"__name__": "script"}
        exec(header.format(part=part, names=names) + source, scripts[name])

    ours = Trial(tmp_path / "ours", monkeypatch, hparams)
    whole = ours.run(scripts["tenax"]["run"])
    theirs = Trial(tmp_path / "theirs", monkeypatch, hparams)
    first = theirs.run(scripts["determined"]["run"], stop_after=2)
    rest = theirs.run(scripts["determined"]["run"])
    assert first.acknowledged
    validations = {key: value for key, value in whole.metrics.items() if key[0] == "validation"}
    both = {**first.metrics, **rest.metrics}
    assert validations == {key: value for key, value in both.items() if key[0] == "validation"}
    assert len(validations) > 1
