"""The pages for whoever writes a script, typed from top to bottom: runs by hand, and several machines."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.docs.desk import Desk, Hint, desk, walk

#: A page starts and stops clusters, on a machine that others use as well.
pytestmark = pytest.mark.timeout(900)

TRAIN = """
import argparse, json
from tenax import core

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
epochs = parser.parse_args().epochs
with core.init(hparams={"lr": 0.1}) as context:
    done = 0
    if context.latest_checkpoint:
        with context.checkpoint.restore_path(context.latest_checkpoint) as path:
            done = json.loads((path / "epoch.json").read_text())
    for epoch in range(done + 1, epochs + 1):
        context.train.report_validation_metrics(epoch, {"accuracy": 1 - context.hparams["lr"] / epoch})
        with context.checkpoint.store_path({"steps_completed": epoch}) as (path, uuid):
            (path / "epoch.json").write_text(json.dumps(epoch))
        if context.preempt.should_preempt():
            break
"""
RANK = 'import os; print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"])\n'
JOINING = "tenax agent --master-url http://FIRST:8080 --join-token-file token"
LAUNCH = "python3 -m tenax.launch.torch_distributed --nproc_per_node 2 -- python3 train.py"


@pytest.fixture(scope="module")
def writer() -> Iterator[Desk]:
    """With four slots."""
    with desk(slots="4") as made:
        made.tenax("up")
        yield made


def names(made: Desk) -> list[str]:
    """Of the runs by hand, as one types them: the last part."""
    return [str(run["run"]).rpartition("-")[2] for run in json.loads(made.tenax("local", "list", "--json"))]


def with_a_project(made: Desk) -> None:
    made.tenax("workspace", "create", "vision")
    made.tenax("project", "create", "vision", "ablations")


def without_a_cluster(made: Desk) -> None:
    """A run that no cluster has seen."""
    code, said = made.type("python train.py")
    assert code == 0, said


def test_training(writer: Desk) -> None:
    """A script that is tracked, kept, sent later, resumed and thrown away."""
    (writer.home / "train.py").write_text(TRAIN)
    two = Hint(put=lambda made: dict(zip(("1f0c2a", "77ab03"), names(made))))
    walk(
        writer,
        "training.md",
        {
            "tenax track --metric accuracy --project vision/ablations -- python train.py --epochs 5": Hint(
                before=with_a_project
            ),
            "tenax sync": Hint(before=without_a_cluster),
            "tenax local metrics 1f0c2a 77ab03": two,
            "tenax local rm 1f0c2a": Hint(put=lambda made: {"1f0c2a": names(made)[-1]}, answer=lambda _: "y"),
        },
    )
    assert writer.said.count("It goes on from step") == 2
    assert "tracked as trial 1 of experiment 1" in writer.said
    assert writer.tenax("experiment", "list").count("COMPLETED") == 5
    # Five, the one that was resumed, and without the one that was thrown away.
    assert len(names(writer)) == 5


def test_several_machines(writer: Desk) -> None:
    """Four ranks of the example, two by hand, and the second machine, which this one plays."""
    other = f" --agent-id second --dir {writer.home}/second"
    walk(
        writer,
        "distributed.md",
        {
            "tenax experiment create examples/digits/distributed.yaml examples/digits -f": Hint(
                put=lambda _: {" -f": " -f --config hyperparameters.epochs=1"}
            ),
            LAUNCH: Hint(before=lambda made: (made.home / "train.py").write_text(RANK) and None),
            "tenax up --host 0.0.0.0": Hint(before=lambda made: made.tenax("down") and None),
            JOINING: Hint(
                put=lambda _: {"--join-token-file token": f"--join-token-file token{other}"}, until="connected"
            ),
        },
    )
    assert "rank 1 of 2" in writer.said
