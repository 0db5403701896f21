"""The example of a `DeepSpeedTrial` on a real cluster, in the words of both packages: killed, it is one run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from tests.kits.machine import Machine, outlast

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "frameworks"
NAME = "with_deepspeed_trial"
#: On a CPU DeepSpeed would compile its own way of talking on one machine. One rank is killed, in its first run.
MODEL = f"""
import os
import pathlib
import signal

import deepspeed
import torch

deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
torch.set_num_threads(1)

from {NAME} import DigitsTrial


class Killed(DigitsTrial):
    def train_batch(self, dataloader_iter, epoch_idx, batch_idx):
        marker = pathlib.Path(self.context.get_hparam("marker"))
        if batch_idx == 50 and self.context.distributed.rank == 1 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().train_batch(dataloader_iter, epoch_idx, batch_idx)
"""


@pytest.mark.long
def test_a_killed_job_goes_on_as_the_one_that_was_not(place: Machine, tmp_path: Path) -> None:
    """Two ranks, whose validations are the same numbers; written for Determined it is the same program."""
    runs = {}
    for package, kind in (("tenax", "DigitsTrial"), ("determined", "Killed")):
        code = tmp_path / package
        code.mkdir()
        shutil.copy(EXAMPLES / "digits.py", code)
        text = (EXAMPLES / f"{NAME}.py").read_text().replace("from tenax.", f"from {package}.")
        (code / f"{NAME}.py").write_text(text)
        (code / "model_def.py").write_text(MODEL)
        config = yaml.safe_load((EXAMPLES / f"{NAME}.yaml").read_text())
        config["entrypoint"] = f"python3 -m {package}.launch.deepspeed --trial model_def:{kind}"
        config["hyperparameters"] |= {"hidden": 16, "marker": str(tmp_path / package / "killed")}
        config["searcher"]["max_length"] = {"epochs": 2}
        config["min_checkpoint_period"] = {"batches": 20}
        config["environment"] = {"environment_variables": ["DS_ACCELERATOR=cpu"]}
        config["reproducibility"] = {"experiment_seed": 7}
        with place.client() as client:
            made = client.create_experiment(config, code)
            ended = outlast(place, made.id)
            (trial,) = ended.trials()
            assert ended.state == "COMPLETED", place.tenax("trial", "logs", str(trial.id)).stdout
            rows = [(row.steps, row.metrics) for row in client.trial(trial.id).metrics("validation")]
            runs[package] = trial.restarts, rows
    assert (runs["tenax"][0], runs["determined"][0]) == (0, 1)
    assert [step for step, _ in runs["tenax"][1]] == [45, 90]
    assert runs["determined"][1] == runs["tenax"][1]
