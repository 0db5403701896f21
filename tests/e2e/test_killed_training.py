"""Training that is killed (-9) at random steps ends as the one that was not: samples, losses and parameters, bit for
bit. A loop of one's own with `tenax.core`, and a `Trainer`, side by side on a real cluster."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
from collections.abc import Iterable
from pathlib import Path

import psutil
import pytest

from tenax.jsonvalue import JsonObject
from tests.kits.machine import Machine, outlast, wait_for

#: What both train, and write down of each step: the samples and the loss.
COMMON = """
import hashlib, json, os, time
import torch
from sklearn.datasets import load_digits
from torch import nn

pixels, labels = load_digits(return_X_y=True)
pixels, labels = torch.tensor(pixels / 16, dtype=torch.float32)[:320], torch.tensor(labels)[:320]
torch.set_num_threads(1)


def network():
    return nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Dropout(0.3), nn.BatchNorm1d(24), nn.Linear(24, 10))


def note(step, numbers, loss, hparams):
    line = json.dumps({"step": step, "numbers": numbers, "loss": loss, "pid": os.getpid()})
    with open(hparams["notes"], "a") as file:
        file.write(line + "\\n")
    time.sleep(hparams["seconds"])
    # However late whoever is to kill it comes: it has not ended by then.
    while any(step > at + 6 and not os.path.exists(f"{hparams['notes']}-{at}") for at in hparams["kills"]):
        time.sleep(0.01)


def digest(model):
    data = b"".join(value.contiguous().numpy().tobytes() for value in model.state_dict().values())
    return int.from_bytes(hashlib.blake2b(data, digest_size=6).digest(), "big")
"""
LOOP = (
    COMMON
    + """
from tenax import core

with core.init() as context:
    hparams = context.hparams
    torch.manual_seed(1)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    first, order = 0, torch.randperm(320)
    if context.latest_checkpoint:
        with context.checkpoint.restore_path(context.latest_checkpoint) as path:
            state = torch.load(path / "state.pt")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first, order = state["step"], state["order"]
        torch.set_rng_state(state["random"])
    for step in range(first, hparams["steps"]):
        if step % 10 == 0:
            order = torch.randperm(320)
        numbers = order[step % 10 * 32 :][:32]
        loss = nn.functional.cross_entropy(model(pixels[numbers]), labels[numbers])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        note(step, numbers.tolist(), loss.item(), hparams)
        if (step + 1) % 5 == 0:
            context.train.report_training_metrics(step + 1, {"loss": loss.item()})
            with context.checkpoint.store_path({"steps_completed": step + 1}) as (path, _):
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}
                torch.save({**state, "order": order, "random": torch.get_rng_state()}, path / "state.pt")
    context.train.report_validation_metrics(hparams["steps"], {"digest": digest(model)})
"""
)
TRAINER = (
    COMMON
    + """
from tenax import pytorch


class Digits(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(network())
        self.optimizer = context.wrap_optimizer(torch.optim.Adam(self.model.parameters(), lr=0.01))

    def build_training_data_loader(self):
        data = torch.utils.data.TensorDataset(torch.arange(320), pixels, labels)
        return pytorch.DataLoader(data, batch_size=32, shuffle=True)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(torch.utils.data.TensorDataset(pixels[:32]), batch_size=32)

    def train_batch(self, batch, epoch_idx, batch_idx):
        numbers, images, kinds = batch
        loss = nn.functional.cross_entropy(self.model(images), kinds)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        note(batch_idx, numbers.tolist(), loss.item(), self.context.get_hparams())
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"digest": digest(self.model)}


with pytorch.init() as context:
    pytorch.Trainer(Digits(context), context).fit(
        max_length=pytorch.Batch(context.get_hparam("steps")),
        reporting_period=pytorch.Batch(5),
        checkpoint_period=pytorch.Batch(5),
        checkpoint_policy="none",
        latest_checkpoint=context.latest_checkpoint,
    )
