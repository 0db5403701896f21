"""Every verb of `det checkpoint`, `det experiment set gc-policy`, and every method of the SDK about checkpoints."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from tenax.jsonvalue import Json
from tests.compat.client import BOTH, Det, Sdk
from tests.compat.experiments import CONFIG
from tests.kits.machine import Machine, wait_for

#: Two saves of three are followed by something worse; each has two files.
SCRIPT = """\
from tenax import core

with core.init() as context:
    for step, score in enumerate((1.0, 4.0, 3.0, 2.0), 1):
        context.train.report_validation_metrics(steps_completed=step, metrics={"score": score, "loss": step / 10})
        with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
            (path / "weights").write_text("w" * 10)
            (path / "state").mkdir()
            (path / "state" / "optimizer.pt").write_text("o" * 20)
"""
EVERYTHING = {"save_experiment_best": 0, "save_trial_best": 0, "save_trial_latest": 100}

#: A new experiment that has ended, with this policy: its number, and where its checkpoints lie.
Saved = Callable[..., tuple[int, Path]]


@pytest.fixture
def saved(sdk: Sdk, tmp_path: Path, cluster: Machine) -> Saved:
    """Four checkpoints of one trial, at steps 1 to 4."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text(SCRIPT)
    # Below the root of the cluster, which the master may touch; in a place of its own.
    root = cluster.directory / "checkpoints"
    storage = root / tmp_path.name
    storage.mkdir()

    def make(**policy: int) -> tuple[int, Path]:
        place: dict[str, Json] = {
            "type": "shared_fs",
            "host_path": str(root),
            "storage_path": tmp_path.name,
            **EVERYTHING,
            **policy,
        }
        number = sdk(
            "experiment = client.create_experiment(config, directory)\n"
            "assert experiment.wait(interval=0.2) == client.ExperimentState.COMPLETED\n"
            "result = experiment.id",
            config={**CONFIG, "name": "checkpoints", "entrypoint": "python3 train.py", "checkpoint_storage": place},
            directory=str(code),
        )
        assert isinstance(number, int)
        return number, storage

    return make


def by_step(sdk: Sdk, number: int) -> dict[int, str]:
    """Step -> uuid of all that the experiment has saved."""
    found = sdk(
        "checkpoints = client.get_experiment(number).list_trials()[0].list_checkpoints()\n"
        "result = {c.metadata['steps_completed']: c.uuid for c in checkpoints}",
        number=number,
    )
    return {int(step): str(uuid) for step, uuid in cast(dict[str, Json], found).items()}


def state_of(sdk: Sdk, uuid: str) -> str:
    return str(sdk("result = client.get_checkpoint(uuid).state.name", uuid=uuid))


def there(storage: Path, uuids: dict[int, str]) -> list[int]:
    """Steps of the checkpoints whose files are there."""
    return sorted(step for step, uuid in uuids.items() if (storage / uuid).is_dir())


def test_what_is_saved_is_listed_and_described(det: Det, sdk: Sdk, saved: Saved) -> None:
    """By both lists of the SDK in every order, by `det e list-checkpoints`, and one by one."""
    number, _ = saved()
    uuids = by_step(sdk, number)
    assert sorted(uuids) == [1, 2, 3, 4]

    def steps(what: str, arguments: str = "") -> Json:
        return sdk(
            "from determined.experimental.client import CheckpointSortBy, OrderBy\n"
            f"found = {what}.list_checkpoints({arguments})\n"
            "result = [c.metadata['steps_completed'] for c in found]",
            number=number,
        )

    for what in ("client.get_experiment(number)", "client.get_experiment(number).list_trials()[0]"):
        assert steps(what) == [2, 3, 4, 1], "the best first"
        assert steps(what, "max_results=2") == [2, 3]
        assert steps(what, "sort_by='loss', order_by=OrderBy.DESCENDING") == [4, 3, 2, 1]
        assert steps(what, "sort_by=CheckpointSortBy.BATCH_NUMBER, order_by=OrderBy.ASC") == [1, 2, 3, 4]
        for attribute in ("UUID", "TRIAL_ID", "END_TIME", "STATE", "SEARCHER_METRIC"):
            found = steps(what, f"sort_by=CheckpointSortBy.{attribute}, order_by=OrderBy.ASC")
            assert sorted(cast(list[int], found)) == [1, 2, 3, 4], attribute
    listed = det("e", "list-checkpoints", number, "--csv").out
    assert all(uuid in listed for uuid in uuids.values())
    best = det("e", "list-checkpoints", number, "--best", "1").out
    assert uuids[2] in best
    assert uuids[3] not in best
    assert " 4 |" in best, "the metric at its step"
    told = det("checkpoint", "describe", uuids[3]).out
    assert uuids[3] in told
    assert '"loss": 0.3' in told
    values = sdk(
        "one = client.get_checkpoint(uuid)\n"
        "one.reload()\n"
        "result = [one.training.validation_metrics['avgMetrics'], one.training.hparams, sorted(one.resources),"
        " one.training.experiment_id, one.state.name]",
        uuid=uuids[3],
    )
    files = [".tenax-manifest.json", "metadata.json", "state/", "state/optimizer.pt", "weights"]
    assert values == [{"score": 3.0, "loss": 0.3}, {}, files, number, "COMPLETED"]


