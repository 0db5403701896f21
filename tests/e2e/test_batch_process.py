"""A script that puts a data set through a model, as users of Determined write it: two ranks, paused, gone on with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.trials import config, output, ran, script
from tests.kits.machine import Machine, outlast, wait_for

SAVES = """
    from tenax import core

    with core.init() as context:
        with context.checkpoint.store_path({"steps_completed": 7}) as (path, uuid):
            (path / "factor").write_text("3")
        context.train.report_validation_metrics(7, {"loss": 0.0})
        print("UUID", uuid)
"""
#: Of 80 numbers, 2 in a batch; both ranks stand in their seventh until they are asked to leave.
PROCESSES = """
    import json, time
    import torch
    from determined.experimental import client
    from determined.pytorch import experimental

    class Times(experimental.TorchBatchProcessor):
        def __init__(self, context):
            self.context = context
            used = client.get_checkpoint(context.get_hparams()["uuid"])
            self.model = context.prepare_model_for_inference(torch.nn.Identity())
            context.report_task_using_checkpoint(used)
            self.sum = context.wrap_reducer(sum, name="sum")

        def process_batch(self, batch, batch_idx):
            answers = (3 * self.model(self.context.to_device(batch)[0])).tolist()
            self.sum.update(sum(answers))
            print("BATCH", self.context.get_distributed_rank(), batch_idx, answers)
            with self.context.upload_path() as path:
                (path / f"{batch_idx}.json").write_text(json.dumps(answers))
            while batch_idx == 6 and not self.context.core.preempt.should_preempt():
                time.sleep(0.02)

    data = torch.utils.data.TensorDataset(torch.arange(80))
    experimental.torch_batch_process(Times, data, batch_size=2, checkpoint_interval=3)
"""


# Two ranks load torch twice, which takes minutes where much else runs.
@pytest.mark.timeout(600)
def test_a_data_set_is_processed_once(shared: Machine, tmp_path: Path) -> None:
    """By two ranks, over a pause: no batch is left out, and none is done twice; metrics are found with what it used."""
    _, (first,) = ran(shared, config(), script(tmp_path / "saves", SAVES))
    uuid = output(shared, first).split("UUID ")[1].split()[0]
    document = config(
        entrypoint="python3 -m determined.launch.torch_distributed python3 train.py",
        hyperparameters={"uuid": uuid},
        searcher={"name": "single", "metric": "sum"},
        resources={"slots_per_trial": 2},
    )
    with shared.client() as client:
        experiment = client.create_experiment(document, script(tmp_path / "processes", PROCESSES))

        def begun() -> bool:
            trials = client.experiment(experiment.id).trials()
            return bool(trials) and bool(list(trials[0].checkpoints()))

        wait_for(begun, "its first checkpoint")
        experiment.pause()
        (trial,) = client.experiment(experiment.id).trials()
        wait_for(lambda: trial.reload().state == "PAUSED", "the pause")
        experiment.activate()
    ended = outlast(shared, experiment.id)
    (trial,) = ended.trials()
    printed = output(shared, trial)
    assert ended.state == "COMPLETED", printed
    assert trial.restarts == 0
    assert "run 1 has ended: it saved and left when asked to; the trial goes on" in printed
    batches = [line.split("BATCH ")[1].split(" ", 2) for line in printed.splitlines() if "BATCH " in line]
    answers = [number for _, _, given in batches for number in json.loads(given)]
    assert sorted(answers) == [3 * number for number in range(80)]
    assert {rank for rank, _, _ in batches} == {"0", "1"}
    stored = (shared.directory / "checkpoints").glob("outputs/*/rank_*/*.json")
    assert sorted(number for path in stored for number in json.loads(path.read_text())) == sorted(answers)
    with shared.client() as client:
        reports = client.checkpoint(uuid).metrics("validation")
    assert [report.metrics["sum"] for report in reports] == [3 * sum(range(80))]
