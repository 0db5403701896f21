"""Every method of the SDK's `Experiment`, and those that make and find experiments, with what they do."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.client import BOTH, Det, Sdk
from tests.compat.experiments import CONFIG


@pytest.fixture
def paused(det: Det, config: Path, code: Path) -> Iterator[int]:
    """An experiment that waits to be activated; killed in the end."""
    made = det("e", "create", config, code, "--paused")
    number = int(made.out.split("Created experiment ")[1].split()[0])
    yield number
    det("e", "kill", number, check=False)


@BOTH
def test_create_get_and_wait(sdk: Sdk, code: Path, config: Path, tmp_path: Path) -> None:
    """From a map or a file, with more files; its first trial is waited for; what it is is told."""
    extra = tmp_path / "extra.txt"
    extra.write_text("more")
    made = sdk(
        "experiment = client.create_experiment(config, directory, includes=[extra], project_id=1)\n"
        "trial = experiment.await_first_trial()\n"
        "state = experiment.wait(interval=0.2)\n"
        "again = client.get_experiment(experiment.id)\n"
        "again.reload()\n"
        "result = [again.id, trial.id, state.value, again.name, again.config['max_restarts'], again.progress,\n"
        "          again.archived, again.project_id, again.workspace_id, repr(again)]",
        config={**CONFIG, "name": "by sdk"},
        directory=str(code),
        extra=str(extra),
    )
    assert isinstance(made, list)
    number = made[0]
    assert made[2:] == ["STATE_COMPLETED", "by sdk", 0, 1.0, False, 1, 1, f"Experiment(id={number})"]
    place = sdk("result = client.get_experiment(number).download_code(place)", number=number, place=str(tmp_path))
    with tarfile.open(str(place)) as tar:
        assert sorted(tar.getnames()) == ["extra.txt", "train.py"]
    by_file = sdk(
        "experiment = client.create_experiment(path)\nexperiment.kill()\nresult = experiment.name", path=str(config)
    )
    assert by_file == "compat"


@BOTH
def test_words(sdk: Sdk, paused: int) -> None:
    """Name, description, notes and labels, on the object and in the cluster."""
    told = sdk(
        "one = client.get_experiment(number)\n"
        "one.set_name('renamed')\n"
        "one.set_description('for a test')\n"
        "one.set_notes('# notes')\n"
        "one.add_label('x')\n"
        "one.add_label('y')\n"
        "one.add_label('x')\n"
        "first = sorted(one.labels)\n"
        "one.remove_label('x')\n"
        "second = sorted(one.labels)\n"
        "one.set_labels({'p', 'q'})\n"
        "other = client.get_experiment(number)\n"
        "result = [first, second, sorted(other.labels), other.name, other.description, other.notes]",
        number=paused,
    )
    assert told == [["x", "y"], ["y"], ["p", "q"], "renamed", "for a test", "# notes"]


@BOTH
def test_verbs(sdk: Sdk, paused: int) -> None:
    """Activate, pause, cancel, kill, archive and unarchive; each changes the state."""
    told = sdk(
        "one = client.get_experiment(number)\n"
        "seen = []\n"
        "def look():\n"
        "    one.reload()\n"
        "    seen.append([one.state.value, one.archived])\n"
        "look()\n"
        "one.activate()\n"
        "one.pause()\n"
        "look()\n"
        "one.cancel()\n"
        "one.kill()\n"
        "one.wait(interval=0.1)\n"
        "one.archive()\n"
        "look()\n"
        "one.unarchive()\n"
        "look()\n"
        "result = seen",
        number=paused,
    )
    assert told == [
        ["STATE_PAUSED", False], ["STATE_PAUSED", False], ["STATE_CANCELED", True], ["STATE_CANCELED", False],
    ]  # fmt: skip


@BOTH
def test_trials_and_checkpoints(sdk: Sdk, finished: int) -> None:
    """Listed in either order; the best checkpoint by the searcher's metric, or by another."""
    told = sdk(
        "from determined.experimental import OrderBy, client as _\n"
        "import warnings\n"
        "warnings.simplefilter('ignore')\n"
        "one = client.get_experiment(number)\n"
        "(trial,) = one.list_trials()\n"
        "(same,) = one.iter_trials(order_by=client.OrderBy.DESC, limit=1)\n"
        "(old,) = one.get_trials()\n"
        "(checkpoint,) = one.list_checkpoints()\n"
        "(by_metric,) = one.list_checkpoints(sort_by='score', order_by=client.OrderBy.DESC, max_results=5)\n"
        "top = one.top_checkpoint()\n"
        "(best,) = one.top_n_checkpoints(3)\n"
        "result = [trial.id == same.id == old.id,\n"
        "          len({checkpoint.uuid, by_metric.uuid, top.uuid, best.uuid}),\n"
        "          checkpoint.metadata['steps_completed']]",
        number=finished,
    )
    assert told == [True, 1, 3]


