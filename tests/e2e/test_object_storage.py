"""A trial whose checkpoints go into a bucket: paused and gone on with, collected by the policy, downloaded, deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.collecting import all_of
from tests.e2e.trials import config, output, script
from tests.kits.machine import Machine, outlast, wait_for
from tests.kits.object_places import PLACES, PREFIX, ObjectPlace, azure_connection, new_place

STEPS = 9
#: Waits at step 4 until it is asked to stop.
SCRIPT = """
    import json, time
    from tenax import core

    with core.init() as context:
        steps, first = context.hparams["steps"], 0
        if context.latest_checkpoint:
            with context.checkpoint.restore_path(context.latest_checkpoint) as path:
                first = json.loads((path / "state.json").read_text())["step"]
                assert (path / "deep" / "model.bin").stat().st_size == 100_000
        for step in range(first + 1, steps + 1):
            context.train.report_training_metrics(step, {"loss": 1 / step})
            while step == 4 and not context.preempt.should_preempt():
                time.sleep(0.02)
            stops = context.preempt.should_preempt()
            if stops or step % 3 == 0:
                with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
                    (path / "deep").mkdir()
                    (path / "deep" / "model.bin").write_bytes(bytes([step]) * 100_000)
                    (path / "state.json").write_text(json.dumps({"step": step}))
            if stops:
                break
        else:
            context.train.report_validation_metrics(steps, {"loss": 1.0})
"""


def stored(place: ObjectPlace) -> set[str]:
    """Checkpoints of which anything is in the bucket, and marks of those that are on their way."""
    below = [name[len(PREFIX) + 1 :] for name in place.objects.names()]
    return {name.split("/")[0] for name in below if "/tensorboard/" not in name}


@pytest.mark.parametrize(
    "kind", ["s3", *(pytest.param(kind, marks=pytest.mark.long) for kind in PLACES if kind != "s3")]
)
def test_a_trial_with_a_bucket(shared: Machine, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its credentials are its configuration's: no other has them, and no log shows them."""
    with new_place(kind) as place:
        trial_with_a_bucket(shared, place, tmp_path, monkeypatch)


def trial_with_a_bucket(shared: Machine, place: ObjectPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = [] if place.credentials else [f"{name}={value}" for name, value in place.variables.items()]
    section = place.at()
    if section["type"] == "azure":
        # Who deletes is told of the account alone, which is not in the section.
        for name in ("account_url", "credential"):
            del section[name]
        section["connection_string"] = azure_connection(place.server)
    document = config(
        name="in a bucket",
        hyperparameters={"steps": STEPS},
        searcher={"name": "single", "metric": "loss"},
        checkpoint_storage={**section, "save_trial_latest": 1, "save_trial_best": 0},
        environment={"environment_variables": variables},
    )
    with shared.client() as client:
        experiment = client.create_experiment(document, script(tmp_path / "code", SCRIPT))
        number = experiment.id

        def waits() -> bool:
            trials = client.experiment(number).trials()
            return bool(trials) and trials[0].steps == 4

        wait_for(waits, "step 4")
        experiment.pause()
        # Not the state alone: a run that was not asked to leave yet goes on where it is activated again.
        wait_for(lambda: not shared.task_processes(number) or None, "the run to leave")
        experiment.activate()
    ended = outlast(shared, number)
    printed = output(shared, ended.trials()[0])
    assert ended.state == "COMPLETED", printed
    _, checkpoints = all_of(shared, number)
    assert sorted(one.steps for one in checkpoints) == [3, 4, 6, 9]
    latest = max(checkpoints, key=lambda one: one.steps)
    # A task on an agent deletes, with the credentials of the configuration.
    wait_for(lambda: stored(place) == {latest.uuid} or None, "the end of three checkpoints")
    for name, value in place.variables.items():
        monkeypatch.setenv(name, value)
    with shared.client() as client:
        here = client.checkpoint(latest.uuid).download(tmp_path / "here")
        assert (here / "deep/model.bin").read_bytes() == bytes([9]) * 100_000
        assert any("/tensorboard/" in key for key in place.objects.names())
        client.experiment(number).delete()
    wait_for(lambda: not place.objects.names() or None, "the end of everything, and of what TensorBoard reads")
    everything = printed + shared.logs()
    assert not [secret for secret in place.secrets if secret in everything]
