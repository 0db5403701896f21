"""A cluster whose operator stores files that checkpoints have in common once, in a bucket of his: from its setting to
the end of everything, with two trials at once, a fork, the policy and a download through the master."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tenax.client.checkpoints import Checkpoint
from tenax.jsonvalue import JsonObject
from tests.e2e.collecting import all_of
from tests.e2e.trials import config, output, script
from tests.kits.machine import Machine, machine, outlast, wait_for
from tests.kits.object_places import PREFIX, ObjectPlace, new_place

#: Ten layers, of which one changes with each step. Goes on from what it is given.
SCRIPT = """
    import json
    from tenax import core

    with core.init() as context:
        if context.latest_checkpoint:
            with context.checkpoint.restore_path(context.latest_checkpoint) as path:
                assert len(list(path.glob("layer-*"))) == 10
        seed = context.hparams["seed"]
        for step in range(1, 4):
            with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
                for layer in range(10):
                    of_step = (step, seed) if layer == 0 else (0, 0)
                    (path / f"layer-{layer}").write_bytes(bytes([layer, *of_step]) * 30_000)
            context.train.report_validation_metrics(step, {"loss": 1 / step})
"""


def shared(place: ObjectPlace) -> list[str]:
    names = place.objects.names()
    return [name for name in names if name.startswith(f"{PREFIX}/.shared/") and name.endswith("/data")]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("forked", [False, pytest.param(True, marks=pytest.mark.long)])
def test_an_operators_bucket(tmp_path: Path, forked: bool) -> None:
    """What is kept is whole, with its whole size; what is collected takes nothing of it; nothing is left in the end."""
    settings = tmp_path / "master.yaml"
    with new_place("s3") as place:
        settings.write_text(yaml.safe_dump({"checkpoint_storage": place.at(), "share_checkpoint_files": True}))
        document = config(
            name="shared",
            hyperparameters={"seed": {"type": "categorical", "vals": [1, 2]}},
            searcher={"name": "grid", "metric": "loss", "max_concurrent_trials": 2},
            checkpoint_storage={"save_trial_latest": 2, "save_trial_best": 0},
        )
        with machine(slots=2, options=("--config", str(settings))) as up:
            number = trained(up, document, tmp_path)
            kept = [one for one in all_of(up, number)[1] if one.steps > 1]
            # Of each trial nine layers, and one of each step that is kept.
            wait_for(lambda: len(shared(place)) == 22 or None, "the end of the first steps")
            assert [one.size // 900_000 for one in kept] == [1] * 4
            if forked:
                outlived_by_a_fork(up, place, number, kept, tmp_path)
            else:
                with up.client() as client:
                    here = client.checkpoint(kept[0].uuid).download(tmp_path / "here", mode="master")
                    assert sorted(path.stat().st_size for path in here.glob("layer-*")) == [90_000] * 10
                    client.experiment(number).delete()
            wait_for(lambda: not place.objects.names() or None, "the end of everything")


def trained(up: Machine, document: JsonObject, directory: Path) -> int:
    """An experiment that has completed."""
    with up.client() as client:
        number = client.create_experiment(document, script(directory / "code", SCRIPT)).id
    ended = outlast(up, number)
    assert ended.state == "COMPLETED", output(up, ended.trials()[0])
    return number


def outlived_by_a_fork(up: Machine, place: ObjectPlace, number: int, kept: list[Checkpoint], directory: Path) -> None:
    """It is deleted before what started from a checkpoint of it, which is whole all the same."""
    source = next(one for one in kept if one.steps == 3)
    fork = config(
        name="fork",
        hyperparameters={"seed": 3},
        searcher={"name": "single", "metric": "loss", "source_checkpoint_uuid": source.uuid},
        checkpoint_storage={"save_trial_latest": 1, "save_trial_best": 0},
    )
    forked = trained(up, fork, directory)
    # Nine layers are those that it started from.
    wait_for(lambda: len(shared(place)) == 23 or None, "the end of its first steps")
    with up.client() as client:
        client.experiment(number).delete()
        wait_for(lambda: len(shared(place)) == 10 or None, "the end of what it started from")
        latest = max(all_of(up, forked)[1], key=lambda one: one.steps)
        here = client.checkpoint(latest.uuid).download(directory / "here", mode="master")
        assert [(here / f"layer-{n}").read_bytes()[:3] for n in (0, 9)] == [bytes([0, 3, 3]), bytes([9, 0, 0])]
        client.experiment(forked).delete()