@BOTH
def test_the_older_ways_to_the_best_checkpoints(sdk: Sdk, saved: Saved) -> None:
    """Which the SDK still has, and scripts still use."""
    number, _ = saved()
    uuids = by_step(sdk, number)
    found = sdk(
        "experiment = client.get_experiment(number)\n"
        "trial = experiment.list_trials()[0]\n"
        "result = [experiment.top_checkpoint().uuid, experiment.top_n_checkpoints(3)[0].uuid,"
        " trial.top_checkpoint().uuid, trial.select_checkpoint(latest=True).uuid,"
        " trial.select_checkpoint(best=True).uuid, trial.select_checkpoint(uuid=some).uuid,"
        " len(trial.get_checkpoints())]",
        number=number,
        some=uuids[1],
    )
    assert found == [uuids[2], uuids[2], uuids[2], uuids[4], uuids[2], uuids[1], 4]


@BOTH
def test_files_are_downloaded(det: Det, sdk: Sdk, saved: Saved, tmp_path: Path) -> None:
    """Through the master and directly, whole; by the command line and by the SDK."""
    number, storage = saved()
    uuids = by_step(sdk, number)
    for mode in ("master", "direct", "auto"):
        target = tmp_path / mode
        printed = det("checkpoint", "download", uuids[2], "-o", target, "-q", "--mode", mode).out
        assert printed.strip() == str(target)
        assert (target / "state" / "optimizer.pt").read_text() == "o" * 20
        assert json.loads((target / "metadata.json").read_text())["steps_completed"] == 2
    whole = det("e", "download", number, "--top-n", "1", "-o", tmp_path / "top").out
    assert uuids[2] in whole
    assert (tmp_path / "top" / uuids[2] / "weights").is_file()
    hidden = storage.rename(storage.with_name(f"{storage.name}-elsewhere"))
    refused = det("checkpoint", "download", uuids[1], "-o", tmp_path / "none", check=False)
    assert refused.code == 1
    hidden.rename(storage)
    path = sdk(
        "one = client.get_checkpoint(uuid)\n"
        "one.write_metadata_file(file)\n"
        "result = one.download(path=path, mode=client.DownloadMode.MASTER)",
        uuid=uuids[4],
        path=str(tmp_path / "sdk"),
        file=str(tmp_path / "said.json"),
    )
    assert path == str(tmp_path / "sdk")
    assert (tmp_path / "sdk" / "weights").read_text() == "w" * 10
    assert json.loads((tmp_path / "said.json").read_text())["steps_completed"] == 4


@BOTH
def test_words_about_a_checkpoint(sdk: Sdk, saved: Saved) -> None:
    """Added, replaced and taken back; the steps stay."""
    uuid = by_step(sdk, saved()[0])[1]
    said = sdk(
        "one = client.get_checkpoint(uuid)\n"
        "one.add_metadata({'note': 'good', 'layers': [1, 2]})\n"
        "one.add_metadata({'note': 'better'})\n"
        "one.remove_metadata(['layers', 'steps_completed'])\n"
        "one.reload()\n"
        "result = one.metadata",
        uuid=uuid,
    )
    assert said == {"note": "better", "steps_completed": 1}


def test_some_files_are_removed(det: Det, sdk: Sdk, saved: Saved) -> None:
    """By pattern; without one the record follows what is there; without a file the checkpoint is deleted."""
    number, storage = saved()
    uuids = by_step(sdk, number)
    det("checkpoint", "rm", f"{uuids[1]},{uuids[2]}", "--glob", "**/optimizer.pt", "--yes")
    for step in (1, 2):
        assert state_of(sdk, uuids[step]) == "PARTIALLY_DELETED"
        assert not (storage / uuids[step] / "state" / "optimizer.pt").exists()
        assert (storage / uuids[step] / "weights").exists()
    sdk("client.get_checkpoint(uuid).remove_files(['**/*'])", uuid=uuids[1])
    assert state_of(sdk, uuids[1]) == "DELETED"
    (storage / uuids[3] / "weights").unlink()
    det("checkpoint", "rm", uuids[3])
    left = sdk("result = sorted(client.get_checkpoint(uuid).resources)", uuid=uuids[3])
    assert left == [".tenax-manifest.json", "metadata.json", "state/", "state/optimizer.pt"]
    sdk("client.get_checkpoint(uuid).remove_files([])", uuid=uuids[4])
    assert state_of(sdk, uuids[4]) == "COMPLETED"
    assert there(storage, uuids) == [2, 3, 4]