"""
)
SCRIPTS = {"loop": LOOP, "trainer": TRAINER}


def config(script: str, notes: Path, steps: int, seconds: float, kills: list[int]) -> JsonObject:
    return {
        "name": script,
        "entrypoint": f"python3 {script}.py",
        "hyperparameters": {"notes": str(notes), "steps": steps, "seconds": seconds, "kills": list(kills)},
        "searcher": {"name": "single", "metric": "digest"},
        "reproducibility": {"experiment_seed": 3},
        "max_restarts": 30,
        "checkpoint_storage": {"save_trial_latest": 2},
    }


def noted(notes: Path) -> list[dict[str, object]]:
    """The steps that were made, in the order in which they were; a line that is being written is none."""
    with contextlib.suppress(FileNotFoundError):
        return [json.loads(line) for line in notes.read_text().split("\n")[:-1]]
    return []


def by_step(notes: Path) -> dict[int, tuple[object, object]]:
    """The samples and the loss of each step, as it was made last."""
    return {int(str(line["step"])): (line["numbers"], line["loss"]) for line in noted(notes)}


def kill_each_at(notes: Iterable[Path], step: int) -> None:
    """Whoever made that step, or one after it, a moment later; that of none has to wait for another's.

    A file beside its notes says that it was.
    """
    left = list(notes)

    def there() -> tuple[Path, int] | None:
        for path in left:
            line = next((line for line in reversed(noted(path)) if int(str(line["step"])) >= step), None)
            # A slow machine may have let the one before come so far, and it was killed since: then the next one.
            if line is not None and psutil.pid_exists(int(str(line["pid"]))):
                return path, int(str(line["pid"]))
        return None

    while left:
        path, pid = wait_for(there, f"step {step} in {left}")
        os.kill(pid, signal.SIGKILL)
        path.with_name(f"{path.name}-{step}").touch()
        left.remove(path)


@pytest.mark.parametrize(
    ("names", "kills", "steps"),
    [
        (("trainer",), 1, 40),
        pytest.param(tuple(SCRIPTS), 20, 220, marks=(pytest.mark.long, pytest.mark.timeout(1800))),
    ],
)
def test_a_killed_training_is_the_one_that_was_not(
    place: Machine, tmp_path: Path, names: tuple[str, ...], kills: int, steps: int
) -> None:
    """Wherever it is killed: what it did after its last checkpoint it does again, the same."""
    chance = random.Random(kills)
    # None of the first steps, before there is a checkpoint, and none of the last, after which it has ended.
    at = sorted(chance.sample([step for step in range(5, steps - 12) if step % 5 < 3], kills))
    for name in names:
        (tmp_path / f"{name}.py").write_text(SCRIPTS[name])
    notes = {(name, kind): tmp_path / f"{name}-{kind}" for name in names for kind in ("whole", "killed")}
    experiments = {}
    with place.client() as client:
        for kind, seconds, killed_at in (("whole", 0.0, []), ("killed", 0.05, at)):
            for name in names:
                its = config(name, notes[name, kind], steps, seconds, killed_at)
                experiments[name, kind] = client.create_experiment(its, tmp_path).id
    for step in at:
        kill_each_at([notes[name, "killed"] for name in names], step)
    again = 0
    for name in names:
        ends = [outlast(place, experiments[name, kind], 600) for kind in ("whole", "killed")]
        said = place.tenax("trial", "logs", str(ends[1].trials()[0].id)).stdout
        assert [end.state for end in ends] == ["COMPLETED", "COMPLETED"], said
        assert ends[1].trials()[0].restarts == kills
        whole, killed = (by_step(notes[name, kind]) for kind in ("whole", "killed"))
        assert sorted(whole) == list(range(steps))
        assert killed == whole
        validations = []
        for end in ends:
            with place.client() as client:
                (row,) = client.trial(end.trials()[0].id).metrics("validation")
            validations.append((row.steps, row.metrics["digest"]))
        assert validations[0] == validations[1]
        again += len(noted(notes[name, "killed"])) - steps
    assert again