@BOTH
def test_list_experiments(sdk: Sdk, finished: int, paused: int) -> None:
    """By every filter, and in order."""
    sdk("client.get_experiment(number).set_labels({f'only here {number}'})", number=paused)
    told = sdk(
        "from determined.common.experimental.experiment import ExperimentSortBy, ExperimentState\n"
        "def ids(**wanted):\n"
        "    return [one.id for one in client.list_experiments(**wanted)]\n"
        "both = [finished, paused]\n"
        "result = [\n"
        "    ids(experiment_ids=both),\n"
        "    ids(experiment_ids=both, sort_by=ExperimentSortBy.ID, order_by=client.OrderBy.DESC),\n"
        "    ids(experiment_ids=both, states=[ExperimentState.PAUSED]),\n"
        "    ids(experiment_ids=both, name='FINISH'),\n"
        "    ids(labels=[f'only here {paused}']),\n"
        "    ids(experiment_ids=both, users=['admin']),\n"
        "    ids(experiment_ids=both, users=['determined'], project_id=1),\n"
        "    finished in ids(sort_by=ExperimentSortBy.SEARCHER_METRIC_VAL),\n"
        "]",
        finished=finished,
        paused=paused,
    )
    both = [finished, paused]
    assert told == [both, both[::-1], [paused], [finished], [paused], [], both, True]


@BOTH
def test_move_to_project(sdk: Sdk, paused: int) -> None:
    """The object knows where it is, too."""
    told = sdk(
        "space = client.create_workspace('compat-sdk-moves')\n"
        "project = space.create_project('target')\n"
        "one = client.get_experiment(number)\n"
        "one.move_to_project('compat-sdk-moves', 'target')\n"
        "moved = [one.project_id == project.id, one.workspace_id == space.id]\n"
        "other = client.get_experiment(number)\n"
        "moved.append(other.project_id == project.id)\n"
        "one.move_to_project('Uncategorized', 'Uncategorized')\n"
        "client.delete_workspace('compat-sdk-moves')\n"
        "result = moved",
        number=paused,
    )
    assert told == [True, True, True]


@BOTH
def test_delete_and_tensorboard_files(sdk: Sdk, paused: int) -> None:
    """Files that are not there are no error; a deleted experiment is gone."""
    told = sdk(
        "import time\n"
        "from determined.common.api import errors\n"
        "one = client.get_experiment(number)\n"
        "one.kill()\n"
        "one.wait(interval=0.1)\n"
        "one.delete_tensorboard_files()\n"
        "one.delete()\n"
        "result = False\n"
        "for _ in range(1200):\n"
        "    try:\n"
        "        one.reload()\n"
        "    except errors.NotFoundException:\n"
        "        result = True\n"
        "        break\n"
        "    time.sleep(0.1)",
        number=paused,
    )
    assert told is True


@BOTH
def test_pachyderm_configuration(sdk: Sdk) -> None:
    """It is read back as it was given; an experiment without one says so."""
    pachyderm = {
        "pachd": {"host": "pachd", "port": 80},
        "proxy": {"scheme": "http", "host": "proxy", "port": 80},
        "dataset": {"project": "p", "repo": "r", "commit": "c", "branch": "b", "token": "t"},
    }
    told = sdk(
        "one = client.create_experiment(config)\n"
        "one.kill()\n"
        "found = one.get_pachyderm_config()\n"
        "other = client.create_experiment(plain)\n"
        "other.kill()\n"
        "try:\n"
        "    other.get_pachyderm_config()\n"
        "except ValueError:\n"
        "    result = found",
        config={**CONFIG, "integrations": {"pachyderm": pachyderm}},
        plain=CONFIG,
    )
    assert told == pachyderm
