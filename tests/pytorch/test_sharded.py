"""Models that `fully_shard` shared out among ranks (FSDP2), over gloo: one job with those that are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tenax import pytorch
from tenax.errors import InvalidInput
from tenax.pytorch import sharded, state
from tests.pytorch.processes import batches_of, run, said_in
from tests.pytorch.trials import directory_of


def jobs(tmp_path: Path, *parts: tuple[str, dict[str, Any]]) -> dict[str, list[Any]]:
    """Name -> what each rank wrote down; a part: its name and what `tests.pytorch.job` takes."""
    outputs = {name: str(tmp_path / name) for name, _ in parts}
    described = [
        {
            "after": None,
            **part,
            "output": outputs[name],
            **({"after": outputs[part["after"]]} if "after" in part else {}),
        }
        for name, part in parts
    ]
    (tmp_path / "parts.json").write_text(json.dumps(described))
    run(["tests.pytorch.job", "parts", str(tmp_path / "parts.json")])
    return {name: said_in(tmp_path / name, part["ranks"]) for name, part in parts}


def test_a_sharded_job_is_one_that_is_not(tmp_path: Path, here: Path) -> None:
    """Its losses, parameters and validations are those of a job that is not sharded; paused it goes on bit for bit;
    its checkpoint is whole, and one rank without shards goes on from it."""
    said = jobs(
        tmp_path,
        ("plain", {"ranks": 2, "length": 9}),
        ("whole", {"ranks": 2, "length": 9, "kind": "sharded"}),
        ("first", {"ranks": 2, "length": 4, "kind": "sharded"}),
        ("rest", {"ranks": 2, "length": 9, "kind": "sharded", "after": "first"}),
        ("alone", {"ranks": 1, "length": 9, "after": "first"}),
    )
    whole = said["whole"][0]
    assert whole["parameters"] == said["whole"][1]["parameters"]
    assert whole["parameters"] == pytest.approx(said["plain"][0]["parameters"], abs=1e-4)
    losses = [[loss for _, _, loss in said[kind][0]["seen"]] for kind in ("whole", "plain")]
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)
    # Ranks have two and one batches of it: the one that is made twice does not count.
    assert whole["validated"][-1] == pytest.approx(said["plain"][0]["validated"][-1], abs=1e-4)
    assert said["first"][0]["seen"] + said["rest"][0]["seen"] == whole["seen"]
    assert said["rest"][0]["parameters"] == whole["parameters"]
    assert said["rest"][0]["validated"][-1] == whole["validated"][-1]
    assert said["alone"][0]["seen"][0][0] == 4
    (model,) = state.read(directory_of(said["first"][0]["stored"][-1], here))["models_state_dict"]
    assert all(type(value) is torch.Tensor for value in model.values())
    assert [tuple(value.shape) for value in model.values()][:2] == [(16, 64), (16,)]


@pytest.mark.long
def test_a_sharded_job_goes_on_with_other_ranks(tmp_path: Path) -> None:
    """Four, two, four: states are shared out anew, no sample is lost or trained twice. Four ranks have three batches of
    validation among them, and two batches make a step."""
    common = {"kind": "sharded", "every": 2}
    said = jobs(
        tmp_path,
        ("whole", {"ranks": 4, "length": 12, **common}),
        ("four", {"ranks": 4, "length": 4, **common}),
        ("two", {"ranks": 2, "length": 8, "after": "four", **common}),
        ("again", {"ranks": 4, "length": 12, "after": "two", **common}),
    )
    seen: dict[int, list[int]] = {}
    for name in ("four", "two", "again"):
        assert not seen.keys() & batches_of(said[name]).keys()
        seen.update(batches_of(said[name]))
    assert seen == batches_of(said["whole"])
    assert said["four"][0]["seen"] == said["whole"][0]["seen"][:4]
    assert len({tuple(rank["parameters"]) for rank in said["again"]}) == 1


class Part(nn.Module):
    """As `fully_shard` makes them."""

    def set_requires_gradient_sync(self, requires: bool, *, recurse: bool = True) -> None:
        raise AssertionError


def test_a_model_with_parts_that_are_not_sharded_is_refused() -> None:
    """Each rank would train its own of them, without a word."""
    model = nn.Sequential(Part(), nn.Linear(2, 2))
    with pytest.raises(InvalidInput, match=r"not: 1\.weight, 1\.bias\. Call fully_shard\(model\) on the model itself"):
        sharded.require_whole(model)


def test_mixed_precision_of_a_sharded_model_is_its_own() -> None:
    """A gradient scaler of each rank would skip steps that others make."""
    with pytorch.init() as context:
        context.experimental.use_amp()
        with pytest.raises(InvalidInput, match="MixedPrecisionPolicy"):
            context.wrap_model(nn.Sequential(Part()))
