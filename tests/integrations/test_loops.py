"""Loops of one's own, with Fabric and with Accelerate: the four calls of `tenax.core` are all that they need."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integrations.place import Trial, example
from tests.integrations.same import same

#: To an epoch.
STEPS = 45


@pytest.mark.parametrize("name", ["with_fabric", "with_accelerate"])
def test_a_trial_that_was_paused_and_killed_is_the_one_that_was_not(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each number is the same, and so is the last state."""
    main = example(name, monkeypatch).main
    hparams = {"lr": 0.003, "hidden": 64, "epochs": 4}
    whole, broken = Trial(tmp_path / "whole", monkeypatch, hparams), Trial(tmp_path / "broken", monkeypatch, hparams)
    full = whole.train(main)
    assert full.steps("validation") == [STEPS * epoch for epoch in (1, 2, 3, 4)]
    assert full.metrics["validation", 4 * STEPS]["val_accuracy"] > 0.8
    paused = broken.train(main, stop_after=1)
    assert paused.acknowledged
    killed = broken.train(main, kill_after=2)
    rest = broken.train(main)
    assert {**paused.metrics, **killed.metrics, **rest.metrics} == full.metrics
    same(whole.directory(), broken.directory())
