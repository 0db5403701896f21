"""Ranks of a `DeepSpeedTrial` over gloo, which share an optimizer (ZeRO), or a model (a pipeline)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.pytorch.processes import batches_of, run, said_in


@pytest.fixture(autouse=True)
def _without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")


def trained(tmp_path: Path, kind: str, stage: int, **parts: tuple[int, int, str | None]) -> dict[str, list[Any]]:
    """What the ranks of each part wrote down, by its name; a part: its ranks, its length, what it goes on from."""
    described = [
        {
            "output": str(tmp_path / name),
            "ranks": ranks,
            "length": length,
            "after": after and str(tmp_path / after),
            "stage": stage,
            "kind": kind,
        }
        for name, (ranks, length, after) in parts.items()
    ]
    (tmp_path / "parts.json").write_text(json.dumps(described))
    run(["tests.pytorch.engines", str(tmp_path / "parts.json")])
    return {name: said_in(tmp_path / name, ranks) for name, (ranks, _, _) in parts.items()}


@pytest.mark.parametrize(
    ("kind", "stage"),
    [
        ("engine", 1),
        *(pytest.param("engine", stage, marks=pytest.mark.long) for stage in (0, 2, 3)),
        *(pytest.param("pipeline", stage, marks=pytest.mark.long) for stage in (0, 1)),
    ],
)
def test_ranks_go_on_bit_for_bit(tmp_path: Path, kind: str, stage: int) -> None:
    """Samples, losses, parameters and validations are those of the job that was not stopped; of two ranks each has its
    samples, and of a pipeline both the same."""
    parts = trained(tmp_path, kind, stage, whole=(2, 9, None), part=(2, 4, None), rest=(2, 9, "part"))
    for whole, part, rest in zip(parts["whole"], parts["part"], parts["rest"]):
        assert part["seen"] + rest["seen"] == whole["seen"]
        assert rest["parameters"] == whole["parameters"]
        assert rest["validated"] == whole["validated"] == parts["whole"][0]["validated"]
        assert whole["stored"] == parts["whole"][0]["stored"]
        assert len(whole["stored"]) == 3
    if kind == "engine":
        assert batches_of(parts["whole"]).keys() == set(range(9))
        assert sorted(number for index in range(3) for number in batches_of(parts["whole"])[index]) == list(range(96))
        assert parts["whole"][0]["parameters"] == parts["whole"][1]["parameters"]
    else:
        first, last = parts["whole"]
        assert [numbers for _, numbers, _ in first["seen"]] == [numbers for _, numbers, _ in last["seen"]]


def test_a_checkpoint_holds_the_part_of_each_rank(tmp_path: Path, here: Path) -> None:
    """One file a rank of what ZeRO shares out; with another number of ranks it is said what is wrong."""
    with pytest.raises(AssertionError, match=r"the checkpoint is of 2 ranks, and these are 1"):
        trained(tmp_path, "engine", 1, two=(2, 2, None), one=(1, 4, "two"))
    chief, _ = said_in(tmp_path / "two", 2)
    names = {path.name for path in (here / "checkpoints" / chief["stored"][-1] / "model0").iterdir()}
    assert names >= {f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt" for rank in range(2)}
