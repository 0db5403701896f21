"""Jobs of several processes over gloo: one job in what it trains, whatever number of ranks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pytorch import job
from tests.pytorch.processes import batches_of, run, said_in


def test_ranks_that_torchrun_started_share_batches_and_have_one_model(tmp_path: Path) -> None:
    """Each sample is one rank's; the parameters are the same to the last bit; all know which checkpoints are stored."""
    launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    run([*launcher, "-m", "tests.pytorch.job", "rank", str(tmp_path), "8"])
    said = said_in(tmp_path, 2)
    batches = batches_of(said)
    assert sorted(batches) == list(range(8))
    assert len(batches[0]) == job.GLOBAL_BATCH_SIZE
    assert sorted(number for index in range(6) for number in batches[index]) == list(range(192))
    assert said[0]["parameters"] == said[1]["parameters"]
    assert len(said[0]["stored"]) == 3
    assert said[0]["stored"] == said[1]["stored"]


@pytest.mark.parametrize(
    "ranks", [(4, 2, 4), *(pytest.param(ranks, marks=pytest.mark.long) for ranks in ((2, 2), (2, 1)))]
)
def test_a_job_goes_on_with_other_ranks(tmp_path: Path, ranks: tuple[int, ...]) -> None:
    """No sample is lost or trained twice; with as many ranks as before the rest is the same, bit for bit."""
    parts: list[dict[str, object]] = [
        {"output": str(tmp_path / "whole"), "ranks": ranks[0], "length": 9, "after": None}
    ]
    for number, count in enumerate(ranks):
        length = 9 if number == len(ranks) - 1 else 4 * (number + 1)
        after = str(tmp_path / f"{number - 1}") if number else None
        parts.append({"output": str(tmp_path / f"{number}"), "ranks": count, "length": length, "after": after})
    (tmp_path / "parts.json").write_text(json.dumps(parts))
    run(["tests.pytorch.job", "parts", str(tmp_path / "parts.json")])
    whole = said_in(tmp_path / "whole", ranks[0])
    seen: dict[int, list[int]] = {}
    for number, count in enumerate(ranks):
        said = said_in(tmp_path / f"{number}", count)
        assert not seen.keys() & batches_of(said).keys()
        seen.update(batches_of(said))
    assert seen == batches_of(whole)
    if len(set(ranks)) == 1:
        assert said[0]["parameters"] == whole[0]["parameters"]
