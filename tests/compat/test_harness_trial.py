"""A PyTorchTrial of Determined's own library on real data, unchanged, on two slots."""

from __future__ import annotations

from pathlib import Path

from tenax.jsonvalue import Json
from tests.compat.digits_trial import BATCHES, MODEL, TRAINING
from tests.compat.harness import finished, submit
from tests.kits.machine import Machine, outlast, wait_for

#: A script of a user's own around that library's Trainer, which ends when it is told to.
TRAINER = """
import determined as det
from determined import pytorch
from model_def import DigitsTrial

info = det.get_cluster_info()
with pytorch.init(hparams=info.trial.hparams) as context:
    trainer = pytorch.Trainer(DigitsTrial(context), context)
    period = pytorch.Batch(50)
    trainer.fit(max_length=pytorch.Batch(10**6), validation_period=period, latest_checkpoint=info.latest_checkpoint)
"""


def test_its_trainer_is_paused_and_goes_on(cluster: Machine, tmp_path: Path) -> None:
    """Asked to leave it saves and leaves; activated, it reads its own checkpoint, also with a PyTorch that is newer
    than it, and trains on from there."""
    code = {"model_def.py": MODEL, "train.py": TRAINER}
    changes: dict[str, Json] = {**TRAINING, "entrypoint": "python3 train.py", "resources": {"slots_per_trial": 1}}
    experiment = submit(cluster, tmp_path / "code", code, **changes)
    with cluster.client() as client:
        trial = wait_for(lambda: next(iter(client.experiment(experiment.id).trials()), None), "its trial")

        def validated() -> int:
            return max((one.steps for one in client.trial(trial.id).metrics("validation")), default=0)

        wait_for(validated, "its first validation")
        client.experiment(experiment.id).pause()
        wait_for(lambda: client.trial(trial.id).state == "PAUSED", "its pause")
        saved = max(one.steps for one in client.trial(trial.id).checkpoints() if one.state == "COMPLETED")
        client.experiment(experiment.id).activate()
        wait_for(lambda: validated() > saved, "a validation beyond its checkpoint")
        steps = [one.steps for one in client.trial(trial.id).metrics("validation")]
        client.experiment(experiment.id).kill()
    assert outlast(cluster, experiment.id).state == "CANCELED"
    assert steps == sorted(set(steps))


def test_it_learns_on_two_slots(cluster: Machine, tmp_path: Path) -> None:
    """The name of the class is entrypoint enough: two ranks train together by that library's own launcher, and what it
    reports and keeps is the master's and the storage's, its code beside the weights."""
    experiment = submit(cluster, tmp_path / "code", {"model_def.py": MODEL}, **TRAINING)
    trial, _ = finished(cluster, experiment)
    assert trial.best_validation is not None
    assert trial.best_validation.steps == BATCHES
    accuracy = trial.searcher_metric
    assert accuracy is not None
    assert accuracy > 0.7
    assert {line.rank for line in trial.logs()} >= {0, 1}
    (checkpoint,) = trial.checkpoints()
    kept = cluster.directory / "checkpoints" / checkpoint.uuid
    assert {"state_dict.pth", "load_data.json", "metadata.json"} <= {path.name for path in kept.iterdir()}
    assert (kept / "code" / "model_def.py").read_text() == MODEL