def test_checkpoints_are_deleted(det: Det, sdk: Sdk, saved: Saved) -> None:
    """Several at once; a registered one is refused, and so is a stranger's; the record stays."""
    number, storage = saved()
    uuids = by_step(sdk, number)
    det("checkpoint", "delete", f"{uuids[1]},{uuids[2]}", "--yes")
    assert there(storage, uuids) == [3, 4]
    assert [state_of(sdk, uuids[step]) for step in (1, 2, 3)] == ["DELETED", "DELETED", "COMPLETED"]
    gone = det("checkpoint", "download", uuids[1], "-o", "nowhere", check=False)
    assert "DELETED" in gone.err
    sdk("client.create_model('compat-kept').register_version(uuid)", uuid=uuids[3])
    refused = det("checkpoint", "delete", uuids[3], "--yes", check=False)
    assert refused.code == 1
    assert "version 1 of model compat-kept" in refused.err
    sdk("client.get_model('compat-kept').delete()")
    sdk("client.get_checkpoint(uuid).delete()", uuid=uuids[3])
    assert there(storage, uuids) == [4]
    assert det("checkpoint", "delete", "0d6e4079-4c8e-4f5f-9a39-2f4e2b1c0001", "--yes", check=False).code == 1


def test_a_policy_is_previewed_and_applied(det: Det, sdk: Sdk, saved: Saved) -> None:
    """What would go is said before it is asked; then the files are gone, and nothing else."""
    number, storage = saved()
    uuids = by_step(sdk, number)
    words = ("--save-experiment-best", "0", "--save-trial-best", "1", "--save-trial-latest", "1")
    # Nobody answers: it is shown, and nothing is done.
    asked = det("e", "set", "gc-policy", number, *words, check=False)
    assert "will delete 2 checkpoints with validations" in " ".join(asked.out.split())
    assert uuids[1] in asked.out
    assert uuids[2] not in asked.out
    assert there(storage, uuids) == [1, 2, 3, 4]
    assert "Set GC policy" in det("e", "set", "gc-policy", number, *words, "--yes").out
    wait_for(lambda: there(storage, uuids) == [2, 4] or None, "the end of two checkpoints")
    config = cast(dict[str, dict[str, Json]], sdk("result = client.get_experiment(number).config", number=number))
    kept = {name: config["checkpoint_storage"][name] for name in EVERYTHING}
    assert kept == {"save_experiment_best": 0, "save_trial_best": 1, "save_trial_latest": 1}


def test_the_policy_of_the_configuration_holds_at_the_end(sdk: Sdk, saved: Saved) -> None:
    """Without anybody asking."""
    number, storage = saved(save_trial_latest=0, save_experiment_best=1)
    uuids = by_step(sdk, number)
    wait_for(lambda: there(storage, uuids) == [2] or None, "one checkpoint to be left")


@BOTH
def test_metrics_of_trials_that_use_a_checkpoint(sdk: Sdk, finished: int) -> None:
    """None does, and that is no error."""
    found = sdk(
        "one = client.get_experiment(number).list_checkpoints()[0]\n"
        "result = [list(one.get_metrics()), list(one.get_metrics('validation'))]",
        number=finished,
    )
    assert found == [[], []]


def test_tensorboard_files_are_deleted(det: Det, sdk: Sdk, saved: Saved) -> None:
    """Of one experiment, with the command and with the SDK; asked again there is nothing to do."""
    number, storage = saved()
    events = [path for path in storage.glob("*/tensorboard/experiment/*") if path.name == str(number)]
    assert [bool(list(folder.rglob("*tfevents*"))) for folder in events] == [True]
    det("e", "delete-tb-files", number)
    assert not [path for path in events if path.exists()]
    sdk("client.get_experiment(number).delete_tensorboard_files()", number=number)


def test_an_experiment_is_deleted_with_all_its_files(det: Det, sdk: Sdk, saved: Saved) -> None:
    """Nothing of it is left where it kept its checkpoints."""
    number, storage = saved()
    det("e", "delete", number, "--yes")
    gone = "\n".join(
        (
            "try:",
            "    client.get_experiment(number)",
            "    result = False",
            "except Exception as error:",
            "    result = 'no experiment' in str(error) or '404' in str(error) or 'not' in str(error)",
        )
    )
    wait_for(lambda: sdk(gone, number=number) is True or None, "the end of the experiment")
    assert not [path for path in storage.rglob("*") if path.is_file()]
